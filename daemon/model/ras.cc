#include "model/ras.h"

namespace culprit {
namespace {

constexpr std::array<std::string_view, kRasPhases> kRasPhaseWords = {"NOCOMM", "INIT", "RUNNING", "FINALIZE",
                                                                     "ABORT"};

}  // namespace

std::string_view to_string(RasPhase phase) { return kRasPhaseWords[static_cast<size_t>(phase)]; }

std::optional<RasPhase> ras_phase(std::string_view word) {
  for (size_t i = 0; i < kRasPhaseWords.size(); ++i)
    if (kRasPhaseWords[i] == word) return static_cast<RasPhase>(i);
  return std::nullopt;
}

}  // namespace culprit
