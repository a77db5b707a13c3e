#include "app/daemon/sources.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/daemon/job_recognition.h"
#include "ingest/live/watch_glob.h"

namespace culprit::app {
namespace {

// Between two rounds of one tailer: what is written meanwhile is taken at once, five times a second at most.
// A round wakes each thread, which costs more than the lines of a calm log; a line waits for half a pause,
// and a diagnosis may take 200 ms.
constexpr TimeNs kRoundPauseNs = 200 * kNsPerMs;
// Timers and hints come as exactly as this: a round that is due so soon needs no timer of its own.
constexpr TimeNs kExactNs = 2 * kNsPerMs;
// Bytes of one round: the store and the engine find most of them in the cache that the tailer filled.
constexpr size_t kRoundBytes = 1 << 20;
constexpr size_t kRingRoundBytes = 1 << 20;
constexpr TimeNs kRetryNs = 5 * kNsPerSecond;
// A round ends after some megabytes, so that a second is long for it: what takes this long hangs.
constexpr TimeNs kStuckNs = 20 * kNsPerSecond;
// Descriptors of all tailers together, out of the unit's 131,072; a plain shell gives 1,024.
constexpr size_t kTailDescriptors = 512;
// Threads of all tailers, out of the unit's 64 tasks: a hung mount holds up those that share its thread.
constexpr size_t kTailWorkers = 32;

// What one tailer follows: the tables of one folder, so that a file which several of them match, itself or by
// its rotated names, is one source.
struct Watched {
  struct Table {
    ingest::WatchGlob glob;
    JobRecognition jobs;
  };
  std::string root;                // the folder above the first wildcard
  std::vector<std::string> globs;  // below it
  std::vector<Table> tables;

  std::string glob() const {
    if (globs.size() == 1) return fmt::format("{}/{}", root, globs[0]);
    return fmt::format("{}/{{{}}}", root, fmt::join(globs, ","));
  }
  // Of the first table that matches.
  std::string job_of(const std::string& path) const {
    std::string_view below = std::string_view(path).substr(tables[0].glob.root().size());
    below.remove_prefix(below.starts_with('/') ? 1 : 0);
    for (const Table& table : tables)
      if (table.glob.takes_path(below)) return table.jobs.of_file(path);
    return tables[0].jobs.of_file(path);
  }
};

Status add_table(const LogWatch& log, std::vector<Watched>& all) {
  auto jobs = JobRecognition::create({log.job, log.job_pattern});
  if (!jobs) return tl::unexpected(jobs.error());
  auto glob = ingest::WatchGlob::parse(log.path);
  if (!glob) return tl::unexpected(glob.error());
  const std::string root = log.path.substr(0, log.path.rfind('/', log.path.find_first_of("*?[{")));
  const std::string rest = log.path.substr(root.size() + 1);
  const auto joins = [&](const Watched& with) {
    // A comma of its own would part the joined pattern.
    if (with.root != root || rest.find(',') != rest.npos || with.globs[0].find(',') != rest.npos)
      return false;
    Watched joined{root, with.globs, {}};
    joined.globs.push_back(rest);
    return ingest::WatchGlob::parse(joined.glob()).has_value();  // else of too many alternatives
  };
  auto found = std::find_if(all.begin(), all.end(), joins);
  if (found == all.end()) found = all.insert(found, {root, {}, {}});
  found->globs.push_back(rest);
  found->tables.push_back({std::move(*glob), std::move(*jobs)});
  return {};
}

}  // namespace

struct Sources::Follow {
  std::string glob;
  std::unique_ptr<ingest::Tailer> tailer;
  std::unique_ptr<io::Timer> timer;
  bool busy = false, wanted = false;
  TimeNs began_ns = kNoTime;  // monotonic
  TimeNs next_ns = 0;
  std::vector<std::string> changed, watched;
  io::Worker* worker = nullptr;  // one of tail_workers_
};

struct Sources::Rings {
  std::unique_ptr<JobRecognition> jobs;  // the worker's
  std::unique_ptr<ingest::RingReader> reader;
  std::unique_ptr<io::Timer> timer;
  bool busy = false;
  TimeNs began_ns = kNoTime;           // monotonic
  std::unique_ptr<io::Worker> worker;  // goes first
};

struct Sources::Kernel {
  std::unique_ptr<ingest::KernelLog> log;
  std::unique_ptr<io::Poll> poll;
  std::unique_ptr<io::Timer> more;
  std::string trouble;  // told last
};

Sources::Sources(io::Env& env, SourcesOptions options) : env_(env), options_(std::move(options)) {}
Sources::~Sources() = default;

void Sources::start() {
  const Config& config = *options_.config;
  if (!config.logs.empty()) start_tailers();
  if (!config.trace.rings.empty()) start_rings();
  if (config.kernel.enabled) start_kernel();
  if (!config.trace.socket.empty()) {
    trace_path_ = config.trace_address().substr(std::string_view("unix:").size());
    trace_job_ = config.trace.job;
    trace_retry_ = env_.timer([this] { start_trace(); });
    start_trace();
  }
  options_.config = nullptr;
}

// ---- files

void Sources::start_tailers() {
  auto watch = env_.folder_watch([this](const std::string& folder) { hint(folder); });
  if (watch)
    folder_watch_ = std::move(*watch);
  else
    options_.complain(watch.error().text + "; files are looked at now and then instead");
  std::vector<Watched> all;
  for (const LogWatch& log : options_.config->logs)
    if (const Status added = add_table(log, all); !added) options_.complain(added.error().text);
  for (Watched& one : all) {
    const auto watched = std::make_shared<const Watched>(std::move(one));
    ingest::TailOptions tail;
    tail.glob = watched->glob();
    tail.job_of = [watched](const std::string& path) { return watched->job_of(path); };
    tail.allocate = options_.allocate;
    tail.open_max = std::max<size_t>(16, kTailDescriptors / all.size());
    auto tailer = ingest::Tailer::make(std::move(tail), options_.known);
    if (!tailer) {
      options_.complain(tailer.error().text);
      continue;
    }
    auto follow = std::make_unique<Follow>();
    follow->glob = watched->glob();
    follow->tailer = std::move(*tailer);
    follow->timer = env_.timer([this, f = follow.get()] { begin_round(*f); });
    const size_t lane = follows_.size() % kTailWorkers;
    if (lane == tail_workers_.size()) tail_workers_.push_back(env_.worker(fmt::format("tail-{}", lane)));
    follow->worker = tail_workers_[lane].get();
    follows_.push_back(std::move(follow));
    begin_round(*follows_.back());
  }
}

void Sources::hint(const std::string& folder) {
  const auto found = watched_.find(folder);
  if (found == watched_.end()) return;
  for (Follow* follow : found->second) {
    if (std::find(follow->changed.begin(), follow->changed.end(), folder) == follow->changed.end())
      follow->changed.push_back(folder);
    look(*follow);
  }
}

// A round as soon as the pause since the last one is over.
void Sources::look(Follow& follow) {
  follow.wanted = true;
  if (follow.busy || held_ || stopping_) return;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  const TimeNs due = follow.began_ns == kNoTime ? now : follow.began_ns + kRoundPauseNs;
  if (due <= now + kExactNs)
    begin_round(follow);
  else if (follow.next_ns > due) {
    follow.next_ns = due;
    follow.timer->start(due - now);
  }
}

void Sources::begin_round(Follow& follow) {
  if (follow.busy || held_ || stopping_) {
    follow.wanted = true;
    return;
  }
  follow.busy = true;
  follow.wanted = false;
  follow.timer->stop();
  ingest::TailRound round;
  round.now = env_.now(io::Clock::kWall);
  round.now_mono = follow.began_ns = env_.now(io::Clock::kMonotonic);
  round.budget_bytes = kRoundBytes;
  round.changed = std::exchange(follow.changed, {});
  round.watched = std::exchange(follow.watched, {});
  auto outcome = std::make_shared<ingest::TailOutcome>();
  follow.worker->submit(
      [tailer = follow.tailer.get(), round = std::move(round), outcome] { *outcome = tailer->round(round); },
      [this, f = &follow, outcome] { end_round(*f, std::move(*outcome)); });
}

void Sources::end_round(Follow& follow, ingest::TailOutcome&& outcome) {
  follow.busy = false;
  for (const Problem& p : outcome.problems)
    options_.complain(p.file.empty() ? p.what : fmt::format("{}: {}", p.file, p.what));
  watch_folders(follow, outcome);
  if (!outcome.batch.opened.empty() || !outcome.batch.pieces.empty()) options_.take(std::move(outcome.batch));
  if (stopping_) return became_idle();
  if (outcome.more) {
    follow.wanted = true;
    if (!held_) begin_round(follow);
    return;
  }
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  const TimeNs soonest = follow.began_ns + kRoundPauseNs;
  follow.next_ns =
      std::max(soonest, follow.wanted || !follow.watched.empty() ? soonest : outcome.next_mono_ns);
  follow.timer->start(std::max<TimeNs>(0, follow.next_ns - now));
}

void Sources::watch_folders(Follow& follow, ingest::TailOutcome& outcome) {
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
        options_.complain(added.error().text + "; its files are looked at now and then instead");
        continue;
      }
    }
    users.insert(&follow);
    follow.watched.push_back(folder);
  }
}

// ---- rings

void Sources::start_rings() {
  auto jobs = JobRecognition::create({});
  if (!jobs) return options_.complain(jobs.error().text);
  rings_ = std::make_unique<Rings>();
  rings_->jobs = std::make_unique<JobRecognition>(std::move(*jobs));
  ingest::RingOptions options;
  options.folder = options_.config->trace.rings;
  options.allocate = options_.allocate;
  options.job_of = [jobs = rings_->jobs.get(),
                    fallback = options_.config->trace.job](const ingest::RingOwner& owner) {
    if (!owner.header_job.empty()) return owner.header_job;
    if (!fallback.empty() || !owner.pid) return fallback;
    return jobs->of_process(*owner.pid);
  };
  rings_->reader = std::make_unique<ingest::RingReader>(std::move(options), options_.known);
  rings_->timer = env_.timer([this] { ring_round(); });
  rings_->worker = env_.worker("rings");
  ring_round();
}

void Sources::ring_round() {
  if (rings_->busy || held_ || stopping_) return;
  rings_->busy = true;
  const ingest::RingReader::Round round{env_.now(io::Clock::kWall), env_.now(io::Clock::kMonotonic),
                                        kRingRoundBytes};
  rings_->began_ns = round.now_mono;
  auto outcome = std::make_shared<ingest::RingReader::Outcome>();
  rings_->worker->submit(
      [reader = rings_->reader.get(), round, outcome] { *outcome = reader->round(round); },
      [this, outcome] {
        rings_->busy = false;
        for (const Error& e : outcome->problems) options_.complain(e.text);
        if (!outcome->batch.opened.empty() || !outcome->batch.pieces.empty())
          options_.take(std::move(outcome->batch));
        if (stopping_) return became_idle();
        if (held_) return;
        const TimeNs now = env_.now(io::Clock::kMonotonic);
        rings_->timer->start(outcome->more ? 0 : std::max<TimeNs>(kNsPerMs, outcome->next_ns - now));
      });
}

void Sources::committed(const Committed& offsets) {
  if (!rings_ || rings_->reader->stats().rings == 0 || offsets.empty()) return;
  rings_->worker->submit([reader = rings_->reader.get(), offsets] {
    for (const auto& [stream, offset] : offsets) reader->committed(stream, offset);
  });
}

// ---- the kernel's messages

void Sources::start_kernel() {
  kernel_ = std::make_unique<Kernel>();
  kernel_->more = env_.timer([this] { read_kernel(); });
  read_kernel();
}

Status Sources::open_kernel() {
  // A copy: what was handed over outlives these sources, which a reload replaces.
  const int handed = options_.kernel_descriptor;
  auto device = handed >= 0 ? ingest::adopt_kernel_device(fcntl(handed, F_DUPFD_CLOEXEC, 0))
                            : ingest::open_kernel_device();
  if (!device) return tl::unexpected(device.error());
  kernel_->log = std::make_unique<ingest::KernelLog>(
      std::move(*device), ingest::KernelOptions{options_.allocate, ingest::boot_fingerprint()},
      options_.known);
  return {};
}

// Told once, and tried again: a machine that was out of descriptors has some later.
void Sources::kernel_failed(const Error& error) {
  if (error.text != kernel_->trouble) options_.complain(error.text);
  kernel_->trouble = error.text;
  kernel_->more->start(kRetryNs);
}

// The descriptor is polled only while there is credit, and while nothing is known to be left in it.
void Sources::read_kernel() {
  kernel_->poll.reset();
  if (held_ || stopping_) return;
  if (!kernel_->log)
    if (const Status opened = open_kernel(); !opened) return kernel_failed(opened.error());
  auto outcome =
      kernel_->log->read({env_.now(io::Clock::kWall), env_.now(io::Clock::kMonotonic), kRingRoundBytes / 4});
  if (!outcome.batch.opened.empty() || !outcome.batch.pieces.empty()) options_.take(std::move(outcome.batch));
  if (outcome.error) return kernel_failed(*outcome.error);
  kernel_->trouble.clear();
  if (outcome.more) return kernel_->more->start(0);
  auto poll = env_.poll(kernel_->log->descriptor(), [this] {
    // A storm of messages is read in rounds, like files.
    kernel_->poll.reset();
    kernel_->more->start(kRoundPauseNs);
  });
  if (poll)
    kernel_->poll = std::move(*poll);
  else
    kernel_->more->start(kNsPerSecond);
}

// ---- the trace socket

void Sources::start_trace() {
  if (stopping_) return;
  ingest::TraceSocketOptions trace;
  trace.path = trace_path_;
  trace.job = trace_job_.empty() ? kDefaultJob : trace_job_;  // evidence of one job is not another's
  for (const StreamState& state : options_.known)
    if (state.info.kind == OriginKind::kSocket && state.info.path == trace_path_)
      trace.known.push_back(state);
  trace.allocate = options_.allocate;
  if (trace_job_.empty())
    trace.job_of = [](const io::PeerCredentials& peer) {
      return job_of_process("/proc", peer.pid).value_or("");
    };
  trace.take = options_.take;
  auto opened = ingest::TraceSocket::open(env_, std::move(trace));
  if (opened) {
    trace_ = std::move(*opened);
    if (!trace_trouble_.empty()) options_.complain(trace_path_ + ": the trace socket is open");
    trace_trouble_.clear();
    if (held_) trace_->pause_all();
    return;
  }
  if (opened.error().text != trace_trouble_) options_.complain(opened.error().text);
  trace_trouble_ = opened.error().text;
  trace_retry_->start(kRetryNs);
}

// ---- all

void Sources::hold() {
  held_ = true;
  if (trace_) trace_->pause_all();
}

void Sources::release() {
  if (!held_) return;
  held_ = false;
  if (stopping_) return;  // a reload waits for the store
  if (trace_) trace_->resume_all();
  for (auto& follow : follows_) begin_round(*follow);
  if (rings_) ring_round();
  if (kernel_) kernel_->more->start(0);
}

bool Sources::busy() const {
  return (rings_ && rings_->busy) ||
         std::any_of(follows_.begin(), follows_.end(), [](const auto& f) { return f->busy; });
}

void Sources::stop(std::function<void()> idle) {
  stopping_ = true;
  idle_ = std::move(idle);
  trace_retry_.reset();
  trace_.reset();  // hands on what it holds
  if (kernel_) {
    kernel_->poll.reset();
    kernel_->more.reset();
  }
  became_idle();
}

void Sources::became_idle() {
  if (busy() || !idle_) return;
  std::exchange(idle_, nullptr)();
}

void Sources::abandon() {
  for (auto& worker : tail_workers_) worker->abandon();
  if (rings_) rings_->worker->abandon();
}

// ---- what they have done

std::vector<Sources::Tail> Sources::tails() const {
  std::vector<Tail> out;
  for (const auto& follow : follows_) out.push_back({follow->glob, follow->tailer->stats()});
  return out;
}

std::optional<std::string> Sources::stuck(TimeNs mono) const {
  for (const auto& follow : follows_)
    if (follow->busy && mono - follow->began_ns >= kStuckNs)
      return fmt::format("{}: its files have been read for {} without an end", follow->glob,
                         format_duration(mono - follow->began_ns));
  if (rings_ && rings_->busy && mono - rings_->began_ns >= kStuckNs)
    return fmt::format("the rings have been read for {} without an end",
                       format_duration(mono - rings_->began_ns));
  return std::nullopt;
}

const ingest::RingStats* Sources::rings() const { return rings_ ? &rings_->reader->stats() : nullptr; }
const ingest::KernelStats* Sources::kernel() const {
  return kernel_ && kernel_->log ? &kernel_->log->stats() : nullptr;
}

std::optional<ingest::TraceStats> Sources::trace() const {
  if (!trace_) return std::nullopt;
  return trace_->stats();
}

}  // namespace culprit::app
