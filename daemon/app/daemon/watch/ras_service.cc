#include "app/daemon/watch/ras_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "app/daemon/watch/ras_pods.h"
#include "app/jobs/process_view.h"
#include "base/heap_account.h"
#include "base/limits.h"
#include "core/detect/ras/follow.h"
#include "ingest/ras_reader.h"
#include "io/container.h"
#include "io/ras_client.h"
#include "model/ras_line.h"

namespace culprit::app {
namespace {

constexpr const char* kRasPath = "ras";
constexpr TimeNs kRasFastNs = 10 * kNsPerSecond;    // while a job stands
constexpr TimeNs kRasSoonestNs = 3 * kNsPerSecond;  // between two questions
constexpr uint32_t kRasFastRounds = 60;             // fast rounds without a change; a watchdog ends the job
                                                    // within 10 minutes
constexpr uint32_t kRasSlowest = 30;                // largest factor of the interval, for hosts with a late
                                                    // place in a job
constexpr size_t kRasAsksOfJob = 3, kRasAsks = 12;  // connections per round, if several jobs share the port
constexpr size_t kRasPodsOfJob = 2, kRasPods = 16;  // network namespaces entered per round
constexpr TimeNs kRasPodsNs = 30 * kNsPerSecond;    // limit of a round; the last request may exceed it
constexpr TimeNs kRasViewNs = 30 * kNsPerSecond;    // maximum age of the process scan
constexpr size_t kRasJobs = 64;                     // followed at a time
constexpr TimeNs kRasForgottenNs = 3600 * kNsPerSecond;

struct FollowedJob {
  ras::Follower follower;
  RasState last;
  TimeNs at_ns = kNoTime;
  uint32_t place = 0;    // position of this host among the job's hosts
  size_t processes = 0;  // process count of the last answer
  bool shown = false;    // the last emitted state showed a problem
};

bool shows_anything(const RasState& state) {
  return !state.comms.empty() || !state.exited.empty() || state.dead_processes + state.exited_processes > 0 ||
         state.still >= 2;
}

// Number of hosts with a lower rank in the largest communicator. The text form lacks hosts: the number of
// ranks replaces it, so that not all hosts query a large job at once.
uint32_t place_in_job(const RasAnswer& answer, const std::set<std::string>& own) {
  if (!answer.json) return answer.largest / 64;
  const RasComm* largest = nullptr;
  for (const RasComm& comm : answer.comms)
    if (!largest || comm.size > largest->size) largest = &comm;
  if (!largest) return 0;
  std::map<std::string, uint32_t> first;  // the lowest rank of a host
  for (const RasRank& rank : largest->ranks) {
    if (rank.member.process >= answer.processes.size()) continue;
    uint32_t& lowest =
        first.try_emplace(answer.processes[rank.member.process].host, UINT32_MAX).first->second;
    lowest = std::min(lowest, rank.member.rank);
  }
  uint32_t mine = UINT32_MAX, before = 0;
  for (const auto& [host, rank] : first)
    if (own.contains(host)) mine = std::min(mine, rank);
  for (const auto& [host, rank] : first) before += rank < mine;
  return before;
}

}  // namespace

// Used by the thread, except `stop`.
struct RasService::Shared {
  std::atomic<bool> stop{false};
  std::atomic<bool> barred{false};  // culprit-capture may not enter network namespaces; reset by a reload
  std::map<std::string, FollowedJob> jobs;
  std::string last_pod;
};

struct RasService::Round {
  std::vector<std::string> lines;
  Counters counters;
  std::string trouble;
  bool stalled = false, news = false;
  uint32_t place = kRasSlowest;
};

namespace {

// One round of RAS requests, on the thread.
class RasAsker {
 public:
  struct Parts {
    const std::vector<std::string>& addresses;
    const std::string& host;
    io::Env& env;
    ProcessWatch& processes;
    const std::atomic<bool>& stop;
    std::atomic<bool>& barred;
    bool pods;  // whether culprit-capture may be used
    const HelperWay& way;
    std::map<std::string, FollowedJob>& jobs;
    std::string& last_pod;  // the last job queried in its own network namespace
    const std::function<void(std::string_view)>& reading;
    const std::function<bool(std::string_view)>& left_out;
  };
  RasAsker(Parts parts, std::vector<std::string>& lines, RasService::Counters& counters)
      : p_(parts), lines_(lines), counters_(counters), own_(io::own_addresses()) {}

  void run() {
    forget();
    for (const std::string& address : p_.addresses) ask_all(address);
    if (p_.pods) ask_pods();
  }
  const std::string& trouble() const { return trouble_; }
  bool stalled() const { return stalled_; }
  bool news() const { return news_; }
  uint32_t place() const { return place_; }

 private:
  TimeNs wall() const { return p_.env.now(io::Clock::kWall); }
  TimeNs mono() const { return p_.env.now(io::Clock::kMonotonic); }

  void forget() {
    std::erase_if(p_.jobs, [&](const auto& job) { return wall() - job.second.at_ns > kRasForgottenNs; });
  }

  // A connection reaches any job of the user: more connections reach the other jobs.
  void ask_all(const std::string& address) {
    std::set<std::string> answered, local;
    size_t most = 1;
    for (size_t n = 0; n < most && !p_.stop; ++n) {
      io::RasQuestion question;
      question.address = address;
      question.stop = &p_.stop;
      question.proc = p_.processes.proc();
      std::string job;
      std::string input;
      uint32_t world = 0;
      question.may_ask = [&](const io::RasSocket& socket) {
        uint32_t pid = 0;
        job = job_of(socket, local, pid);
        world = pid > 0 ? world_of_process(p_.processes.proc(), pid) : 0;
        input = input_of(socket.uid);
        return !local.empty() && !p_.left_out(input);
      };
      Result<RasAnswer> answer = fail(ErrorCode::kInvalid, "is empty");
      question.read_answer = [&](const io::RasQuestion::Next& next) { answer = parse(input, world, next); };
      const auto reply = io::ask_ras(question);
      if (!reply && reply.error().code == ErrorCode::kDenied) {
        ++counters_.foreign;
        continue;
      }
      if (!reply) return failed(reply.error());
      if (!answer) return failed({answer.error().code, address + ": the answer " + answer.error().text});
      if (job.empty() && reply->socket) job = job_named(*answer, reply->socket->uid);
      if (job.empty())
        ++counters_.foreign;
      else if (answered.insert(job).second)
        follow(job, *answer, reply->socket->uid, own_);
      most = std::min(kRasAsks, local.size() < 2 ? 1 : kRasAsksOfJob * local.size());
      if (answered.size() >= std::max<size_t>(local.size(), 1)) return;
    }
  }

  static std::string input_of(uint32_t uid) { return fmt::format("RAS of user {}", uid); }

  // The black box names the answer during parsing, not while the thread waits for more bytes. `world`: ranks
  // of the job, 0: unknown.
  Result<RasAnswer> parse(const std::string& input, uint32_t world, const ingest::NextBytes& next) {
    auto out = ingest::parse_ras(
        [&] {
          p_.reading({});
          const std::string_view more = next();
          p_.reading(input);
          return more;
        },
        ingest::ras_bounds(world));
    p_.reading({});
    release_free_memory();
    return out;
  }

  // Queries jobs in separate network namespaces. One answer covers the whole job. A slow job takes time from
  // the others, so each round starts after the last job queried.
  void ask_pods() {
    if (p_.barred) return;
    const auto found = find_ras_pods(p_.processes, loopback_ports(p_.addresses), wall() - kRasViewNs);
    const TimeNs until = mono() + kRasPodsNs;
    size_t asked = 0;
    auto at = found.upper_bound(p_.last_pod);
    for (size_t n = 0; n < found.size(); ++n, ++at) {
      if (at == found.end()) at = found.begin();
      const auto& [job, pods] = *at;
      const size_t most = std::min(pods.size(), kRasPodsOfJob);
      for (size_t i = 0; i < most && !answered_.contains(job); ++i, ++asked) {
        if (asked == kRasPods || mono() > until || p_.barred) return;
        ask_pod(job, pods[i]);
      }
      p_.last_pod = job;
    }
  }

  void ask_pod(const std::string& job, const RasPod& pod) {
    if (p_.stop || p_.left_out(input_of(pod.uid))) return;
    const auto reply = ask_ras_pod(p_.way, pod, p_.stop);
    if (!reply && reply.error().code == ErrorCode::kDenied) {
      p_.barred = true;
      trouble_ = fmt::format(
          "job {} is in a network namespace of its own, which culprit-capture may not enter ({}): the "
          "drop-in "
          "capture-pods.conf allows it",
          job, reply.error().text);
      return;
    }
    const std::string where = fmt::format("job {}, network namespace of process {}: ", job, pod.target.pid);
    if (!reply) return failed({reply.error().code, where + reply.error().text});
    std::string_view text = reply->text;
    const uint32_t world = world_of_process(p_.processes.proc(), pod.target.pid);
    const auto answer = parse(input_of(pod.uid), world, [&] {
      const std::string_view part = text.substr(0, limits::kPieceBytes);
      text.remove_prefix(part.size());
      return part;
    });
    if (!answer) return failed({answer.error().code, where + "the answer " + answer.error().text});
    const Principal who = io::principal_of(reply->uid, pod.target.pid);
    follow(job, *answer, who, {reply->addresses.begin(), reply->addresses.end()});
  }

  void failed(const Error& error) {
    if (error.code == ErrorCode::kNotFound || p_.stop) return;  // no listener: the job does not use NCCL
    ++counters_.failures;
    trouble_ = error.text;
  }

  // The job of the process that owns the socket; empty: no job, or unreadable descriptors. Adds all jobs of
  // the process's user on this host to `local`. `owner`: the process.
  std::string job_of(const io::RasSocket& socket, std::set<std::string>& local, uint32_t& owner) {
    const auto view = p_.processes.view(wall() - kRasViewNs, kNsPerSecond);
    if (!view) return {};
    std::set<uint32_t> pids;
    for (const auto& [pid, process] : view->processes)
      if (process.uid == socket.uid) pids.insert(pid);
    std::string job;
    for (const auto& [pid, belongs] : p_.processes.jobs_of(pids, wall() - kRasViewNs, 0)) {
      if (belongs.job.empty()) continue;
      local.insert(belongs.job);
      if (job.empty() && io::has_socket(p_.processes.proc(), pid, socket.inode))
        job = belongs.job, owner = pid;
    }
    return job;
  }

  // The user's job on this host whose processes the answer names; empty: none, or several.
  std::string job_named(const RasAnswer& answer, uint32_t uid) {
    std::set<uint32_t> pids;
    for (const RasProcess& process : answer.processes)
      if (own_.contains(process.host)) pids.insert(process.pid);
    std::string job;
    for (const auto& [pid, belongs] : p_.processes.jobs_of(pids, wall() - kRasViewNs, 0)) {
      if (belongs.job.empty() || belongs.uid != uid) continue;
      if (!job.empty() && job != belongs.job) return {};
      job = belongs.job;
    }
    return job;
  }

  // `own`: addresses of this host's processes, in the answer's form.
  void follow(const std::string& job, const RasAnswer& answer, const Principal& who,
              const std::set<std::string>& own) {
    ++counters_.answers;
    answered_.insert(job);
    if (!p_.jobs.contains(job) && p_.jobs.size() >= kRasJobs) return;
    FollowedJob& followed = p_.jobs[job];
    const RasState before = std::exchange(followed.last, followed.follower.add(answer, wall()));
    RasState& state = followed.last;
    const bool first = followed.at_ns == kNoTime;
    followed.at_ns = state.at_ns;
    followed.place = place_in_job(answer, own);
    state.host = p_.host;
    followed.processes = answer.processes.size();
    for (const RasProcess& process : answer.processes)
      if (own.contains(process.host)) state.address = process.host;
    if (!who.is_uid(0) && !who.is_uid(::getuid())) state.user = who;
    place_ = std::min(place_, followed.place);
    const bool shows = shows_anything(state);
    stalled_ = stalled_ || shows;
    news_ = news_ || before.comms.size() != state.comms.size() || before.exited != state.exited;
    // A healthy state is emitted once at first and once after each unhealthy state.
    if (shows || followed.shown || first) lines_.push_back(ras_line(state, job));
    followed.shown = shows;
    forget_largest();
  }

  // Drops the largest jobs until the processes of all followed jobs fit into the limit.
  void forget_largest() {
    size_t all = 0;
    for (const auto& [job, followed] : p_.jobs) all += followed.processes;
    while (all > limits::kRasFollowed && p_.jobs.size() > 1) {
      const auto largest =
          std::ranges::max_element(p_.jobs, {}, [](const auto& entry) { return entry.second.processes; });
      all -= largest->second.processes;
      p_.jobs.erase(largest);
    }
  }

  Parts p_;
  std::vector<std::string>& lines_;
  RasService::Counters& counters_;
  const std::set<std::string> own_;
  std::set<std::string> answered_;  // jobs
  std::string trouble_;
  bool stalled_ = false, news_ = false;
  uint32_t place_ = kRasSlowest;
};

}  // namespace

RasService::RasService(io::Env& env, RasServiceOptions options)
    : env_(env),
      options_(std::move(options)),
      shared_(std::make_shared<Shared>()),
      timer_(env.timer([this] { ask(); })),
      source_(*options_.recorder, kRasPath) {
  start();
}

RasService::~RasService() { shared_->stop = true; }

void RasService::start() {
  if (options_.config->ras.enabled) timer_->start(std::min(kRasFastNs, options_.config->ras.interval_ns));
}

void RasService::reload() {
  shared_->barred = false;
  timer_->stop();
  if (!asking_) start();
}

void RasService::stop() {
  stopping_ = true;
  shared_->stop = true;
  timer_->stop();
}

void RasService::hurry() {
  if (asking_ || stopping_) return;
  const TimeNs passed = env_.now(io::Clock::kMonotonic) - asked_ns_;
  if (asked_ns_ != kNoTime && passed < kRasSoonestNs) return;
  timer_->stop();
  again_ = true;
  ask();
}

void RasService::ask() {
  if (asking_ || stopping_ || !options_.config->ras.enabled) return;
  if (!worker_) {
    auto worker = env_.worker("ras");
    if (!worker) return timer_->start(options_.config->ras.interval_ns);
    worker_ = std::move(*worker);
  }
  asking_ = true;
  asked_ns_ = env_.now(io::Clock::kMonotonic);
  auto round = std::make_shared<Round>();
  worker_->submit(
      [round, shared = shared_, addresses = options_.config->ras.addresses, host = options_.config->host.name,
       env = &env_, processes = options_.processes, pods = options_.config->capture.enabled,
       way = options_.way, reading = options_.reading, left_out = options_.left_out] {
        if (shared->stop) return;
        RasAsker asker({addresses, host, *env, *processes, shared->stop, shared->barred, pods, way,
                        shared->jobs, shared->last_pod, reading, left_out},
                       round->lines, round->counters);
        asker.run();
        round->trouble = asker.trouble();
        round->stalled = asker.stalled();
        round->news = asker.news();
        round->place = asker.place();
      },
      [this, round] { answered(std::move(*round)); });
}

void RasService::answered(Round&& round) {
  asking_ = false;
  if (stopping_) return;
  counters_.answers += round.counters.answers;
  counters_.failures += round.counters.failures;
  counters_.foreign += round.counters.foreign;
  if (round.trouble != trouble_ && !round.trouble.empty()) options_.inform("RAS: " + round.trouble);
  trouble_ = round.trouble;
  for (std::string& line : round.lines) give(std::move(line));
  const TimeNs interval = options_.config->ras.interval_ns;
  fast_rounds_ = round.stalled && !round.news ? fast_rounds_ + 1 : 0;
  const bool fast = round.stalled && fast_rounds_ < kRasFastRounds;
  const bool asked = round.counters.answers > 0;
  // A state counts once a second answer confirms it.
  const TimeNs soon = std::exchange(again_, false) && round.stalled ? kRasSoonestNs : kRasFastNs;
  const TimeNs base = fast ? std::min(soon, interval) : interval;
  if (options_.config->ras.enabled)
    timer_->start(base * (asked ? std::min(round.place, kRasSlowest - 1) + 1 : 1));
}

// Emits a line in the form of a finding about the host: the line goes to the job that it names.
void RasService::give(std::string line) {
  options_.take(source_.batch(std::move(line) + "\n", env_.now(io::Clock::kWall)));
}

}  // namespace culprit::app
