#include "app/daemon/intake/process_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "app/daemon/engine/rule_watch.h"

namespace culprit::app {
namespace {

constexpr size_t kFollowed = 16'384;  // limit of files and processes of jobs
constexpr size_t kJobsSeen = 4096;
constexpr TimeNs kLookEvery = kNsPerSecond;
// Inverse of a scan's maximum share of a processor; a loaded host does not lower the rate
constexpr int64_t kShare = 20;
// Maximum age of a usable scan: twice LiveJobs' interval of checks of a running job.
constexpr TimeNs kViewCounts = 60 * kNsPerSecond;
// A scan stops by itself after two seconds, so a scan of this length hangs.
constexpr TimeNs kStuck = 20 * kNsPerSecond;
// Limit of the wait for the job of a trace socket's client.
constexpr TimeNs kAnswerWithin = kNsPerSecond;
constexpr int kGenerations = 16;     // generations between a job's process and its descendants
constexpr size_t kQuestions = 4096;  // limit of waiting questions about the trace socket's clients

}  // namespace

void JobAliveness::follow_file(const std::string& job, uint64_t device, uint64_t inode) {
  files_[{device, inode}] = job;
  if (files_.size() > kFollowed) files_.erase(files_.begin());
}

void JobAliveness::follow_process(const std::string& job, uint32_t pid) {
  Followed& followed = processes_[pid];
  if (followed.job != job) followed = {job, 0};
  if (processes_.size() > kFollowed) processes_.erase(processes_.begin());
}

void JobAliveness::join(const JobNames::Member& member) {
  chains_[{member.name, member.user}] = member.id;
  if (chains_.size() > kFollowed) chains_.erase(chains_.begin());
}

void JobAliveness::follow_pod(const std::string& pod, const std::string& job) {
  pods_[pod] = job;
  if (pods_.size() > kFollowed) pods_.erase(pods_.begin());
}

const std::string& JobAliveness::chain_of(const std::string& job, uint32_t uid) const {
  if (const auto pod = pods_.find(job); pod != pods_.end()) return pod->second;
  const auto known = chains_.find({job, uid});
  return known == chains_.end() ? job : known->second;
}

void JobAliveness::on_view(const ProcessView& view) {
  now_.clear();
  shown_.clear();
  writers_.clear();
  cut_ = view.cut;
  for (const auto& [pid, process] : view.processes) {
    if (process.job.empty()) continue;
    for (const std::string* job : {&process.job, &chain_of(process.job, process.uid)}) {
      now_.insert(*job);
      if (!process.by_environment && !process.by_user) shown_[*job].insert(process.uid);
    }
  }
  for (auto it = processes_.begin(); it != processes_.end();) {
    const auto there = view.processes.find(it->first);
    Followed& followed = it->second;
    const bool same = there != view.processes.end() &&
                      (followed.start_ticks == 0 || followed.start_ticks == there->second.start_ticks);
    if (same) {
      followed.start_ticks = there->second.start_ticks;
      now_.insert(followed.job);
    } else if (!view.cut) {
      // The process sent data, so it existed.
      if (ever_.size() < kJobsSeen) ever_.insert(followed.job);
      it = processes_.erase(it);
      continue;
    }
    ++it;
  }
  for (const auto& [file, pid] : view.writers)
    if (const auto followed = files_.find(file); followed != files_.end()) {
      now_.insert(followed->second);
      writers_[pid] = followed->second;
    }
  for (const std::string& job : now_)
    if (ever_.size() < kJobsSeen) ever_.insert(job);
}

std::set<uint32_t> JobAliveness::users_of(const std::string& job) const {
  const auto shown = shown_.find(job);
  return shown == shown_.end() || cut_ ? std::set<uint32_t>() : shown->second;
}

std::string JobAliveness::job_of(uint32_t pid, const ProcessView& view) const {
  const auto process = view.processes.find(pid);
  if (process == view.processes.end()) return {};
  if (const auto pod = pods_.find(process->second.job); pod != pods_.end()) return pod->second;
  if (!process->second.job.empty()) return process->second.job;
  const auto followed = processes_.find(pid);
  if (followed != processes_.end() && followed->second.start_ticks == process->second.start_ticks)
    return followed->second.job;
  // Searches the process and its ancestors for a writer of a file of the job.
  uint32_t at = pid;
  for (int i = 0; i < kGenerations && at > 1; ++i) {
    if (const auto writer = writers_.find(at); writer != writers_.end()) return writer->second;
    const auto there = view.processes.find(at);
    at = there == view.processes.end() ? 0 : there->second.parent;
  }
  return {};
}

std::optional<bool> JobAliveness::alive(const std::string& job) const {
  if (now_.contains(job)) return true;
  return ever_.contains(job) && !cut_ ? std::optional(false) : std::nullopt;
}

std::vector<JobAliveness::JobProcess> JobAliveness::processes_of(const std::string& job,
                                                                 const ProcessView& view) const {
  std::set<uint32_t> shown, claimed;  // pids
  for (const auto& [pid, process] : view.processes)
    if (process.job == job || chain_of(process.job, process.uid) == job)
      (process.by_environment || process.by_user ? claimed : shown).insert(pid);
  for (const auto& [pid, followed] : processes_) {
    const auto there = view.processes.find(pid);
    const bool same = there != view.processes.end() &&
                      (followed.start_ticks == 0 || followed.start_ticks == there->second.start_ticks);
    if (followed.job == job && same) shown.insert(pid);
  }
  for (const auto& [file, pid] : view.writers)
    if (const auto followed = files_.find(file); followed != files_.end() && followed->second == job)
      shown.insert(pid);
  std::set<uint32_t> users;
  for (const uint32_t pid : shown) users.insert(view.processes.at(pid).uid);
  // A claim is only a user's word: if nothing else shows the job and two users claim it, no claim counts.
  for (const uint32_t pid : claimed)
    if (shown.empty()) users.insert(view.processes.at(pid).uid);
  if (shown.empty() && users.size() > 1) return {};
  for (const uint32_t pid : claimed)
    if (users.contains(view.processes.at(pid).uid)) shown.insert(pid);
  std::vector<JobProcess> out;
  for (const auto& [pid, process] : view.processes) {
    uint32_t at = pid;
    for (int i = 0; i < kGenerations && at > 1 && !shown.contains(at); ++i) {
      const auto there = view.processes.find(at);
      at = there == view.processes.end() ? 0 : there->second.parent;
    }
    // A descendant that belongs to another job does not count for this job.
    const bool other = !process.job.empty() && process.job != job && !shown.contains(pid);
    if (at > 1 && shown.contains(at) && !other) out.push_back({pid, process.uid, process.start_ticks});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return out;
}

struct ProcessWatch::Shared {
  std::mutex mutex;
  std::condition_variable fresh;
  JobAliveness jobs;
  std::shared_ptr<const ProcessView> view;
  TimeNs seen_ns = kNoTime;  // monotonic: start of the view's scan
  bool asked = false;        // a scan was requested from the loop
  bool ends = false;
};

struct ProcessWatch::Question {
  TimeNs until_ns = 0;  // monotonic
  std::function<void(std::string)> answer;
};

ProcessWatch::ProcessWatch(io::Env& env, bool names_jobs, std::string proc)
    : env_(env),
      names_jobs_(names_jobs),
      proc_(std::move(proc)),
      shared_(std::make_shared<Shared>()),
      look_timer_(env.timer([this] { begin(); })),
      late_timer_(env.timer([this] { answer_late(); })) {}

Result<std::unique_ptr<ProcessWatch>> ProcessWatch::start(io::Env& env, bool names_jobs, std::string proc) {
  std::unique_ptr<ProcessWatch> out(new ProcessWatch(env, names_jobs, std::move(proc)));
  for (auto [worker, name] : {std::pair(&out->looks_, "processes"), std::pair(&out->asks_, "peers")}) {
    auto made = env.worker(name);
    if (!made) return tl::unexpected(made.error());
    *worker = std::move(*made);
  }
  out->begin();
  return out;
}

ProcessWatch::~ProcessWatch() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ends = true;
  }
  shared_->fresh.notify_all();
  if (looks_) looks_->abandon();
  if (asks_) asks_->abandon();
}

// ---- any thread

std::optional<bool> ProcessWatch::alive(const std::string& job) {
  request_look();
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  const std::lock_guard lock(shared_->mutex);
  if (shared_->seen_ns == kNoTime || now - shared_->seen_ns > kViewCounts) return std::nullopt;
  return shared_->jobs.alive(job);
}

bool ProcessWatch::shows(const std::string& job) {
  const std::lock_guard lock(shared_->mutex);
  return shared_->jobs.shows(job);
}

std::set<uint32_t> ProcessWatch::users_of(const std::string& job) {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  std::set<uint32_t> users;
  bool old = false;
  {
    const std::lock_guard lock(shared_->mutex);
    users = shared_->jobs.users_of(job);
    old = shared_->seen_ns == kNoTime || now - shared_->seen_ns > kViewCounts;
  }
  if (old) request_look();  // a trainer may have started since, next to a sidecar
  return users;
}

TimeNs ProcessWatch::looked_ns() {
  const std::lock_guard lock(shared_->mutex);
  return shared_->view ? shared_->view->began_ns : kNoTime;
}

void ProcessWatch::follow_file(const std::string& job, uint64_t device, uint64_t inode) {
  const std::lock_guard lock(shared_->mutex);
  shared_->jobs.follow_file(job, device, inode);
}

std::function<void(const std::string&, const std::string&)> ProcessWatch::pod_follower() const {
  return [shared = shared_](const std::string& pod, const std::string& job) {
    const std::lock_guard lock(shared->mutex);
    shared->jobs.follow_pod(pod, job);
  };
}

void ProcessWatch::join(const JobNames::Member& member) {
  const std::lock_guard lock(shared_->mutex);
  shared_->jobs.join(member);
}

void ProcessWatch::follow_process(const std::string& job, uint32_t pid) {
  const std::lock_guard lock(shared_->mutex);
  shared_->jobs.follow_process(job, pid);
}

void ProcessWatch::request_look() {
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ends || std::exchange(shared_->asked, true)) return;
    env_.post([this, shared = shared_] {  // posted under the lock, so the Env still exists
      if (!shared->ends) wanted();
    });
  }
}

std::shared_ptr<const ProcessView> ProcessWatch::view(TimeNs since_ns, TimeNs patience_ns) {
  const auto is_fresh = [shared = shared_, since_ns] {
    return shared->ends || (shared->view && shared->view->began_ns >= since_ns);
  };
  {
    const std::lock_guard lock(shared_->mutex);
    if (is_fresh() || patience_ns <= 0) return shared_->view;
  }
  request_look();
  std::unique_lock lock(shared_->mutex);
  shared_->fresh.wait_for(lock, std::chrono::nanoseconds(patience_ns), is_fresh);
  return shared_->view;
}

std::map<uint32_t, ProcessWatch::Belongs> ProcessWatch::jobs_of(const std::set<uint32_t>& pids,
                                                                TimeNs since_ns, TimeNs patience_ns) {
  std::map<uint32_t, Belongs> out;
  const auto seen = view(since_ns, patience_ns);
  if (!seen) return out;
  const std::lock_guard lock(shared_->mutex);
  for (const uint32_t pid : pids) {
    const auto process = seen->processes.find(pid);
    if (process != seen->processes.end()) out[pid] = {shared_->jobs.job_of(pid, *seen), process->second.uid};
  }
  return out;
}

std::vector<JobAliveness::JobProcess> ProcessWatch::processes_of(const std::string& job, TimeNs since_ns,
                                                                 TimeNs patience_ns) {
  const auto now = view(since_ns, patience_ns);
  const std::lock_guard lock(shared_->mutex);
  return now ? shared_->jobs.processes_of(job, *now) : std::vector<JobAliveness::JobProcess>();
}

// ---- the loop

void ProcessWatch::wanted() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->asked = false;
  }
  if (busy_) {
    again_ = true;
    return;
  }
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (now >= next_ns_) return begin();
  look_timer_->start(next_ns_ - now);
}

void ProcessWatch::begin() {
  if (busy_) return;
  busy_ = true;
  look_timer_->stop();
  began_ns_ = env_.now(io::Clock::kMonotonic);
  ProcessLook look;
  look.proc = proc_;
  look.names_jobs = names_jobs_;
  look.now = env_.now(io::Clock::kWall);
  look.timer = [] {
    return static_cast<TimeNs>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
  };
  auto counters = std::make_shared<Counters>();
  looks_->submit(
      [shared = shared_, look = std::move(look), began = began_ns_, counters] {
        const TimeNs began_cpu = thread_time();
        auto view = std::make_shared<const ProcessView>(look_at_processes(look));
        counters->last_took_ns = thread_time() - began_cpu;
        counters->processes = view->processes.size();
        for (const auto& [pid, process] : view->processes) counters->barred += process.barred;
        {
          const std::lock_guard lock(shared->mutex);
          shared->jobs.on_view(*view);
          shared->view = std::move(view);
          shared->seen_ns = began;
        }
        shared->fresh.notify_all();
      },
      [this, began = began_ns_, counters] {
        counters_.processes = counters->processes;
        counters_.barred = counters->barred;
        counters_.last_took_ns = counters->last_took_ns;
        ended(began);
      });
}

void ProcessWatch::ended(TimeNs began_ns) {
  busy_ = false;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  ++counters_.looks;
  next_ns_ = began_ns + std::max(kLookEvery, kShare * counters_.last_took_ns);
  if (std::exchange(again_, false)) look_timer_->start(std::max<TimeNs>(0, next_ns_ - now));
}

void ProcessWatch::job_of(uint32_t pid, std::function<void(std::string)> answer) {
  if (questions_.size() >= kQuestions) return answer({});
  const uint64_t id = next_question_++;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (questions_.empty()) late_timer_->start(kAnswerWithin);
  questions_[id] = {now + kAnswerWithin, std::move(answer)};
  // A hung query occupies the thread; more queries are not queued behind it.
  if (asks_->queued() > kQuestions) return;
  auto job = std::make_shared<std::string>();
  asks_->submit([proc = proc_, pid, job] { *job = job_of_process(proc, pid).value_or(""); },
                [this, id, job] {
                  const auto found = questions_.find(id);
                  if (found == questions_.end()) return;  // already answered by answer_late()
                  const auto call = std::move(found->second.answer);
                  questions_.erase(found);
                  call(std::move(*job));
                });
}

void ProcessWatch::answer_late() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  std::vector<std::function<void(std::string)>> late;
  while (!questions_.empty() && questions_.begin()->second.until_ns <= now) {
    late.push_back(std::move(questions_.begin()->second.answer));
    questions_.erase(questions_.begin());
  }
  if (!questions_.empty()) late_timer_->start(questions_.begin()->second.until_ns - now);
  for (const auto& call : late) call({});
}

std::optional<TimeNs> ProcessWatch::stuck_ns(TimeNs mono) const {
  if (!busy_ || mono - began_ns_ < kStuck) return std::nullopt;
  return mono - began_ns_;
}

}  // namespace culprit::app
