// The fault of a simulated hang: the ranks at fault, what they do instead, and the expected answer. Owns
// the programs of the ranks. Plain values; any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "sim/hang_world.h"
#include "sim/random.h"

namespace culprit::sim {

enum class HangEnd : uint8_t { kAlive, kKilled, kException, kStopped };

struct HangFault {
  std::string_view kind, class_name;
  std::vector<uint32_t> ranks;  // at fault; none: no single rank is
  std::vector<uint32_t> hosts;  // theirs, or both ends of a link
  HangEnd end = HangEnd::kAlive;
  // Ranks whose processes have exited, including those that the launcher killed.
  std::vector<uint32_t> exited;
  HangPlace place = HangPlace::kForward;  // of the host of the ranks at fault
  bool own_place = false;                 // `place` differs from what their program says
  std::vector<HangDeviation> deviations;
  HangCut cut;
  std::vector<std::unique_ptr<const HangProgram>> programs;
  std::vector<const HangProgram*> program_of;  // by rank
  // The hanging operation: a rank with it in its program, and its index there.
  bool has_operation = false;
  uint32_t operation_rank = 0, operation_act = 0;

  bool is_at_fault(uint32_t rank) const;
  bool is_removed(uint32_t rank) const;
};

Result<HangFault> make_hang_fault(const HangSite& site, std::string_view kind, Random random);

}  // namespace culprit::sim
