#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"
#include "ingest/ras_processes.h"
#include "ingest/ras_reader.h"

namespace culprit::ingest {
namespace {

constexpr size_t kRasRows = 4096;  // rows of the communicator table; a row is a group of equal communicators

// Consumes parts from the front of a line.
class RasCursor {
 public:
  explicit RasCursor(std::string_view text) : rest_(text) {}

  bool word(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  template <class Number>
  bool number(Number& out, int base = 10) {
    const auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out, base);
    if (failed != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  std::string_view until(std::string_view mark) {
    const std::string_view out = rest_.substr(0, rest_.find(mark));
    rest_.remove_prefix(out.size());
    return out;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

class RasText {
 public:
  RasText(RasAnswer& out, const RasBounds& bounds)
      : out_(out), bounds_(bounds), processes_(out.processes, bounds.ranks) {}

  void line(std::string_view text) {
    if (text.ends_with('\r')) text.remove_suffix(1);
    const std::string_view bare = trim(text);
    if (bare.empty() || bare.find_first_not_of('=') == npos) return;
    if (text[0] != ' ' && !digit(text[0])) return heading(bare);
    if (part_ == Part::kTable) return row(bare);
    if (part_ == Part::kHead) return;
    if (!detail(bare)) ++out_.dropped;
  }

  bool whole() const { return warnings_; }
  bool has_table() const { return table_; }

  void end() {
    out_.cut = !warnings_;
    out_.comms_seen = std::max<uint64_t>(out_.comms_seen, out_.comms.size());
  }

 private:
  enum class Part : uint8_t { kHead, kTable, kFaults };
  // The fault that a line belongs to.
  enum class Of : uint8_t { kNothing, kMissingRanks, kMissingProcesses, kDead, kPhases, kCounts, kErrors };
  struct Row {
    uint32_t size = 0;
    std::optional<RasPhase> phase;
  };

  void heading(std::string_view text) {
    RasCursor c(text);
    if (c.word("NCCL version ")) {
      out_.version = shorten(c.until(" "), limits::kNameBytes);
    } else if (c.word("Communicators...")) {
      part_ = Part::kTable;
    } else if (c.word("Group") || c.word("No communicator data")) {
      table_ = true;
    } else if (text == "Errors" || text == "Warnings") {
      part_ = Part::kFaults;
      of_ = Of::kNothing;
      comm_ = nullptr;
      warnings_ = warnings_ || text == "Warnings";
    } else if (c.word("#")) {
      open_comm(c);
    } else if (part_ == Part::kFaults) {
      open_fault(text);
    }
  }

  // "INCOMPLETE", "DEAD", "TIMEOUT".
  void open_fault(std::string_view text) {
    comm_ = nullptr;
    of_ = text == "INCOMPLETE" ? Of::kMissingProcesses : text == "DEAD" ? Of::kDead : Of::kNothing;
  }

  // "0  1  4  8  32  32  RUNNING  MISMATCH": group, communicators, nodes, ranks per node, ranks per
  // communicator, ranks, status, errors. Ranks per node may be "7-8".
  void row(std::string_view text) {
    std::array<std::string_view, 8> cells;
    size_t n = 0;
    for (const std::string_view cell : split(text, ' '))
      if (!cell.empty() && n++ < cells.size()) cells[n - 1] = cell;
    uint32_t group = 0, comms = 0, size = 0;
    const auto number = [](std::string_view cell, uint32_t& out) { return RasCursor(cell).number(out); };
    if (n != cells.size() || !number(cells[0], group) || !number(cells[1], comms) || !number(cells[4], size))
      return;  // the second line of the heading
    if (size > bounds_.size) {
      ++out_.dropped;
      if (group == rows_.size() && rows_.size() < kRasRows) rows_.emplace_back();
      return;
    }
    out_.comms_seen += comms;
    if (size > out_.largest) out_.largest_comms = 0;
    out_.largest = std::max(out_.largest, size);
    if (size == out_.largest) out_.largest_comms += comms;
    if (group != rows_.size() || rows_.size() >= kRasRows) return void(++out_.dropped);
    rows_.push_back({size, ras_phase(cells[6])});
  }

  // "#0-3 (27a079b828ff1a75) MISMATCH"
  void open_comm(RasCursor c) {
    uint32_t group = 0, number = 0;
    uint64_t hash = 0;
    of_ = Of::kNothing;
    comm_ = nullptr;
    part_ = Part::kFaults;
    const bool sound = c.number(group) && c.word("-") && c.number(number) && c.word(" (") &&
                       c.number(hash, 16) && c.word(") ");
    if (!sound) return void(++out_.dropped);
    if (c.rest() == "INCOMPLETE") of_ = Of::kMissingRanks;
    if (c.rest() == "ERROR") of_ = Of::kErrors;
    const auto known = std::find(numbers_.begin(), numbers_.end(), std::pair(group, number));
    if (known != numbers_.end()) {
      comm_ = &out_.comms[static_cast<size_t>(known - numbers_.begin())];
      return;
    }
    if (out_.comms.size() >= std::min(kRasTextComms, bounds_.comms)) return void(++out_.dropped);
    numbers_.emplace_back(group, number);
    comm_ = &out_.comms.emplace_back();
    comm_->hash = hash;
    if (group >= rows_.size()) return;
    comm_->size = comm_->reporting = rows_[group].size;
    comm_->phase = rows_[group].phase;
  }

  bool detail(std::string_view text) {
    if (text.starts_with("[could not find information")) return true;
    RasCursor c(text);
    if (c.word("Rank ")) return rank_line(c);
    if (c.word("Process ")) return process_line(c);
    if (c.word("Missing communicator data from ")) return missing_line(c);
    if (c.word("The missing rank")) return missing_list(c);
    if (c.word("Communicator ranks have different ")) return spread_line(c);
    if (c.word("Encountered ")) return c.number(out_.timeouts);
    if (text.find("error") != npos && text.find(" on ") != npos) return error_line(c);
    uint32_t n = 0;
    if (!c.number(n)) return of_ == Of::kNothing;
    if (c.word(" job process")) return count_exits(n);
    if (c.word(" ranks ") || c.word(" rank ")) return group_line(c, n);
    return of_ == Of::kNothing;
  }

  // "1 job process is considered dead (unreachable via the RAS network)"
  bool count_exits(uint32_t n) {
    if (of_ == Of::kDead) out_.dead_processes = n;
    return of_ == Of::kDead;
  }

  // "Missing communicator data from 1 rank", "... from 2 job processes"
  bool missing_line(RasCursor c) {
    uint32_t n = 0;
    if (!c.number(n)) return false;
    if (c.word(" job process")) {
      out_.exited_processes = n;
      return true;
    }
    if (!c.word(" rank") || !comm_) return false;
    of_ = Of::kMissingRanks;
    comm_->missing_ranks = n;
    comm_->reporting -= std::min(n, comm_->reporting);
    return true;
  }

  // Before 2.26: "The missing rank: 21", "The missing ranks: 3, 21"
  bool missing_list(RasCursor c) {
    (void)c.word("s");
    if (!c.word(":") || !comm_) return false;
    for (std::string_view one : split(c.rest(), ',')) {
      RasMember member;
      if (RasCursor(trim(one)).number(member.rank)) add_missing(member);
    }
    return true;
  }

  void add_missing(const RasMember& member) {
    if (!room()) return;
    RasMissing missing;
    missing.member = member;
    missing.unresponsive = true;
    comm_->missing.push_back(missing);
    comm_->missing_ranks =
        std::max<uint32_t>(comm_->missing_ranks, static_cast<uint32_t>(comm_->missing.size()));
  }

  bool room() {
    const bool has = members_++ < bounds_.ranks;
    if (!has) ++out_.dropped;
    return has;
  }

  // "Process 3487984 on node 172.16.64.213 managing GPU 5", "... managing GPUs 4,5 (NVML 0,1)"
  bool process_line(RasCursor c) {
    if (of_ != Of::kMissingProcesses && of_ != Of::kDead) return false;
    uint32_t pid = 0;
    if (!c.number(pid) || !c.word(" on node ")) return false;
    const std::string_view host = c.until(" ");
    RasExit exited{processes_.index(host, pid), kRasUnknown, kRasUnknown, of_ == Of::kDead};
    if (c.word(" managing GPU")) {
      (void)c.word("s");
      exited.device = device_of(c.rest());
    }
    if (out_.exited.size() >= limits::kRasExits)
      ++out_.dropped;
    else
      out_.exited.push_back(exited);
    return true;
  }

  // " 0", " 0 (NVML 3)": returns NVML's number if present, as driver messages and nvidia-smi use it.
  static uint32_t device_of(std::string_view text) {
    const size_t nvml = text.find("(NVML ");
    RasCursor c(trim(nvml == npos ? text : text.substr(nvml + 6)));
    uint32_t device = 0;
    return c.number(device) && device < limits::kDevicesOfHost ? device : kRasUnknown;
  }

  // "Communicator ranks have different AllReduce operation counts", "... different status"
  bool spread_line(RasCursor c) {
    if (!comm_) return false;
    if (c.word("status")) {
      of_ = Of::kPhases;
      return true;
    }
    std::string_view function = c.until(" operation counts");
    if (!c.word(" operation counts") || function.size() > limits::kNameBytes) return false;
    of_ = Of::kCounts;
    if (function == "collective") function = {};
    if (comm_->spreads.size() >= kRasFunctions) return false;
    comm_->spreads.push_back({std::string(function), {}});
    return true;
  }

  // Adds a group of ranks with equal value; later rank lines belong to this group.
  bool add_group(uint64_t value, uint32_t ranks) {
    std::vector<RasGroup>* const groups = groups_of();
    if (!groups || groups->size() >= kRasGroups) return false;
    groups->push_back({value, ranks, {}});
    return true;
  }
  std::vector<RasGroup>* groups_of() const {
    if (!comm_) return nullptr;
    if (of_ == Of::kPhases) return &comm_->phases;
    return of_ == Of::kCounts && !comm_->spreads.empty() ? &comm_->spreads.back().groups : nullptr;
  }

  // After "26 ranks ": "have launched up to operation 6650", "have not launched any operations", "have status
  // INIT", "reported System error".
  bool group_line(RasCursor c, uint32_t n) {
    if (of_ == Of::kErrors) return true;
    const auto value = value_of(c, "have ");
    return value && add_group(*value, n);
  }

  static std::optional<uint64_t> value_of(RasCursor& c, std::string_view verb) {
    if (!c.word(verb)) return std::nullopt;
    uint64_t value = 0;
    if (c.word("launched up to operation ")) return c.number(value) ? std::optional(value) : std::nullopt;
    if (c.word("not launched any operations")) return 0;
    if (!c.word("status ")) return std::nullopt;
    const auto phase = ras_phase(c.until(" "));
    return phase ? std::optional<uint64_t>(static_cast<uint64_t>(*phase)) : std::nullopt;
  }

  // After "Rank ": "9 has launched up to operation 6649 -- GPU 1 managed by process 3 on node H", "0 -- GPU 0
  // managed by …", "4 -- [process information not found]".
  bool rank_line(RasCursor c) {
    RasMember member;
    if (!comm_ || !c.number(member.rank)) return false;
    RasCursor alone = c;
    const auto value = alone.word(" ") ? value_of(alone, "has ") : std::nullopt;
    (void)c.until(" -- ");
    if (c.word(" -- GPU")) {
      member.device = device_of(c.until(" managed by process "));
      uint32_t pid = 0;
      if (c.word(" managed by process ") && c.number(pid) && c.word(" on node "))
        member.process = processes_.index(trim(c.rest()), pid);
    }
    return add_member(member, value);
  }

  bool add_member(const RasMember& member, std::optional<uint64_t> value) {
    if (of_ == Of::kErrors) return true;
    if (of_ == Of::kMissingRanks) {
      add_missing(member);
      return true;
    }
    if (value && !add_group(*value, 1)) return false;
    std::vector<RasGroup>* const groups = groups_of();
    if (!groups || groups->empty() || groups->back().listed.size() >= groups->back().ranks) return false;
    if (room()) groups->back().listed.push_back(member);
    return true;
  }

  // "Asynchronous errors on 3 ranks"
  bool error_line(RasCursor c) {
    uint32_t n = 0;
    (void)c.until(" on ");
    if (!comm_ || !c.word(" on ") || !c.number(n)) return false;
    of_ = Of::kErrors;
    comm_->errors = std::max(comm_->errors, n);
    return true;
  }

  // Limit of communicator blocks: only communicators with a fault have one.
  static constexpr size_t kRasTextComms = 8192;
  static constexpr size_t kRasGroups = 4096;

  RasAnswer& out_;
  const RasBounds& bounds_;
  RasProcessTable processes_;
  Part part_ = Part::kHead;
  Of of_ = Of::kNothing;
  RasComm* comm_ = nullptr;  // communicator of the current block; valid until another is opened
  std::vector<Row> rows_;
  std::vector<std::pair<uint32_t, uint32_t>> numbers_;  // numbers of the communicators in out_.comms
  size_t members_ = 0;
  bool table_ = false, warnings_ = false;
};

}  // namespace

bool is_ras_text(std::string_view head) {
  head = after_ras_replies(head);
  const size_t summary = head.find("Job summary");
  if (summary == npos) return false;
  const std::string_view before = head.substr(0, summary);
  const std::string_view first =
      trim(before.substr(0, before.find('\n', before.find_first_not_of(" \t\r\n"))));
  std::string_view after = head.substr(summary + std::string_view("Job summary").size());
  if (after.starts_with('\r')) after.remove_prefix(1);
  if (!first.empty() && !first.starts_with("NCCL version ")) return false;
  return after.starts_with("\n=====");
}

Result<RasAnswer> parse_ras_text(std::string_view answer, const RasBounds& bounds) {
  if (answer.size() > std::min(limits::kRasTextBytes, bounds.bytes))
    return fail(ErrorCode::kLimit, "is larger than what is read");
  if (!is_ras_text(answer)) return fail(ErrorCode::kInvalid, "is no answer of NCCL's RAS");
  RasAnswer out;
  RasText text(out, bounds);
  while (!answer.empty()) {
    const size_t end = std::min(answer.find('\n'), answer.size());
    text.line(answer.substr(0, end));
    answer.remove_prefix(std::min(end + 1, answer.size()));
  }
  text.end();
  if (!text.has_table()) return fail(ErrorCode::kInvalid, "ends before its table of communicators");
  return out;
}

}  // namespace culprit::ingest
