#include "core/detect/ras/spread.h"

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/limits.h"

namespace culprit::ras {
namespace {

constexpr size_t kGroupsMax = 8;

// The largest group first, without rank names; then the others by value.
void order(std::vector<RasGroup>& groups) {
  std::sort(groups.begin(), groups.end(),
            [](const RasGroup& a, const RasGroup& b) { return a.value < b.value; });
  const auto largest = std::max_element(
      groups.begin(), groups.end(), [](const RasGroup& a, const RasGroup& b) { return a.ranks < b.ranks; });
  if (largest != groups.end()) std::rotate(groups.begin(), largest, largest + 1);
  if (groups.size() > kGroupsMax) groups.resize(kGroupsMax);
  for (RasGroup& group : groups) {
    const bool names = &group != &groups.front() || group.ranks == 1;
    if (!names) group.listed.clear();
    std::sort(group.listed.begin(), group.listed.end());
    if (group.listed.size() > limits::kRasListed) group.listed.resize(limits::kRasListed);
  }
}

// Groups the ranks by value(rank); empty if all values are equal.
template <class Value>
std::vector<RasGroup> group_ranks(const std::vector<RasRank>& ranks, const Value& value) {
  const bool same = std::all_of(ranks.begin(), ranks.end(),
                                [&](const RasRank& rank) { return value(rank) == value(ranks.front()); });
  if (same) return {};
  std::map<uint64_t, RasGroup> by_value;
  for (const RasRank& rank : ranks) {
    RasGroup& group = by_value[value(rank)];
    group.value = value(rank);
    ++group.ranks;
    if (group.listed.size() <= limits::kRasListed) group.listed.push_back(rank.member);
  }
  std::vector<RasGroup> out;
  for (auto& [number, group] : by_value) out.push_back(std::move(group));
  return out;
}

// Phases matter if they differ, or if all ranks are still creating the communicator.
std::vector<RasGroup> phases_of(const RasComm& comm) {
  const auto phase = [](const RasRank& rank) { return static_cast<uint64_t>(rank.phase); };
  std::vector<RasGroup> out = comm.phases;
  if (out.empty()) out = group_ranks(comm.ranks, phase);
  const auto strangers =
      static_cast<uint32_t>(std::count_if(comm.missing.begin(), comm.missing.end(),
                                          [](const RasMissing& m) { return !m.unresponsive && !m.dead; }));
  const bool init =
      comm.ranks.empty() ? comm.phase == RasPhase::kInit : comm.ranks.front().phase == RasPhase::kInit;
  const auto reporting = static_cast<uint32_t>(comm.ranks.size());
  if (out.empty() && (init || strangers > 0) && (reporting > 0 || init)) {
    const RasPhase all = comm.ranks.empty() ? RasPhase::kInit : comm.ranks.front().phase;
    out.push_back({static_cast<uint64_t>(all), reporting > 0 ? reporting : comm.reporting, {}});
  }
  if (strangers > 0) {
    RasGroup& group = out.emplace_back();
    group.value = static_cast<uint64_t>(RasPhase::kNoComm);
    group.ranks = strangers;
    for (const RasMissing& m : comm.missing)
      if (!m.unresponsive && !m.dead && group.listed.size() < limits::kRasListed)
        group.listed.push_back(m.member);
  }
  return out;
}

}  // namespace

RasCommState condense(const RasComm& comm, const std::vector<std::string>& functions) {
  RasCommState out;
  out.hash = comm.hash;
  out.secondary = comm.secondary;
  out.size = comm.size;
  out.reporting = comm.reporting;
  out.missing_ranks = comm.missing_ranks;
  out.errors = comm.errors;
  for (const RasMissing& missing : comm.missing)
    if ((missing.unresponsive || missing.dead) && out.missing.size() < limits::kRasListed)
      out.missing.push_back(missing);
  out.spreads = comm.spreads;
  for (size_t f = 0; f < functions.size() && f < kRasFunctions; ++f) {
    auto groups = group_ranks(comm.ranks, [f](const RasRank& rank) { return rank.counts[f]; });
    if (!groups.empty()) out.spreads.push_back({functions[f], std::move(groups)});
  }
  for (RasSpread& spread : out.spreads) order(spread.groups);
  out.phases = phases_of(comm);
  order(out.phases);
  return out;
}

bool shows_fault(const RasCommState& comm) {
  return !comm.spreads.empty() || !comm.phases.empty() || comm.missing_ranks > 0 || comm.errors > 0;
}

uint64_t digest_counts(const RasComm& comm) {
  uint64_t out = mix64(comm.hash, 1);
  for (const RasRank& rank : comm.ranks) {
    uint64_t one = mix64(rank.member.rank, 2);
    for (const uint64_t count : rank.counts) one = mix64(one ^ count, 3);
    out += one;  // in any order
  }
  for (const RasSpread& spread : comm.spreads)
    for (const RasGroup& group : spread.groups)
      out += mix64(mix64(group.value, 4) ^ group.ranks, spread.function.size());
  return out;
}

uint64_t digest_of(const RasComm& comm) {
  uint64_t out = digest_counts(comm);
  for (const RasRank& rank : comm.ranks)
    out += mix64(mix64(rank.member.rank, 5) ^ static_cast<uint64_t>(rank.phase), 6);
  for (const RasGroup& group : comm.phases) out += mix64(mix64(group.value, 7) ^ group.ranks, 8);
  return out + mix64(comm.missing_ranks, 9);
}

}  // namespace culprit::ras
