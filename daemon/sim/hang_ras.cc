// Two answers of NCCL RAS, 10 s apart, as text or JSON. RAS counts the calls that the host issued on each
// communicator, by operation; it sees neither sends nor devices.
#include <algorithm>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "sim/files.h"
#include "sim/hang_state.h"

namespace culprit::sim {
namespace {

constexpr HangOp kRasOps[] = {HangOp::kBroadcast, HangOp::kAllGather, HangOp::kReduceScatter,
                              HangOp::kAllReduce};
constexpr size_t kRasListed = 10;

uint64_t launches(const HangState& c, uint32_t r, HangGroup kind, HangOp op) {
  uint64_t n = c.world.launches_before(r, kind, op);
  const HangRank& rank = c.rank(r);
  for (const HangCall& call : rank.calls) {
    const HangAct& act = rank.act_of(call);
    n += act.group == kind && act.op == op ? 1 : 0;
  }
  return n;
}

class RasAnswer {
 public:
  RasAnswer(const HangState& hang_state, uint32_t number)
      : c_(hang_state), s_(hang_state.site), number_(number) {}

  std::string json() {
    std::string out = fmt::format(
        "{{\"nccl_version\":\"2.28.9\",\"cuda_runtime_version\":12090,\"cuda_driver_version\":13000,"
        "\"timestamp\":\"{:%Y-%m-%d %H:%M:%S}\",\"communicators_count\":{},\"communicators\":[",
        fmt::gmtime(static_cast<std::time_t>(at_ns() / 1'000'000'000)), communicators());
    bool first = true;
    each_group([&](HangGroup kind, uint32_t group) {
      if (!first) out += ",";
      first = false;
      communicator_json(out, kind, group);
    });
    return out + fmt::format("],\"ras\":{{\"collection_time_sec\":{},\"timeouts_count\":{}}}}}\n",
                             lost() > 0 && number_ == 1 ? "5.021" : "0.014", number_ == 1 ? lost() : 0);
  }

  std::string text() {
    std::string out = fmt::format(
        "NCCL version 2.26.2 compiled with CUDA 12.4\nCUDA runtime version 12040, driver version 12040\n\n"
        "Job summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n"
        "(total)   per node  per process    (total)  (total)\n{:7}{:11}{:13}{:11}{:9}\n\n",
        s_.hosts, s_.ranks_per_host, 1, s_.world - lost(), s_.world - lost());
    std::string errors, warnings;
    out += fmt::format(
        "Communicators... ({}s)\n=============\n\n"
        "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
        "    #  in group  per comm  per node  per comm  in group\n",
        lost() > 0 && number_ == 1 ? "5.02" : "0.01");
    uint32_t row = 0;
    for (HangGroup kind : kAllHangGroups)
      if (s_.group_size(kind) > 1) out += group_row(kind, row++, errors, warnings);
    if (lost() > 0) errors = lost_text() + errors;
    return out + "\nErrors\n======\n\n" + errors + "\nWarnings\n========\n\n" + warnings;
  }

 private:
  uint64_t at_ns() const {
    const uint64_t since = std::max({c_.since_ns, c_.fault_ns, s_.start_ns + s_.step_ns});
    return since + (120 + number_ * 10) * uint64_t{1'000'000'000};
  }
  bool is_lost(uint32_t rank) const { return !c_.answers(rank); }
  bool is_dead(uint32_t rank) const { return c_.fault.is_removed(rank) || number_ > 1; }
  uint32_t lost() const {
    uint32_t n = static_cast<uint32_t>(c_.fault.exited.size());
    return c_.fault.end == HangEnd::kStopped ? n + 1 : n;
  }
  uint32_t communicators() const {
    uint32_t n = 0;
    each_group([&](HangGroup, uint32_t) { ++n; });
    return n;
  }
  template <class Each>
  void each_group(Each each) const {
    for (HangGroup kind : kAllHangGroups)
      for (uint32_t group = 0; s_.group_size(kind) > 1 && group < s_.group_count(kind); ++group)
        each(kind, group);
  }
  std::string hash(HangGroup kind, uint32_t group) const {
    return fmt::format("{:016x}", s_.group_hash(kind, group));
  }
  std::string ids(HangGroup kind, uint32_t rank) const {
    const uint32_t device = rank % s_.ranks_per_host;
    return fmt::format("\"rank\":{},\"host\":\"{}\",\"pid\":{},\"cuda_dev\":{},\"nvml_dev\":{}",
                       s_.index_in(kind, rank), s_.host_name(rank), s_.pid_of(rank), device, device);
  }
  void communicator_json(std::string& out, HangGroup kind, uint32_t group) const {
    const uint32_t size = s_.group_size(kind);
    std::string ranks, missing;
    uint32_t exited = 0;
    for (uint32_t i = 0; i < size; ++i) {
      const uint32_t rank = s_.member(kind, group, i);
      if (is_lost(rank)) {
        fmt::format_to(std::back_inserter(missing),
                       "{}{{{},\"status\":{{\"unresponsive\":true,\"considered_dead\":{}}}}}",
                       exited++ == 0 ? "" : ",", ids(kind, rank), is_dead(rank));
        continue;
      }
      fmt::format_to(std::back_inserter(ranks),
                     "{}{{{},\"status\":{{\"init_state\":0,\"async_error\":0,\"finalize_called\":false,"
                     "\"destroy_flag\":false,\"abort_flag\":false}},\"collective_counts\":{{\"Broadcast\":{},"
                     "\"Reduce\":0,\"AllGather\":{},\"ReduceScatter\":{},\"AllReduce\":{}}}}}",
                     ranks.empty() ? "" : ",", ids(kind, rank), launches(c_, rank, kind, HangOp::kBroadcast),
                     launches(c_, rank, kind, HangOp::kAllGather),
                     launches(c_, rank, kind, HangOp::kReduceScatter),
                     launches(c_, rank, kind, HangOp::kAllReduce));
    }
    fmt::format_to(std::back_inserter(out),
                   "{{\"hash\":\"{}\",\"secondary_hash\":\"{:016x}\",\"size\":{},\"ranks_count\":{},"
                   "\"missing_ranks_count\":{},\"ranks\":[{}],\"missing_ranks\":[{}]}}",
                   hash(kind, group), mix64(s_.group_hash(kind, group), 1), size, size - exited, exited,
                   ranks, missing);
  }

  std::string place(HangGroup kind, uint32_t rank) const {
    return fmt::format("Rank {}{} -- GPU {} managed by process {} on node {}\n", s_.index_in(kind, rank), "",
                       rank % s_.ranks_per_host, s_.pid_of(rank), s_.host_name(rank));
  }
  std::string group_row(HangGroup kind, uint32_t row, std::string& errors, std::string& warnings) const {
    const uint32_t size = s_.group_size(kind), count = s_.group_count(kind);
    bool incomplete = false, mismatch = false;
    for (uint32_t group = 0; group < count; ++group) {
      const std::string name = fmt::format("#{}-{} ({})", row, group, hash(kind, group));
      std::vector<uint32_t> exited;
      for (uint32_t i = 0; i < size; ++i)
        if (is_lost(s_.member(kind, group, i))) exited.push_back(s_.member(kind, group, i));
      if (!exited.empty()) {
        incomplete = true;
        errors += fmt::format("{} INCOMPLETE\n  Missing communicator data from {} rank{}\n", name,
                              exited.size(), exited.size() == 1 ? "" : "s");
        for (uint32_t rank : exited) errors += "  " + place(kind, rank);
        errors += "\n";
      }
      for (HangOp op : kRasOps) mismatch = counts(kind, group, op, name, warnings) || mismatch;
    }
    uint32_t nodes = 1;
    for (uint32_t i = 1; i < size; ++i)
      if (s_.host_of(s_.member(kind, 0, i)) != s_.host_of(s_.member(kind, 0, i - 1))) ++nodes;
    const std::string wrong = incomplete && mismatch ? "INCOMPLETE,MISMATCH"
                              : incomplete           ? "INCOMPLETE"
                              : mismatch             ? "MISMATCH"
                                                     : "OK";
    return fmt::format("{:5}{:10}{:10}{:10}{:10}{:10}   RUNNING  {}\n", row, count, nodes,
                       std::max(1u, size / nodes), size, count * size - lost(), wrong);
  }
  // Writes a block if the members' counts differ; lists only small minorities.
  bool counts(HangGroup kind, uint32_t group, HangOp op, const std::string& name,
              std::string& warnings) const {
    std::map<uint64_t, std::vector<uint32_t>, std::greater<>> by_count;
    for (uint32_t i = 0; i < s_.group_size(kind); ++i) {
      const uint32_t rank = s_.member(kind, group, i);
      if (!is_lost(rank)) by_count[launches(c_, rank, kind, op)].push_back(rank);
    }
    if (by_count.size() < 2) return false;
    constexpr std::string_view kNames[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast"};
    warnings += fmt::format("{} MISMATCH\n  Communicator ranks have different {} operation counts\n", name,
                            kNames[static_cast<size_t>(op)]);
    for (const auto& [count, ranks] : by_count) {
      const std::string done = count == 0 ? "have not launched any operations"
                                          : fmt::format("have launched up to operation {}", count);
      if (ranks.size() == 1) {
        std::string one = place(kind, ranks[0]);
        const std::string has = count == 0 ? " has not launched any operations"
                                           : fmt::format(" has launched up to operation {}", count);
        warnings += "  " + one.insert(one.find(" --"), has);
        continue;
      }
      warnings += fmt::format("  {} ranks {}\n", ranks.size(), done);
      if (ranks.size() * 4 > s_.group_size(kind) || ranks.size() > kRasListed) continue;
      for (uint32_t rank : ranks) warnings += "  " + place(kind, rank);
    }
    warnings += "\n";
    return true;
  }
  std::string lost_text() const {
    std::string dead, open;
    uint32_t deads = 0, opens = 0;
    for (uint32_t r = 0; r < s_.world; ++r) {
      if (!is_lost(r)) continue;
      (is_dead(r) ? deads : opens)++;
      (is_dead(r) ? dead : open) += fmt::format("  Process {} on node {} managing GPU {}\n", s_.pid_of(r),
                                                s_.host_name(r), r % s_.ranks_per_host);
    }
    const auto plural = [](uint32_t n) { return n == 1 ? "process" : "processes"; };
    std::string out;
    if (opens > 0)
      out += fmt::format("INCOMPLETE\n  Missing communicator data from {} job {}\n{}\n", opens, plural(opens),
                         open);
    if (deads > 0)
      out += fmt::format("DEAD\n  {} job {} considered dead (unreachable via the RAS network)\n{}\n", deads,
                         deads == 1 ? "process is" : "processes are", dead);
    return out;
  }

  const HangState& c_;
  const HangSite& s_;
  const uint32_t number_;
};

}  // namespace

Status write_hang_ras(const HangState& c, const std::string& folder) {
  for (uint32_t number = 1; number <= 2; ++number) {
    RasAnswer answer(c, number);
    const bool json = c.site.ras_json;
    const Status status = write_text(fmt::format("{}/ras_{}.{}", folder, number, json ? "json" : "txt"),
                                     json ? answer.json() : answer.text());
    if (!status) return status;
  }
  return {};
}

}  // namespace culprit::sim
