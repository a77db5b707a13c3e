#include "app/daemon/recover/recovery_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/daemon/recover/controller_options.h"
#include "app/daemon/recover/own_jobs.h"
#include "app/jobs/job_names.h"
#include "base/hash.h"
#include "model/recovery_json.h"
#include "respond/order.h"

namespace culprit::app {
namespace {

constexpr TimeNs kReadEvery = 5 * kNsPerSecond;
constexpr TimeNs kPruneEvery = 24LL * 3600 * kNsPerSecond;
// SIGTERM 5 s, SIGKILL, and a view of the scheduler; within the state's limit (Bounds::stop_ns).
constexpr TimeNs kTasksEndWithin = 12 * kNsPerSecond;
constexpr uint32_t kGraceMs = 5000;
// Between views while processes end: three times a view's own time, within these.
constexpr TimeNs kSoonest = 150 * kNsPerMs, kLatest = kNsPerSecond;
// A hold of ours that no order is at work on is finished; a failure to do so is repeated so often.
constexpr TimeNs kFinishEvery = 5 * kNsPerSecond;
// A requeue that slurmctld took up late. Later, the hold is another actor's.
constexpr TimeNs kHoldWithin = 900 * kNsPerSecond;
constexpr TimeNs kResetWanted = 1;  // in place of a time: the ledger was damaged
constexpr size_t kAgentsMost = 100'000;
constexpr size_t kAnswersMost = 4;  // of a host's checks, since the last beat

std::set<std::string> started_in(const std::vector<recover::Input>& inputs) {
  std::set<std::string> out;
  for (const recover::Input& input : inputs)
    if (const auto* started = std::get_if<recover::AttemptStarted>(&input)) out.insert(started->job.id);
  return out;
}

// Why nothing may be done; empty: the ledger is whole. It outlives a restart, until a person's reset.
Result<std::string> damage_of(store::RecoveryStore& store, const store::RecoveryRows& rows) {
  const std::string& aside = store.moved_aside();
  if (aside.empty() && rows.reset_ns != kResetWanted) return std::string();
  store::RecoveryRows wanted;
  wanted.reset_ns = kResetWanted;
  wanted.reset_by = "a damaged ledger";
  if (const Status noted = store.apply(wanted); !noted) return tl::unexpected(noted.error());
  const std::string where = aside.empty() ? "at an earlier start" : "and is at " + aside;
  return fmt::format("the controller's ledger was damaged {}: nothing is done until `culprit recover reset`",
                     where);
}

// Marks of decisions are on hosts and in comments of jobs that all members see, so their numbers differ: each
// member begins at seconds of a range of its own.
TimeNs numbers_from(const Config& config, TimeNs now) {
  constexpr uint64_t kRanges = 60;
  constexpr TimeNs kRange = 100'000'000 * kNsPerSecond;
  const std::string& name = config.cluster.name.empty() ? config.host.name : config.cluster.name;
  return now + static_cast<TimeNs>(hash64(name) % kRanges) * kRange;
}

Result<std::unique_ptr<OtherMembers>> join_members(
    io::Env& env, store::RecoveryStore& store, const std::shared_ptr<ActGate>& gate,
    store::RecoveryRows recent, const std::function<void(LogLevel, const std::string&)>& log) {
  const auto id = store.id();
  if (!id) return tl::unexpected(id.error());
  gate->use_ledger(*id);
  return OtherMembers::start(env, gate, std::move(recent), log);
}

Status start_workers(io::Env& env,
                     std::initializer_list<std::pair<std::unique_ptr<io::Worker>*, const char*>> named) {
  for (const auto& [worker, name] : named) {
    auto made = env.worker(name);
    if (!made) return tl::unexpected(made.error());
    *worker = std::move(*made);
  }
  return {};
}

}  // namespace

RecoveryService::RecoveryService(io::Env& env, RecoveryServiceOptions options)
    : env_(env),
      options_(std::move(options)),
      controller_(controller_options(options_.config->act)),
      log_(options_.config->state_dir + "/recover.inputs"),
      checks_(check_ways()),
      alignments_({[this](const std::string& host, const peer::Message& message) {
                     return options_.check_host && options_.check_host(host, message);
                   },
                   check_ways().boot_of, check_ways().job_on}),
      verdicts_(verdict_parts()) {
  soon_ = env_.timer([this] { look(); });
}

RecoveryService::~RecoveryService() {
  if (executor_) executor_->stop();
  if (rehearsal_) rehearsal_->stop();
  if (ledger_) ledger_->abandon();
  if (looker_) looker_->abandon();
  if (reader_) reader_->abandon();
}

Result<std::unique_ptr<RecoveryService>> RecoveryService::open(io::Env& env, RecoveryServiceOptions options) {
  auto store = store::RecoveryStore::open(options.config->state_dir + "/recover.db");
  if (!store) return tl::unexpected(store.error());
  auto rows = (*store)->load();
  if (!rows) return tl::unexpected(rows.error());
  SchedulerParts parts =
      options.scheduler ? options.scheduler() : scheduler_parts(*options.config, options.gate);
  if (!parts.sound) return tl::unexpected(parts.sound.error());
  std::unique_ptr<RecoveryService> out(new RecoveryService(env, std::move(options)));
  auto damage = damage_of(**store, *rows);
  if (!damage) return tl::unexpected(damage.error());
  out->damage_ = std::move(*damage);
  out->gate_ = parts.gate ? std::move(parts.gate) : out->options_.gate;
  parts.backend = gated(std::move(parts.backend), out->gate_);
  TimeNs lost_ns = out->damage_.empty() ? kNoTime : out->wall();
  out->damaged_ns_ = lost_ns;
  const bool shares = out->gate_ && out->gate_->shares_jobs();
  if (shares) lost_ns = numbers_from(out->config(), out->wall());
  store::RecoveryRows recent = shares ? recent_rows(*rows, out->wall()) : store::RecoveryRows();
  if (lost_ns != kNoTime) out->controller_.lost_ledger(lost_ns);
  out->log_.begin(controller_options(out->config().act), *rows, out->wall(), lost_ns);
  std::map<std::string, std::pair<TimeNs, std::string>> newest;
  for (ActionRecord& row : rows->actions) {
    if (row.state == ActionState::kReserved) out->reserved_.push_back(row.order.op);
    if (row.order.kind == OrderKind::kRunAgain && env.now(io::Clock::kWall) - row.reserved_ns < kPruneEvery)
      newest[row.order.job.id] = std::max(newest[row.order.job.id], std::pair(row.reserved_ns, row.order.op));
    if (!out->controller_.load(std::move(row)))
      return fail(ErrorCode::kInvalid, "recover.db: an action contradicts itself");
  }
  for (auto& [job, order] : newest) out->started_[job] = std::move(order.second);
  for (const AttemptRecord& row : rows->attempts) {
    out->jobs_.load(row);
    out->cost_.put(row);
    if (parts.load) parts.load(row);
  }
  for (AttemptRecord& row : rows->attempts)
    if (!out->controller_.load(std::move(row)))
      return fail(ErrorCode::kInvalid, "recover.db: an attempt contradicts itself");
  for (MachineRecord& row : rows->machines) out->controller_.load(std::move(row));
  if (rows->reset_ns != kNoTime && rows->reset_ns != kResetWanted)
    out->last_reset_ = {rows->reset_by, rows->reset_ns};
  out->store_ = std::move(*store);
  auto reader = store::RecoveryStore::open_reader(out->config().state_dir + "/recover.db");
  if (!reader) return tl::unexpected(reader.error());
  out->reader_store_ = std::move(*reader);
  const Status working = start_workers(
      env,
      {{&out->ledger_, "recovery ledger"}, {&out->looker_, "scheduler"}, {&out->reader_, "recovery reader"}});
  if (!working) return tl::unexpected(working.error());
  if (shares) {
    auto members = join_members(env, *out->store_, out->gate_, std::move(recent), out->options_.log);
    if (!members) return tl::unexpected(members.error());
    out->members_ = std::move(*members);
  }
  out->look_ = std::move(parts.look);
  out->look_every_ns_ = parts.look_every_ns;
  out->own_jobs_ = parts.own_jobs;
  out->may_keep_pool_ = std::move(parts.may_keep_pool);
  out->reload_scheduler_ = std::move(parts.reload);
  if (out->reload_scheduler_) out->reload_scheduler_(out->options_.config->act);
  for (auto [executor, backend] :
       {std::pair{&out->executor_, &parts.backend}, std::pair{&out->rehearsal_, &parts.rehearsal}}) {
    if (!*backend) continue;
    auto made = respond::Executor::make(env, std::move(*backend));
    if (!made) return tl::unexpected(made.error());
    *executor = std::move(*made);
  }
  return out;
}

JobVerdicts::Parts RecoveryService::verdict_parts() {
  JobVerdicts::Parts out;
  out.config = options_.config;
  out.jobs = &jobs_;
  out.controller = &controller_;
  out.last_start = [this](const std::string& job) -> const ActionRecord* {
    const auto op = started_.find(job);
    return op == started_.end() ? nullptr : controller_.actions().find(op->second);
  };
  out.note = [this](const recover::Note& one) { note(one); };
  out.warn = [this](const std::string& text) { options_.log(LogLevel::kWarning, text); };
  out.is_own = [this](const std::string& job) { return acts_for(gate_.get(), job); };
  return out;
}

// The controller begins with the first view of the scheduler: before, nothing is known of its jobs. A
// reserved action is given once more if it is young: the executor reads first whether it was done.
void RecoveryService::restored() {
  restored_ = true;
  if (options_.questions) options_.questions({}, {});  // none outlives a restart
  if (!look_ && !own_jobs_) begun_ = true, begin();
  run();
}

void RecoveryService::begin() {
  recover::Restored input;
  for (const std::string& op : std::exchange(reserved_, {})) input.read.push_back({op, false, true});
  std::vector<recover::Input> first{std::move(input)};
  if (last_reset_) first.push_back(*last_reset_);
  inputs_.insert(inputs_.begin(), std::make_move_iterator(first.begin()),
                 std::make_move_iterator(first.end()));
}

// The order of ours that holds the job; null: the hold is another actor's.
const ActionRecord* RecoveryService::own_hold(const respond::SeenJob& seen) const {
  if (!seen.requeued_held) return nullptr;
  const auto op = started_.find(seen.job.id);
  const ActionRecord* record = op == started_.end() ? nullptr : controller_.actions().find(op->second);
  const auto known = jobs_.known(seen.job.id);
  if (record == nullptr || !known || recover::key_of(*known) != recover::key_of(record->order.job))
    return nullptr;
  const bool other = record->order.job.restarts + 1 != seen.job.restarts ||
                     record->state == ActionState::kDone || record->state == ActionState::kFailed;
  const TimeNs held_ns = seen.job.submit_ns;  // in whole seconds
  const bool ours =
      held_ns + kNsPerSecond > record->reserved_ns && held_ns < record->reserved_ns + kHoldWithin;
  return other || !ours ? nullptr : record;
}

// The jobs that our own orders hold. A crash, or slurmctld's absence, leaves a job held that no order is at
// work on: its order goes on, whatever its state and the mode.
std::set<std::string> RecoveryService::own_holds(const respond::SchedulerView& view, TimeNs read_ns) {
  std::set<std::string> out;
  for (const respond::SeenJob& seen : view.jobs) {
    if (seen.state != respond::SeenJob::State::kHeld) continue;
    const auto starting = starting_.find(seen.job.id);
    const bool at_work = starting != starting_.end() && starting->second == kNoTime;
    const bool lately = starting != starting_.end() && !at_work && starting->second >= read_ns;
    const ActionRecord* ours = own_hold(seen);
    if (ours != nullptr || at_work || lately) out.insert(seen.job.id);
    const bool wait = starting != starting_.end() && read_ns - starting->second < kFinishEvery;
    if (ours == nullptr || ours->state == ActionState::kReserved || at_work || wait) continue;
    if (!acts_for(gate_.get(), seen.job.id)) continue;
    note({recover::NoteKind::kRecord,
          recover::key_of(ours->order.job),
          ours->order.decision,
          fmt::format("held by our order {}, which did not end: it goes on", ours->order.op),
          {}});
    carry_out(ours->order);
  }
  return out;
}

void RecoveryService::reload() {
  if (reload_scheduler_) reload_scheduler_(options_.config->act);
  give(controller_options(options_.config->act));
  run();
}

void RecoveryService::stop() {
  stopped_ = true;
  if (executor_) executor_->stop();
  if (rehearsal_) rehearsal_->stop();
}

void RecoveryService::beat() {
  if (stopped_ || !restored_) return;
  const TimeNs now = wall();
  if (looked_ns_ == kNoTime || now - looked_ns_ >= look_every_ns_ || now < looked_ns_ || !endings_.empty())
    look();
  if (read_ns_ == kNoTime || now - read_ns_ >= kReadEvery || now < read_ns_) read_progress();
  if (pruned_ns_ == kNoTime || now - pruned_ns_ >= kPruneEvery) {
    pruned_ns_ = now;
    query([now](store::RecoveryStore& store) { (void)store.prune(now); }, {});
    cost_.prune(now - store::kRecoveryRetention);
  }
  if (members_) members_->beat();
  check_endings();
  beat_checks();
  const TimeNs due = controller_.next_ns();
  if (due != kNoTime && due <= now && inputs_.empty()) give(recover::Tick{});
  run();
}

// ---- one step: decide, store, carry out

void RecoveryService::run() {
  if (stopped_ || !restored_ || !begun_ || writing_ || !may_act()) return;
  if (!unwritten_.empty()) return write();
  if (inputs_.empty() || !damage_.empty()) return;
  const std::vector<recover::Input> inputs = std::exchange(inputs_, {});
  const TimeNs now = wall();
  std::vector<recover::Order> orders = controller_.step(inputs, now);
  log_.step(inputs, now, orders);
  for (recover::Order& order : orders) {
    if (auto* action = std::get_if<ActionOrder>(&order)) {
      waiting_.push_back(std::move(*action));
    } else if (auto* check = std::get_if<recover::CheckOrder>(&order)) {
      check->kind == recover::CheckKind::kAlign ? alignments_.order(*check, wall())
                                                : checks_.order(*check, wall());
    } else if (auto* question = std::get_if<recover::Question>(&order)) {
      note({recover::NoteKind::kDecided, question->job, question->decision, "asks: " + question->text, {}});
      questions_.ask(std::move(*question), wall());
    } else if (const auto* advice = std::get_if<recover::AdviceOrder>(&order)) {
      if (options_.advise && acts_for(gate_.get(), advice->job.id))
        options_.advise(jobs_.hosts_of(advice->job.id), {verdicts_.name_of(advice->job.id), advice->decision,
                                                         peer::Advise::kAnyUser, advice->advice});
    } else {
      note(std::get<recover::Note>(order));
    }
  }
  unwritten_.actions = controller_.drain_actions();
  unwritten_.attempts = controller_.drain_attempts();
  unwritten_.machines = controller_.drain_machines();
  count_changes();
  settle_questions();
  write();
}

void RecoveryService::count_changes() {
  for (const AttemptRecord& row : unwritten_.attempts) cost_.put(row);
  for (const ActionRecord& row : unwritten_.actions)
    if (row.state != ActionState::kReserved || row.sent == 1) ++counts_.actions[{row.order.kind, row.state}];
}

// Each question is an alert while it is open.
void RecoveryService::settle_questions() {
  const auto ended =
      questions_.settle([&](const std::string& decision) { return controller_.asks(decision); }, wall());
  for (const EndedQuestion& one : ended) ++counts_.questions[one.end];
  if (!options_.questions || (ended.empty() && questions_.open().empty())) return;
  std::vector<alert::Fault> open;
  for (const auto& [decision, one] : questions_.open()) {
    const auto view = controller_.view(one.question.job);
    const std::string job = view ? view->job.id : "";
    open.push_back(alert_of(one.question, verdicts_.of(job), verdicts_.name_of(job)));
  }
  options_.questions(open, ended);
}

void RecoveryService::note(const recover::Note& note) {
  ++counts_.notes[std::string(recover::to_string(note.kind))];
  unwritten_.notes.push_back({wall(), std::string(recover::to_string(note.kind)), note.job, note.decision,
                              note.text, note.order ? to_json(ActionRecord{*note.order}) : ""});
  if (note.kind == recover::NoteKind::kWouldDo && note.order && rehearsal_) rehearse(*note.order);
  const bool loud = note.kind == recover::NoteKind::kHeld || note.kind == recover::NoteKind::kRefused;
  options_.log(loud ? LogLevel::kWarning : LogLevel::kInfo,
               fmt::format("controller: {}{}{}: {}", note.job, note.job.empty() ? "" : ": ",
                           recover::to_string(note.kind), note.text));
}

// What was decided is on the disk before it is carried out. If the disk fails, nothing is, and it is written
// again at the next beat.
void RecoveryService::write() {
  const auto orders = std::make_shared<std::vector<ActionOrder>>(std::exchange(waiting_, {}));
  const auto rows = std::make_shared<store::RecoveryRows>(std::exchange(unwritten_, {}));
  const auto status = std::make_shared<Status>();
  writing_ = true;
  write_log();
  ledger_->submit(
      [store = store_, rows, status] { *status = rows->empty() ? Status{} : store->apply(*rows); },
      [this, orders, rows, status] {
        writing_ = false;
        if (stopped_) return;
        if (!*status) {
          if (store_error_ != status->error().text)
            options_.log(LogLevel::kError, "recover.db: " + status->error().text);
          if (store_error_.empty()) store_since_ns_ = wall();
          store_error_ = status->error().text;
          waiting_ = std::move(*orders);
          // A person's word may have come meanwhile.
          store::RecoveryRows later = std::exchange(unwritten_, std::move(*rows));
          std::ranges::move(later.notes, std::back_inserter(unwritten_.notes));
          if (later.reset_ns != kNoTime)
            unwritten_.reset_ns = later.reset_ns, unwritten_.reset_by = std::move(later.reset_by);
          return;
        }
        store_error_.clear();
        if (members_) members_->put(*rows);
        for (const ActionOrder& order : *orders) carry_out(order);
        run();
      });
}

// The record of the inputs. It is for people, so its loss stops nothing.
void RecoveryService::write_log() {
  ledger_->submit(log_.take(), [this] {
    const std::string trouble = log_.trouble();
    if (!trouble.empty() && trouble != log_error_)
      options_.log(LogLevel::kWarning, "the controller's inputs are not recorded: " + trouble);
    log_error_ = trouble;
  });
}

void RecoveryService::carry_out(const ActionOrder& order) {
  ActionOrder now = order;
  // A requeue changes the time of submission. An order to run again is about the attempt that was decided on.
  const ScheduledJob current = jobs_.current(order.job);
  if (now.kind != OrderKind::kRunAgain || current.restarts == order.job.restarts) now.job = current;
  // The scheduler's mark names the decision of the isolation, whose op is the code of its return.
  if (now.kind == OrderKind::kReturn)
    if (const ActionRecord* isolation = controller_.actions().find(order.code))
      now.decision = isolation->order.decision;
  if (now.kind == OrderKind::kEndTasks && !(executor_ && executor_->can(now.kind))) {
    if (!gate_) return end_tasks(now);
    const auto answer = std::make_shared<ActGate::Answer>();
    // One try: its thread has the ledger's work too.
    const auto pause = [](TimeNs) { return false; };
    return query([=, gate = gate_](store::RecoveryStore&) { *answer = gate->reserve(now, pause); },
                 [this, now, answer] {
                   if (answer->state != ActionState::kReserved)
                     return settle({now.op, answer->state, answer->detail, {}, wall(), {}});
                   if (!stopped_) end_tasks(now);
                   gate_->finished();
                 });
  }
  if (!executor_ || !executor_->can(now.kind))
    return settle({order.op, ActionState::kFailed, "act.scheduler has no such action", {}, wall(), {}});
  const bool starts = now.kind == OrderKind::kRunAgain;
  if (starts) starting_[now.job.id] = kNoTime, started_[now.job.id] = now.op;
  const ActionRecord* record = controller_.actions().find(now.op);
  if (record && (record->sent > 1 || record->state != ActionState::kReserved))
    now.repeats_ns = record->reserved_ns;
  executor_->carry_out(now, [this, starts, id = now.job.id](ActionResult result) {
    if (starts) starting_[id] = wall();
    settle(std::move(result));
  });
}

void RecoveryService::settle(ActionResult result) {
  if (result.at_ns == kNoTime) result.at_ns = wall();
  give(std::move(result));
  looked_ns_ = kNoTime;  // the scheduler's state has changed
  run();
}

// ---- the end of a job's processes: agents end them, the scheduler's view shows it

void RecoveryService::end_tasks(const ActionOrder& order) {
  // Repeated after a restart, when the attempt has ended meanwhile: agents would meet the next one.
  if (jobs_.known(order.job.id) && !jobs_.is_alive(order.job.id))
    return settle({order.op, ActionState::kDone, "its processes have ended", {}, wall(), {}});
  const std::vector<std::string> hosts = jobs_.hosts_of(order.job.id);
  options_.end_tasks(hosts, {verdicts_.name_of(order.job.id), order.decision, kGraceMs});
  endings_[order.op] = {order.job.id, wall() + kTasksEndWithin};
  look_soon(0);
}

std::string RecoveryService::still_alive(const std::string& job) const {
  const std::vector<std::string> hosts = jobs_.not_ended(job);
  if (hosts.empty()) return "the agents were asked, and the scheduler still shows it running";
  return fmt::format("the agents were asked, and the scheduler still shows processes on {}",
                     shown_list(hosts));
}

void RecoveryService::check_endings() {
  for (auto ending = endings_.begin(); ending != endings_.end();) {
    const bool ended = jobs_.known(ending->second.job) && !jobs_.is_alive(ending->second.job);
    if (!ended && wall() < ending->second.until_ns) {
      ++ending;
      continue;
    }
    give(ActionResult{ending->first,
                      ended ? ActionState::kDone : ActionState::kAmbiguous,
                      ended ? "its processes have ended" : still_alive(ending->second.job),
                      ended ? std::vector<std::string>{} : jobs_.not_ended(ending->second.job),
                      wall(),
                      {}});
    ending = endings_.erase(ending);
  }
}

// ---- checks of hosts

HostChecks::Ways RecoveryService::check_ways() {
  HostChecks::Ways out;
  out.ask = [this](const std::string& host, const peer::CheckHost& request) {
    return options_.check_host && options_.check_host(host, request);
  };
  out.boot_of = [this](const std::string& host) {
    const auto at = agents_.find(host);
    return at == agents_.end() || !at->second.connected ? std::string() : at->second.boot;
  };
  out.job_on = [this](const std::string& host) { return jobs_.job_on(host); };
  return out;
}

void RecoveryService::beat_checks() {
  if (!begun_) return;
  std::map<std::string, std::string> isolated;
  for (const ActionRecord* action : controller_.actions().all()) {
    if (action->order.kind != OrderKind::kIsolate || action->state != ActionState::kDone) continue;
    const MachineRecord* machine = controller_.machines().find(action->order.target);
    if (machine && machine->op == action->order.op) isolated[machine->host] = machine->op;
  }
  const Config::Act& act = options_.config->act;
  checks_.see_isolated(isolated, act.check && act.mode != ActMode::kObserve, wall());
  const bool checks_spares = act.check && act.mode != ActMode::kObserve && look_error_.empty();
  const TimeNs now = wall();
  const auto due = spare_checks_.due(spare_hosts_, checks_spares ? act.spares_check_ns : 0, now);
  if (!due.empty())
    checks_.order({fmt::format("spare-{:x}", now), "", due, "spares are checked", kNoTime}, now);
  for (const auto& [host, results] : std::exchange(check_results_, {}))
    for (const peer::Message& result : results) {
      if (const auto* check = std::get_if<peer::CheckResult>(&result)) checks_.answered(host, *check, now);
      if (const auto* step = std::get_if<peer::AlignResult>(&result)) alignments_.answered(host, *step, now);
    }
  checks_.beat(wall());
  alignments_.beat(wall());
  for (recover::HostChecked& answer : alignments_.drain()) give(std::move(answer));
  for (recover::HostChecked& answer : checks_.drain()) {
    const auto spare = spare_checks_.answered(answer, wall());
    answer.spare = spare.is_spare;
    if (!spare.note.empty()) note({recover::NoteKind::kRecord, "", "", spare.note, {}});
    if (!spare.is_spare || answer.answer != recover::CheckAnswer::kNoAnswer) give(std::move(answer));
  }
}

void RecoveryService::see_agent(const std::string& host, const std::string& boot) {
  if (!agents_.contains(host) && agents_.size() >= kAgentsMost) return;
  Agent& agent = agents_[host];
  agent.connected = !boot.empty();
  if (boot.empty() || agent.boot == boot) return;
  if (!agent.boot.empty()) agent.booted_ns = wall();
  agent.boot = boot;
}

void RecoveryService::checked(const std::string& host, const peer::Message& result) {
  if (stopped_) return;
  std::vector<peer::Message>& of_host = check_results_[host];
  if (of_host.size() < kAnswersMost) of_host.push_back(result);
}

Status RecoveryService::check(const std::string& host, const std::string& by) {
  const auto agent = agents_.find(host);
  if (agent == agents_.end() || !agent->second.connected)
    return fail(ErrorCode::kNotFound, fmt::format("no agent of host {} is connected", host));
  const std::string why = fmt::format("asked for by {}", by);
  note({recover::NoteKind::kRecord, "", "", fmt::format("{} is checked, {}", host, why), {}});
  checks_.order({fmt::format("check-{:x}", wall()), "", {host}, why, kNoTime}, wall());
  run();
  return {};
}

// ---- what is seen

void RecoveryService::look() {
  if (looking_ || stopped_) return;
  if (own_jobs_) return look_at_own_jobs();
  if (!look_) return;
  looking_ = true;
  looked_ns_ = wall();
  if (may_keep_pool_) *may_keep_pool_ = restored_ && !cannot_write() && acts_for(gate_.get(), "");
  const auto view = std::make_shared<Result<respond::SchedulerView>>(respond::SchedulerView{});
  looker_->submit([view, look = look_] { *view = look(); },
                  [this, view, read_ns = looked_ns_] {
                    looking_ = false;
                    if (!stopped_) looked(*view, read_ns);
                  });
}

// The next view while processes end: the end of a job is waited for.
void RecoveryService::look_soon(TimeNs took_ns) {
  if (!endings_.empty()) soon_->start(std::clamp(3 * took_ns, kSoonest, kLatest));
}

void RecoveryService::look_at_own_jobs() {
  if (!options_.engine) return;
  looking_ = true;
  looked_ns_ = wall();
  const auto view = std::make_shared<Result<respond::SchedulerView>>(respond::SchedulerView{});
  options_.engine->query([view, name = std::string(executor_ ? executor_->name() : "")](
                             LiveJobs& live, TimeNs) { *view = view_of_own_jobs(live, name); },
                         [this, view, read_ns = looked_ns_] {
                           looking_ = false;
                           if (!stopped_) looked(*view, read_ns);
                         });
}

void RecoveryService::looked(const Result<respond::SchedulerView>& view, TimeNs read_ns) {
  if (!view) {
    if (look_error_ != view.error().text)
      options_.log(LogLevel::kWarning,
                   fmt::format("no view of the scheduler, so nothing is done: {}", view.error().text));
    const bool refused = view.error().code == ErrorCode::kBusy;
    if (look_error_.empty() || refused != look_refused_) look_since_ns_ = read_ns;
    look_error_ = view.error().text;
    look_refused_ = refused;
    return;
  }
  look_error_.clear();
  view_ns_ = read_ns;
  counts_.spares = view->spares;
  spare_hosts_ = view->spare_hosts;
  if (gate_)
    std::erase_if(spare_hosts_, [&](const std::string& host) { return !acts_for(gate_.get(), host); });
  if (!view->spares_note.empty()) note({recover::NoteKind::kRecord, "", "", view->spares_note, {}});
  if (cannot_write() || !may_act()) return;  // what changes is seen again afterwards
  const auto excluded = [this](const ScheduledJob& job) {
    const auto seen = controller_.view(recover::key_of(job));
    return seen ? seen->excluded : std::vector<std::string>{};
  };
  if (members_) members_->adopt(jobs_, controller_);
  std::vector<recover::Input> inputs = jobs_.update(*view, {wall(), read_ns, excluded});
  std::vector<recover::Input> ends;
  if (members_) {
    auto own = members_->select(std::move(inputs), jobs_, controller_);
    inputs = std::move(own.inputs), ends = std::move(own.ends);
    verdicts_.give_again(own.gained);
  }
  const bool first = !std::exchange(begun_, true);
  if (first) begin();
  const std::set<std::string> ours = own_holds(*view, read_ns);
  const std::set<std::string> started = started_in(inputs);
  for (recover::Input& input : inputs) {
    // An order that the member before left half done is continued (own_hold).
    if (const auto* adopted = std::get_if<recover::JobAdopted>(&input))
      for (const ActionRecord& row : adopted->actions)
        if (row.order.kind == OrderKind::kRunAgain) started_[adopted->job.id] = row.order.op;
    const auto* changed = std::get_if<recover::JobChanged>(&input);
    const bool own =
        changed && changed->kind == recover::ForeignKind::kHeld && ours.contains(changed->job.id);
    if (own) continue;
    if (auto* host = std::get_if<recover::HostSeen>(&input))
      if (const auto agent = agents_.find(host->host); agent != agents_.end())
        host->boot_ns = agent->second.booted_ns;
    // After a restart the verdict comes before the end that it explains: a decision knows its case again.
    const auto* end = std::get_if<recover::AttemptEnded>(&input);
    if (first && end && !started.contains(end->job.id))
      ends.push_back(std::move(input));
    else
      give(std::move(input));
  }
  give_verdicts();
  for (recover::Input& input : ends) give(std::move(input));
  std::erase_if(started_, [&](const auto& one) { return !jobs_.known(one.first); });
  std::erase_if(starting_, [&](const auto& one) { return one.second != kNoTime && !jobs_.known(one.first); });
  check_endings();
  look_soon(wall() - read_ns);
  run();
}

void RecoveryService::read_progress() {
  if (reading_ || !options_.engine) return;
  reading_ = true;
  read_ns_ = wall();
  struct Progress {
    LiveJobSummary summary;
    std::string user;
  };
  const auto all = std::make_shared<std::vector<Progress>>();
  options_.engine->query(
      [all](LiveJobs& live, TimeNs) {
        for (const LiveJobSummary& job : live.jobs())
          if (job.state == JobState::kRunning && job.iteration)
            all->push_back({job, live.user_of_job(job.id)});
      },
      [this, all] {
        reading_ = false;
        if (stopped_ || cannot_write() || !may_act()) return;
        for (const Progress& one : *all) {
          const std::string id = jobs_.resolve(verdicts_.id_of(one.summary.id));
          const auto known = jobs_.known(id);
          if (!known || !jobs_.is_alive(id) || !acts_for(gate_.get(), id)) continue;
          const auto owner = jobs_.owner_of(id);
          const bool own =
              owner == respond::SeenJob::Owner::kUser
                  ? one.user.empty() || one.user == fmt::format("user {}", jobs_.user_of(id).value_or(0))
                  : owner == respond::SeenJob::Owner::kNamed || verdicts_.name_of(id) == one.summary.id;
          if (!own) continue;
          for (recover::Input& input : reports_.read(*known, one.summary, wall())) give(std::move(input));
        }
        reports_.forget_others();
        run();
      });
}

void RecoveryService::on_verdicts(std::span<const RunVerdict> verdicts) {
  verdicts_.put(verdicts, wall());
  give_verdicts();
  run();
}

// Without a view that is true now, nothing is decided, and jobs go on.
void RecoveryService::give_verdicts() {
  if (!look_error_.empty() || !may_act()) return;
  for (recover::VerdictSeen& seen : verdicts_.take(wall())) give(std::move(seen));
}

// The scheduler says whether it would carry it out: a right that is missing shows before it is needed.
void RecoveryService::rehearse(const ActionOrder& order) {
  if (order.kind != OrderKind::kIsolate && order.kind != OrderKind::kReturn &&
      order.kind != OrderKind::kEndTasks)
    return;  // others need that these are done
  rehearsal_->carry_out(order, [this, order](const ActionResult& result) {
    note({recover::NoteKind::kRecord,
          order.job.id.empty() ? "" : recover::key_of(order.job),
          order.decision,
          fmt::format("{} of {}, dry run: {}", respond::name_of(order.kind), order.target, result.detail),
          {}});
    run();
  });
}

// ---- people

void RecoveryService::answer(const std::string& decision, bool approved, const std::string& by) {
  questions_.answer(decision, approved, by);
  give(recover::Approval{decision, approved, by});
  run();
}

void RecoveryService::reset_breaker(const std::string& by) {
  damage_.clear();
  last_reset_ = recover::BreakerReset{by, wall()};
  unwritten_.reset_ns = last_reset_->at_ns;
  unwritten_.reset_by = by;
  give(*last_reset_);
  run();
}

Status RecoveryService::undo(const std::string& op, const std::string& by) {
  const ActionRecord* action = controller_.actions().find(op);
  const MachineRecord* machine = action ? controller_.machines().find(action->order.target) : nullptr;
  if (!machine || machine->op != op)
    return fail(ErrorCode::kNotFound, fmt::format("no isolation {} is in force", op));
  give(recover::Undo{op, by});
  run();
  return {};
}

void RecoveryService::repaired(const std::string& host, const std::string& by) {
  give(recover::HostRepaired{host, by});
  run();
}

std::string RecoveryService::key_of_job(const std::string& job) const {
  const auto known = jobs_.known(jobs_.resolve(verdicts_.id_of(job)));
  return known ? recover::key_of(*known) : "";
}

std::optional<RecoveryTrouble> RecoveryService::trouble() const {
  if (!damage_.empty()) return RecoveryTrouble{damage_, damaged_ns_, "culprit recover reset"};
  if (!store_error_.empty())
    return RecoveryTrouble{"the ledger cannot be written: " + store_error_, store_since_ns_,
                           fmt::format("df -h {}", config().state_dir)};
  if (auto closed = gate_ ? gate_->trouble() : std::nullopt) return closed;
  if (auto silent = members_ ? members_->trouble() : std::nullopt) return silent;
  if (look_error_.empty()) return std::nullopt;
  if (look_refused_) return RecoveryTrouble{look_error_, look_since_ns_, ""};  // another collector acts
  return RecoveryTrouble{"the scheduler does not answer: " + look_error_, look_since_ns_,
                         scheduler_remedy(config())};
}

void RecoveryService::query(std::function<void(store::RecoveryStore&)> work, std::function<void()> done) {
  ledger_->submit([store = store_, work = std::move(work)] { work(*store); }, std::move(done));
}

void RecoveryService::read(std::function<void(store::RecoveryStore&)> work,
                           std::function<void()> done) const {
  reader_->submit([store = reader_store_, work = std::move(work)] { work(*store); }, std::move(done));
}

std::vector<std::string> waits_of(const RecoveryService& service, const recover::JobView& job) {
  std::vector<std::string> out = service.verdicts().waits(job.job.id);
  for (std::string& one : service.controller().waits(job.key)) out.push_back(std::move(one));
  return out;
}

}  // namespace culprit::app
