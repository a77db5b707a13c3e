// Reads the lines of PyTorch watchdogs, DETAIL checks, Gloo and HCCL about operations that do not end (torch
// 1.13 to 2.11). Each line is read alone; log_observations.h joins them. Lines may be cut within a word, so a
// value counts only if its terminating character is present. The wordings of desync reports are in rules,
// with the values in holes. Pure; accepts any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/detect/hang/observation.h"

namespace culprit::hang {

enum class WatchdogKind : uint8_t {
  kTimeout,    // an operation ran longer than its limit: `call`
  kStatus,     // numbers of a group: `enqueued`, `completed`, and `call.seq` that failed
  kDump,       // as kStatus, for the default group, whichever group hangs
  kAsync,      // an operation failed because a peer or the network failed earlier
  kHeartbeat,  // the watchdog itself is blocked: a CUDA call or the GIL
  kFrame,      // a frame of the failed operation's call: `call.site`
  kJoined,     // `ranks` are in operation `call.seq` and have not finished it
  kBehind,     // `ranks` did not enter operation `call.seq`; -1: any operation
  kMismatch,   // two ranks called different operations: `ranks` and `calls`
  kStore,      // waits for a key that rank 0 sets
  kGloo,       // waits for a peer, without a number
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
  bool refers = false;  // kBehind: the rank entered, and refers to the rank that knows the missing ones
  TimeNs waited_ns = 0;
  std::string peer;
};

// Empty if the line contains none of this.
std::optional<WatchdogLine> read_watchdog_line(std::string_view text);

// The holes with which a rule on operations gives the ranks (rules/README.md). Views.
struct NamedRanks {
  std::string_view joined, absent;  // "0, 2": ranks in operation `seq`, or not
  std::string_view seq, op;
};
// Empty without ranks.
std::optional<WatchdogLine> read_named_ranks(std::string_view text, const NamedRanks& named);

// Normalizes the spelling of an operation: "allreduce" for "ALLREDUCE", "nccl:all_reduce".
std::string plain_op(std::string_view op);

}  // namespace culprit::hang
