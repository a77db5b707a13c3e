#include "alert_machine.h"

#include <fmt/format.h>

namespace culprit::sim {
namespace {

constexpr TimeNs kReadEvery = kNsPerSecond;

std::string path_of(const JobLog& log) { return fmt::format("/logs/{}.log", log.job); }

}  // namespace

// Rules cost no time here: whether one is too slow must not depend on the machine that simulates.
AlertMachine::AlertMachine(World& world, AlertMachinePlan plan, DiskFaults& disk)
    : world_(world),
      plan_(std::move(plan)),
      disk_(disk),
      log_(app::LogLevel::kError, false),
      rule_watch_(box_, [] { return TimeNs{0}; }) {}

bool AlertMachine::start() {
  disk_.set_dead(false);
  SimEnvOptions options;
  options.machine = "node-0";
  options.wall_at_start_ns += stepped_ns_;
  options.work_ns = plan_.work_ns;
  env_ = std::make_unique<SimEnv>(world_, options);
  if (const Status begun = begin(); !begun) {
    why_not_started = begun.error().text;
    return kill(), false;
  }
  return true;
}

Status AlertMachine::begin() {
  watch_ = app::SelfWatch();
  counts_ = {};
  counts_.started_ns = wall_ns();
  if (const Status opened = open_records(); !opened) return opened;
  if (const Status started = start_engine(); !started) return started;
  if (const Status opened = open_alerts(); !opened) return opened;
  make_intake_and_api();
  restore();
  read_.clear();
  for (const StreamState& known : recorder_->known()) read_[known.info.path] = {known.info.id, known.size};
  timer_ = env_->timer([this] { beat(); });
  timer_->start(0, kReadEvery);
  return {};
}

Status AlertMachine::open_records() {
  app::RecorderOptions options;
  options.state_dir = plan_.config.state_dir;
  options.watch = &watch_;
  options.report_error = [this](const std::string& what) { plan_.tell("  " + what); };
  options.committed = [this](const std::vector<store::CommittedOffset>&, uint64_t sequence) {
    if (restore_) restore_->committed(sequence);
  };
  auto opened = app::Recorder::open(*env_, std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  recorder_ = std::move(*opened);
  return {};
}

Status AlertMachine::start_engine() {
  app::EngineWorkerOptions options;
  options.live.host = plan_.config.host.name;
  options.live.roots = {"/logs/"};
  options.live.rules = plan_.rules;
  options.live.alive = [this](const std::string& job) -> std::optional<bool> {
    for (const JobLog& log : logs)
      if (log.job == job) return log.alive;
    return false;
  };
  options.watch = &watch_;
  options.rule_watch = &rule_watch_;
  options.take = [this](std::vector<app::LiveEvent>&& events) { delivery_->deliver(events); };
  options.report_error = [this](const std::string& what) { plan_.tell("  " + what); };
  auto started = app::EngineWorker::start(*env_, std::move(options));
  if (!started) return tl::unexpected(started.error());
  engine_ = std::move(*started);
  app::EventDeliveryParts parts{recorder_.get(), engine_.get(), nullptr, &log_};
  parts.recorded = [this](const std::vector<app::LiveEvent>& events) {
    alerts_->on_events(events);
    verdicts_->on_events(events);
  };
  delivery_ = std::make_unique<app::EventDelivery>(std::move(parts));
  return {};
}

Status AlertMachine::open_alerts() {
  verdicts_ = std::make_unique<app::VerdictFeed>(*recorder_, engine_.get());
  app::AlertServiceOptions options;
  options.config = &plan_.config;
  options.verdicts = verdicts_.get();
  options.engine = engine_.get();
  options.report_error = options.inform = [this](const std::string& what) { plan_.tell("  " + what); };
  options.started_ns = counts_.started_ns;
  options.deliver = [this](const app::DeliveryOrder& order) {
    return receivers.at(order.receiver.name).deliver(*env_, order);
  };
  auto opened = app::AlertService::open(*env_, std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  alerts_ = std::move(*opened);
  verdicts_->subscribe([this](std::span<const app::RunVerdict> verdicts) { alerts_->on_verdicts(verdicts); });
  verdicts_->subscribe([this](std::span<const app::RunVerdict> verdicts) { controller.read(verdicts); });
  return {};
}

void AlertMachine::make_intake_and_api() {
  app::IntakeParts intake{&counts_, recorder_.get(), engine_.get(), {}, {}, {}};
  intake.restore = [this] { return restore_.get(); };
  intake.pause = [this] { paused_ = true; };
  intake.resume = [this] { paused_ = false; };
  paused_ = false;
  intake_ = std::make_unique<app::Intake>(std::move(intake));
  app::AgentParts agent{
      &plan_.config, &counts_, &watch_, recorder_.get(), engine_.get(), nullptr, {}, {}, {}, {}, {}, {}};
  agent.sources = [] { return nullptr; };
  agent.http = [] { return std::nullopt; };
  agent.alerts = alerts_.get();
  agent.verdicts = verdicts_.get();
  api_ = std::make_unique<app::DaemonApi>(*env_, std::move(agent));
}

// As app::Daemon does.
void AlertMachine::restore() {
  app::RestoreOptions options;
  options.recorder = recorder_.get();
  options.engine = engine_.get();
  options.hold = [this] { intake_->hold_for_restore(); };
  options.done = [this](std::vector<app::SharedBatch>&& rest, const Result<store::ReadDamage>&) {
    restore_.reset();
    counts_.restored = true;
    alerts_->restored();
    intake_->restored(std::move(rest));
  };
  restore_ = std::make_unique<app::Restore>(std::move(options));
  restore_->begin();
}

void AlertMachine::beat() {
  watch_.loop_beat(env_->now(io::Clock::kMonotonic));
  verdicts_->beat();
  if (!paused_) read_logs();
}

void AlertMachine::read_logs() {
  PieceBatch batch;
  for (const JobLog& log : logs) {
    Reading& at = read_[path_of(log)];
    if (log.text.size() <= at.size) continue;
    if (at.stream == kNoStream) {
      StreamInfo info;
      info.id = at.stream = recorder_->allocate();
      info.job = log.job, info.path = path_of(log), info.uid = 0, info.opened_ns = wall_ns();
      batch.opened.push_back(info);
    }
    Piece& piece = batch.pieces.emplace_back();
    piece.stream = at.stream;
    piece.offset = at.size;
    piece.bytes = log.text.substr(at.size);
    piece.time_ns = piece.written_ns = wall_ns();
    at.size = log.text.size();
  }
  if (!batch.pieces.empty()) intake_->take(std::move(batch));
}

void AlertMachine::step_clock(TimeNs ns) {
  stepped_ns_ += ns;
  if (env_) env_->step_wall_clock(ns);
}

void AlertMachine::kill() {
  if (!env_) return;
  env_->kill(SimEnv::Death::kKilled);
  disk_.set_dead(true);
  timer_.reset();
  api_.reset();
  restore_.reset();
  intake_.reset();
  alerts_.reset();
  verdicts_.reset();
  delivery_.reset();
  engine_.reset();
  recorder_.reset();
  env_.reset();
  disk_.set_dead(false);
}

std::string AlertMachine::unfinished() const {
  std::string out;
  const auto add = [&out](bool is, std::string what) {
    if (is) out += (out.empty() ? "" : "; ") + what;
  };
  add(!counts_.restored, "it is not restored");
  add(counts_.store_bytes + counts_.engine_bytes > 0, "batches are under way");
  add(recorder_->counters().waiting > 0, "batches wait for the disk");
  add(!verdicts_->is_idle(), "verdicts are not published");
  add(alerts_->outbox().pending() > 0, fmt::format("{} messages wait", alerts_->outbox().pending()));
  for (const std::string& trouble : alerts_->troubles()) add(true, trouble);
  return out;
}

}  // namespace culprit::sim
