// Reads what PyTorch's watchdogs, DETAIL checks, Gloo and HCCL print about operations that do not end: the
// wordings of torch 1.13 to 2.11. Each line is read alone; log_observations.h joins them. Lines may be cut
// within a word, so a value counts only with the character that ends it. Of desync reports the rules have the
// wording, and name the values in holes. Pure; accepts any text.
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
  kDump,       // the same of the default group, whichever group hangs
  kAsync,      // an operation failed because a peer or the network went first
  kHeartbeat,  // the watchdog itself stands still: a CUDA call or the GIL
  kFrame,      // a frame of the failed operation's call: `call.site`
  kJoined,     // `ranks` are in operation `call.seq` and have not finished it
  kBehind,     // `ranks` did not come to operation `call.seq`; -1: to any
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
  std::vector<ObservedCall> calls;  // kMismatch: by entry of `ranks`
  std::optional<int64_t> enqueued, completed;
  std::vector<uint32_t> ranks;  // of the group
  bool refers = false;          // kBehind: a rank that came points to the one that knows who did not
  TimeNs waited_ns = 0;
  std::string peer;
};

// Nothing for a line without any of this.
std::optional<WatchdogLine> read_watchdog_line(std::string_view text);

// The holes by which a rule that observes operations says where ranks are (rules/README.md). Views.
struct NamedRanks {
  std::string_view joined, absent;  // "0, 2": ranks that are in operation `seq`, or did not come to it
  std::string_view seq, op;
};
// Nothing without ranks.
std::optional<WatchdogLine> read_named_ranks(std::string_view text, const NamedRanks& named);

// The names of one operation in all spellings are equal: "allreduce" for "ALLREDUCE", "nccl:all_reduce".
std::string plain_op(std::string_view op);

}  // namespace culprit::hang
