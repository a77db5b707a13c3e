// Keeps jobs apart that a scheduler shows, and gives what changed between two views as inputs of the
// controller. A requeue changes a job's time of submission, so a job keeps the first one: a later view is of
// the same job if its restarts did not fall and its user is the same. Without a time of submission the UID,
// or the name alone, is the identity. Pure; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/recover/controller.h"
#include "respond/scheduler_view.h"

namespace culprit::app {

class ScheduledJobs {
 public:
  // An attempt of the ledger, before the first view: a requeued job keeps its identity over a restart.
  void load(const AttemptRecord& row);

  // The newest attempt that another member knows of a job that is shown: its identity counts from now on.
  // False: the job is another one.
  bool adopt(const AttemptRecord& row);

  struct At {
    TimeNs now = kNoTime, read_ns = kNoTime;  // of the view, and when its reading began
    // Hosts that the controller leaves out of a job.
    std::function<std::vector<std::string>(const ScheduledJob&)> excluded = {};
  };
  // Inputs in the order of the view.
  std::vector<recover::Input> update(const respond::SchedulerView& view, const At& at);

  // The job's identity for the controller, by the scheduler's id; nothing: the scheduler does not show it.
  std::optional<ScheduledJob> known(const std::string& id) const;
  // The identity that the scheduler has now, for an order about the controller's job.
  ScheduledJob current(const ScheduledJob& job) const;
  // The user; nothing: unknown job.
  std::optional<uint32_t> user_of(const std::string& id) const;
  respond::SeenJob::Owner owner_of(const std::string& id) const;  // kUser: also of an unknown job
  // The job's id by another name of it, as last shown; else the name.
  const std::string& resolve(const std::string& name) const;
  std::vector<std::string> hosts_of(const std::string& id) const;  // where it runs, or ran last
  // Where its newest attempt runs or ran; empty: that has not started yet.
  std::vector<std::string> hosts_of_attempt(const std::string& id) const;
  bool is_alive(const std::string& id) const;  // it has processes, as far as shown
  // Hosts on which the job is still being ended while most have ended; a slow epilog holds all of them.
  std::vector<std::string> not_ended(const std::string& id) const;
  std::vector<std::string> running() const;  // ids
  std::vector<std::string> ids() const;      // of all jobs, ascending
  // The job as it is now, for a controller that has not got it: the attempt that runs, or that failed.
  std::vector<recover::Input> again(const std::string& id) const;
  std::string job_on(const std::string& host) const;  // one that has processes there; empty: none

 private:
  struct Known {
    ScheduledJob first, now;
    respond::SeenJob::State state = respond::SeenJob::State::kPending;
    std::optional<uint32_t> uid;  // nothing: from the ledger, not yet seen
    respond::SeenJob::Owner owner = respond::SeenJob::Owner::kUser;
    std::string partition;                   // of the scheduler
    std::vector<std::string> hosts, ending;  // of the attempt; those of them that are still being ended
    TimeNs seen_ns = kNoTime;
    uint32_t started = 0;  // restarts of the newest attempt that started
    bool ended = false;    // the end of the current attempt was given
  };
  bool is_same(const Known& known, const respond::SeenJob& seen) const;
  void add_job(const respond::SeenJob& seen, const respond::SchedulerView& view, const At& at,
               std::vector<recover::Input>& out);
  void add_hosts(const respond::SchedulerView& view, TimeNs now, TimeNs read_ns,
                 std::vector<recover::Input>& out);

  std::map<std::string, Known> jobs_;
  std::map<std::string, std::string> ids_;  // by other names
  std::map<std::string, respond::SeenHost> hosts_;
  TimeNs hosts_given_ns_ = kNoTime;
};

}  // namespace culprit::app
