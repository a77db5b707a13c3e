// Keeps jobs apart that a scheduler shows, and gives what changed between two views as inputs of the
// controller. A requeue changes a job's time of submission, so a job keeps the first one: a later view is of
// the same job if its restarts did not fall and its user is the same. Pure; one thread.
#pragma once

#include <cstdint>
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
  // Inputs in the order of the view. `read_ns`: when its reading began.
  std::vector<recover::Input> update(const respond::SchedulerView& view, TimeNs now, TimeNs read_ns);

  // The job's identity for the controller, by the scheduler's id; nothing: the scheduler does not show it.
  std::optional<ScheduledJob> known(const std::string& id) const;
  // The identity that the scheduler has now, for an order about the controller's job.
  ScheduledJob current(const ScheduledJob& job) const;
  // The user; nothing: unknown job.
  std::optional<uint32_t> user_of(const std::string& id) const;
  std::vector<std::string> hosts_of(const std::string& id) const;  // where it runs, or ran last
  bool is_alive(const std::string& id) const;                      // it has processes, as far as shown
  std::vector<std::string> running() const;                        // ids

 private:
  struct Known {
    ScheduledJob first, now;
    respond::SeenJob::State state = respond::SeenJob::State::kPending;
    uint32_t uid = 0;
    std::vector<std::string> hosts;
    TimeNs seen_ns = kNoTime;
    bool ended = false;  // the end of the current attempt was given
  };
  void add_job(const respond::SeenJob& seen, const respond::SchedulerView& view, TimeNs now,
               std::vector<recover::Input>& out);
  void add_hosts(const respond::SchedulerView& view, TimeNs now, TimeNs read_ns,
                 std::vector<recover::Input>& out);

  std::map<std::string, Known> jobs_;
  std::map<std::string, respond::SeenHost> hosts_;
  TimeNs hosts_given_ns_ = kNoTime;
};

}  // namespace culprit::app
