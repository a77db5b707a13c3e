// What is wrong with a simulated communication trace: where it sits, in which steps, what it does to them.
// Plain values and functions of them; any thread.
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
  std::string_view kind;  // gpu host nic link nvlink switch, as in a report; hang; job: no part at fault
  bool somebody = true;   // a rank, host, device or link is at fault
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> hosts;               // numbers in site.host_names
  std::pair<uint32_t, uint32_t> link{0, 0};  // hosts, where kind is link
  std::vector<uint8_t> active;               // by step
  double severity = 1;                       // slower by
  uint64_t key = 0;                          // of its own chance
  uint32_t stop_at = 0;                      // of a hang: action of the rank
  // What a slow link, card or switch slows: numbers of groups by kind, channels of CommEffects.
  std::array<std::vector<uint32_t>, kCommGroups> slow_groups;
  std::vector<uint32_t> slow_channels;
  bool twin = false;  // on another card or link the effect would be equal: indistinguishable
};

// Chooses where and when; the severity is the options', or 1. Changes the site where the fault is an
// imbalance of the job itself.
Result<CommFault> make_comm_fault(std::string_view name, const CommJobOptions& options, CommSite& site,
                                  Random random);
bool is_hang(const CommFault& fault);
// Whether it is there at all or not cannot be separated from the job: an imbalance is part of the site.
bool is_of_job(const CommFault& fault);
// Adds what the fault does in `step`.
void add_effects(const CommFault& fault, const CommSite& site, uint32_t step, CommEffects& effects);

}  // namespace culprit::sim
