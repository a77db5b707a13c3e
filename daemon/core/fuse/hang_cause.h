// Why a job stands, where the machine itself says it: a link of the host that is behind went down, the kernel
// killed the process that its peers miss, the server of the files in which ranks wait does not answer. Such a
// line and the answer of the hang state are one diagnosis, whose cause is the line. Pure.
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

// What the hang state says of a job that stands.
struct Standstill {
  HangAnswer answer = HangAnswer::kUnknown;
  std::set<std::string> hosts;   // of the ranks that are waited for; empty: none are named
  std::set<uint32_t> processes;  // that are gone, by number on their host; empty: not known
  TimeNs since_ns = kNoTime;     // when the ranks began to wait
};

// The first of `findings` that explains the standstill; nothing if none does, or if lines of several hosts
// could. A line of another host than the one that is behind explains nothing.
std::optional<size_t> cause_of(const Standstill& still, std::span<const Finding> findings);

// Whether the finding is of the time in which ranks that wait since then met their fault.
bool is_in_time(const Finding& finding, TimeNs since_ns);

// `answer` with the cause: its component, action and lines first.
Finding with_cause(const Finding& answer, const Finding& cause);

}  // namespace culprit::core::fuse
