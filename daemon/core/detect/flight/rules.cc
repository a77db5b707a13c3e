#include "core/detect/flight/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace culprit::flight {
namespace {

struct Call {
  int64_t seq;
  uint32_t dump;
  const FlightOp* op;
};

// Description of a rank's call: only properties that must be equal on all ranks.
std::string call_of(std::span<const FlightDump> dumps, const Call& call) {
  const std::vector<std::string>& words = dumps[call.dump].words;
  const std::string& name = words[call.op->name];
  std::string out = name;
  const bool alike = name.find("all_to_all") == name.npos && name.find("alltoall") == name.npos;
  // Calls with lists of tensors may have different sizes per rank; calls with one tensor may not.
  const bool flat = name.starts_with("all_reduce") || name.starts_with("allreduce") ||
                    name.starts_with("broadcast") || name.find("_base") != name.npos || name == "reduce";
  if (alike && flat && call.op->in_sizes) out += " of " + words[call.op->in_sizes];
  if (alike && call.op->dtypes) out += " " + words[call.op->dtypes];
  return out;
}

// Whether ranks called different operations under one number and at least one rank has not completed it.
// Mismatches that all ranks completed are harmless.
bool compare(std::span<const FlightDump> dumps, const FlightTeam& team, std::span<const Call> calls,
             FlightAccusations& out) {
  if (std::all_of(calls.begin(), calls.end(), [](const Call& c) { return c.op->done; })) return false;
  std::map<std::string, std::set<uint32_t>> by_call;
  std::set<uint32_t> seen;
  for (const Call& c : calls) {
    if (!seen.insert(c.dump).second) return false;  // several operations coalesced under one number
    by_call[call_of(dumps, c)].insert(dumps[c.dump].rank);
  }
  if (by_call.size() < 2) return false;
  const auto most = std::max_element(by_call.begin(), by_call.end(), [](const auto& a, const auto& b) {
    return a.second.size() < b.second.size();
  });
  const bool majority = 2 * most->second.size() > seen.size();
  for (const auto& [call, ranks] : by_call) {
    if (majority && call == most->first) continue;
    const std::string others = majority ? most->first : "another operation";
    const std::string why =
        fmt::format("{} called {} as operation {} of {}, where {} called {}", rank_list(ranks), call,
                    calls[0].seq, team.title(), majority ? rank_list(most->second) : "others", others);
    for (const uint32_t rank : ranks) out.try_emplace(rank, FlightAccused{why, majority ? 0.9 : 0.5});
  }
  return true;
}

}  // namespace

std::string rank_list(const std::set<uint32_t>& ranks) {
  constexpr size_t kShown = 8;
  std::string out = ranks.size() == 1 ? "rank " : "ranks ";
  size_t n = 0;
  for (const uint32_t rank : ranks) {
    if (n++ == kShown) return out + fmt::format(" and {} more", ranks.size() - kShown);
    out += fmt::format("{}{}", n > 1 ? ", " : "", rank);
  }
  return out;
}
FlightAccusations find_mismatches(const FlightView& view) {
  const std::span<const FlightDump> dumps = view.dumps();
  FlightAccusations out;
  for (const FlightTeam& team : view.teams()) {
    std::vector<Call> calls;
    for (const GroupProgress& at : team.progress) {
      for (const FlightOp& op : dumps[at.dump].ops)
        if (op.group == at.group && !op.p2p) calls.push_back({op.seq, at.dump, &op});
    }
    std::stable_sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) { return a.seq < b.seq; });
    for (size_t i = 0; i < calls.size();) {
      size_t end = i;
      while (end < calls.size() && calls[end].seq == calls[i].seq) ++end;
      if (compare(dumps, team, {calls.data() + i, end - i}, out)) break;
      i = end;
    }
  }
  return out;
}

namespace {

// Sentences on ranks of a team that have not completed an operation that others completed, by index into
// FlightTeam::progress; empty for other ranks. Ranks with equal progress share the set of ranks ahead.
std::vector<std::string> stuck_in(const FlightView& view, const FlightTeam& team) {
  const std::span<const FlightDump> dumps = view.dumps();
  const std::vector<GroupProgress>& all = team.progress;
  std::vector<std::string> out(all.size());
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return all[a].completed > all[b].completed; });
  std::set<uint32_t> ahead;
  for (size_t i = 0; i < order.size();) {
    const int64_t completed = all[order[i]].completed, most = all[order[0]].completed;
    size_t end = i;
    while (end < order.size() && all[order[end]].completed == completed) ++end;
    for (size_t k = i; k < end && !ahead.empty(); ++k) {
      const GroupProgress& at = all[order[k]];
      if (!at.waits() || !view.any_synchronises(at, completed, std::min(most, at.enqueued))) continue;
      out[order[k]] = fmt::format("rank {} has not completed {} {} of {}, which {} {}", dumps[at.dump].rank,
                                  op_name(dumps, team, at.awaited()), at.awaited(), team.title(),
                                  rank_list(ahead), ahead.size() == 1 ? "has" : "have");
    }
    for (; i < end; ++i) ahead.insert(dumps[all[order[i]].dump].rank);
  }
  return out;
}

}  // namespace

FlightAccusations find_stuck_devices(const FlightView& view, std::string& many) {
  const std::span<const FlightDump> dumps = view.dumps();
  FlightAccusations out;
  for (const FlightTeam& team : view.teams()) {
    std::vector<std::string> why = stuck_in(view, team);
    for (size_t i = 0; i < why.size(); ++i)
      if (!why[i].empty())
        out.try_emplace(dumps[team.progress[i].dump].rank, FlightAccused{std::move(why[i]), 0.9});
  }
  if (view.too_many(out.size())) {
    many = fmt::format(
        "{} of {} ranks are behind others: the dumps may be of a job at work, taken one "
        "after the other",
        out.size(), view.informative_dumps());
    out.clear();
  }
  return out;
}
FlightAccusations find_stuck_hosts(const FlightView& view, bool sends, std::string& many) {
  const std::span<const FlightDump> dumps = view.dumps();
  struct Late {
    size_t late = SIZE_MAX, waiting = 0;
    std::string why;
  };
  std::map<uint32_t, Late> late;
  for (const FlightTeam& team : view.teams()) {
    std::vector<int64_t> awaited;
    for (const GroupProgress& at : team.progress)
      if (at.waits()) awaited.push_back(at.awaited());
    if (awaited.empty()) continue;
    std::sort(awaited.begin(), awaited.end());
    const auto waiting_for = [&](const GroupProgress& at) {
      return static_cast<size_t>(awaited.end() -
                                 std::upper_bound(awaited.begin(), awaited.end(), at.enqueued));
    };
    const auto behind =
        static_cast<size_t>(std::count_if(team.progress.begin(), team.progress.end(),
                                          [&](const GroupProgress& a) { return waiting_for(a) > 0; }));
    for (const GroupProgress& at : team.progress) {
      const size_t waiting = waiting_for(at);
      const FlightUnder& under = view.under(at.dump);
      if (waiting == 0 || under.collective || under.receive || (under.send && !sends)) continue;
      // The group with the fewest late ranks is the most specific.
      Late& l = late[dumps[at.dump].rank];
      if (std::pair(behind, l.waiting) >= std::pair(l.late, waiting)) continue;
      const int64_t seq = *std::upper_bound(awaited.begin(), awaited.end(), at.enqueued);
      l = {behind, waiting,
           fmt::format("rank {} has not enqueued {} {} of {}, in which {}, and waits for no other rank",
                       dumps[at.dump].rank, op_name(dumps, team, seq), seq, team.title(),
                       waiting == 1 ? "1 rank waits" : fmt::format("{} ranks wait", waiting))};
    }
  }
  FlightAccusations out;
  for (auto& [rank, l] : late) out[rank] = {std::move(l.why), sends ? 0.7 : 0.9};
  if (view.too_many(out.size())) {
    many = fmt::format("{} of {} ranks have not enqueued what the others wait in", out.size(),
                       view.informative_dumps());
    out.clear();
  }
  return out;
}
FlightAccusations find_silent_sources(const FlightView& view) {
  const std::span<const FlightDump> dumps = view.dumps();
  std::unordered_map<uint32_t, uint32_t> dump_of;
  for (uint32_t d = 0; d < dumps.size(); ++d)
    if (!view.older(d)) dump_of[dumps[d].rank] = d;
  FlightAccusations out;
  for (const auto& [rank, d] : dump_of)
    for (const FlightOp& op : dumps[d].ops) {
      const auto source = op.done || !op.p2p ? std::nullopt : source_of_recv(dumps[d], op);
      const auto from = source ? dump_of.find(*source) : dump_of.end();
      if (from == dump_of.end() || !view.under(from->second).none()) continue;
      out.try_emplace(*source,
                      FlightAccused{fmt::format("rank {} waits to receive from rank {}, which waits for "
                                                "no other rank",
                                                rank, *source),
                                    0.7});
    }
  if (view.too_many(out.size())) out.clear();
  return out;
}
std::set<uint32_t> absent_of(const FlightView& view, const FlightTeam& team) {
  const std::span<const FlightDump> dumps = view.dumps();
  std::set<uint32_t> out(team.ranks.begin(), team.ranks.end());
  for (const GroupProgress& at : team.progress) out.erase(dumps[at.dump].rank);
  for (uint32_t d = 0; d < dumps.size(); ++d)
    if (view.older(d)) out.erase(dumps[d].rank);
  return out;
}

}  // namespace culprit::flight
