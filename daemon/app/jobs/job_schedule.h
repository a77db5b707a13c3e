// When the jobs of LiveJobs report and end: by new data, by the cost of reports, by silence, and by what is
// known of the job's processes. The times of one job are in LiveJob::due; here is what reports cost each
// owner: large reports of one owner delay no other owner's, and a first report goes before later ones.
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

  // Looks at the job's processes from time to time: one never seen alive cannot be reported as gone.
  void look(LiveJob& job, TimeNs now);
  // Whether reports of the job's owner have not used up their share of the time.
  bool may_report(const LiveJob& job, TimeNs now) const;
  // How long the owner's reports would have to wait for those before; 0: not at all. Jobs of an owner with
  // less come first.
  TimeNs debt(const LiveJob& job, TimeNs now) const;
  // Whether the job needs a report now, and may have one.
  bool report_is_due(LiveJob& job, TimeNs now);
  // Whether the job's processes allow its silence to be a hang: a finished job is silent too. Only a scan
  // that started after the stall counts.
  bool may_hang(LiveJob& job, TimeNs now);
  // A report of the job was made at that cost.
  void reported(LiveJob& job, TimeNs now, TimeNs cost);
  bool is_over(LiveJob& job, TimeNs now);
  // When the job is checked again.
  TimeNs next_check(const LiveJob& job, TimeNs now) const;

 private:
  std::optional<bool> alive(LiveJob& job, TimeNs now);
  bool stall_changed(LiveJob& job, TimeNs now);
  static bool urgent_is_due(const LiveJob& job, TimeNs now);

  // Of an owner whose share is used up for now, by its name.
  struct Account {
    TimeNs allowed_ns = kNoTime;  // the next report
    TimeNs last_ns = kNoTime;     // the last one
  };

  const LiveOptions& options_;
  std::map<std::string, Account> accounts_;
};

}  // namespace culprit::app
