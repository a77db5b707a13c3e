// The verdicts that the controller may use: the latest of each job that the scheduler shows, if the job's own
// user, or no user, wrote the evidence. Decides when a verdict is given to the controller, and when it says
// nothing new. One thread. Borrows its parts, which outlive it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/alerts/run_verdict.h"
#include "app/daemon/recover/scheduled_jobs.h"
#include "core/recover/controller.h"

namespace culprit::app {

class JobVerdicts {
 public:
  struct Parts {
    const Config* config = nullptr;
    const ScheduledJobs* jobs = nullptr;
    const recover::Controller* controller = nullptr;
    // Our last order to run a job of the scheduler again; null: none.
    std::function<const ActionRecord*(const std::string& job)> last_start = {};
    std::function<void(const recover::Note&)> note = {};
    std::function<void(const std::string&)> warn = {};
    // Whether this collector acts for the scheduler's job; empty: for each. Other verdicts wait.
    std::function<bool(const std::string& job)> is_own = {};
  };
  explicit JobVerdicts(Parts parts) : parts_(std::move(parts)) {}

  void put(std::span<const RunVerdict> verdicts, TimeNs now);
  // What the controller has not got yet. Jobs that the scheduler no longer shows are forgotten.
  std::vector<recover::VerdictSeen> take(TimeNs now);
  // The controller has lost, or never got, what take() gave on these jobs (ids at the scheduler, ascending).
  void give_again(std::span<const std::string> jobs);

  // The verdicts on a job, by its id at the scheduler, that the controller has not got: a sentence each, with
  // what they wait for.
  std::vector<std::string> waits(const std::string& id) const;

  // The scheduler's id of the job, by culprit's; empty: it has none.
  std::string id_of(const std::string& job) const;
  // The same by any name that agents have for the job; the name if it has none.
  std::string resolve(const std::string& job) const;
  // The verdict behind a job's decision, by its id at the scheduler; null: none.
  const RunVerdict* of(const std::string& job) const;
  // Culprit's id of a job of the scheduler, once a verdict on it was used; else the same.
  std::string name_of(const std::string& job) const;

 private:
  struct Stored {
    RunVerdict verdict;
    TimeNs at_ns = kNoTime;
    bool taken = false;              // given to the controller, or refused
    std::optional<Diagnosis> given;  // the last one that was given
    TimeNs since_ns = kNoTime;       // of the first verdict with this cause
    uint32_t measured = 1;           // as given
  };
  void put_unsettled(const RunVerdict& v, TimeNs now);
  bool counts(const RunVerdict& v) const;
  bool is_final(const RunVerdict& v) const;
  bool is_acted_on(const ScheduledJob& job, const Diagnosis& diagnosis) const;
  void measure_again(TimeNs now);
  std::optional<recover::VerdictSeen> seen_of(const ScheduledJob& job, Stored& stored);
  void withdraw(const ScheduledJob& job, const Diagnosis& diagnosis);
  void forget(TimeNs now);

  Parts parts_;
  struct Unsettled {
    std::string title;
    double confidence = 0;
    TimeNs since_ns = kNoTime, at_ns = kNoTime;  // of the first and the last one with this title
  };
  std::map<std::string, Stored> verdicts_;      // by culprit's id of the job: the latest
  std::map<std::string, Unsettled> unsettled_;  // by culprit's id of the job: newer than the one above
  std::map<std::string, std::string> names_;    // culprit's id of a job, by the scheduler's
};

}  // namespace culprit::app
