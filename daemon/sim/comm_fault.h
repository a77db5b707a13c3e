// A fault of a simulated communication trace: its place, steps and effect. Plain values and functions of
// them; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/comm_world.h"
#include "sim/random.h"

namespace culprit::sim {

struct CommFault {
  std::string_view name;  // of comm_faults()
  std::string_view kind;  // gpu host nic link nvlink switch, as in a report; hang; job: no faulty part
  bool somebody = true;   // a rank, host, device or link is at fault
  bool listed = false;    // explains single steps; a verdict from one step would be premature
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> hosts;               // numbers in site.host_names
  std::pair<uint32_t, uint32_t> link{0, 0};  // two hosts, if kind is link
  std::vector<uint8_t> active;               // by step
  std::vector<int64_t> levels;               // share of the severity by step, in units; empty: all
  double severity = 1;                       // slowdown factor
  uint64_t pause_ns = 0;                     // of an event that is a pause
  uint64_t key = 0;                          // of its own random numbers
  uint32_t stop_at = 0;                      // of a hang: index of the rank's action
  // Parts slowed by a link, card or switch: group numbers by kind, and channels of CommEffects.
  std::array<std::vector<uint32_t>, kCommGroups> slow_groups;
  std::vector<uint32_t> slow_channels;
  bool twin = false;  // the same fault on another card or link has the same effect
};

// Chooses place and time. Severity: from the options, else 1. Changes the site if the fault is an imbalance
// of the job.
Result<CommFault> make_comm_fault(std::string_view name, const CommJobOptions& options, CommSite& site,
                                  Random random);
bool is_hang(const CommFault& fault);
// Whether the fault is an imbalance of the job: a property of the site that cannot be removed from the job.
bool is_of_job(const CommFault& fault);
// Adds the effects of the fault in `step`.
void add_effects(const CommFault& fault, const CommSite& site, uint32_t step, CommEffects& effects);

}  // namespace culprit::sim
