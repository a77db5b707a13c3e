#include "core/detect/hang/watchdog_lines.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/detect/hang/line_text.h"

namespace culprit::hang {
namespace {

constexpr size_t kRanksOfLine = 1 << 16;           // a list of more ranks is damage
constexpr size_t kWordBytes = 200;                 // of a name, a size, a call site
constexpr std::string_view kNoName = "undefined";  // torch's description of a group that has none

// The number at the start of `text`. A number at the very end may be truncated: it counts only with
// `open_end`.
std::optional<int64_t> number(std::string_view text, bool open_end = false) {
  const size_t blank = std::min(text.find_first_not_of(' '), text.size());
  text.remove_prefix(blank);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || (end == text.data() + text.size() && !open_end)) return std::nullopt;
  return value;
}

// The sequence number of an operation, or of the last completed one. Uninitialised memory prints as 10 to 17
// digits; no job counts that far.
std::optional<int64_t> sequence(std::string_view text, bool open_end = false) {
  constexpr int64_t kMost = 10'000'000'000;
  const auto value = number(text, open_end);
  return value && *value < kMost ? value : std::nullopt;
}

std::optional<uint32_t> rank_number(std::string_view text, bool open_end = false) {
  const auto value = number(text, open_end);
  if (!value || *value < 0 || *value >= int64_t{1} << 20) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

// "3, 5, 9": all numbers of a list.
std::vector<uint32_t> numbers(std::string_view text) {
  std::vector<uint32_t> out;
  while (!text.empty() && out.size() < kRanksOfLine) {
    const size_t at = static_cast<size_t>(std::ranges::find_if(text, is_digit) - text.begin());
    if (at == text.size()) break;
    text.remove_prefix(at);
    if (const auto value = rank_number(text, true)) out.push_back(*value);
    text.remove_prefix(static_cast<size_t>(std::ranges::find_if_not(text, is_digit) - text.begin()));
  }
  return out;
}

// "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000)": fields in any order.
bool read_work(std::string_view text, ObservedCall& call) {
  size_t at = text.find("Work");
  while (at != text.npos) {
    const size_t open = text.find('(', at);
    if (open == text.npos) return false;
    const std::string_view name = text.substr(at + 4, open - at - 4);
    if (name.size() <= 8 && name.ends_with("CCL")) {
      text.remove_prefix(open + 1);
      break;
    }
    at = text.find("Work", at + 4);
  }
  if (at == text.npos) return false;
  for (size_t fields = 0; fields < 16; ++fields) {
    const size_t equal = text.find('=');
    const size_t end = equal == text.npos ? text.npos : text.find_first_of(",)", equal);
    if (end == text.npos) return true;  // cut off
    const size_t blank = std::min(text.find_first_not_of(' '), equal);
    const std::string_view key = text.substr(blank, equal - blank);
    const std::string_view value = text.substr(equal + 1, end - equal - 1);
    if (key == "SeqNum") call.seq = sequence(value, true).value_or(-1);
    if (key == "OpType") call.op = value.substr(0, kWordBytes);
    if (const auto n = number(value, true); n && *n >= 0) {
      if (key == "NumelIn") call.in = static_cast<uint64_t>(*n);
      if (key == "NumelOut") call.out = static_cast<uint64_t>(*n);
    }
    if (text[end] == ')') return true;
    text.remove_prefix(end + 1);
  }
  return true;
}

// These operations have equal element counts in and out; other sizes mean a garbled line.
void drop_impossible_sizes(ObservedCall& call) {
  const bool alike = call.op == "ALLREDUCE" || call.op == "BROADCAST" || call.op == "REDUCE";
  if (alike && call.in && call.out && *call.in != *call.out) call.in = call.out = {};
}

// "[PG 0 Rank 1]", "[PG 0 (default_pg) Rank 1]", "[PG ID 2 PG GUID 5(mesh_dp) Rank 1]". The number after PG
// or PG ID is local to the process: only 0, the default group, is equal on all ranks.
void read_group(std::string_view text, WatchdogLine& line) {
  std::string_view rest = after(text, "[PG ");
  if (rest.empty()) return;
  rest = rest.substr(0, rest.find(']'));
  const size_t rank = rest.rfind("Rank ");
  if (rank == rest.npos) return;
  line.group_rank = rank_number(rest.substr(rank + 5), true);
  std::string_view name = rest.substr(0, rank);
  if (const size_t open = name.find('('); open != name.npos) {
    const size_t close = name.rfind(')');
    if (close != name.npos && close > open)
      line.group.description = name.substr(open + 1, std::min(close - open - 1, kWordBytes));
    if (line.group.description == kNoName) line.group.description.clear();
    name = name.substr(0, open);
  }
  while (name.ends_with(' ')) name.remove_suffix(1);
  const std::string_view guid = after(name, "PG GUID ");
  std::string_view local = name.starts_with("ID ") ? name.substr(3) : name;
  local = local.substr(0, static_cast<size_t>(std::ranges::find_if_not(local, is_digit) - local.begin()));
  line.group.local = local.substr(0, kWordBytes);
  if (has(name, "PG GUID")) {
    line.group.key = guid.substr(0, kWordBytes);
  } else if (name == "0") {
    line.group.key = "0";
  }
  if (line.group.key.empty() && line.group.description == "default_pg") line.group.key = "0";
}

// Numbers of the last operations: some releases name NCCL, others name nothing.
bool read_counters(std::string_view text, WatchdogLine& line) {
  for (const std::string_view word : {"last enqueued NCCL work: ", "last enqueued work: ",
                                      "Last enqueued NCCL work: ", "last enqueued HCCL work: "})
    if (const std::string_view rest = after(text, word); !rest.empty()) {
      line.enqueued = sequence(rest, true);
      if (!line.enqueued && number(rest, true)) return true;
    }
  if (!line.enqueued) return false;
  for (const std::string_view word :
       {"last completed NCCL work: ", "last completed work: ", "last completed HCCL work: "})
    if (const std::string_view rest = after(text, word); !rest.empty()) line.completed = number(rest, true);
  // Release 2.3 prints an uninitialised number if no operation has completed.
  if (line.completed && *line.completed > *line.enqueued) line.completed = -1;
  return true;
}

// "[Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 300000 ms", "Rank 1 successfully reached
// monitoredBarrier, but received errors while waiting for send/recv from rank 0."
std::optional<WatchdogKind> read_barrier(std::string_view text, WatchdogLine& line) {
  if (!has(text, "monitoredBarrier")) return std::nullopt;
  line.call.op = "monitoredBarrier";
  if (const size_t at = text.find(" failed to pass monitoredBarrier"); at != text.npos) {
    size_t from = text.rfind("Rank", at);
    const size_t bracket = text.rfind("]: Rank", at);
    if (bracket != text.npos) from = bracket + 3;
    if (from == text.npos) return std::nullopt;
    line.ranks = numbers(text.substr(from, at - from));
  } else if (has(text, "successfully reached monitoredBarrier, but")) {
    line.ranks = {rank_number(after(text, "from rank "), true).value_or(0)};
    line.refers = true;
    if (!line.rank) line.rank = rank_number(after(text, "Rank "));
  }
  return line.ranks.empty() ? std::nullopt : std::optional(WatchdogKind::kBehind);
}

ObservedCall fingerprint(std::string_view text) {
  ObservedCall call;
  const auto value = [&](std::string_view key, std::string_view ends) {
    const std::string_view rest = after(text, key);
    const size_t end = rest.find_first_of(ends);
    return end == rest.npos ? std::string_view() : rest.substr(0, std::min(end, kWordBytes));
  };
  call.op = value("OpType=", ",)");
  call.seq = number(value("SequenceNumber=", ",)"), true).value_or(-1);
  call.sizes = value("TensorShape=[", "]");
  if (const std::string_view types = value("TensorDtypes=", ",)"); !types.empty()) {
    if (!call.sizes.empty()) call.sizes += ' ';
    call.sizes += types;
  }
  return call;
}

// A second fingerprint with number 0 and no shape is unset: it was not read from its rank.
std::optional<WatchdogKind> read_fingerprints(std::string_view text, WatchdogLine& line) {
  const std::string_view running = " is running collective: ";
  const size_t first = text.find(running);
  if (first == text.npos) return std::nullopt;
  const size_t second = text.find(running, first + running.size());
  for (const size_t at : {first, second}) {
    if (at == text.npos) break;
    const size_t rank = text.rfind("Rank ", at);
    if (rank == text.npos) continue;
    const auto of = rank_number(text.substr(rank + 5, at - rank - 5), true);
    if (!of) continue;
    const size_t end = at == first && second != text.npos ? text.rfind("Rank ", second) : text.npos;
    std::string_view own = text.substr(at + running.size());
    if (end != text.npos) own = text.substr(at + running.size(), end - at - running.size());
    line.ranks.push_back(*of);
    line.calls.push_back(fingerprint(own.substr(0, own.find("Collectives differ"))));
  }
  if (line.ranks.empty()) return std::nullopt;
  line.call = line.calls[0];
  return WatchdogKind::kMismatch;
}

// "#0 forward from /app/train.py:120"
std::optional<WatchdogKind> read_frame(std::string_view text, WatchdogLine& line) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  if (!text.starts_with('#') || text.size() < 2 || !is_digit(text[1])) return std::nullopt;
  const size_t from = text.find(" from ");
  const size_t colon = text.rfind(':');
  if (from == text.npos || colon == text.npos || colon < from || !number(text.substr(colon + 1), true))
    return std::nullopt;
  const size_t name = text.find(' ') + 1;
  if (name > from) return std::nullopt;
  line.call.site = std::string(text.substr(from + 6, kWordBytes)) + " in ";
  line.call.site += text.substr(name, std::min(from - name, kWordBytes));
  return WatchdogKind::kFrame;
}

std::optional<WatchdogKind> read_peer(std::string_view text, WatchdogLine& line) {
  for (const std::string_view words : {"Connection closed by remote peer ", "Connection closed by peer "})
    if (const std::string_view rest = after(text, words); !rest.empty()) {
      line.peer = rest.substr(0, std::min(rest.find_first_of("<] "), kWordBytes));
      if (line.peer.starts_with('[')) line.peer.erase(0, 1);
      return WatchdogKind::kClosed;
    }
  if (has(text, "Connection closed by peer")) return WatchdogKind::kClosed;
  if (has(text, "Timed out waiting ") && has(text, " operation to complete")) {
    line.call.op = has(text, "for recv") ? "recv" : "send";
    line.waited_ns = std::max<int64_t>(0, number(after(text, "Timed out waiting ")).value_or(0)) * 1'000'000;
    return WatchdogKind::kGloo;
  }
  const bool store = (has(text, "ncclUniqueId") && has(text, "store->get(")) ||
                     (has(text, "waitForInput") && has(text, "timed out after"));
  if (!store) return std::nullopt;
  line.call.op = "store";
  if (const auto ms = number(after(text, "timed out after ")); ms && *ms > 0)
    line.waited_ns = *ms * 1'000'000;
  return WatchdogKind::kStore;
}

std::optional<WatchdogKind> read_work_line(std::string_view text, WatchdogLine& line) {
  const bool work = read_work(text, line.call);
  if (work) drop_impossible_sizes(line.call);
  if (has(text, "raised the following async exception")) return WatchdogKind::kAsync;
  if (has(text, " milliseconds before timing out")) {
    const std::string_view ran = after(text, "ran for ");
    line.waited_ns = std::clamp<int64_t>(number(ran).value_or(0), 0, int64_t{1} << 40) * 1'000'000;
  }
  if (has(text, "Received a dump signal") || has(text, "Received a global timeout")) {
    if (!read_counters(text, line)) return std::nullopt;
    return WatchdogKind::kDump;
  }
  if (read_counters(text, line)) {
    for (const std::string_view word :
         {"at NCCL work: ", "at HCCL work: ", "watchdog at work: ", "work sequence id: "})
      if (const std::string_view rest = after(text, word); !rest.empty())
        line.call.seq = sequence(rest).value_or(line.call.seq);
    return WatchdogKind::kStatus;
  }
  if (work && (line.call.seq >= 0 || !line.call.op.empty())) return WatchdogKind::kTimeout;
  if (has(text, "watchdog got stuck for") || has(text, "Heartbeat monitor timed out") ||
      has(text, "Could not acquire GIL within"))
    return WatchdogKind::kHeartbeat;
  return std::nullopt;
}

// The rank and the group at the start of a line.
WatchdogLine head_of(std::string_view text) {
  WatchdogLine line;
  if (const std::string_view rest = after(text, "[rank"); !rest.empty() && is_digit(rest[0]))
    line.rank = rank_number(rest);
  read_group(text, line);
  if (!line.group_rank)
    if (const std::string_view rest = after(text, "[Rank "); !rest.empty())
      line.group_rank = rank_number(rest);
  return line;
}

}  // namespace

std::optional<WatchdogLine> read_named_ranks(std::string_view text, const NamedRanks& named) {
  const std::string_view list = named.absent.empty() ? named.joined : named.absent;
  std::vector<uint32_t> ranks = numbers(list);
  // A truncated list may end within a number.
  if (!list.empty() && !is_digit(list.back()) && has(list, "…") && !ranks.empty()) ranks.pop_back();
  if (ranks.empty()) return std::nullopt;
  WatchdogLine line = head_of(text);
  line.kind = named.absent.empty() ? WatchdogKind::kJoined : WatchdogKind::kBehind;
  line.ranks = std::move(ranks);
  line.call.seq = sequence(named.seq, true).value_or(-1);
  line.call.op = named.op.substr(0, kWordBytes);
  return line;
}

std::optional<WatchdogLine> read_watchdog_line(std::string_view text) {
  const WatchdogLine line = head_of(text);
  for (auto* const read : {read_fingerprints, read_barrier, read_work_line, read_peer, read_frame}) {
    WatchdogLine one = line;
    if (const auto kind = read(text, one)) {
      one.kind = *kind;
      return one;
    }
  }
  return std::nullopt;
}

std::string plain_op(std::string_view op) {
  if (const size_t colon = op.rfind(':'); colon != op.npos) op.remove_prefix(colon + 1);
  std::string out;
  for (const char c : op)
    if (c != '_' && c != ' ') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return out;
}

}  // namespace culprit::hang
