#include "sim/cluster/world.h"

#include <algorithm>

#include "sim/cluster/draw.h"

namespace culprit::sim {
namespace {

// Progress is reported for so long after a start or a verdict.
constexpr TimeNs kReportedNs = 3600 * kNsPerSecond;
constexpr TimeNs kDayNs = 86'400 * kNsPerSecond;
constexpr uint32_t kSlowMeasurements = 6;

TimeNs seconds(int64_t s) { return s * kNsPerSecond; }

}  // namespace

void ClusterOutcome::add(const ClusterOutcome& other) {
  time.add(other.time);
  wall_ns += other.wall_ns;
  innocent_ns += other.innocent_ns;
  constexpr uint64_t ClusterOutcome::*kCounts[] = {
      &ClusterOutcome::incidents,         &ClusterOutcome::without_effect,
      &ClusterOutcome::attempts,          &ClusterOutcome::failures,
      &ClusterOutcome::isolated_faulty,   &ClusterOutcome::isolated_innocent,
      &ClusterOutcome::isolated_by_user,  &ClusterOutcome::over_isolated,
      &ClusterOutcome::drained_by_person, &ClusterOutcome::holds};
  for (const auto count : kCounts) this->*count += other.*count;
}

ClusterWorld::ClusterWorld(const ClusterParams& params, uint64_t seed, Supervisor& supervisor)
    : p_(params), supervisor_(supervisor), random_(Random(seed).fork(2)), outcome_(incident_kinds().size()) {
  const int64_t spares = p_.spares < 0 ? spares_for(p_) : p_.spares;
  hosts_.resize(static_cast<size_t>(p_.hosts + spares));
  incidents_ = draw_incidents(p_, p_.hosts + spares, seed);
  const size_t size = static_cast<size_t>(p_.hosts / std::min(p_.jobs, p_.hosts));
  uint32_t host = 0;
  for (int64_t j = 0; j < std::min(p_.jobs, p_.hosts); ++j) {
    Job& job = jobs_.emplace_back(p_);
    job.state = State::kStarting;
    job.size = size;
    for (size_t i = 0; i < size; ++i, ++host) {
      hosts_[host].job = static_cast<int32_t>(j);
      job.hosts.push_back(host);
    }
  }
}

ClusterOutcome ClusterWorld::run() {
  for (uint32_t i = 0; i < incidents_.size(); ++i) at(incidents_[i].at_ns, What::kIncident, i);
  for (uint32_t j = 0; j < jobs_.size(); ++j) {
    at(0, What::kPlaced, j);
    at(0, What::kStarted, j);
  }
  const TimeNs end = p_.days * kDayNs;
  while (!events_.empty() && events_.top().at_ns < end) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at_ns;
    handle(event);
  }
  now_ = end;
  for (Job& job : jobs_) {
    account(job);
    outcome_.time.add(job.time);
    outcome_.wall_ns += end;
  }
  for (const Host& host : hosts_)
    if (host.out == Out::kIsolated && host.innocent) outcome_.innocent_ns += end - host.out_since_ns;
  return std::move(outcome_);
}

// ---- events

void ClusterWorld::at(TimeNs at_ns, What what, uint32_t id, uint64_t serial) {
  events_.push({at_ns, sequence_++, what, id, serial});
}

void ClusterWorld::handle(const Event& event) {
  switch (event.what) {
    case What::kIncident:
      return break_something(event.id);
    case What::kVerdict: {
      ClusterInput input;
      input.kind = ClusterInput::Kind::kVerdict;
      input.job = verdicts_[event.id].job;
      input.attempt = verdicts_[event.id].attempt;
      input.verdict = std::move(verdicts_[event.id].verdict);
      jobs_[input.job].news_ns = now_;
      jobs_[input.job].verdict_cause = verdicts_[event.id].cause;
      for (const uint32_t host : input.verdict.hosts) hosts_[host].named_by |= input.verdict.sources;
      return inform(std::move(input));
    }
    case What::kOrder:
      return carry_out(ClusterOrder(orders_[event.id]));
    case What::kWake:
      if (event.at_ns != wake_ns_) return;
      wake_ns_ = kNoTime;
      return inform({});
    case What::kRepaired:
    case What::kChecked:
    case What::kDrained:
    case What::kDown:
    case What::kMeasured:
    case What::kRecur:
      return handle_host(event, event.id);
    default:
      return handle_job(event, event.id);
  }
}

void ClusterWorld::handle_job(const Event& event, uint32_t id) {
  Job& job = jobs_[id];
  ClusterInput input;
  input.job = id;
  if (event.what == What::kMended) return mend(job, static_cast<uint32_t>(event.serial));
  if (event.what == What::kRestarted) return job.held ? person_restarts(id) : void();
  if (event.serial != job.serial) return;
  switch (event.what) {
    case What::kExit:
      return end_job(id, false, false);
    case What::kSilent:
      input.kind = ClusterInput::Kind::kSilent;
      state_silence(id);
      return inform(input);
    case What::kTruth:
      input.kind = ClusterInput::Kind::kTruth;
      return inform(input);
    case What::kForgotten:
      if (job.state != State::kEnded) return;
      ++outcome_.holds;
      return person_restarts(id);
    case What::kPlaced:
      input.kind = ClusterInput::Kind::kRuns;
      input.iteration = job.time.of(0, Phase::kUseful) / kStepNs;
      return inform(input);
    case What::kStarted:
      return started(id);
    case What::kStepped:
    case What::kSaved:
      input.kind = ClusterInput::Kind::kProgress;
      account(job);
      if (event.what == What::kSaved) {
        input.saved = true;
        at(now_ + job.training.until_saved(), What::kSaved, id, job.serial);
        if (now_ - job.news_ns > kReportedNs) return;  // nothing depends on it
      }
      input.iteration = job.time.of(0, Phase::kUseful) / kStepNs;
      return inform(input);
    default:
      return;
  }
}

void ClusterWorld::handle_host(const Event& event, uint32_t id) {
  Host& host = hosts_[id];
  switch (event.what) {
    case What::kRepaired:
      if (event.serial != host.serial || host.out == Out::kNot) return;
      if (host.fault >= 0 && !happens_ppm(random_, p_.bad_repair_ppm)) host.fault = -1;
      return back_to_service(id, true);
    case What::kChecked:
      return event.serial == host.serial && host.out == Out::kIsolated ? check(id, 0) : void();
    case What::kDrained:
      if (event.serial == host.serial && host.fault >= 0 && host.out == Out::kNot) person_drains(id);
      return;
    case What::kDown: {
      if (event.serial != host.serial || host.fault < 0 || host.out != Out::kNot) return;
      const int32_t job = host.job;
      const auto incident = static_cast<uint32_t>(host.fault);
      take_out(id, Out::kDown);
      if (job < 0 || jobs_[static_cast<size_t>(job)].state != State::kFailing) return;
      end_job(static_cast<uint32_t>(job), false, true);
      return state_verdict(static_cast<uint32_t>(job), incident, 0);
    }
    case What::kMeasured: {
      if (event.serial >> 8 != host.serial || host.fault < 0 || host.job < 0) return;
      const auto job = static_cast<uint32_t>(host.job);
      if (jobs_[job].state == State::kTraining) state_verdict(job, static_cast<uint32_t>(host.fault), 0);
      const uint64_t times = event.serial & 255;
      if (times < kSlowMeasurements)
        at(now_ + seconds(p_.slow_s), What::kMeasured, id, host.serial << 8 | (times + 1));
      return;
    }
    case What::kRecur:
      if (host.job < 0 || host.fault < 0 || jobs_[static_cast<size_t>(host.job)].serial != event.serial)
        return;
      return fail_job(static_cast<uint32_t>(host.job), static_cast<uint32_t>(host.fault));
    default:
      return;
  }
}

void ClusterWorld::inform(ClusterInput input) {
  using Kind = ClusterInput::Kind;
  if (input.kind == Kind::kProgress && !supervisor_.wants_progress()) return;
  if (input.kind != Kind::kVerdict) input.attempt = jobs_[input.job].attempt;
  count_hosts(input);
  if (supervisor_.is_oracle()) tell_truth(input);
  if (input.kind == Kind::kRuns) input.hosts = jobs_[input.job].hosts;
  for (ClusterOrder& order : supervisor_.step(input, now_)) give(std::move(order));
  const TimeNs wake = supervisor_.next_wake();
  if (wake == kNoTime || wake == wake_ns_) return;
  wake_ns_ = wake > now_ ? wake : now_ + 60 * kNsPerSecond;  // never a loop without time
  at(wake_ns_, What::kWake, 0);
}

// ---- orders

void ClusterWorld::give(ClusterOrder order) {
  using Kind = ClusterOrder::Kind;
  TimeNs takes = 0;
  if (order.kind == Kind::kIsolate || order.kind == Kind::kReturn) takes = seconds(p_.isolate_s);
  if (order.kind == Kind::kCheck) takes = seconds(order.job_waits ? p_.node_check_s : p_.check_s);
  if (order.kind == Kind::kEndTasks) {
    Job& job = jobs_[order.job];
    takes = job.state == State::kEnded ? 0 : seconds(p_.end_tasks_s);
    if (job.state == State::kTraining || job.state == State::kFailing || job.state == State::kStarting) {
      account(job);
      if (job.state == State::kTraining) {
        job.cause = job.slow_cause > 0 ? job.slow_cause : job.verdict_cause;
        job.training.fail(job.cause, job.time);
      }
      job.state = State::kEnding;
      ++job.serial;
    }
  }
  orders_.push_back(std::move(order));
  at(now_ + takes, What::kOrder, static_cast<uint32_t>(orders_.size() - 1));
}

void ClusterWorld::carry_out(const ClusterOrder& given) {
  using Kind = ClusterOrder::Kind;
  ClusterInput input;
  input.kind = ClusterInput::Kind::kDone;
  input.order = given.id;
  input.job = given.job;
  input.host = given.host;
  input.passed = true;
  switch (given.kind) {
    case Kind::kIsolate:
      input.passed = hosts_[given.host].out == Out::kNot;
      if (!input.passed) break;
      take_out(given.host, Out::kIsolated);
      if (hosts_[given.host].innocent && given.over_isolation) ++outcome_.over_isolated;
      break;
    case Kind::kReturn:
      input.passed = hosts_[given.host].out == Out::kIsolated;
      if (input.passed) back_to_service(given.host, false);
      break;
    case Kind::kEndTasks:
      if (jobs_[given.job].state == State::kEnding || jobs_[given.job].state == State::kNoHosts)
        end_job(given.job, false, false);
      break;
    case Kind::kRunAgain:
      input.passed = jobs_[given.job].state == State::kEnded || jobs_[given.job].state == State::kNoHosts;
      if (input.passed) start_job(given.job, given);
      input.waits = jobs_[given.job].state == State::kNoHosts;
      break;
    case Kind::kHold:
      if (jobs_[given.job].held) return;
      account(jobs_[given.job]);
      jobs_[given.job].held = true;
      ++outcome_.holds;
      at(now_ + seconds(p_.person_s), What::kRestarted, given.job);
      return;
    case Kind::kCheck:
      return check(given.host, given.id);
  }
  inform(input);
}

void ClusterWorld::check(uint32_t id, uint64_t order) {
  Host& host = hosts_[id];
  int64_t finds = host.fault < 0 ? 0 : p_.check_finds_ppm;
  // A fault that comes and goes passes half of the checks that would find a lasting one.
  if (host.fault >= 0 && kind_of(static_cast<uint32_t>(host.fault)).lasts == Lasts::kOnAndOff) finds /= 2;
  ClusterInput input;
  input.kind = ClusterInput::Kind::kChecked;
  input.order = order;
  input.host = id;
  input.passed = !happens_ppm(random_, finds);
  input.busy = host.job >= 0 && jobs_[static_cast<size_t>(host.job)].state != State::kEnded;
  if (!input.passed && !input.busy) host.named_by |= kFromPlugin;  // the agent's own check
  inform(input);
}

// ---- accounts

void ClusterWorld::account(Job& job) {
  const TimeNs span = now_ - job.since_ns;
  job.since_ns = now_;
  if (span == 0) return;
  if (job.state == State::kTraining) {
    job.training.advance(span, job.slow_percent, job.slow_cause, job.time);
    return;
  }
  constexpr Phase kPhaseOf[] = {Phase::kUseful, Phase::kDetect, Phase::kStop,
                                Phase::kDecide, Phase::kStart,  Phase::kNoHosts};
  job.time.add(job.cause, job.held ? Phase::kPerson : kPhaseOf[static_cast<size_t>(job.state)], span);
}

}  // namespace culprit::sim
