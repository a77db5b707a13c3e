#include "records/rows.h"

#include <array>

namespace culprit::records {

std::string_view to_string(JobState state) {
  constexpr std::array<std::string_view, 4> kStates = {"running", "ended_well", "failed", "ended"};
  return kStates[static_cast<size_t>(state) % kStates.size()];
}

}  // namespace culprit::records
