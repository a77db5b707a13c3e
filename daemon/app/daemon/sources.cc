#include "app/daemon/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "app/daemon/job_recognition.h"

namespace culprit::app {
namespace {

// Between two rounds of one tailer: what is written meanwhile is taken at once, seven times a second at most.
// A round is seven wake-ups of threads, which cost more than the lines of a calm log; a line waits for half a
// pause, and a diagnosis may take 200 ms.
constexpr TimeNs kRoundPauseNs = 150 * kNsPerMs;
// Bytes of one round: the store and the engine find most of them in the cache that the tailer filled.
constexpr size_t kRoundBytes = 1 << 20;
constexpr size_t kRingRoundBytes = 1 << 20;
constexpr TimeNs kRetryNs = 5 * kNsPerSecond;
// Descriptors of all tailers together, out of the unit's 131,072; a plain shell gives 1,024.
constexpr size_t kTailDescriptors = 512;

}  // namespace

struct Sources::Follow {
  LogWatch config;
  std::unique_ptr<ingest::Tailer> tailer;
  std::unique_ptr<io::Timer> timer;
  bool busy = false, wanted = false;
  TimeNs began_ns = kNoTime;  // monotonic
  TimeNs next_ns = 0;
  std::vector<std::string> changed, watched, unwatched;
  std::unique_ptr<io::Worker> worker;  // goes first
};

struct Sources::Rings {
  std::unique_ptr<JobRecognition> jobs;  // the worker's
  std::unique_ptr<ingest::RingReader> reader;
  std::unique_ptr<io::Timer> timer;
  bool busy = false;
  std::unique_ptr<io::Worker> worker;  // goes first
};

struct Sources::Kernel {
  std::unique_ptr<ingest::KernelLog> log;
  std::unique_ptr<io::Poll> poll;
  std::unique_ptr<io::Timer> more;
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
  const Config& config = *options_.config;
  for (const LogWatch& log : config.logs) {
    auto jobs = JobRecognition::create({log.job, log.job_pattern});
    if (!jobs) {
      options_.complain(jobs.error().text);
      continue;
    }
    auto recognition = std::make_shared<JobRecognition>(std::move(*jobs));
    ingest::TailOptions tail;
    tail.glob = log.path;
    tail.job_of = [recognition](const std::string& path) { return recognition->of_file(path); };
    tail.allocate = options_.allocate;
    tail.open_max = std::max<size_t>(16, kTailDescriptors / config.logs.size());
    auto tailer = ingest::Tailer::make(std::move(tail), options_.known);
    if (!tailer) {
      options_.complain(tailer.error().text);
      continue;
    }
    auto follow = std::make_unique<Follow>();
    follow->config = log;
    follow->tailer = std::move(*tailer);
    follow->timer = env_.timer([this, f = follow.get()] { begin_round(*f); });
    follow->worker = env_.worker(fmt::format("tail-{}", follows_.size()));
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
  if (due <= now)
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
  round.unwatched = std::exchange(follow.unwatched, {});
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
  if (!rings_ || offsets.empty()) return;
  rings_->worker->submit([reader = rings_->reader.get(), offsets] {
    for (const auto& [stream, offset] : offsets) reader->committed(stream, offset);
  });
}

// ---- the kernel's messages

void Sources::start_kernel() {
  auto device = options_.kernel_descriptor >= 0 ? ingest::adopt_kernel_device(options_.kernel_descriptor)
                                                : ingest::open_kernel_device();
  if (!device) return options_.complain(device.error().text);
  kernel_ = std::make_unique<Kernel>();
  kernel_->log = std::make_unique<ingest::KernelLog>(
      std::move(*device), ingest::KernelOptions{options_.allocate, ingest::boot_fingerprint()},
      options_.known);
  kernel_->more = env_.timer([this] { read_kernel(); });
  kernel_->more->start(0);
}

// The descriptor is polled only while there is credit, and while nothing is known to be left in it.
void Sources::read_kernel() {
  kernel_->poll.reset();
  if (held_ || stopping_) return;
  auto outcome =
      kernel_->log->read({env_.now(io::Clock::kWall), env_.now(io::Clock::kMonotonic), kRingRoundBytes / 4});
  if (!outcome.batch.opened.empty() || !outcome.batch.pieces.empty()) options_.take(std::move(outcome.batch));
  if (outcome.error) return options_.complain(outcome.error->text);
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
  trace.job = trace_job_;
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
  for (auto& follow : follows_) follow->worker->abandon();
  if (rings_) rings_->worker->abandon();
}

// ---- what they have done

std::vector<Sources::Tail> Sources::tails() const {
  std::vector<Tail> out;
  for (const auto& follow : follows_) out.push_back({follow->config.path, follow->tailer->stats()});
  return out;
}

const ingest::RingStats* Sources::rings() const { return rings_ ? &rings_->reader->stats() : nullptr; }
const ingest::KernelStats* Sources::kernel() const { return kernel_ ? &kernel_->log->stats() : nullptr; }

std::optional<ingest::TraceStats> Sources::trace() const {
  if (!trace_) return std::nullopt;
  return trace_->stats();
}

}  // namespace culprit::app
