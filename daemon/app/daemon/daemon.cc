#include "app/daemon/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "app/daemon/api/cluster_view.h"
#include "app/daemon/api/collector_api.h"
#include "app/daemon/api/daemon_api.h"
#include "app/daemon/api/forwarding_api.h"
#include "app/daemon/collector/second_reading.h"
#include "app/daemon/self/memory_limit.h"
#include "app/jobs/job_recognition.h"
#include "base/limits.h"
#include "base/text.h"
#include "io/secret_file.h"

namespace culprit::app {
namespace {

// Limit after SIGTERM, since systemd and people expect an end; work that still hangs is abandoned.
constexpr TimeNs kEndWithinNs = 4 * kNsPerSecond;

// Jobs over all hosts for which a collector has an engine; ended jobs are dropped first.
constexpr size_t kCollectorJobs = 1024;

// Role "both" accepts agents if an address or a certificate for them is configured.
bool collects(const Config& config) {
  if (config.role == DaemonRole::kAgent) return false;
  const Config::Collector defaults;
  return config.role == DaemonRole::kCollector || config.collector.listen != defaults.listen ||
         config.collector.tls.used();
}

std::string deed(const Config& config) {
  return (config.watches() ? "watches " : "collects on ") + config.host.name;
}

// Null where none is configured.
Result<std::shared_ptr<const io::TlsCredentials>> credentials(const TlsFiles& files) {
  if (!files.used()) return nullptr;
  return io::TlsCredentials::load({files.cert, files.key, files.ca, files.crl});
}

// Limited by the processors that the service may use.
unsigned parsing_threads() { return std::min(2u, std::thread::hardware_concurrency()); }

}  // namespace

Daemon::Daemon(io::Env& env, DaemonOptions options, Log& log)
    : env_(env),
      options_(std::move(options)),
      log_(log),
      config_(options_.loaded.config),
      notify_(options_.service.notify_socket),
      job_names_(getuid()) {}

Daemon::~Daemon() {
  if (lock_ >= 0) close(lock_);
}

Result<std::unique_ptr<Daemon>> Daemon::start(io::Env& env, DaemonOptions options, Log& log) {
  std::unique_ptr<Daemon> agent(new Daemon(env, std::move(options), log));
  if (const Status begun = agent->begin(); !begun) return tl::unexpected(begun.error());
  return agent;
}

Status Daemon::begin() {
  counts_.started_ns = wall();
  if (auto made = io::real_files().make_folder(config_.state_dir); !made) return made;
  if (auto made = io::real_files().make_folder(config_.runtime_dir); !made) return made;
  if (const Status locked = lock_state(); !locked) return locked;

  auto box = BlackBox::open(config_.state_dir + "/black_box");
  if (box)
    black_box_ = std::move(*box);
  else
    report_error(box.error().text);
  auto plugin_box = BlackBox::open(config_.state_dir + "/black_box_of_plugins");
  if (plugin_box)
    plugin_box_ = std::move(*plugin_box);
  else
    report_error(plugin_box.error().text);
  const std::string quarantine = config_.state_dir + "/quarantine.json";
  auto stored = Quarantine::read(quarantine);
  if (!stored) report_error(stored.error().text);
  quarantine_ = std::make_unique<Quarantine>(stored ? std::move(*stored) : Quarantine(quarantine));
  learn_from_last_end();

  auto rules = load_first_rules();
  if (const Status opened = open_recorder(); !opened) return opened;

  for (const std::string& sentence : without_effect(config_)) report_error(sentence);

  auto processes = ProcessWatch::start(env_, config_.jobs.only.empty());
  if (!processes) return tl::unexpected(processes.error());
  processes_ = std::move(*processes);
  if (config_.watches() && config_.pods.enabled) pods_ = pod_logs(config_.pods, processes_->pod_follower());
  const Status started = forwards() ? start_uplink(std::move(rules)) : start_engine(std::move(rules));
  if (!started) return started;
  start_intake();
  make_api();
  http_->start();
  if (engine_)
    restore();
  else
    counts_.restored = true;
  if (!recorder_->ended_well()) report_lost();
  start_plugins();
  start_capture();
  start_sources(recorder_->known());
  start_ras();
  malloc_trim(0);  // frees memory that only loading the rules needed

  for (const int number : {SIGTERM, SIGINT})
    if (auto on = env_.on_signal(number, [this] { stop(); })) signals_.push_back(std::move(*on));
  if (auto on = env_.on_signal(SIGHUP, [this] { reload(); })) signals_.push_back(std::move(*on));
  beat_timer_ = env_.timer([this] { beat(); });
  beat_timer_->start(0, kNsPerSecond);
  log_.info(fmt::format("culpritd {} {} as {}", CULPRIT_VERSION, deed(config_),
                        options_.loaded.files.empty() ? "by default" : options_.loaded.files[0] + " says"));
  (void)notify_.ready("running");
  return {};
}

// Quarantines what the previous process died in, so that a repetition is prevented.
void Daemon::learn_from_last_end() {
  if (const auto crashed = plugin_box_.read_and_reset()) {
    if (const auto added = quarantine_->add(*crashed, counts_.started_ns); !added)
      report_error(added.error().text);
    report_error(fmt::format("the process before ended within plugin {}", crashed->id));
  }
  if (const auto crashed = black_box_.read_and_reset()) {
    const auto added = quarantine_->add(*crashed, counts_.started_ns);
    if (!added) report_error(added.error().text);
    const bool is_active = added && *added;
    report_error(fmt::format("the process before ended within {}: {}", crashed->id,
                             is_active ? "it is not run again until its text changes"
                                       : "once says little, should it come again it is not run any more"));
  }
  const auto unclean = black_box_.begin_run(oom_kills());
  black_box_.record_failed_allocations();
  died_of_memory_ = unclean && unclean->out_of_memory;
  if (!died_of_memory_) return;
  std::string sentence = "the process before ran out of memory: engines get half of theirs";
  for (const std::string& input : unclean->inputs) {
    if (input.empty()) continue;
    const auto added = quarantine_->add({BlackBox::Kind::kInput, input, 0, false}, counts_.started_ns);
    if (!added) report_error(added.error().text);
    sentence += fmt::format("; it read {}, which is not read again for a week", input);
  }
  // The engines' thread also reads dumps: while it read a dump, no engine worked.
  const bool dump = !unclean->inputs[static_cast<size_t>(BlackBox::Reader::kDumps)].empty();
  if (!unclean->job.empty() && !dump) {
    const auto added = quarantine_->add({BlackBox::Kind::kJob, unclean->job, 0, false}, counts_.started_ns);
    if (!added) report_error(added.error().text);
    sentence += fmt::format("; an engine worked on job {}{}", unclean->job,
                            added && *added ? ", again: it is kept as evidence only for a week" : "");
  }
  report_error(sentence);
}

std::function<void(std::string_view)> Daemon::reading(BlackBox::Reader reader) {
  return [this, reader](std::string_view name) { black_box_.enter_input(reader, name); };
}

std::function<bool(std::string_view)> Daemon::left_out() const {
  const auto names = quarantine_->inputs(counts_.started_ns);
  return [names = std::set<std::string, std::less<>>(names.begin(), names.end())](std::string_view name) {
    return names.contains(name.substr(0, BlackBox::kInputBytes));
  };
}

uint64_t Daemon::memory_of_engines(const Config& config) const {
  const uint64_t bytes = engine_memory(config.engine.memory, memory_limit());
  return died_of_memory_ ? bytes / 2 : bytes;
}

// No data is pending yet: a signal ends the load and the program at once.
Status Daemon::open_recorder() {
  RecorderOptions recorder;
  recorder.state_dir = config_.state_dir;
  recorder.max_bytes = config_.spool.max_size;
  recorder.watch = &watch_;
  recorder.report_error = [this](const std::string& what) { report_error(what); };
  recorder.committed = [this](const std::vector<store::CommittedOffset>& offsets, uint64_t sequence) {
    if (restore_) restore_->committed(sequence);
    if (late_) late_->committed(sequence);
    Committed out;
    for (const auto& [stream, offset] : offsets) out.emplace_back(stream, offset);
    if (sources_) sources_->committed(out);
  };
  recorder.hold = forwards();
  recorder.synced = [this] {
    if (pipeline_) pipeline_->evidence_synced();
  };
  auto opened = Recorder::open(env_, std::move(recorder));
  if (!opened) return tl::unexpected(opened.error());
  recorder_ = std::move(*opened);
  const store::SpoolStats found = recorder_->counters().spool;
  if (found.cut_bytes > 0 || found.damaged_frames > 0)
    report_error(
        fmt::format("spool: {} bytes behind the last sound frame were cut, {} damaged frames skipped",
                    found.cut_bytes, found.damaged_frames));
  return {};
}

// Two daemons on one state folder would overwrite each other's data.
Status Daemon::lock_state() {
  const std::string path = config_.state_dir + "/lock";
  lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_ < 0) return fail(ErrorCode::kIo, path + ": " + std::strerror(errno));
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::kLimit, config_.state_dir + ": another culpritd works with this folder");
  return {};
}

Status Daemon::start_engine(std::shared_ptr<rules::Ruleset> rules) {
  if (const Status stored = quarantine_->keep_only(rules->rules()); !stored)
    report_error(stored.error().text);
  rule_watch_ = std::make_unique<RuleWatch>(black_box_);
  EngineWorkerOptions options;
  LiveOptions& live = options.live;
  live.host = config_.host.name;
  live.roots = roots();
  if (config_.pods.enabled) live.pods = config_.pods.folder + "/";
  live.rules = std::move(rules);
  live.threads = parsing_threads();
  live.watch = rule_watch_.get();
  live.quarantined = quarantine_->rules();
  live.hang = {config_.hang.after_ns, config_.hang.steps};
  live.capture = capture_plan(config_);
  live.ended_after_ns = config_.jobs.ended_after_ns;
  live.uid = getuid();
  live.alive = [watch = processes_.get()](const std::string& job) { return watch->alive(job); };
  live.looked_ns = [watch = processes_.get()] { return watch->looked_ns(); };
  live.seen = follower();
  live.shown = [watch = processes_.get()](const std::string& job) { return watch->shows(job); };
  live.users_of = [watch = processes_.get()](const std::string& job) { return watch->users_of(job); };
  live.healthy = config_.collector.healthy;
  live.memory_max = memory_of_engines(config_);
  for (std::string& job : quarantine_->jobs(counts_.started_ns)) live.evidence_only.insert(std::move(job));
  live.working = [this](std::string_view job) { black_box_.enter_job(job); };
  live.reading = reading(BlackBox::Reader::kDumps);
  live.left_out = left_out();
  if (collects(config_)) live.jobs_max = kCollectorJobs;
  for (records::TaughtRow& row : recorder_->take_known_taught()) {
    auto pool = detect::Pool::load(row.text, "the normal pool: job " + row.job);
    if (!pool) {
      report_error(pool.error().text);
      continue;
    }
    live.taught.push_back({std::move(row.job), row.run, std::move(row.owner), std::move(row.why), row.time_ns,
                           std::move(*pool)});
  }
  options.watch = &watch_;
  options.rule_watch = rule_watch_.get();
  options.take = [this](std::vector<LiveEvent>&& events) { delivery_->deliver(events); };
  options.report_error = [this](const std::string& what) { report_error(what); };
  options.engine_memory = [this](const Config& config) { return memory_of_engines(config); };
  auto started = EngineWorker::start(env_, std::move(options));
  if (!started) return tl::unexpected(started.error());
  engine_ = std::move(*started);
  pipeline_ = engine_.get();
  late_ = std::make_unique<LateReading>(*recorder_, *engine_);
  if (collects(config_))
    if (const Status collecting = start_collecting(); !collecting) return collecting;
  delivery_ = std::make_unique<EventDelivery>(
      EventDeliveryParts{recorder_.get(), engine_.get(), collector_.get(), &log_,
                         [this](const peer::StacksWanted& wanted) { look_into(wanted); },
                         [this](const std::vector<LiveEvent>& events) {
                           alerts_->on_events(events);
                           verdicts_->on_events(events);
                         }});
  return start_alerts();
}

Status Daemon::start_alerts() {
  AlertServiceOptions options;
  options.config = &config_;
  verdicts_ = std::make_unique<VerdictFeed>(*recorder_, engine_.get());
  options.verdicts = verdicts_.get();
  options.engine = engine_.get();
  options.report_error = [this](const std::string& what) { report_error(what); };
  options.inform = [this](const std::string& what) { log_.info(what); };
  options.metrics = [this](std::function<void(std::string)> take) {
    source_->metrics([this, take = std::move(take)](const std::string& own) {
      source_->job_metrics([](const std::string&) { return true; },
                           [own, take](const std::string& jobs) { take(own + jobs); });
    });
  };
  options.started_ns = counts_.started_ns;
  options.watch = &watch_;
  auto opened = AlertService::open(env_, std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  alerts_ = std::move(*opened);
  verdicts_->subscribe([this](std::span<const RunVerdict> verdicts) { alerts_->on_verdicts(verdicts); });
  const auto log = [this](LogLevel level, const std::string& what) { say(level, what); };
  const Status sharing = start_sharing(
      env_, {&config_, recorder_.get(), engine_.get(), verdicts_.get(), log, scheduler_ids(recovery_)},
      sharing_);
  if (!sharing || config_.act.scheduler == Scheduler::kNone) return sharing;
  RecoveryServiceOptions recovery;
  recovery.config = &config_;
  if (sharing_.leases) recovery.gate = sharing_.leases->gate();
  recovery.engine = engine_.get();
  recovery.log = log;
  recovery.end_tasks = [this](const std::vector<std::string>& hosts, const peer::EndTasks& request) {
    if (collector_) collector_->ask(hosts, request);
    if (ends_ && std::find(hosts.begin(), hosts.end(), config_.host.name) != hosts.end()) ends_->end(request);
  };
  recovery.advise = [this](const std::vector<std::string>& hosts, const peer::Advise& request) {
    advice_api_->give(request, hosts);
  };
  recovery.questions = [this](std::span<const alert::Fault> open, std::span<const EndedQuestion> ended) {
    alerts_->on_questions(open, [&](const std::string& decision) {
      const auto at = std::ranges::find(ended, decision, &EndedQuestion::decision);
      return at == ended.end() ? AlertService::QuestionEnd{} : AlertService::QuestionEnd{at->end, at->by};
    });
  };
  recovery.check_host = [this](const std::string& host, const peer::Message& request) {
    if (!checks_ || host != config_.host.name) return collector_ && collector_->ask({host}, request) > 0;
    checks_->take(request);
    return true;
  };
  auto ready = RecoveryService::open(env_, std::move(recovery));
  // Without a readable ledger the rest works, and nothing is isolated or run again.
  if (!ready) {
    stopped_recovery_ = {"the controller did not start: " + ready.error().text, env_.now(io::Clock::kWall),
                         "culpritd --check && systemctl restart culpritd"};
    report_error(stopped_recovery_->text);
    return {};
  }
  recovery_ = std::move(*ready);
  verdicts_->subscribe_early(
      [this](std::span<const RunVerdict> verdicts) { recovery_->on_verdicts(verdicts); });
  return {};
}

Status Daemon::start_collecting() {
  auto tls = credentials(config_.collector.tls);
  if (!tls) return tl::unexpected(tls.error());
  CollectorServiceOptions options;
  options.state_dir = config_.state_dir;
  options.listen = config_.collector.listen;
  options.tls = std::move(*tls);
  options.max_bytes = config_.collector.retention_max_size;
  options.max_age_ns = config_.collector.retention_max_age_ns;
  options.read_twice_above = config_.collector.read_twice_above;
  options.engine = engine_.get();
  options.report_error = [this](const std::string& what) { report_error(what); };
  options.info = [this](const std::string& what) { log_.info(what); };
  options.presence = [this](const std::string& host, const std::string& boot) {
    if (recovery_) recovery_->see_agent(host, boot);
  };
  options.limits.checked = [this](const std::string& host, const peer::Message& result) {
    if (recovery_) recovery_->checked(host, result);
  };
  if (config_.cluster.used()) share_jobs(options, config_, sharing_.leases, recovery_);
  auto opened = CollectorService::open(env_, std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  collector_ = std::move(*opened);
  return {};
}

Status Daemon::start_uplink(std::shared_ptr<rules::Ruleset> rules) {
  UplinkOptions options;
  options.config = &config_;
  options.recorder = recorder_.get();
  options.watch = &watch_;
  options.feed.host = config_.host.name;
  options.feed.uid = getuid();
  options.feed.roots = roots();
  if (config_.pods.enabled) options.feed.pods = config_.pods.folder + "/";
  options.feed.rules = std::move(rules);
  options.feed.threads = parsing_threads();
  options.feed.alive = [watch = processes_.get()](const std::string& job) { return watch->alive(job); };
  options.feed.seen = follower();
  options.feed.users_of = [watch = processes_.get()](const std::string& job) { return watch->users_of(job); };
  options.feed.reading = reading(BlackBox::Reader::kDumps);
  options.feed.left_out = left_out();
  options.report_error = [this](const std::string& what) { report_error(what); };
  options.status = [this] { return peer_status(); };
  options.stacks_wanted = [this](const peer::StacksWanted& wanted) { look_into(wanted); };
  options.end_tasks = [this](const peer::EndTasks& request) {
    if (ends_) ends_->end(request);
  };
  options.check_host = [this](const peer::Message& request) {
    if (checks_) checks_->take(request);
  };
  options.advise = [this](const peer::Advise& request) {
    if (advice_) advice_->advise(request);
  };
  auto started = Uplink::start(env_, std::move(options));
  if (!started) return tl::unexpected(started.error());
  uplink_ = std::move(*started);
  pipeline_ = uplink_.get();
  return {};
}

peer::Status Daemon::peer_status() const {
  peer::Status out;
  out.started_ns = counts_.started_ns;
  const serve::Health health = source_->health();
  out.healthy = health.ok;
  if (!health.ok) out.trouble = health.sentence;
  out.read_bytes = recorder_->counters().spool.raw_bytes;
  if (sources_)
    for (const Tails::Tail& tail : sources_->tails().tails()) {
      out.sources += tail.stats.files;
      out.dropped_bytes += tail.stats.gap_bytes;
    }
  if (sources_ && sources_->rings()) out.dropped_records += sources_->rings()->dropped;
  if (sources_ && sources_->kernel()) out.dropped_records += sources_->kernel()->lost;
  if (sources_ && sources_->journal()) out.dropped_records += sources_->journal()->stats().lost;
  return out;
}

// ---- what was before

// Jobs that ran when the daemon ended continue: new engines ingest their evidence. For ended jobs, only data
// after their end is ingested.
void Daemon::restore() {
  RestoreOptions options;
  options.recorder = recorder_.get();
  options.engine = engine_.get();
  options.hold = [this] { intake_->hold_for_restore(); };
  options.done = [this](std::vector<SharedBatch>&& rest, const Result<store::ReadDamage>& damage) {
    restored(std::move(rest), damage);
  };
  restore_ = std::make_unique<Restore>(std::move(options));
  if (!collector_) return restore_->begin();
  // Inputs of other hosts come first; local batches wait in the spool meanwhile.
  engine_->query([ends = ends_of_runs(*recorder_)](LiveJobs& live, TimeNs) { live.restoring(ends); });
  collector_->restore({ended_jobs(*recorder_)}, [this](bool passed_over) {
    if (passed_over) engine_->begin_second(ends_of_runs(*recorder_));
    restore_->begin();
  });
  collector_->listen();
}

void Daemon::restored(std::vector<SharedBatch>&& rest, const Result<store::ReadDamage>& damage) {
  restore_.reset();
  counts_.restored = true;
  if (collector_) collector_->go_on();
  if (engine_->has_second())
    read_again({recorder_.get(), engine_.get(), collector_.get(),
                [this](const std::string& s) { log_.info(s); },
                [this](const std::string& s) { report_error(s); }, [this] { return stopping_; }});
  alerts_->restored();
  if (recovery_ && checks_) recovery_->see_agent(config_.host.name, "own");  // restarts with this process
  if (recovery_) recovery_->restored();
  if (!damage)
    report_error(damage.error().text);
  else if (damage->frames > 0)
    report_error(fmt::format("spool: {}; {} damaged frames are left out", damage->first, damage->frames));
  intake_->restored(std::move(rest));
}

// Reports data that a socket's peers sent and the killed previous process did not store. The data cannot be
// requested again, and its size is unknown.
void Daemon::report_lost() {
  PieceBatch batch;
  for (const StreamState& state : recorder_->known()) {
    if (state.info.kind != OriginKind::kSocket || state.ended) continue;
    Piece& piece = batch.pieces.emplace_back();
    piece.stream = state.info.id;
    piece.offset = state.size;
    piece.time_ns = counts_.started_ns;
    piece.gap = Gap{0, 0, "the daemon was killed: what it had received and not stored yet would be missing"};
  }
  if (!batch.pieces.empty()) intake_->take(std::move(batch));
}

// ---- the way of the bytes

void Daemon::start_intake() {
  IntakeParts parts{&counts_, recorder_.get(), pipeline_, {}, {}, {}};
  parts.restore = [this] { return restore_.get(); };
  parts.pause = [this] {
    if (sources_) sources_->pause();
  };
  parts.resume = [this] {
    if (sources_ && !stopping_) sources_->resume();
  };
  parts.observe = [this](const SharedBatch& batch) {
    if (plugins_) plugins_->append(batch);
  };
  for (const StreamState& known : recorder_->known()) job_names_.note(known.info);
  parts.name_job = [this](StreamInfo& opened) {
    if (pods_) opened.job = pods_->job_named(opened.job);
    if (!opened.job.empty()) opened.job = job_names_.id_of(opened, processes_->users_of(opened.job));
  };
  intake_ = std::make_unique<Intake>(std::move(parts));
}

void Daemon::start_plugins() {
  if (!config_.watches()) return;
  PluginServiceOptions options;
  options.config = &config_;
  options.recorder = recorder_.get();
  options.take = [this](PieceBatch&& batch) { intake_->take(std::move(batch)); };
  options.log = [this](LogLevel level, const std::string& what) { say(level, what); };
  options.entering = [this](std::string_view plugin) {
    plugin.empty() ? plugin_box_.leave() : plugin_box_.enter(BlackBox::Kind::kPlugin, plugin, 0);
  };
  options.crashed = quarantine_->plugins();
  plugins_ = std::make_unique<PluginService>(env_, std::move(options));
}

void Daemon::start_ras() {
  if (!config_.watches()) return;
  RasServiceOptions options;
  options.config = &config_;
  options.recorder = recorder_.get();
  options.processes = processes_.get();
  options.take = [this](PieceBatch&& batch) { intake_->take(std::move(batch)); };
  options.inform = [this](const std::string& what) { log_.info(what); };
  options.reading = reading(BlackBox::Reader::kRas);
  options.left_out = left_out();
  ras_ = std::make_unique<RasService>(env_, std::move(options));
}

// RAS is queried whether or not stack captures are allowed.
void Daemon::look_into(peer::StacksWanted wanted) {
  if (ras_) ras_->hurry();
  wanted.job = job_names_.known_as(wanted.job);
  if (capture_ && !wanted.ras_only) capture_->capture(wanted);
}

void Daemon::start_capture() {
  if (!config_.watches()) return;
  EndServiceOptions ending;
  ending.config = &config_;
  ending.processes = processes_.get();
  ending.known_as = [this](const std::string& job) { return job_names_.known_as(job); };
  ending.log = [this](LogLevel level, const std::string& what) { say(level, what); };
  ends_ = std::make_unique<EndService>(env_, std::move(ending));
  advice_ = std::make_unique<AdviceService>(
      env_, AdviceServiceOptions{&config_, processes_.get(),
                                 [this](const std::string& job) { return job_names_.known_as(job); },
                                 [this](LogLevel level, const std::string& what) { say(level, what); }});
  CheckServiceOptions checking;
  checking.config = &config_;
  checking.processes = processes_.get();
  checking.answer = [this](const peer::Message& result) {
    if (uplink_) return uplink_->send(result);
    if (recovery_) recovery_->checked(config_.host.name, result);
  };
  checking.log = [this](LogLevel level, const std::string& what) { say(level, what); };
  checking.recorder = recorder_.get();
  checking.take = [this](PieceBatch&& batch) { intake_->take(std::move(batch)); };
  checks_ = std::make_unique<CheckService>(env_, std::move(checking));
  CaptureServiceOptions options;
  options.config = &config_;
  options.recorder = recorder_.get();
  options.processes = processes_.get();
  options.take = [this](PieceBatch&& batch) { intake_->take(std::move(batch)); };
  options.log = [this](LogLevel level, const std::string& what) { say(level, what); };
  capture_ = std::make_unique<CaptureService>(env_, std::move(options));
  CopyServiceOptions copying;
  copying.config = &config_;
  copying.make_env = options_.make_env;
  copying.log = [this](LogLevel level, const std::string& what) { say(level, what); };
  auto copies = CopyService::start(env_, std::move(copying));
  if (copies)
    copies_ = std::move(*copies);
  else
    report_error("copies: " + copies.error().text);
}

// ---- HTTP

void Daemon::make_api() {
  AgentParts parts{&config_, &counts_, &watch_, recorder_.get(), engine_.get(), uplink_.get(), {}, {},
                   {},       {},       {}};
  parts.sources = [this] { return sources_.get(); };
  parts.http = [this] { return http_ ? http_->counts() : std::nullopt; };
  parts.plugins = [this] { return plugins_.get(); };
  parts.ras = [this] { return ras_.get(); };
  parts.capture = [this] { return capture_.get(); };
  parts.copies = [this] { return copies_.get(); };
  parts.alerts = alerts_.get();
  parts.verdicts = verdicts_.get();
  parts.recovery = recovery_.get();
  parts.leases = sharing_.leases.get();
  parts.shared = sharing_.reports.get();
  parts.judgements = sharing_.judgements.get();
  parts.shared_pools = sharing_.pools.get();
  if (recovery_)
    parts.repaired = [this](const std::string& host, const std::string& by) {
      recovery_->repaired(host, by);
    };
  if (uplink_ && config_.act.scheduler != Scheduler::kNone)
    stopped_recovery_ = {"the controller did not start: it runs in the collector, not with role agent",
                         counts_.started_ns, "culpritd --check && systemctl restart culpritd"};
  parts.stopped_recovery = stopped_recovery_;
  parts.access = read_access(config_, [this](const std::string& what) { report_error(what); });
  parts.reload = [this](std::function<void(Status)> done) { reload(std::move(done)); };
  parts.inform = [this](const std::string& what) { log_.info(what); };
  if (collector_)
    source_ = std::make_unique<CollectorApi>(env_, std::move(parts), *collector_);
  else if (uplink_)
    source_ = std::make_unique<ForwardingApi>(env_, std::move(parts));
  else
    source_ = std::make_unique<DaemonApi>(env_, std::move(parts));
  if (sharing_.reports) sharing_.reports->begin(source_->own_reports());
  api_ = std::make_unique<serve::Api>(env_, *source_, config_.host.name);
  advice_api_ = std::make_unique<AdviceApi>(
      env_, AdviceApi::Parts{&config_, engine_.get(), collector_.get(), [this] { return advice_.get(); }});
  api_->set_advice(advice_api_.get());
  if (sharing_.leases) api_->set_cluster([this] { return dump(cluster_members(*sharing_.leases)); });
  if (recovery_) {
    recovery_api_ = std::make_unique<RecoveryApi>(env_, *recovery_, *recorder_);
    api_->set_recovery(recovery_api_.get());
  } else if (stopped_recovery_) {
    stopped_recovery_api_ = std::make_unique<StoppedRecoveryApi>(config_, *stopped_recovery_);
    api_->set_recovery(stopped_recovery_api_.get());
  }
  if (delivery_) delivery_->publish_to(*api_);
  http_ = std::make_unique<HttpService>(
      env_, config_, *api_,
      [this](const serve::Reader& reader) { return source_->limited_to(reader) == nullptr; },
      [this](const std::string& what) { report_error(what); },
      [this](const std::string& what) { log_.info(what); });
}

// ---- itself

void Daemon::beat() {
  watch_.loop_beat(mono());
  black_box_.beat(oom_kills());
  if (counts_.holds != trimmed_after_ && counts_.store_bytes + counts_.engine_bytes == 0) {
    trimmed_after_ = counts_.holds;
    malloc_trim(0);  // what a flood took
  }
  report_hang();
  if (late_ && counts_.restored) late_->beat();
  if (verdicts_) verdicts_->beat();
  sharing_.beat(counts_.restored);
  if (recovery_) recovery_->beat();
  if (watch_.stuck(mono())) return;
  if (options_.service.watchdog_ns > 0) (void)notify_.feed_watchdog();
}

// Logs each hang once, since a hang lasts.
void Daemon::report_hang() {
  const auto why = watch_.stuck(mono());
  if (why && hung_.empty()) log_.error(*why);
  if (!why && !hung_.empty()) log_.info("it gets on again");
  hung_ = why.value_or("");
  if (why) black_box_.mark_over_time();
  const bool blind = processes_->stuck_ns(mono()).has_value();
  if (blind && !blind_)
    report_error("a look at the processes hangs in /proc: whether jobs live is not known");
  blind_ = blind;
}

void Daemon::report_error(const std::string& sentence) {
  ++counts_.errors_reported;
  log_.warning(sentence);
}

// Certificates apply to new connections; the collector closes connections that they do not cover.
void Daemon::reload_collecting() {
  collector_->set_retention(config_.collector.retention_max_size, config_.collector.retention_max_age_ns);
  auto tls = credentials(config_.collector.tls);
  if (tls)
    collector_->set_tls(std::move(*tls));
  else
    report_error(tls.error().text + "; the certificate of before holds");
}

// ---- end

void Daemon::stop() {
  if (stopping_) return;
  stopping_ = true;
  *leaving_ = true;
  if (restore_) restore_->stop();
  if (late_) late_->stop();
  (void)notify_.stopping();
  log_.info("ending");
  deadline_ = env_.timer([this] { give_up(); });
  deadline_->start(kEndWithinNs);
  beat_timer_->stop();
  if (ras_) ras_->stop();
  http_.reset();
  if (capture_) capture_->stop();
  if (ends_) ends_->stop();
  if (checks_) checks_->stop();
  if (copies_) copies_->stop();
  if (recovery_) recovery_->stop();
  sharing_.stop();
  // Stops the store first: the engine may have a long queue; the next start ingests the rest of it.
  const auto finish_rest = [this] { collector_ ? collector_->stop([this] { finish(); }) : finish(); };
  const auto finish_all = [this, finish_rest] { plugins_ ? plugins_->stop(finish_rest) : finish_rest(); };
  sources_ ? sources_->stop(finish_all) : finish_all();
}

void Daemon::finish() {
  const auto last = [this] {
    if (verdicts_) verdicts_->stop();
    alerts_ ? alerts_->stop([this] { save_jobs(); }) : save_jobs();
  };
  pipeline_->finish([this, last] { recorder_->finish(last); });
}

// Stores the jobs' current state, which a list of jobs shows after the next start. Rows of jobs that were not
// restored yet remain unchanged.
void Daemon::save_jobs() {
  if (!engine_ || !counts_.restored) return end();
  auto rows = std::make_shared<std::vector<records::JobRow>>();
  engine_->query(
      [rows](LiveJobs& live, TimeNs) {
        for (const LiveJobSummary& job : live.jobs())
          if (job.has_engine || job.state != JobState::kRunning) rows->push_back(job_row(job));
      },
      [this, rows] {
        recorder_->record([rows](records::Records& index) {
          Status status;
          for (const records::JobRow& row : *rows)
            if (const Status put = index.upsert_job(row); !put) status = put;
          return status;
        });
        recorder_->query([](store::Spool&, records::Records&) {}, [this] { end(); });
      });
}

// An abandoned thread in a dead mount may resume while its data is destroyed; _exit() prevents this.
void Daemon::end() {
  black_box_.end_run();
  const bool copies_ended = !copies_ || copies_->end();
  if (copies_ended && (!sources_ || sources_->tails().left_behind() == 0)) return env_.stop();
  log_.info("ended");
  _exit(0);
}

// Something hangs: a mount or a disk. Stored data is safe; the rest is read again.
void Daemon::give_up() {
  log_.error("something did not end in time and is left: what was not stored yet is read again");
  black_box_.leave();  // the rule or plugin that runs now is not to blame
  plugin_box_.leave();
  black_box_.end_run();
  _exit(0);
}

}  // namespace culprit::app
