// Plan of a simulated job with every input: its hosts, its steps, the fault, and what each input shows of
// the fault. A plain value that the writers read. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sim/mixed_job.h"
#include "sim/random.h"

namespace culprit::sim {

enum class MixedFault : uint8_t {
  kThermal,
  kCable,
  kCableDown,
  kMemory,
  kStorage,
  kDisk,
  kOom,
  kPlanned,
  kHealthyThermal,
  kHealthyEcc,
  kHealthyFlap,
  kHealthyPlan
};
constexpr bool is_mixed_hang(MixedFault fault) {
  return fault == MixedFault::kCableDown || fault == MixedFault::kStorage || fault == MixedFault::kOom;
}
constexpr bool is_mixed_fault(MixedFault fault) { return fault < MixedFault::kPlanned; }

// What a plugin stored.
struct MixedCounter {
  TimeNs at_ns = 0;
  uint32_t host = 0;
  std::optional<uint32_t> device;
  std::string plugin, id, title, text, part, state = "happened", severity = "warning";
  std::string_view category, component, symptom, action = "check";
  double confidence = 0.8;
};

struct MixedKernelLine {
  TimeNs at_ns = 0;
  uint32_t host = 0;
  std::string text;
};

struct MixedPlan {
  MixedFault fault = MixedFault::kThermal;
  std::vector<std::string> hosts;
  uint32_t ranks_per_host = 8;
  uint32_t tp = 1, pp = 1, dp = 1;
  // Place of the fault. `peer`: the host at the other end of a link.
  std::optional<uint32_t> rank;
  std::vector<uint32_t> fault_hosts;
  std::optional<uint32_t> peer;
  uint32_t onset = 0;      // index of the step
  TimeNs onset_at_ns = 0;  // 0: when that step begins
  TimeNs epoch_ns = 0;
  std::vector<TimeNs> step_ends_ns;  // the steps of the trace
  uint32_t first_step = 0;           // the number of the first
  std::vector<MixedCounter> counters;
  std::vector<MixedKernelLine> kernel, chat;  // `chat`: lines of the hosts' own monitors, in their logs
  std::set<std::string_view> shows;           // inputs that show something of the fault

  TimeNs onset_ns() const {
    if (onset_at_ns != 0) return onset_at_ns;
    return onset == 0 || step_ends_ns.empty() ? epoch_ns : step_ends_ns[onset - 1];
  }
  uint32_t host_of(uint32_t r) const { return r / ranks_per_host; }
};

// Fills in counters, kernel and chat: the machines' symptoms of the fault, in the wording of one of several
// drivers and sites, and harmless reports of other hosts.
void add_mixed_signs(MixedPlan& plan, Random random);

// Lines of out/job/plugins and out/job/metrics.ndjson.
std::string mixed_counter_lines(const MixedPlan& plan, uint32_t host);
std::string mixed_metric_lines(const MixedPlan& plan, Random random);

}  // namespace culprit::sim
