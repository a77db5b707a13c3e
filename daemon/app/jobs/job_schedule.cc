#include "app/jobs/job_schedule.h"

#include <algorithm>

namespace culprit::app {
namespace {

// Time share of one owner's reports: a tenth if urgent, else a hundredth. Reports of many owners together may
// use half of the thread's time.
constexpr int64_t kUrgentShare = 10, kSlowShare = 100, kAllShare = 2;
// Saved-up share that may be used at once, so that short reports of many jobs are made in one tick: 100 ms of
// reports.
constexpr TimeNs kUnusedShare = kNsPerSecond;
// Share in advance for the first report about a run or its fault: one second of reports.
constexpr TimeNs kFirstAdvance = 10 * kNsPerSecond;
// Minimum interval of a job's urgent reports: a fault that reaches all hosts brings findings for seconds, and
// no reader follows faster reports.
constexpr TimeNs kUrgentEvery = kNsPerSecond;
constexpr TimeNs kSlowest = 300 * kNsPerSecond;  // longest interval of reports, at any cost
// The same limit for a job on disconnected hosts: network outages last for days, and hosts are lost.
constexpr TimeNs kForgottenUnheard = 7 * 24 * 3600 * kNsPerSecond;
// Interval of process checks of running jobs.
constexpr TimeNs kAskRunning = 30 * kNsPerSecond;
// Limit of a process scan: after it the scan hangs, and the previous scan's result counts.
constexpr TimeNs kLookWithin = 10 * kNsPerSecond;
// Interval of checks of a possible hang that has an explanation, for example a phase.
constexpr TimeNs kLookAgain = 5 * kNsPerSecond;
// A job without any process and line for this time has ended: its last data is read by then.
constexpr TimeNs kAbsentFor = 30 * kNsPerSecond;
// Hangs, ends and slow reports have time scales of tens of seconds.
constexpr TimeNs kTickEvery = kNsPerSecond;

// Whether the job may have processes on this host.
bool is_here(LiveJob& job) { return job.hosts().empty() || job.is_local(); }

bool reports_hang(const Report& report) {
  return report.hang && std::ranges::any_of(report.diagnoses,
                                            [](const Diagnosis& d) { return d.symptom == Symptom::kHang; });
}

}  // namespace

std::optional<bool> JobSchedule::alive(LiveJob& job, TimeNs now) {
  LiveJob::Due& due = job.due;
  const bool stepped_back = now < due.asked_alive_ns;
  if (options_.alive && is_here(job) &&
      (due.asked_alive_ns == kNoTime || stepped_back || now - due.asked_alive_ns >= kAskEvery)) {
    // read before the scan's result: another scan may end now
    due.looked_ns = options_.looked_ns ? options_.looked_ns() : now;
    due.alive = options_.alive(job.id());
    due.lived = due.lived || due.alive == true;
    due.asked_alive_ns = now;
  }
  if (job.hosts().empty()) return due.alive;
  const auto elsewhere = job.hosts().alive(now);
  if (!job.is_local() || elsewhere == true) return elsewhere;
  return due.alive == true || elsewhere ? due.alive : std::nullopt;
}

void JobSchedule::look(LiveJob& job, TimeNs now) {
  const TimeNs asked = job.due.asked_alive_ns;
  if (asked == kNoTime || now - asked >= kAskRunning) alive(job, now);
}

TimeNs JobSchedule::debt(const LiveJob& job, TimeNs now) const {
  const auto known = accounts_.find(job.payer());
  // If the clock was set back, no report is delayed.
  if (known == accounts_.end() || now < known->second.last_ns) return 0;
  return std::max<TimeNs>(0, known->second.allowed_ns - now);
}

bool JobSchedule::may_report(const LiveJob& job, TimeNs now) const {
  const bool first = job.due.urgent ? job.due.hurried_ns == kNoTime : job.due.reported_ns == kNoTime;
  return debt(job, now) <= (first ? kFirstAdvance : 0);
}

bool JobSchedule::report_is_due(LiveJob& job, TimeNs now) {
  const auto announces = job.events().announcer().due_ns();
  const bool set_back = job.due.report_ns > now + kSlowest;  // the clock was set back
  const bool slow = job.dirty() && (set_back || now >= job.due.report_ns);
  const bool settled = announces && now >= *announces;
  return may_report(job, now) && (urgent_is_due(job, now) || slow || settled || stall_changed(job, now));
}

bool JobSchedule::urgent_is_due(const LiveJob& job, TimeNs now) {
  const TimeNs last = job.due.hurried_ns;
  return job.due.urgent && (last == kNoTime || now < last || now - last >= kUrgentEvery);
}

void JobSchedule::reported(LiveJob& job, TimeNs now, TimeNs cost) {
  // A balanced account delays no report; the clock may have been set back.
  std::erase_if(accounts_, [now](const auto& a) {
    return a.second.allowed_ns <= now - kUnusedShare || now < a.second.last_ns;
  });
  Account& account = accounts_[job.payer()];
  const auto owners = static_cast<int64_t>(accounts_.size());
  account.allowed_ns =
      std::max(account.allowed_ns, now - kUnusedShare) + std::max(kUrgentShare, kAllShare * owners) * cost;
  account.last_ns = job.due.reported_ns = now;
  if (job.due.urgent) job.due.hurried_ns = now;
  job.due.urgent = false;
  job.due.report_ns = now + std::min(kSlowest, std::max(options_.report_every_ns, kSlowShare * cost));
}

bool JobSchedule::may_hang(LiveJob& job, TimeNs now) {
  if (!job.may_stall(now)) {
    job.due.stalled_ns = kNoTime;
    return true;
  }
  TimeNs& since = job.due.stalled_ns;
  if (since == kNoTime || now < since) since = now;
  // Stopping a hung job does not clear the hang.
  if (alive(job, now) == false) return job.due.hung_before || reports_hang(job.report());
  const bool asked = options_.looked_ns && is_here(job);
  return !asked || job.due.looked_ns >= since || now - since >= kLookWithin;
}

// Whether the job's hang began or ended since its last report; checked at intervals.
bool JobSchedule::stall_changed(LiveJob& job, TimeNs now) {
  const bool hangs = job.report().hang.has_value(), stalls = job.may_stall(now);
  if (hangs == stalls) return false;
  // Limits reports on the hang state of a failed job that does not stall: one per tick would take the time of
  // other jobs' reports.
  const TimeNs asked = job.due.asked_stall_ns;
  if (asked != kNoTime && now >= asked && now - asked < kLookAgain) return false;
  if (stalls && !may_hang(job, now)) return false;
  job.due.asked_stall_ns = now;
  return true;
}

bool JobSchedule::is_over(LiveJob& job, TimeNs now) {
  if (job.due.attempts && awaits_successor(*job.due.attempts, now)) return false;
  const TimeNs silent = now - job.silent_since();
  if (job.due.end_ns != kNoTime && now >= job.due.end_ns && silent >= LiveJob::kLastWords &&
      job.end_is_known(now))
    return true;
  if (silent < std::min(kAbsentFor, options_.ended_after_ns)) return false;
  // If all processes that were seen have exited, the job makes no further step; a restart is another run.
  const auto lives = alive(job, now);
  if (lives == false) return true;
  if (silent < options_.ended_after_ns || lives) return false;
  // With unknown processes, a job is over if its end was reported or its failure is certain.
  const bool explained = job.ended_well() || (job.report().verdict && !job.report().hang);
  const bool missing = job.hosts().somebody_missing(now);
  return (explained && !missing && !job.dirty()) || silent >= (missing ? kForgottenUnheard : kForgotten);
}

TimeNs JobSchedule::next_check(const LiveJob& job, TimeNs now) const {
  const TimeNs latest = now + kTickEvery;
  if (!job.due.urgent) return latest;
  const TimeNs last = job.due.hurried_ns;
  const TimeNs own = last == kNoTime ? kNoTime : last + kUrgentEvery;
  return std::min(latest, std::max({now + debt(job, now), own, now + kNsPerMs}));
}

}  // namespace culprit::app
