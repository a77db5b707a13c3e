#include "core/detect/comm/hidden_waits.h"

#include <algorithm>
#include <cmath>

#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

constexpr double kMs = 1e-6;  // of a nanosecond
// Gaps of a step that are looked at, and those remembered: a step has few outliers that matter.
constexpr size_t kLongest = 8, kGapsMax = 256, kCandidates = 64;
constexpr float kWorth = 0.02f;  // of a step: what an outlier is at least (comm/judge.cc)
// From the entry that is waited for to the gap's end: a message between hosts and a kernel launch take less.
constexpr double kAfterMs = 5;
// Sightings that recognise a wait, those that are kept, and those of ten in which it may be missing.
constexpr size_t kSightings = 4, kKept = 32;
constexpr uint32_t kMissedOf = 10;
// The same share as of gaps that end together (comm/roles.cc).
constexpr double kScatterShare = 0.1;

// What a rank did of its own is not known where it waited: it is compared with no peers.
void leave_out(RankStep& r) {
  r.peers = 1;
  r.excess = r.closer = r.largest = r.path = 0;
}

}  // namespace

HiddenWaits::Place HiddenWaits::place_of(const Step& step, uint32_t op) {
  const Instance& instance = step.instances[step.ops[op].instance];
  return {step.ranks[step.owner[op]], instance.channel, step.ops[op].seq - step.base[instance.local]};
}

std::vector<HiddenWaits::Long> HiddenWaits::longest_gaps(const Step& step) {
  std::vector<Long> out;
  const auto least = static_cast<float>(kWorth * step.result.step_ms);
  for (uint32_t k = 0; k < step.ops.size(); ++k)
    if (const float ms = step.ops[k].excess_ms; ms > least) out.push_back({k, ms});
  const auto longer = [](const Long& a, const Long& b) { return a.excess_ms > b.excess_ms; };
  const size_t n = std::min(kLongest, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(n), out.end(), longer);
  out.resize(n);
  return out;
}

// Entries of other ranks in the last milliseconds of the gap before `op`, the latest first, into operations
// that the rank itself has no part in. Ranks of the same host may all have stood still and gone on together:
// that is no wait.
std::vector<std::pair<HiddenWaits::Place, float>> HiddenWaits::entries_before_end(const Cluster& cluster,
                                                                                  const Step& step,
                                                                                  uint32_t op) {
  std::vector<std::pair<Place, float>> out;
  const uint32_t owner = step.owner[op], rank = step.ranks[owner];
  const uint32_t host = cluster.hosts().size() > 1 ? cluster.ranks()[rank].host : kNone;
  const int64_t end = step.aligned(op, step.ops[op].start);
  const auto gap_ns = static_cast<int64_t>(step.ops[op].gap_ms / kMs);
  const int64_t begin = std::max(end - static_cast<int64_t>(kAfterMs / kMs), end - gap_ns);
  const auto latest = end + static_cast<int64_t>(kTogetherMs / kMs);
  const auto takes_part = [&](const Op& other) {
    const Instance& instance = step.instances[other.instance];
    const auto* sides = &step.sides[instance.first];
    return std::any_of(sides, sides + instance.count, [&](uint32_t s) { return step.owner[s] == owner; });
  };
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    if (i == owner || (host != kNone && cluster.ranks()[step.ranks[i]].host == host)) continue;
    const auto* first = &step.ops[0] + step.begin[i];
    const auto* last = &step.ops[0] + step.begin[i + 1];
    const int64_t offset = step.clock_ns[i];
    const auto* at =
        std::lower_bound(first, last, begin - offset, [](const Op& o, int64_t ns) { return o.start < ns; });
    for (; at != last && at->start + offset <= latest; ++at)
      if (!takes_part(*at))
        out.emplace_back(place_of(step, static_cast<uint32_t>(at - &step.ops[0])),
                         static_cast<float>(kMs * static_cast<double>(end - at->start - offset)));
  }
  const auto nearer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const size_t n = std::min(kCandidates, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(n), out.end(), nearer);
  out.resize(n);
  return out;
}

bool HiddenWaits::scatters_less(const Gap& gap, const Candidate& candidate) {
  return candidate.after_ms.size() >= kSightings &&
         spread_around(candidate.after_ms).sigma < kScatterShare * spread_around(gap.gap_ms).sigma;
}

void HiddenWaits::correct(const Gap& gap, uint32_t rank, std::deque<StepResult>& earlier) {
  for (const int64_t number : gap.uncorrected) {
    const auto at = std::lower_bound(earlier.begin(), earlier.end(), number,
                                     [](const StepResult& s, int64_t n) { return s.number < n; });
    if (at == earlier.end() || at->number != number) continue;
    for (RankStep& r : at->ranks)
      if (r.rank == rank) leave_out(r);
  }
}

void HiddenWaits::note(const Cluster& cluster, const Step& step, const Long& found,
                       std::deque<StepResult>& earlier) {
  const Place place = place_of(step, found.op);
  if (const auto known = gaps_.find(place);
      known != gaps_.end() && (known->second.recognised || known->second.gap_ms.size() >= kKept))
    return;
  const auto entries = entries_before_end(cluster, step, found.op);
  if (entries.empty() && !gaps_.contains(place)) return;
  if (gaps_.size() >= kGapsMax) std::erase_if(gaps_, [](const auto& g) { return !g.second.recognised; });
  if (gaps_.size() >= kGapsMax) return;
  Gap& gap = gaps_[place];
  if (gap.gap_ms.empty())
    for (const auto& [of, after] : entries) gap.candidates.push_back({of, {}, 0});
  gap.gap_ms.push_back(step.ops[found.op].gap_ms);
  gap.uncorrected.push_back(step.number);
  for (Candidate& candidate : gap.candidates) {
    const auto same = [&](const auto& entry) { return entry.first == candidate.of; };
    const auto at = std::find_if(entries.begin(), entries.end(), same);
    if (at == entries.end())
      ++candidate.missed;
    else
      candidate.after_ms.push_back(at->second);
  }
  std::erase_if(gap.candidates, [&](const Candidate& candidate) {
    return kMissedOf * candidate.missed > gap.gap_ms.size() + kMissedOf / 2;
  });
  const auto less = [](const Candidate& a, const Candidate& b) {
    return spread_around(a.after_ms).sigma < spread_around(b.after_ms).sigma;
  };
  const auto best = std::min_element(gap.candidates.begin(), gap.candidates.end(), less);
  if (best == gap.candidates.end() || !scatters_less(gap, *best)) return;
  gap.recognised = true;
  gap.candidates = {std::vector<Candidate>{*best}};
  correct(gap, place.rank, earlier);
  gap.uncorrected.clear();
}

void HiddenWaits::learn(const Cluster& cluster, const Step& step, std::deque<StepResult>& earlier) {
  if (step.clock_ns.size() != step.ranks.size()) return;
  for (const Long& found : longest_gaps(step)) note(cluster, step, found, earlier);
}

void HiddenWaits::mark(Step& step) const {
  for (const auto& [place, gap] : gaps_) {
    if (!gap.recognised) continue;
    const Place& of = gap.candidates[0].of;
    uint32_t waits = kNone, entered = kNone;
    for (uint32_t i = 0; i < step.ranks.size(); ++i) {
      if (step.ranks[i] != place.rank && step.ranks[i] != of.rank) continue;
      for (uint32_t k = step.begin[i]; k < step.begin[i + 1]; ++k) {
        const Place here = place_of(step, k);
        if (here == place) waits = k;
        if (here == of) entered = k;
      }
    }
    if (waits == kNone || entered == kNone) continue;
    Op& op = step.ops[waits];
    const int64_t after = step.aligned(waits, op.start) - step.aligned(entered, step.ops[entered].start);
    if (!(op.excess_ms > 0) || static_cast<double>(after) * kMs > kAfterMs ||
        static_cast<double>(after) * kMs < -kTogetherMs)
      continue;
    op.entered = entered;
    leave_out(step.result.ranks[step.owner[waits]]);
  }
}

}  // namespace culprit::comm
