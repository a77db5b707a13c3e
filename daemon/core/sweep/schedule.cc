#include "core/sweep/schedule.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "core/sweep/links.h"

namespace culprit::sweep {
namespace {

// Round `r` of a tournament of an even number of members: everybody meets once in `even` - 1 rounds.
Round tournament_round(uint32_t members, uint32_t even, uint32_t r) {
  Round out;
  const uint32_t ring = even - 1;
  const auto meet = [&](uint32_t x, uint32_t y) {
    if (std::max(x, y) < members) out.emplace_back(std::min(x, y), std::max(x, y));
  };
  meet(ring, r);
  for (uint32_t k = 1; k < even / 2; ++k) meet((r + k) % ring, (r + ring - k) % ring);
  return out;
}

constexpr uint32_t kSuspectLinks = 3;  // odd ones, of a host that has so many
constexpr uint32_t kQuietPairs = 3;    // under test at the same time: uplinks are not full with them
constexpr uint32_t kMutualEvery = 4;   // rounds between those with pairs of suspects

// The members that are in a round already.
class Busy {
 public:
  bool add(const Pair& pair, Round& round) {
    if (in_.contains(pair.first) || in_.contains(pair.second)) return false;
    in_.insert(pair.first);
    in_.insert(pair.second);
    round.push_back(pair);
    return true;
  }

 private:
  std::set<uint32_t> in_;
};

// What is left to repeat.
class FollowUp {
 public:
  FollowUp(uint32_t members, std::span<const PairRun> runs) : members_(members) {
    const Usual usual = usual_of_all(members, runs);
    for (const auto& [pair, link] : links_of(runs)) {
      size_t quiet = 0, quiet_odd = 0;
      bool odd = false, reported = false;
      for (const PairRun* run : link.runs) {
        const bool is = is_odd(*run, usual);
        odd |= is;
        // A disturbed rate says nothing: the pair runs again.
        quiet += run->follow_up;
        quiet_odd += run->follow_up && (is || run->to_a.disturbed || run->to_b.disturbed);
        reported |= run->answer != PairAnswer::kNoReport;
      }
      if (!reported) continue;
      met_.insert(pair);
      ++links_[pair.first], ++links_[pair.second];
      // What was odd among many and usual in quiet is settled; wrong bytes are not.
      const bool open = odd && (link.wrong > 0 || quiet == quiet_odd) && quiet < kRepeats;
      if (!odd) fine_[pair] = quiet;
      if (open) open_[pair] = quiet;
      if (odd && (open || quiet_odd > 0 || link.wrong > 0)) ++odd_[pair.first], ++odd_[pair.second];
    }
  }

  Round round(uint32_t number) {
    Round out;
    Busy busy;
    const size_t most = std::max<size_t>(1, std::min(members_ / 4, kQuietPairs + members_ / 32));
    if (number % kMutualEvery == 1) add_mutual(most, busy, out);
    for (const Pair& pair : ordered(open_, true))
      if (out.size() < most) busy.add(pair, out);
    if (out.empty()) return out;
    const size_t tested = out.size();
    for (const Pair& pair : ordered(fine_, false))
      if (out.size() < 2 * tested + 1) busy.add(pair, out);
    // Of three members two are busy: the pair to compare with runs alone, in every other round.
    if (out.size() > tested || number % 2 == 0 || fine_.empty()) return out;
    return {ordered(fine_, false).front()};
  }

 private:
  uint32_t odd_links(uint32_t member) const {
    const auto at = odd_.find(member);
    return at == odd_.end() ? 0 : at->second;
  }
  uint32_t weight(const Pair& pair) const { return std::max(odd_links(pair.first), odd_links(pair.second)); }

  std::vector<Pair> ordered(const std::map<Pair, size_t>& from, bool heaviest) const {
    std::vector<Pair> pairs;
    for (const auto& [pair, quiet] : from) pairs.push_back(pair);
    std::ranges::stable_sort(pairs, [&](const Pair& x, const Pair& y) {
      const uint32_t wx = weight(x), wy = weight(y);
      if (heaviest && wx != wy) return wx > wy;
      if (from.at(x) != from.at(y)) return from.at(x) < from.at(y);
      return wx < wy;
    });
    return pairs;
  }

  // Neighbours first: they share more than others do.
  void add_mutual(size_t most, Busy& busy, Round& out) const {
    std::vector<uint32_t> suspects;
    for (const auto& [member, odd] : odd_)
      if (odd >= std::min(kSuspectLinks, members_ - 1) && 2 * odd > links_.at(member))
        suspects.push_back(member);
    for (size_t i = 1; i < suspects.size() && out.size() < most; ++i)
      if (const Pair pair{suspects[i - 1], suspects[i]}; !met_.contains(pair)) busy.add(pair, out);
  }

  const uint32_t members_;
  std::map<Pair, size_t> open_, fine_;  // the quiet runs so far
  std::map<uint32_t, uint32_t> odd_, links_;
  std::set<Pair> met_;
};

}  // namespace

std::vector<Round> sweep_rounds(uint32_t members) {
  std::vector<Round> out;
  if (members < 2 || members > kMembersMost) return out;
  const uint32_t even = members + members % 2, all = even - 1;
  const auto log2 = static_cast<uint32_t>(std::bit_width(members - 1));
  const uint32_t count = members <= kAllPairsMost ? all : std::min(all, std::max(kRoundsLeast, log2));
  for (uint32_t i = 0; i < count; ++i) out.push_back(tournament_round(members, even, i * all / count));
  return out;
}

Round follow_up(uint32_t members, std::span<const PairRun> runs, uint32_t number) {
  if (number >= kFollowUps || members < 3) return {};
  return FollowUp(members, runs).round(number);
}

}  // namespace culprit::sweep
