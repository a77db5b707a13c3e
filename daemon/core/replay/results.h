// What came of the runs of a replay, from a text that people or scripts write: a line "PHASE GROUP ok|failed
// [HOSTS]" or a JSON object for each run. Blank lines and "# …" are skipped. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/replay/plan.h"

namespace culprit::replay {

struct GroupRun {
  uint32_t phase = 0, group = 0;
  bool failed = false;
  HostSet hosts;
};

constexpr size_t kResultBytes = 4 << 20;
constexpr size_t kResultRuns = 20'000;

// A group that ran again has another line. Phases from 3 on are not part of the plan, so their lines name the
// hosts. Fails with the line's number for a group that the plan lacks, hosts that are not those of the plan's
// group or not in the plan, and a group with other hosts than in an earlier line.
Result<std::vector<GroupRun>> read_results(std::string_view text, const Plan& plan);

}  // namespace culprit::replay
