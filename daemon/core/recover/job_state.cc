#include "core/recover/job_state.h"

#include <algorithm>
#include <array>
#include <optional>

namespace culprit::recover {
namespace {

using enum JobState;

constexpr std::array<std::string_view, kJobStates> kStateWords = {
    "run", "suspect", "stop", "check", "isolate", "place", "restart", "verify", "held", "done"};
constexpr std::array<std::string_view, kEvidences> kEvidenceWords = {
    "verdict-ended",  "verdict-alive",  "suspects",     "progress",       "completed",
    "cancelled",      "taken-away",     "node-failed",  "failed",         "started-by-others",
    "held-by-others", "host-by-others", "actions-done", "actions-failed", "checked",
    "approved",       "declined",       "limit",        "restored"};

constexpr DoSet kNo;
constexpr const char* kObserved = "observe mode: nothing is done";
constexpr const char* kAsked = "a person must approve the decision";
constexpr const char* kStageOff = "the stage that starts jobs again is off";

class Move {
 public:
  Move(JobState state, const Facts& facts) : state_(state), f_(facts) {}

  Transition on(JobEvidence e) const {
    if (state_ == kDone) return {kDone, kNo, "the job has ended; a later one with this id is another"};
    if (e == JobEvidence::kCompleted) return done("the job ended well");
    if (e == JobEvidence::kCancelled) return done("a person cancelled the job");
    switch (state_) {
      case kRun:
      case kSuspect:
        return running(e);
      case kStop:
        return stopping(e);
      case kCheck:
        return checking(e);
      case kIsolate:
        return isolating(e);
      case kPlace:
        return placing(e);
      case kRestart:
        return restarting(e);
      case kVerify:
        return verifying(e);
      case kHeld:
        return held(e);
      case kDone:
        break;
    }
    return stay();
  }

 private:
  Transition stay(DoSet what = kNo, std::string_view why = {}) const { return {state_, what, why}; }

  // ---- shared parts of the rows

  // The mode may have changed since the decision.
  bool is_permitted() const { return f_.permit == Permit::kGranted; }
  Transition not_permitted(DoSet what) const {
    if (f_.permit == Permit::kAsk) return {kHeld, what | Do::kAsk, kAsked};
    return {kHeld, what | Do::kNote, kObserved};
  }

  // The processes have ended: what the decision needs first.
  Transition proceed(DoSet what, std::string_view why) const {
    if (!is_permitted()) return not_permitted(what);
    if (f_.checks) return {kCheck, what | Do::kCheckHosts, why};
    return after_checks(what, why);
  }
  Transition after_checks(DoSet what, std::string_view why) const {
    if (!is_permitted()) return not_permitted(what);
    if (f_.isolates && !f_.breaker_open) return {kIsolate, what | Do::kIsolateHosts, why};
    return to_place(what, why);
  }
  // Hosts that are not isolated are left out for this job.
  Transition to_place(DoSet what, std::string_view why) const {
    if (const auto no = no_start(what)) return *no;
    return {kPlace, what | Do::kExclude, why};
  }
  Transition not_again(DoSet what) const {
    return {kHeld, what | Do::kNote, "the decision is not to start it again"};
  }
  // Why it must not start; nothing: it may.
  std::optional<Transition> no_start(DoSet what) const {
    if (!f_.again) return not_again(what);
    if (!f_.may_restart) return Transition{kHeld, what | Do::kNote, kStageOff};
    return std::nullopt;
  }

  // The attempt has ended, with or without a verdict.
  Transition ended(std::string_view why) const {
    const DoSet what = Do::kEndAttempt | Do::kDecide;
    if (f_.permit == Permit::kObserve) return {kHeld, what | Do::kWouldDo, kObserved};
    if (f_.permit == Permit::kAsk && !f_.again && !f_.isolates && !f_.checks) return not_again(what);
    return proceed(what, why);
  }

  // Processes are alive and shall end. `otherwise`: the state if nothing is permitted.
  Transition end_it(JobState otherwise, std::string_view why) const {
    if (f_.permit == Permit::kObserve) return {otherwise, Do::kDecide | Do::kWouldDo, kObserved};
    if (!f_.may_restart && !(f_.isolates && !f_.breaker_open)) return {otherwise, Do::kNote, kStageOff};
    if (f_.permit == Permit::kAsk) return {otherwise, Do::kDecide | Do::kAsk, kAsked};
    if (f_.may_restart) return {kStop, Do::kDecide | Do::kEndTasks, why};
    return {kIsolate, Do::kDecide | Do::kIsolateHosts, why};
  }

  Transition verdict_alive() const {
    if (f_.symptom == Symptom::kNumeric) return stay(Do::kAdvise | Do::kNote, "numbers: advice to the job");
    if (!f_.ends_job && !f_.stalled) return stay(Do::kNote | Do::kRemember, "the job goes on");
    if (!f_.sure) {
      // A standstill stays a suspicion, which has a limit.
      const JobState waits = f_.stalled && state_ == kRun ? kSuspect : state_;
      return {waits, Do::kNote | Do::kRemember, "the confidence does not suffice to stop the job"};
    }
    return end_it(kRun, "the fault keeps the job from going on");
  }

  Transition done(std::string_view why) const { return {kDone, Do::kAbandon, why}; }

  Transition taken_away() const {
    const DoSet what = Do::kEndAttempt | Do::kDecide;
    if (f_.permit == Permit::kObserve) return {kHeld, what | Do::kWouldDo, kObserved};
    if (const auto no = no_start(what)) return *no;
    if (f_.permit == Permit::kAsk) return {kHeld, what | Do::kAsk, kAsked};
    return {kPlace, what, "the scheduler took the hosts: no failure of the job"};
  }

  // Other actors began to change what this decision changes.
  Transition superseded(JobState to) const {
    return {to, to == kVerify ? Do::kAbandon | Do::kVerify : Do::kAbandon | Do::kNote,
            "another actor started the job: our open actions end"};
  }

  // ---- rows

  Transition running(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kVerdictEnded:
        return ended("the attempt failed");
      case JobEvidence::kVerdictAlive:
        return verdict_alive();
      case JobEvidence::kSuspects:
        return {kSuspect, Do::kRemember, "suspects without a verdict"};
      case JobEvidence::kProgress:
        return {kRun, kNo, "the job makes progress"};
      case JobEvidence::kTakenAway:
        return taken_away();
      case JobEvidence::kNodeFailed:
        return ended("the scheduler reports a failed host");
      case JobEvidence::kFailed:
        return {kSuspect, Do::kNote, "the job failed; its verdict may still come"};
      case JobEvidence::kHeldByOthers:
        return f_.runs ? stay(Do::kNote, "held by another actor, but it runs")
                       : Transition{kHeld, Do::kAbandon | Do::kNote, "another actor holds the job"};
      case JobEvidence::kApproved:
        return f_.stalled || f_.ends_job ? end_it(kRun, "approved") : stay();
      case JobEvidence::kDeclined:
        return stay(Do::kAbandon | Do::kNote, "declined, or no answer in time");
      case JobEvidence::kLimit:
        return state_ == kSuspect ? suspect_limit() : stay();
      case JobEvidence::kHostByOthers:
        return stay(Do::kNote, "another actor changed a host of the job");
      case JobEvidence::kStartedByOthers:
        return {kRun, kNo, "another actor started the job"};
      case JobEvidence::kActionsDone:
      case JobEvidence::kActionsFailed:
      case JobEvidence::kChecked:
      case JobEvidence::kRestored:
      case JobEvidence::kCompleted:
      case JobEvidence::kCancelled:
        break;
    }
    return stay();
  }

  Transition suspect_limit() const {
    if (!f_.alive) return ended("the attempt failed without a verdict");
    if (f_.stalled) return end_it(kRun, "no progress, and no culprit");
    return {kRun, Do::kNote, "the suspicion was not confirmed"};
  }

  Transition stopping(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kActionsDone:
      case JobEvidence::kTakenAway:
      case JobEvidence::kNodeFailed:
      case JobEvidence::kFailed:
        return proceed(Do::kEndAttempt, "the processes have ended");
      case JobEvidence::kActionsFailed:
      case JobEvidence::kLimit:
        return proceed(Do::kEndAttempt | Do::kNote,
                       "processes did not end in time: their hosts are left out");
      case JobEvidence::kProgress:
        return {kRun, Do::kAbandon | Do::kNote, "the job makes progress again: the stop is abandoned"};
      case JobEvidence::kStartedByOthers:
        return superseded(kVerify);
      default:
        return stay();  // the first verdict stays
    }
  }

  Transition checking(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kChecked:
        return after_checks(kNo, "the checks have answered");
      case JobEvidence::kLimit:
        return after_checks(Do::kNote, "the checks' time is over: no answer counts as unknown");
      case JobEvidence::kHostByOthers:
      case JobEvidence::kHeldByOthers:
        return {kHeld, Do::kAbandon | Do::kNote, "another actor changes the hosts or the job"};
      default:
        return between(e);
    }
  }

  Transition isolating(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kActionsDone:
        return after_isolation(kNo, "the hosts are isolated");
      case JobEvidence::kActionsFailed:
      case JobEvidence::kLimit:
        return after_isolation(Do::kNote,
                               "an isolation failed or has no answer: not repeated, left out for this job");
      case JobEvidence::kHeldByOthers:
        return {kHeld, Do::kAbandon | Do::kNote, "another actor holds the job"};
      default:
        return between(e);
    }
  }
  Transition after_isolation(DoSet what, std::string_view why) const {
    if (f_.alive && !f_.may_restart) return {kRun, what, "isolated; the job goes on"};
    return to_place(what, why);
  }

  Transition placing(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kLimit:
        if (f_.waiting) return stay();
        if (const auto no = no_start(kNo)) return *no;
        if (!is_permitted()) return not_permitted(kNo);
        if (!f_.placeable) return {kHeld, Do::kNote, "no whole checkpoint"};
        return {kRestart, Do::kRunAgain, "the job starts again"};
      case JobEvidence::kHeldByOthers:
      case JobEvidence::kDeclined:
        return {kHeld, Do::kAbandon | Do::kNote, "another actor holds the job"};
      default:
        return between(e);
    }
  }

  // Of states in which no attempt runs by our decision.
  Transition between(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kStartedByOthers:
        return superseded(kVerify);
      case JobEvidence::kProgress:
        return {kRun, Do::kAbandon | Do::kNote, "the job makes progress"};
      default:
        return stay();
    }
  }

  Transition restarting(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kActionsDone:
        return {kVerify, Do::kVerify, "the scheduler started it"};
      case JobEvidence::kActionsFailed:
        return {kHeld, Do::kNote, "the scheduler did not start it; this is not repeated"};
      case JobEvidence::kVerdictEnded:
      case JobEvidence::kNodeFailed:
        return ended("the new attempt failed");
      case JobEvidence::kFailed:
        return {kSuspect, Do::kNote, "the new attempt failed; its verdict may still come"};
      case JobEvidence::kTakenAway:
        return taken_away();
      case JobEvidence::kProgress:
        return {kRun, Do::kGood, "the new attempt makes progress"};
      case JobEvidence::kHeldByOthers:
        return {kHeld, Do::kAbandon | Do::kNote, "another actor holds the job"};
      case JobEvidence::kLimit:
        if (f_.runs) return {kVerify, Do::kVerify, "it runs, although the scheduler gave no answer"};
        if (f_.pending && f_.patient && f_.frees && is_permitted())
          return {kPlace, Do::kAskAgain, "it waits for hosts: exclusions of earlier decisions end"};
        if (f_.pending && f_.patient) return stay(Do::kRemind, "it waits for resources");
        return {kHeld, Do::kAbandon | Do::kNote,
                f_.pending ? "no resources for too long" : "it did not start in time"};
      case JobEvidence::kStartedByOthers:
        return between(e);
      default:
        return stay();
    }
  }

  Transition verifying(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kProgress:
        return {kRun, Do::kGood, "the new attempt makes progress"};
      case JobEvidence::kLimit:
        if (!f_.alive && !f_.runs) return ended("the new attempt is not there");
        // A job whose logs show no iteration is not a job that stands still.
        if (!f_.shows_progress)
          return {kRun, Do::kAbandon | Do::kNote, "it runs, and shows no progress at all"};
        return end_it(kRun, "no progress since the start");
      case JobEvidence::kSuspects:
        return stay(Do::kRemember, "suspects without a verdict");
      case JobEvidence::kStartedByOthers:
        return {kRun, Do::kAbandon, "another actor started the job"};
      case JobEvidence::kVerdictAlive:
        return verdict_alive();
      default:
        return running(e);
    }
  }

  Transition held(JobEvidence e) const {
    switch (e) {
      case JobEvidence::kProgress:
        return {kRun, Do::kAbandon | Do::kNote, "the job makes progress"};
      case JobEvidence::kStartedByOthers:
        return {kRun, Do::kAbandon | Do::kNote, "another actor started the job"};
      case JobEvidence::kApproved:
        return is_permitted() ? proceed(kNo, "approved") : stay();
      case JobEvidence::kDeclined:
        return stay(Do::kAbandon | Do::kNote, "declined, or no answer in time");
      case JobEvidence::kLimit:
        return stay(Do::kRemind, "the job waits for a person");
      case JobEvidence::kVerdictEnded:
      case JobEvidence::kVerdictAlive:
      case JobEvidence::kTakenAway:
      case JobEvidence::kNodeFailed:
      case JobEvidence::kFailed:
        return stay(Do::kNote, "recorded only");
      default:
        return stay();
    }
  }

  const JobState state_;
  const Facts& f_;
};

}  // namespace

std::string_view to_string(JobState state) { return kStateWords[static_cast<size_t>(state)]; }
std::string_view to_string(JobEvidence evidence) { return kEvidenceWords[static_cast<size_t>(evidence)]; }

Transition next(JobState state, JobEvidence evidence, const Facts& facts) {
  return Move(state, facts).on(evidence);
}

TimeNs limit_of(JobState state, const Bounds& b, TimeNs last_start_ns) {
  switch (state) {
    case kSuspect:
      return b.suspect_ns;
    case kStop:
      return b.stop_ns;
    case kCheck:
      return b.check_ns;
    case kIsolate:
      return b.isolate_ns;
    case kPlace:
      return 0;
    case kRestart:
      return b.restart_ns;
    case kVerify:
      return last_start_ns == kNoTime ? b.verify_min_ns : std::max(b.verify_min_ns, 3 * last_start_ns);
    case kHeld:
      return b.remind_ns;
    case kRun:
    case kDone:
      break;
  }
  return kNoTime;
}

}  // namespace culprit::recover
