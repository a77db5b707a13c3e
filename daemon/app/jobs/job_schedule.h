// When the jobs of LiveJobs report and end: depends on new data, the cost of reports, silence, and the job's
// processes. LiveJob::due has the times of one job; this class has the cost of reports for each owner. Large
// reports of one owner delay no other owner's, and a first report precedes later ones.
//
// Owner: LiveJobs. One thread: the engine's worker. No clock: time is an argument.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "app/jobs/live_job.h"
#include "base/time.h"

namespace culprit::app {

class JobSchedule {
 public:
  // `options` is borrowed: its intervals may change.
  explicit JobSchedule(const LiveOptions& options) : options_(options) {}

  // Checks the job's processes from time to time: a process never seen alive cannot be reported as gone.
  void look(LiveJob& job, TimeNs now);
  // Whether reports of the job's owner have not used up their share of the time.
  bool may_report(const LiveJob& job, TimeNs now) const;
  // How long the owner's reports must wait because of earlier ones; 0: not at all. Jobs of an owner with a
  // smaller debt come first.
  TimeNs debt(const LiveJob& job, TimeNs now) const;
  // Whether the job needs a report now and its owner's share permits one.
  bool report_is_due(LiveJob& job, TimeNs now);
  // Whether the job's processes allow its silence to be a hang: a finished job is silent too. Only a scan
  // that started after the stall counts.
  bool may_hang(LiveJob& job, TimeNs now);
  // Records that a report of the job had this cost.
  void reported(LiveJob& job, TimeNs now, TimeNs cost);
  bool is_over(LiveJob& job, TimeNs now);
  // Time of the job's next check.
  TimeNs next_check(const LiveJob& job, TimeNs now) const;

 private:
  std::optional<bool> alive(LiveJob& job, TimeNs now);
  bool stall_changed(LiveJob& job, TimeNs now);
  static bool urgent_is_due(const LiveJob& job, TimeNs now);

  // The used-up share of an owner, by its name.
  struct Account {
    TimeNs allowed_ns = kNoTime;  // the next report
    TimeNs last_ns = kNoTime;     // the last one
  };

  const LiveOptions& options_;
  std::map<std::string, Account> accounts_;
};

}  // namespace culprit::app
