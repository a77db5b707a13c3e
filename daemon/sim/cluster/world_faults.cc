// What breaks in a simulated cluster, what is known of it, and who starts again.
#include <algorithm>

#include "sim/cluster/draw.h"
#include "sim/cluster/world.h"

namespace culprit::sim {
namespace {

TimeNs of_seconds(int64_t s) { return s * kNsPerSecond; }

constexpr uint64_t kVariants = 4;  // rules of one class

bool is_of_host(const IncidentKind& kind) {
  return kind.lasts == Lasts::kAtStart || kind.lasts == Lasts::kOnAndOff;
}

}  // namespace

// ---- faults

void ClusterWorld::break_something(uint32_t incident) {
  ++outcome_.incidents;
  const Incident& what = incidents_[incident];
  const IncidentKind& kind = kind_of(incident);
  if (what.lasts && is_of_host(kind)) return break_host(incident);
  const bool by_host = kind.names == Names::kHost || kind.names == Names::kGroup;
  const int32_t at_host = by_host ? hosts_[what.host].job : static_cast<int32_t>(what.job % jobs_.size());
  if (at_host < 0 || jobs_[static_cast<size_t>(at_host)].state != State::kTraining) {
    ++outcome_.without_effect;
    return;
  }
  const auto id = static_cast<uint32_t>(at_host);
  if (kind.onset == Onset::kQuiet) return state_verdict(id, incident, of_seconds(p_.*kind.delay_s));
  Job& job = jobs_[id];
  if (what.lasts && kind.lasts == Lasts::kProgram) job.program = incident;
  if (what.lasts && kind.lasts == Lasts::kCheckpoint) job.checkpoint = incident;
  if (what.lasts && kind.lasts == Lasts::kOutage) {
    Random random = Random(what.seed).fork(3);
    job.outage = incident;
    job.outage_until_ns = now_ + exponential(random, of_seconds(p_.outage_s));
  }
  if (job.program == incident || job.checkpoint == incident)
    at(now_ + of_seconds(p_.notice_s), What::kMended, id, incident);
  fail_job(id, incident);
}

void ClusterWorld::break_host(uint32_t incident) {
  const uint32_t id = incidents_[incident].host;
  Host& host = hosts_[id];
  if (host.out != Out::kNot || host.fault >= 0) {
    ++outcome_.without_effect;
    return;
  }
  host.fault = static_cast<int32_t>(incident);
  if (host.job < 0) return;  // a start will meet it
  const auto job = static_cast<uint32_t>(host.job);
  if (jobs_[job].state != State::kTraining) return;
  if (kind_of(incident).onset != Onset::kSlow) return fail_job(job, incident);
  account(jobs_[job]);
  measure_slowness(jobs_[job]);
  if (supervisor_.is_oracle()) {
    jobs_[job].news_ns = now_;
    at(now_, What::kTruth, job, jobs_[job].serial);
  }
  at(now_ + of_seconds(p_.slow_s), What::kMeasured, id, host.serial << 8 | 1);
  at(now_ + of_seconds(p_.slow_notice_s), What::kDrained, id, host.serial);
}

void ClusterWorld::measure_slowness(Job& job) {
  job.slow_percent = 0;
  job.slow_cause = 0;
  for (const uint32_t host : job.hosts) {
    const int32_t fault = hosts_[host].fault;
    if (fault < 0 || kind_of(static_cast<uint32_t>(fault)).onset != Onset::kSlow) continue;
    job.slow_percent = p_.slow_percent;
    job.slow_cause = incidents_[static_cast<uint32_t>(fault)].kind + 1;
  }
}

// The attempt fails now, by an incident of now or of earlier.
void ClusterWorld::fail_job(uint32_t id, uint32_t incident) {
  Job& job = jobs_[id];
  const IncidentKind& kind = kind_of(incident);
  account(job);
  job.cause = incidents_[incident].kind + 1;
  job.training.fail(job.cause, job.time);
  job.incident = incident;
  job.state = State::kFailing;
  ++job.serial;
  ++outcome_.failures;
  const bool stuck = kind.onset == Onset::kStuck || kind.onset == Onset::kDown;
  at(now_ + of_seconds(stuck ? p_.watchdog_s : p_.exit_s), What::kExit, id, job.serial);
  if (stuck)
    at(now_ + of_seconds(p_.hang_after_s), What::kSilent, id, job.serial);
  else
    state_verdict(id, incident, of_seconds(p_.*kind.delay_s));
  if (supervisor_.is_oracle()) at(now_, What::kTruth, id, job.serial);
  Host& host = hosts_[incidents_[incident].host];
  if (host.fault != static_cast<int32_t>(incident)) return;
  if (kind.onset == Onset::kDown)
    at(now_ + of_seconds(p_.scheduler_s), What::kDown, incidents_[incident].host, host.serial);
  if (host.noticed) return;
  host.noticed = true;
  const int64_t until = kind.names == Names::kNothing ? p_.slow_notice_s : p_.notice_s;
  at(now_ + of_seconds(until), What::kDrained, incidents_[incident].host, host.serial);
}

// ---- evidence

void ClusterWorld::state_verdict(uint32_t job, uint32_t incident, TimeNs delay_ns) {
  verdicts_.push_back({job, jobs_[job].attempt, incidents_[incident].kind + 1, verdict_of(job, incident)});
  at(now_ + delay_ns, What::kVerdict, static_cast<uint32_t>(verdicts_.size() - 1));
}

// A hang was noticed: stacks are captured. A dead host is known by its silence.
void ClusterWorld::state_silence(uint32_t id) {
  const Job& job = jobs_[id];
  const IncidentKind& kind = kind_of(job.incident);
  if (kind.onset != Onset::kDown) return state_verdict(id, job.incident, of_seconds(p_.*kind.delay_s));
  ClusterVerdict verdict{Looks::kHangHost, kFromPeers, 90, 0, {incidents_[job.incident].host}};
  verdicts_.push_back({id, job.attempt, job.cause, std::move(verdict)});
  at(now_ + of_seconds(p_.stacks_s), What::kVerdict, static_cast<uint32_t>(verdicts_.size() - 1));
}

ClusterVerdict ClusterWorld::verdict_of(uint32_t id, uint32_t incident) {
  const Incident& what = incidents_[incident];
  const IncidentKind& kind = kind_of(incident);
  ClusterVerdict out{
      kind.looks, kind.sources, kind.confidence_percent, static_cast<uint32_t>(what.seed % kVariants), {}};
  Random once = Random(what.seed).fork(4), each = Random(what.seed).fork(verdicts_.size() + 16);
  const bool plugin = kind.looks == Looks::kHangHost || kind.looks == Looks::kSlowHost;
  if (plugin && what.lasts && happens_ppm(once, p_.plugin_ppm)) out.sources |= kFromPlugin;
  out.hosts = named(jobs_[id], what, each);
  return out;
}

std::vector<uint32_t> ClusterWorld::named(const Job& job, const Incident& what, Random& random) const {
  const IncidentKind& kind = incident_kinds()[what.kind];
  if (job.hosts.empty()) return {};
  const auto any = [&] { return job.hosts[random.below(job.hosts.size())]; };
  const bool wrong = happens_ppm(random, p_.wrong_ppm);
  const uint32_t host = wrong ? any() : what.host;
  std::vector<uint32_t> out;
  switch (kind.names) {
    case Names::kNothing:
      break;
    case Names::kHost:
      out.push_back(host);
      break;
    case Names::kForged:
      for (int64_t i = 0; i < p_.forged_hosts; ++i) out.push_back(any());
      break;
    case Names::kGroup: {
      const auto place =
          static_cast<size_t>(std::find(job.hosts.begin(), job.hosts.end(), host) - job.hosts.begin());
      const auto size = static_cast<size_t>(p_.group_hosts);
      const size_t begin = std::min(place, job.hosts.size() - 1) / size * size;
      for (size_t i = begin; i < std::min(begin + size, job.hosts.size()); ++i) out.push_back(job.hosts[i]);
      break;
    }
    case Names::kSwitch: {
      const auto below = static_cast<uint32_t>(p_.switch_hosts);
      for (const uint32_t one : job.hosts)
        if (one / below == what.host / below) out.push_back(one);
      break;
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// ---- ends and starts

void ClusterWorld::end_job(uint32_t id, bool by_person, bool node_failed) {
  Job& job = jobs_[id];
  account(job);
  if (job.state == State::kTraining) job.training.fail(job.cause, job.time);
  job.state = State::kEnded;
  ++job.serial;
  at(now_ + of_seconds(p_.notice_s), What::kForgotten, id, job.serial);
  ClusterInput input;
  input.kind = ClusterInput::Kind::kEnded;
  input.job = id;
  input.by_person = by_person;
  input.node_failed = node_failed;
  if (node_failed) input.host = incidents_[job.incident].host;
  inform(input);
}

void ClusterWorld::start_job(uint32_t id, const ClusterOrder& order) {
  Job& job = jobs_[id];
  account(job);
  job.again = order;
  std::sort(job.again.excluded.begin(), job.again.excluded.end());
  job.held = false;
  ++job.serial;
  if (order.older) {
    job.training.fall_back(job.cause, job.time);
    job.checkpoint.reset();
  }
  job.state = State::kNoHosts;
  if (!place_job(id)) return;
  job.state = State::kStarting;
  ++outcome_.attempts;
  ++job.attempt;
  const TimeNs takes = of_seconds(order.by_queue ? p_.requeue_s : p_.hot_restart_s);
  const TimeNs queued = order.by_queue ? std::max<TimeNs>(0, takes - of_seconds(p_.hot_restart_s)) : 0;
  at(now_ + order.wait_ns + queued, What::kPlaced, id, job.serial);
  at(now_ + order.wait_ns + takes, What::kStarted, id, job.serial);
}

// Own hosts that are in service first, then idle ones.
bool ClusterWorld::place_job(uint32_t id) {
  Job& job = jobs_[id];
  const auto& excluded = job.again.excluded;
  const auto fits = [&](uint32_t host) {
    return hosts_[host].out == Out::kNot && !std::binary_search(excluded.begin(), excluded.end(), host);
  };
  std::vector<uint32_t> next;
  for (const uint32_t host : job.hosts) {
    if (fits(host))
      next.push_back(host);
    else
      hosts_[host].job = -1;
  }
  for (uint32_t host = 0; host < hosts_.size() && next.size() < job.size; ++host)
    if (hosts_[host].job < 0 && fits(host)) next.push_back(host);
  for (const uint32_t host : next) hosts_[host].job = static_cast<int32_t>(id);
  job.hosts = std::move(next);
  return job.hosts.size() == job.size;
}

void ClusterWorld::start_waiting_jobs() {
  for (uint32_t id = 0; id < jobs_.size(); ++id)
    if (jobs_[id].state == State::kNoHosts) start_job(id, ClusterOrder(jobs_[id].again));
}

std::optional<uint32_t> ClusterWorld::failure_at_start(const Job& job) const {
  if (job.outage && job.outage_until_ns > now_) return job.outage;
  if (job.program) return job.program;
  if (job.checkpoint) return job.checkpoint;
  for (const uint32_t host : job.hosts) {
    if (hosts_[host].fault < 0) continue;
    const auto incident = static_cast<uint32_t>(hosts_[host].fault);
    if (kind_of(incident).lasts == Lasts::kAtStart && kind_of(incident).onset != Onset::kSlow)
      return incident;
  }
  return std::nullopt;
}

void ClusterWorld::started(uint32_t id) {
  Job& job = jobs_[id];
  account(job);
  measure_slowness(job);
  job.state = State::kTraining;
  job.held = false;
  const uint64_t attempt = ++job.serial;
  job.news_ns = now_;
  if (const auto incident = failure_at_start(job)) return fail_job(id, *incident);
  if (supervisor_.wants_progress()) {
    at(now_ + kStepNs, What::kStepped, id, attempt);
    at(now_ + job.training.until_saved(), What::kSaved, id, attempt);
  }
  for (const uint32_t one : job.hosts) {
    const Host& host = hosts_[one];
    if (host.fault < 0) continue;
    const IncidentKind& kind = kind_of(static_cast<uint32_t>(host.fault));
    if (kind.onset == Onset::kSlow)
      at(now_ + of_seconds(p_.slow_s), What::kMeasured, one, host.serial << 8 | 1);
    else if (kind.lasts == Lasts::kOnAndOff)
      at(now_ + exponential(random_, of_seconds(p_.recur_s)), What::kRecur, one, attempt);
  }
}

// ---- hosts and people

void ClusterWorld::take_out(uint32_t id, Out out) {
  Host& host = hosts_[id];
  host.out = out;
  host.out_since_ns = now_;
  host.innocent = host.fault < 0;
  ++host.serial;
  at(now_ + exponential(random_, of_seconds(p_.repair_s)), What::kRepaired, id, host.serial);
  if (out == Out::kIsolated) {
    ++(host.innocent ? outcome_.isolated_innocent : outcome_.isolated_faulty);
    const bool by_user = host.named_by != 0 && (host.named_by & ~kUserSources) == 0;
    if (by_user && !supervisor_.is_oracle()) ++outcome_.isolated_by_user;
    at(now_ + of_seconds(p_.check_s), What::kChecked, id, host.serial);
    return;
  }
  ClusterInput input;
  input.kind = ClusterInput::Kind::kHostOut;
  input.host = id;
  input.by_person = out == Out::kByPerson;
  inform(input);
}

void ClusterWorld::back_to_service(uint32_t id, bool by_person) {
  Host& host = hosts_[id];
  if (host.out == Out::kIsolated && host.innocent) outcome_.innocent_ns += now_ - host.out_since_ns;
  host.out = Out::kNot;
  host.named_by = 0;
  host.noticed = false;
  ++host.serial;
  if (by_person) {
    ClusterInput input;
    input.kind = ClusterInput::Kind::kHostBack;
    input.host = id;
    input.by_person = true;
    inform(input);
  }
  start_waiting_jobs();
}

// A person who restarts a job does so through the queue.
void ClusterWorld::person_drains(uint32_t id) {
  ++outcome_.drained_by_person;
  const int32_t job_id = hosts_[id].job;
  const auto incident = static_cast<uint32_t>(hosts_[id].fault);
  take_out(id, Out::kByPerson);
  if (job_id < 0) return;
  Job& job = jobs_[static_cast<size_t>(job_id)];
  if (job.state != State::kTraining) return;
  account(job);
  job.cause = incidents_[incident].kind + 1;
  end_job(static_cast<uint32_t>(job_id), true, false);
  ClusterOrder order;
  order.kind = ClusterOrder::Kind::kRunAgain;
  order.by_queue = true;
  if (job.state == State::kEnded) start_job(static_cast<uint32_t>(job_id), order);
}

void ClusterWorld::person_restarts(uint32_t id) {
  Job& job = jobs_[id];
  account(job);
  job.held = false;
  const auto can_start = [&] { return job.state == State::kEnded || job.state == State::kNoHosts; };
  if (!can_start()) return;
  for (const auto& broken : {job.program, job.checkpoint})
    if (broken) mend(job, *broken);
  const uint32_t culprit = incidents_[job.incident].host;
  const bool named = kind_of(job.incident).names != Names::kNothing;
  if (named && hosts_[culprit].fault == static_cast<int32_t>(job.incident) &&
      hosts_[culprit].out == Out::kNot)
    person_drains(culprit);
  ClusterOrder order;
  order.kind = ClusterOrder::Kind::kRunAgain;
  order.by_queue = true;
  if (can_start()) start_job(id, order);
}

void ClusterWorld::mend(Job& job, uint32_t incident) {
  if (job.program == incident) job.program.reset();
  if (job.checkpoint == incident) {
    account(job);
    job.training.fall_back(job.cause, job.time);
    job.checkpoint.reset();
  }
}

void ClusterWorld::tell_truth(ClusterInput& input) const {
  const Job& job = jobs_[input.job];
  ClusterTruth& truth = input.truth;
  for (uint32_t host = 0; host < hosts_.size(); ++host)
    if (hosts_[host].fault >= 0 && hosts_[host].out == Out::kNot) truth.faulty.push_back(host);
  if (job.outage && job.outage_until_ns > now_) truth.outage_ns = job.outage_until_ns - now_;
  truth.older = job.checkpoint.has_value();
  truth.person = job.program.has_value();
  truth.slow = input.kind == ClusterInput::Kind::kTruth && job.state == State::kTraining;
}

void ClusterWorld::count_hosts(ClusterInput& input) const {
  for (uint32_t host = 0; host < hosts_.size(); ++host) {
    const int32_t job = hosts_[host].job;
    if (hosts_[host].out != Out::kNot || (job >= 0 && job != static_cast<int32_t>(input.job))) continue;
    if (job < 0) ++input.free_hosts;
    ++input.in_service;
  }
}

}  // namespace culprit::sim
