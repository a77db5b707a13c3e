#include "app/daemon/intake/sources.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "app/jobs/job_recognition.h"
#include "base/check.h"

namespace culprit::app {
namespace {

// Limits a storm of kernel messages to seven rounds a second.
constexpr TimeNs kKernelPauseNs = 150 * kNsPerMs;
constexpr size_t kRingRoundBytes = 1 << 20;
// The first lines of new files wait this long for one scan of processes. A tailer spends at most a fifth of
// its time on such waits.
constexpr TimeNs kLookPatienceNs = 3 * kNsPerSecond;
constexpr TimeNs kLookPauseNs = 15 * kNsPerSecond;

}  // namespace

// [trace] job: a reload may change it while the rings' worker reads it.
struct Sources::TraceJob {
  std::mutex mutex;
  std::string job;
  std::string get() {
    const std::lock_guard lock(mutex);
    return job;
  }
};

struct Sources::Rings {
  std::unique_ptr<ingest::RingReader> reader;
  std::unique_ptr<io::Timer> timer;
  std::unique_ptr<io::FolderWatch> watch;  // null: the folder is polled
  std::string folder;
  bool busy = false, watched = false, changed = false;
  TimeNs began_ns = kNoTime;           // monotonic
  std::unique_ptr<io::Worker> worker;  // destroyed first
};

struct Sources::Kernel {
  std::unique_ptr<ingest::KernelLog> log;
  std::unique_ptr<io::Poll> poll;
  std::unique_ptr<io::Timer> more;
  std::string trouble;  // last reported
};

namespace {

// Shared by all tailer threads: limits the time spent waiting for scans.
struct Patience {
  std::mutex mutex;
  TimeNs next_ns = 0;  // monotonic
  TimeNs next_wait(TimeNs now) {
    const std::lock_guard lock(mutex);
    if (now < next_ns) return 0;
    next_ns = now + kLookPauseNs;
    return kLookPatienceNs;
  }
};

TailsOptions tails_options(io::Env& env, const SourcesOptions& options) {
  TailsOptions out{options.allocate, options.take,           options.report_error, {},
                   options.pods,     options.stored_until_ns};
  if (!options.processes) return out;
  out.processes = [&env, watch = options.processes, patience = std::make_shared<Patience>()](TimeNs since) {
    auto view = watch->view(since, 0);
    if (view && view->began_ns >= since) return view;
    return watch->view(since, patience->next_wait(env.now(io::Clock::kMonotonic)));
  };
  return out;
}

}  // namespace

Sources::Sources(io::Env& env, SourcesOptions options)
    : env_(env),
      options_(std::move(options)),
      trace_job_(std::make_shared<TraceJob>()),
      tails_(std::make_unique<Tails>(env, tails_options(env, options_))) {}
Sources::~Sources() = default;

void Sources::start() {
  CULPRIT_CHECK(owner_.here());
  const Config& config = *options_.config;
  trace_job_->job = config.trace.job;
  tails_->start(config.files(), options_.known);
  if (!config.trace.rings.empty()) start_rings();
  if (config.kernel.enabled) start_kernel();
  if (config.journal.enabled) start_journal();
  if (!config.trace.socket.empty()) {
    trace_path_ = config.trace_address().substr(std::string_view("unix:").size());
    trace_retry_ = env_.timer([this] { start_trace(); });
    start_trace();
  }
  options_.config = nullptr;
}

void Sources::change(const Config& before, const Config& after, AskPositions positions,
                     std::function<void()> done) {
  {
    const std::lock_guard lock(trace_job_->mutex);
    trace_job_->job = after.trace.job;
  }
  if (before.logs == after.logs && before.dumps == after.dumps) return done();
  tails_->change(after.files(), std::move(positions), std::move(done));
}

// ---- rings

void Sources::start_rings() {
  auto worker = env_.worker("rings");
  if (!worker) return options_.report_error(worker.error().text + ": no ring is read");
  rings_ = std::make_unique<Rings>();
  rings_->worker = std::move(*worker);
  ingest::RingOptions options;
  options.folder = rings_->folder = options_.config->trace.rings;
  options.allocate = options_.allocate;
  const std::string proc = options_.processes ? options_.processes->proc() : "/proc";
  options.job_of = [configured = trace_job_, proc](const ingest::RingOwner& owner) {
    if (!owner.header_job.empty()) return owner.header_job;
    if (std::string job = configured->get(); !job.empty() || !owner.pid) return job;
    return job_of_process(proc, *owner.pid).value_or(kDefaultJob);
  };
  rings_->reader = std::make_unique<ingest::RingReader>(std::move(options), options_.known);
  rings_->timer = env_.timer([this] { ring_round(); });
  if (auto watch = env_.folder_watch([this](const std::string&) { rings_changed(); }))
    rings_->watch = std::move(*watch);
  ring_round();
}

// Open rings are read so often that they need no notification.
void Sources::rings_changed() {
  CULPRIT_CHECK(owner_.here());
  if (rings_->reader->stats().rings > 0) return;
  rings_->changed = rings_->busy;
  ring_round();
}

// Called after each round: another folder may have the path now.
void Sources::watch_rings(bool local) {
  rings_->watched = local && rings_->watch && rings_->watch->add(rings_->folder);
}

void Sources::ring_round() {
  CULPRIT_CHECK(owner_.here());
  if (rings_->busy || held_ || stopping_) return;
  rings_->busy = true;
  const ingest::RingReader::Round round{env_.now(io::Clock::kWall), env_.now(io::Clock::kMonotonic),
                                        kRingRoundBytes, rings_->watched};
  rings_->began_ns = round.now_mono;
  auto outcome = std::make_shared<ingest::RingReader::RingRead>();
  rings_->worker->submit(
      [reader = rings_->reader.get(), round, outcome] { *outcome = reader->round(round); },
      [this, outcome] {
        rings_->busy = false;
        for (const Error& e : outcome->problems) options_.report_error(e.text);
        if (!outcome->batch.opened.empty() || !outcome->batch.pieces.empty())
          options_.take(std::move(outcome->batch));
        if (stopping_) return became_idle();
        if (held_) return;
        watch_rings(outcome->local);
        const TimeNs now = env_.now(io::Clock::kMonotonic);
        const bool at_once = std::exchange(rings_->changed, false) || outcome->more;
        rings_->timer->start(at_once ? 0 : std::max<TimeNs>(kNsPerMs, outcome->next_ns - now));
      });
}

void Sources::committed(const Committed& offsets) {
  CULPRIT_CHECK(owner_.here());
  if (!rings_ || rings_->reader->stats().rings == 0 || offsets.empty()) return;
  rings_->worker->submit([reader = rings_->reader.get(), offsets] {
    for (const auto& [stream, offset] : offsets) reader->committed(stream, offset);
  });
}

// ---- kernel log

void Sources::start_kernel() {
  kernel_ = std::make_unique<Kernel>();
  kernel_->more = env_.timer([this] { read_kernel(); });
  read_kernel();
}

Status Sources::open_kernel() {
  // A duplicate: the service owns the original descriptor.
  const int handed = options_.kernel_descriptor;
  auto device = handed >= 0 ? ingest::adopt_kernel_device(fcntl(handed, F_DUPFD_CLOEXEC, 0))
                            : ingest::open_kernel_device();
  if (!device) return tl::unexpected(device.error());
  kernel_->log = std::make_unique<ingest::KernelLog>(
      std::move(*device), ingest::KernelOptions{options_.allocate, ingest::boot_fingerprint()},
      options_.known);
  return {};
}

// Reported once and retried: free descriptors may become available later.
void Sources::kernel_failed(const Error& error) {
  if (error.text != kernel_->trouble) options_.report_error(error.text);
  kernel_->trouble = error.text;
  kernel_->more->start(kRetryNs);
}

// The descriptor is polled only with credit and after it was read to the end.
void Sources::read_kernel() {
  CULPRIT_CHECK(owner_.here());
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
    kernel_->more->start(kKernelPauseNs);
  });
  if (poll)
    kernel_->poll = std::move(*poll);
  else
    kernel_->more->start(kNsPerSecond);
}

// ---- the journal

void Sources::start_journal() {
  JournalSourceOptions options;
  options.directory = options_.config->journal.directory;
  options.units = options_.config->journal.units;
  options.kernel = !options_.config->kernel.enabled;
  options.allocate = options_.allocate;
  options.take = options_.take;
  options.report_error = options_.report_error;
  journal_ = std::make_unique<JournalSource>(env_, std::move(options), options_.known);
  journal_->start();
}

// ---- the trace socket

void Sources::start_trace() {
  if (stopping_) return;
  ingest::TraceSocketOptions trace;
  trace.path = trace_path_;
  trace.job = kDefaultJob;  // another job's configuration does not apply to this socket
  for (const StreamState& state : options_.known)
    if (state.info.kind == OriginKind::kSocket && state.info.path == trace_path_)
      trace.known.push_back(state);
  trace.allocate = options_.allocate;
  trace.job_of = [this](const io::PeerCredentials& peer, std::function<void(std::string)> answer) {
    std::string job = trace_job_->get();
    if (!job.empty() || !options_.processes) return answer(std::move(job));
    options_.processes->job_of(peer.pid, std::move(answer));
  };
  trace.take = options_.take;
  trace.on_event = options_.on_trace_event;
  trace.report_error = options_.report_error;
  auto opened = ingest::TraceSocket::open(env_, std::move(trace));
  if (opened) {
    trace_ = std::move(*opened);
    if (!trace_trouble_.empty()) options_.report_error(trace_path_ + ": the trace socket is open");
    trace_trouble_.clear();
    if (held_) trace_->pause_all();
    return;
  }
  if (opened.error().text != trace_trouble_) options_.report_error(opened.error().text);
  trace_trouble_ = opened.error().text;
  trace_retry_->start(kRetryNs);
}

// ---- all sources

void Sources::pause() {
  CULPRIT_CHECK(owner_.here());
  held_ = true;
  tails_->pause();
  if (trace_) trace_->pause_all();
  if (journal_) journal_->pause();
}

void Sources::resume() {
  CULPRIT_CHECK(owner_.here());
  if (!held_) return;
  held_ = false;
  if (stopping_) return;
  if (trace_) trace_->resume_all();
  tails_->resume();
  if (rings_) ring_round();
  if (kernel_) kernel_->more->start(0);
  if (journal_) journal_->resume();
}

bool Sources::busy() const { return (rings_ && rings_->busy) || tails_->busy(); }

void Sources::stop(std::function<void()> idle) {
  CULPRIT_CHECK(owner_.here());
  stopping_ = true;
  idle_ = std::move(idle);
  trace_retry_.reset();
  trace_.reset();  // the socket first passes on its buffered lines
  if (kernel_) {
    kernel_->poll.reset();
    kernel_->more.reset();
  }
  if (journal_) journal_->stop();
  tails_->stop([this] { became_idle(); });
}

void Sources::became_idle() {
  if (busy() || !idle_) return;
  std::exchange(idle_, nullptr)();
}

void Sources::abandon() {
  CULPRIT_CHECK(owner_.here());
  tails_->abandon();
  if (rings_) rings_->worker->abandon();
}

// ---- statistics

std::optional<std::string> Sources::stuck(TimeNs mono) const {
  if (auto why = tails_->stuck(mono)) return why;
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
