// Why a job stands still, if the machine itself reports the cause: a link of the late host went down, the
// kernel killed the missing process, or a file server does not answer. The machine's line and the hang
// state's answer become one diagnosis; the line is its cause. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/report.h"

namespace culprit::core::fuse {

// The hang state's answer for a job that stands still.
struct Standstill {
  HangAnswer answer = HangAnswer::kUnknown;
  std::set<std::string> hosts;   // hosts of the awaited ranks; empty: no rank is named
  std::set<uint32_t> processes;  // pids of exited processes on their host; empty: unknown
  TimeNs since_ns = kNoTime;     // when the ranks began to wait
};

// The first of `findings` that explains the standstill; empty if none does, or if lines of several hosts
// could. Only lines of the late host count.
std::optional<size_t> cause_of(const Standstill& still, std::span<const Finding> findings);

// Whether the finding lies in the period in which ranks waiting since `since_ns` met their fault.
bool is_in_time(const Finding& finding, TimeNs since_ns);

// `answer` with the cause's component, action and lines in front.
Finding with_cause(const Finding& answer, const Finding& cause);

}  // namespace culprit::core::fuse
