#include "app/daemon/api/device_past.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/text.h"

namespace culprit::app {

std::string past_of(const records::DeviceFault& own, const std::vector<records::DeviceFault>& faults) {
  constexpr size_t kShown = 3;  // the most recent ones matter most
  std::set<std::pair<std::string, uint32_t>> runs;
  std::string shown;
  for (auto fault = faults.rbegin(); fault != faults.rend(); ++fault) {
    const bool is_own_run = fault->job == own.job && fault->run == own.run;
    if (fault->device != own.device || is_own_run || fault->time_ns >= own.time_ns) continue;
    // Counts only the last fault of each run.
    if (!runs.emplace(fault->job, fault->run).second || runs.size() > kShown) continue;
    const std::string job = fault->step ? fmt::format("{} (step {})", fault->job, *fault->step) : fault->job;
    shown = shown.empty() ? job : job + ", " + shown;
  }
  if (runs.empty()) return {};
  return fmt::format("{} was suspected of corrupting data in {} before: {}{}", own.device,
                     counted(runs.size(), "job"), shown, runs.size() > kShown ? " and earlier ones" : "");
}

}  // namespace culprit::app
