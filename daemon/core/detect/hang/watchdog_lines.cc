#include "core/detect/hang/watchdog_lines.h"

#include <algorithm>

namespace culprit::hang {
namespace {

using H = ObservedHole;

constexpr size_t kWordBytes = 200;                        // of a name, a size, a call site
constexpr std::string_view kDefaultGroup = "default_pg";  // as dumps of flight recorders describe it

std::string word(const LineValues& values, H hole) {
  return std::string(values.text(hole).substr(0, kWordBytes));
}

// The sequence number of an operation. Uninitialised memory prints as 10 to 17 digits; no job counts that
// far.
std::optional<int64_t> sequence(const LineValues& values, H hole) {
  constexpr int64_t kMost = 10'000'000'000;
  const auto value = values.number(hole);
  return value && *value < kMost ? value : std::nullopt;
}

TimeNs waited_of(const LineValues& values) {
  constexpr int64_t kMost = int64_t{1} << 40;
  if (const auto ms = values.number(H::kWaitedMs))
    return std::clamp<int64_t>(*ms, 0, kMost) * (kNsPerSecond / 1'000);
  const auto seconds = values.number(H::kWaitedS);
  return std::clamp<int64_t>(seconds.value_or(0), 0, kMost / 1'000) * kNsPerSecond;
}

// These operations have equal element counts in and out; other sizes mean a garbled line.
void drop_impossible_sizes(ObservedCall& call) {
  const std::string op = plain_op(call.op);
  const bool alike = op == "allreduce" || op == "broadcast" || op == "reduce";
  if (alike && call.in && call.out && *call.in != *call.out) call.in = call.out = {};
}

std::string sizes_of(const LineValues& values, H sizes, H types) {
  std::string out = word(values, sizes);
  if (!values.has(types)) return out;
  if (!out.empty()) out += ' ';
  return out + word(values, types);
}

ObservedCall call_of(const LineValues& values) {
  ObservedCall call;
  call.op = word(values, H::kOp);
  call.seq = sequence(values, H::kSeq).value_or(-1);
  if (const auto n = values.number(H::kIn); n && *n >= 0) call.in = static_cast<uint64_t>(*n);
  if (const auto n = values.number(H::kOut); n && *n >= 0) call.out = static_cast<uint64_t>(*n);
  call.sizes = sizes_of(values, H::kSizes, H::kTypes);
  call.site = word(values, values.has(H::kSite) ? H::kSite : H::kLibrarySite);
  if (!call.site.empty() && values.has(H::kFunction)) call.site += " in " + word(values, H::kFunction);
  drop_impossible_sizes(call);
  return call;
}

// The rank and the group of the line.
WatchdogLine head_of(const LineValues& values) {
  WatchdogLine line;
  line.rank = values.rank(H::kOwnRank);
  line.group_rank = values.rank(H::kGroupRank);
  line.waited_ns = waited_of(values);
  if (values.has(H::kWorld)) {
    line.group = {"0", std::string(kDefaultGroup), {}, 0, "0"};
    return line;
  }
  line.group.key = word(values, H::kGroup);
  line.group.description = word(values, H::kGroupName);
  line.group.local = word(values, H::kGroupLocal);
  if (line.group.key.empty() && line.group.description == kDefaultGroup) line.group.key = "0";
  return line;
}

// A second call with number 0 and no sizes is unset: it was not read from its rank.
bool read_mismatch(const LineValues& values, WatchdogLine& line) {
  if (const auto rank = values.rank(H::kCaller)) {
    line.ranks.push_back(*rank);
    line.calls.push_back(call_of(values));
  }
  if (const auto rank = values.rank(H::kCaller2)) {
    ObservedCall call;
    call.op = word(values, H::kOp2);
    call.seq = sequence(values, H::kSeq2).value_or(-1);
    call.sizes = sizes_of(values, H::kSizes2, H::kTypes2);
    line.ranks.push_back(*rank);
    line.calls.push_back(std::move(call));
  }
  if (line.ranks.empty()) return false;
  line.call = line.calls[0];
  return true;
}

bool read_ranks(const LineValues& values, WatchdogLine& line) {
  line.kind = WatchdogKind::kBehind;
  line.call = call_of(values);
  if (const auto rank = values.rank(H::kAsks)) {
    line.ranks = {*rank};
    line.refers = true;
    return true;
  }
  line.ranks = values.ranks(H::kAbsent);
  if (!line.ranks.empty()) return true;
  line.kind = WatchdogKind::kJoined;
  line.ranks = values.ranks(H::kJoined);
  return !line.ranks.empty();
}

// Numbers of the last operations.
void read_counters(const LineValues& values, WatchdogLine& line) {
  line.enqueued = sequence(values, H::kEnqueued);
  if (!line.enqueued) return;
  line.completed = values.number(H::kCompleted);
  // Some releases print an uninitialised number if no operation has completed.
  if (line.completed && *line.completed > *line.enqueued) line.completed = -1;
}

std::optional<WatchdogKind> read_call(const LineValues& values, WatchdogLine& line) {
  line.call = call_of(values);
  if (values.has(H::kEnqueued)) {
    read_counters(values, line);
    return WatchdogKind::kStatus;
  }
  if (line.call.op.empty() && values.has(H::kStore)) line.call.op = "store";
  if (line.call.seq >= 0 || !line.call.op.empty())
    return values.has(H::kTimedOut) ? WatchdogKind::kTimeout : WatchdogKind::kWait;
  if (values.has(H::kClosed)) {
    line.peer = word(values, H::kClosedBy);
    line.at_exit = values.has(H::kAtExit);
    return WatchdogKind::kClosed;
  }
  line.in_library = !values.has(H::kSite);
  if (!line.call.site.empty()) return WatchdogKind::kFrame;
  return values.has(H::kStuck) ? std::optional(WatchdogKind::kHeartbeat) : std::nullopt;
}

}  // namespace

std::optional<WatchdogLine> read_watchdog_line(const LineValues& values) {
  if (!values.any()) return std::nullopt;
  WatchdogLine line = head_of(values);
  if (read_mismatch(values, line)) {
    line.kind = WatchdogKind::kMismatch;
    return line;
  }
  if (read_ranks(values, line)) return line;
  const auto kind = read_call(values, line);
  if (!kind) return std::nullopt;
  line.kind = *kind;
  return line;
}

std::string plain_op(std::string_view op) {
  if (const size_t colon = op.rfind(':'); colon != op.npos) op.remove_prefix(colon + 1);
  std::string out;
  for (const char c : op)
    if (c != '_' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return out;
}

}  // namespace culprit::hang
