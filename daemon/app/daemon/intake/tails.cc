#include "app/daemon/intake/tails.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/jobs/job_recognition.h"
#include "base/check.h"
#include "ingest/live/watch_glob.h"
#include "io/descriptors.h"

namespace culprit::app {
namespace {

// Pause between two rounds of a tailer. A round wakes each thread, which costs more than a few hundred lines.
// A line of a busy log waits for half a pause on average, and a diagnosis may take 200 ms. The first line
// after a pause does not wait.
constexpr TimeNs kTailPauseNs = 300 * kNsPerMs;
// Precision of timers and hints: a round due within this time needs no timer.
constexpr TimeNs kExactNs = 2 * kNsPerMs;
// Bytes per round: small enough that the store and the engine find them in the CPU cache.
constexpr size_t kRoundBytes = 1 << 20;
// Limit of a reload's wait for a running round.
constexpr TimeNs kStopWithinNs = 3 * kNsPerSecond;
// limit of all tailers' descriptors: the unit allows 131,072; a plain shell allows 1,024
constexpr size_t kTailDescriptors = 512;
// Limit of all tailers' threads; the unit allows 64 tasks. A hung mount delays the tailers that share its
// thread.
constexpr size_t kTailWorkers = 32;
// Limit of abandoned threads, within the same 64 tasks; at the limit a reload waits.
constexpr size_t kLeftBehind = 12;

}  // namespace

// Input of one tailer: the tables of one folder. A file that several tables match, directly or by its rotated
// names, is thus one source.
struct Tails::Watched {
  struct Table {
    ingest::WatchGlob glob;
    JobRecognition jobs;
  };
  std::string root;                // the folder above the first wildcard
  std::vector<std::string> globs;  // below it
  std::vector<Table> tables;
  std::vector<LogWatch> configured;  // the tables as configured
  bool dumps = false;                // [[dump]] tables
  bool pods = false;                 // the table of the pods, which joins no other

  std::string glob() const {
    if (globs.size() == 1) return fmt::format("{}/{}", root, globs[0]);
    return fmt::format("{}/{{{}}}", root, fmt::join(globs, ","));
  }
  // The job according to the first matching table.
  std::string job_of(const std::string& path) const {
    std::string_view below = std::string_view(path).substr(tables[0].glob.root().size());
    below.remove_prefix(below.starts_with('/') ? 1 : 0);
    for (const Table& table : tables)
      if (table.glob.takes_path(below)) return table.jobs.of_file(path);
    return tables[0].jobs.of_file(path);
  }
};

Status Tails::add_table(const LogWatch& log, std::vector<Watched>& all) const {
  // The writer of a dump exits before any scan, so the only running job gets the dump.
  const auto processes = log.dumps ? nullptr : options_.processes;
  auto jobs = JobRecognition::create({log.job, log.job_pattern, processes, log.dumps ? "" : kDefaultJob});
  if (!jobs) return tl::unexpected(jobs.error());
  auto glob = ingest::WatchGlob::parse(log.path);
  if (!glob) return tl::unexpected(glob.error());
  const std::string root = log.path.substr(0, log.path.rfind('/', log.path.find_first_of("*?[{")));
  const std::string rest = log.path.substr(root.size() + 1);
  const auto joins = [&](const Watched& with) {
    // A comma in the pattern would split the joined pattern.
    if (with.root != root || with.dumps != log.dumps || with.pods || log.pods ||
        rest.find(',') != rest.npos || with.globs[0].find(',') != rest.npos)
      return false;
    Watched joined{root, with.globs, {}, {}, log.dumps, false};
    joined.globs.push_back(rest);
    return ingest::WatchGlob::parse(joined.glob()).has_value();  // parsing fails if the pattern has too many
                                                                 // alternatives
  };
  auto found = std::find_if(all.begin(), all.end(), joins);
  if (found == all.end()) found = all.insert(found, {root, {}, {}, {}, log.dumps, log.pods});
  found->globs.push_back(rest);
  found->tables.push_back({std::move(*glob), std::move(*jobs)});
  found->configured.push_back(log);
  return {};
}

struct Tails::Lane {
  std::unique_ptr<io::Worker> worker;
};

struct Tails::Follow {
  std::shared_ptr<const Watched> watched;
  std::string glob;
  std::shared_ptr<ingest::Tailer> tailer;  // shared with the current round, which may outlive this object
  std::unique_ptr<io::Timer> timer;
  bool busy = false, wanted = false, leaving = false;
  TimeNs began_ns = kNoTime;  // monotonic
  TimeNs next_ns = 0;
  std::vector<std::string> changed, watching;
  size_t lane = 0;
};

struct Tails::Change {
  std::vector<Watched> next;  // to be started
  size_t groups = 0;          // number of groups then
  AskPositions positions;
  std::function<void()> done;
  bool asked = false, reported = false;
};

Tails::Tails(io::Env& env, TailsOptions options)
    : env_(env), options_(std::move(options)), deadline_(env.timer([this] { leave_hung_behind(); })) {}
Tails::~Tails() = default;

std::vector<Tails::Watched> Tails::grouped(const std::vector<LogWatch>& logs) const {
  std::vector<Watched> out;
  for (const LogWatch& log : logs)
    if (const Status added = add_table(log, out); !added) options_.report_error(added.error().text);
  return out;
}

void Tails::start(const std::vector<LogWatch>& logs, const std::vector<StreamState>& known) {
  CULPRIT_CHECK(owner_.here());
  std::vector<Watched> all = grouped(logs);
  const size_t groups = all.size();
  for (Watched& one : all) follow(std::move(one), known, groups);
}

void Tails::follow(Watched&& one, const std::vector<StreamState>& known, size_t groups) {
  if (!folder_watch_) {
    auto watch = env_.folder_watch([this](const std::string& folder) { hint(folder); });
    if (watch)
      folder_watch_ = std::move(*watch);
    else if (follows_.empty())
      options_.report_error(watch.error().text + "; files are looked at now and then instead");
  }
  auto follow = std::make_unique<Follow>();
  follow->watched = std::make_shared<const Watched>(std::move(one));
  follow->glob = follow->watched->glob();
  ingest::TailOptions tail;
  tail.glob = follow->glob;
  if (follow->watched->dumps) tail.kind = OriginKind::kDump;
  tail.job_of = [watched = follow->watched](const std::string& path) { return watched->job_of(path); };
  if (follow->watched->pods && options_.pods) {
    tail.job_of = [pods = options_.pods](const std::string& path) { return pods->job_of(path); };
    tail.enter = [pods = options_.pods](const std::string& folder) { return pods->enter(folder); };
    tail.container_of = [pods = options_.pods](const std::string& path) { return pods->container_of(path); };
  }
  tail.allocate = options_.allocate;
  tail.stored_until_ns = options_.stored_until_ns;
  // Half of the process's descriptors; the tailers' folders use the other half.
  const size_t share = std::max<size_t>(1, io::input_descriptors() / 2 / groups);
  tail.open_max = std::min(std::max<size_t>(16, kTailDescriptors / groups), share);
  auto tailer = ingest::Tailer::make(std::move(tail), known);
  if (!tailer) return options_.report_error(tailer.error().text);
  follow->tailer = std::move(*tailer);
  follow->timer = env_.timer([this, f = follow.get()] { begin_round(*f); });
  follow->lane = free_lane();
  follows_.push_back(std::move(follow));
  begin_round(*follows_.back());
}

// The lane with the fewest tailers.
size_t Tails::free_lane() {
  std::vector<size_t> users(kTailWorkers);
  for (const auto& follow : follows_) ++users[follow->lane];
  const auto lane = static_cast<size_t>(std::min_element(users.begin(), users.end()) - users.begin());
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  return lane;
}

// Null if the process can create no more threads.
io::Worker* Tails::worker_of(Follow& follow) {
  std::unique_ptr<io::Worker>& worker = lanes_[follow.lane].worker;
  if (worker) return worker.get();
  auto made = env_.worker(fmt::format("tail-{}", follow.lane));
  if (!made) {
    options_.report_error(fmt::format("{}: {}; tried again", follow.glob, made.error().text));
    return nullptr;
  }
  worker = std::move(*made);
  return worker.get();
}

// ---- rounds

void Tails::hint(const std::string& folder) {
  CULPRIT_CHECK(owner_.here());
  const auto found = watched_.find(folder);
  if (found == watched_.end()) return;
  for (Follow* follow : found->second) {
    if (std::find(follow->changed.begin(), follow->changed.end(), folder) == follow->changed.end())
      follow->changed.push_back(folder);
    look(*follow);
  }
}

// Starts a round as soon as the pause since the last one is over. The timer covers a missed notification: one
// notification reports many folders, and a folder that missed the round would wait for the next one.
void Tails::look(Follow& follow) {
  CULPRIT_CHECK(owner_.here());
  follow.wanted = true;
  if (follow.busy || held_ || stopping_) return;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  TimeNs due = follow.began_ns == kNoTime ? now : follow.began_ns + kTailPauseNs;
  if (due <= now + kExactNs) due = now;
  if (follow.next_ns <= due && due > now) return;
  follow.next_ns = due;
  follow.timer->start(due - now);
}

void Tails::begin_round(Follow& follow) {
  CULPRIT_CHECK(owner_.here());
  if (follow.leaving) return;
  if (follow.busy || held_ || stopping_) {
    follow.wanted = true;
    return;
  }
  follow.timer->stop();
  io::Worker* worker = worker_of(follow);
  if (!worker) return follow.timer->start(kRetryNs);
  follow.busy = true;
  follow.wanted = false;
  ingest::TailRound round;
  round.now = env_.now(io::Clock::kWall);
  round.now_mono = follow.began_ns = env_.now(io::Clock::kMonotonic);
  round.budget_bytes = kRoundBytes;
  round.changed = std::exchange(follow.changed, {});
  round.watched = std::exchange(follow.watching, {});
  auto outcome = std::make_shared<ingest::TailOutcome>();
  worker->submit(
      [tailer = follow.tailer, round = std::move(round), outcome] { *outcome = tailer->round(round); },
      [this, f = &follow, outcome] { end_round(*f, std::move(*outcome)); });
}

void Tails::end_round(Follow& follow, ingest::TailOutcome&& outcome) {
  CULPRIT_CHECK(owner_.here());
  follow.busy = false;
  for (const Problem& p : outcome.problems)
    options_.report_error(p.file.empty() ? p.what : fmt::format("{}: {}", p.file, p.what));
  if (!follow.leaving) watch_folders(follow, outcome);
  if (!outcome.batch.opened.empty() || !outcome.batch.pieces.empty()) options_.take(std::move(outcome.batch));
  if (stopping_) {
    if (!busy() && idle_) std::exchange(idle_, nullptr)();
    return;
  }
  if (follow.leaving) return go_on_changing();
  if (outcome.more) {
    follow.wanted = true;
    if (!held_) begin_round(follow);
    return;
  }
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  const TimeNs soonest = follow.began_ns + kTailPauseNs;
  follow.next_ns =
      std::max(soonest, follow.wanted || !follow.watching.empty() ? soonest : outcome.next_mono_ns);
  follow.timer->start(std::max<TimeNs>(0, follow.next_ns - now));
}

void Tails::watch_folders(Follow& follow, ingest::TailOutcome& outcome) {
  if (!folder_watch_) return;
  for (const std::string& folder : outcome.unwatch) {
    auto& users = watched_[folder];
    users.erase(&follow);
    if (!users.empty()) continue;
    watched_.erase(folder);
    folder_watch_->remove(folder);
  }
  for (const std::string& folder : outcome.watch) {
    auto& users = watched_[folder];
    if (users.empty()) {
      if (const Status added = folder_watch_->add(folder); !added) {
        watched_.erase(folder);
        options_.report_error(added.error().text + "; its files are looked at now and then instead");
        continue;
      }
    }
    users.insert(&follow);
    follow.watching.push_back(folder);
  }
}

void Tails::forget_folders(Follow& follow) {
  for (auto it = watched_.begin(); it != watched_.end();) {
    it->second.erase(&follow);
    if (!it->second.empty()) {
      ++it;
      continue;
    }
    folder_watch_->remove(it->first);
    it = watched_.erase(it);
  }
}

// ---- change of tables

void Tails::change(const std::vector<LogWatch>& logs, AskPositions positions, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  change_ = std::make_unique<Change>();
  change_->positions = std::move(positions);
  change_->done = std::move(done);
  std::vector<Watched> all = grouped(logs);
  change_->groups = all.size();
  for (auto& follow : follows_) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Watched& watched) {
      return watched.configured == follow->watched->configured;
    });
    follow->leaving = same == all.end();
    if (same != all.end()) all.erase(same);
    if (!follow->leaving) continue;
    follow->timer->stop();
    forget_folders(*follow);
  }
  change_->next = std::move(all);
  deadline_->start(kStopWithinNs);
  go_on_changing();
}

void Tails::go_on_changing() {
  const auto under_way = [](const auto& follow) { return follow->leaving && follow->busy; };
  if (!change_ || change_->asked || std::any_of(follows_.begin(), follows_.end(), under_way)) return;
  deadline_->stop();
  std::erase_if(follows_, [](const auto& follow) { return follow->leaving; });
  change_->asked = true;
  change_->positions([this](const std::vector<StreamState>& known) { begin_changed(known); });
}

// Abandons a hung thread with all its tailers, since it is unknown which tailer hangs. Tailers of unchanged
// tables are restarted.
void Tails::leave_hung_behind() {
  std::set<size_t> hung;
  for (const auto& follow : follows_)
    if (follow->leaving && follow->busy) hung.insert(follow->lane);
  if (left_behind() + hung.size() > kLeftBehind) {
    if (!std::exchange(change_->reported, true))
      options_.report_error(
          fmt::format("{} threads hang in files that are followed no more: the reload waits", left_behind()));
    return deadline_->start(kStopWithinNs);
  }
  for (auto& follow : follows_) {
    if (!follow->busy || !hung.contains(follow->lane)) continue;
    options_.report_error(
        fmt::format("{}: its files have been read for {} without an end: they are left to a thread that "
                    "no one waits for",
                    follow->glob, format_duration(env_.now(io::Clock::kMonotonic) - follow->began_ns)));
    left_behind_.push_back(follow->tailer);
    if (!follow->leaving) {
      for (Watched& again : grouped(follow->watched->configured)) change_->next.push_back(std::move(again));
      forget_folders(*follow);
      follow->leaving = true;
    }
    follow->busy = false;
  }
  for (const size_t lane : hung) {
    lanes_[lane].worker->abandon();
    lanes_[lane].worker.reset();
    ++left_behind_total_;
  }
  if (stopping_ && !busy() && idle_) return std::exchange(idle_, nullptr)();
  go_on_changing();
}

void Tails::begin_changed(const std::vector<StreamState>& known) {
  const auto change = std::move(change_);
  if (stopping_) return;
  options_.stored_until_ns = kNoTime;  // the positions are complete
  for (Watched& one : change->next) follow(std::move(one), known, change->groups);
  change->done();
}

// ---- all tailers

void Tails::resume() {
  CULPRIT_CHECK(owner_.here());
  held_ = false;
  if (stopping_) return;
  for (auto& follow : follows_) begin_round(*follow);
}

bool Tails::busy() const {
  return std::any_of(follows_.begin(), follows_.end(), [](const auto& f) { return f->busy; });
}

void Tails::stop(std::function<void()> idle) {
  CULPRIT_CHECK(owner_.here());
  stopping_ = true;
  idle_ = std::move(idle);
  if (!busy()) std::exchange(idle_, nullptr)();
}

void Tails::abandon() {
  for (Lane& lane : lanes_)
    if (lane.worker) lane.worker->abandon();
}

std::vector<Tails::Tail> Tails::tails() const {
  std::vector<Tail> out;
  for (const auto& follow : follows_) out.push_back({follow->glob, follow->tailer->stats()});
  return out;
}

std::optional<std::string> Tails::stuck(TimeNs mono) const {
  for (const auto& follow : follows_)
    if (follow->busy && mono - follow->began_ns >= kStuckNs)
      return fmt::format("{}: its files have been read for {} without an end", follow->glob,
                         format_duration(mono - follow->began_ns));
  return std::nullopt;
}

size_t Tails::left_behind() const {
  return static_cast<size_t>(std::count_if(left_behind_.begin(), left_behind_.end(),
                                           [](const auto& tailer) { return !tailer.expired(); }));
}

}  // namespace culprit::app
