// What a line with these values states about operations that do not end. Each line is interpreted alone;
// log_observations.h joins them. Pure; accepts any values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/detect/hang/line_reader.h"
#include "core/detect/hang/observation.h"

namespace culprit::hang {

enum class WatchdogKind : uint8_t {
  kTimeout,    // an operation ran longer than its limit: `call`
  kStatus,     // numbers of a group: `enqueued`, `completed`, and `call.seq` that failed
  kWait,       // the rank waits in `call`, or it failed because a peer or the network failed earlier
  kHeartbeat,  // the watchdog itself is blocked
  kFrame,      // a frame of the failed operation's call: `call.site`
  kJoined,     // `ranks` are in operation `call.seq` and have not finished it
  kBehind,     // `ranks` did not enter operation `call.seq`; -1: any operation
  kMismatch,   // two ranks called different operations: `ranks` and `calls`
  kClosed,     // the connection to a peer ended: `peer`
};

struct WatchdogLine {
  WatchdogKind kind = WatchdogKind::kTimeout;
  std::optional<uint32_t> rank, group_rank;
  ObservedGroup group;
  ObservedCall call;
  std::vector<ObservedCall> calls;  // kMismatch: parallel to `ranks`
  std::optional<int64_t> enqueued, completed;
  std::vector<uint32_t> ranks;  // group ranks
  bool refers = false;      // kBehind: the rank entered, and refers to the rank that knows the missing ones
  bool in_library = false;  // kFrame: the place is in a library, not in the program
  bool at_exit = false;     // kClosed: the library closes its connections at any exit
  TimeNs waited_ns = 0;
  std::string peer;
};

// Empty if the values contain none of this.
std::optional<WatchdogLine> read_watchdog_line(const LineValues& values);

// Normalizes the spelling of an operation: "allreduce" for "ALLREDUCE", "nccl:all_reduce".
std::string plain_op(std::string_view op);

}  // namespace culprit::hang
