#include "core/detect/comm/hidden_waits.h"

#include <algorithm>
#include <cmath>

#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

// Limits: gaps examined per step, gaps remembered, and candidates per gap. A step has few significant
// outliers.
constexpr size_t kLongestChain = 8, kGapsMax = 256, kWaitCandidates = 64;
constexpr float kWaitWorth = 0.02f;  // share of a step: the smallest outlier, as in comm/judge.cc
// Maximum time from the awaited entry to the gap's end; a message between hosts and a kernel launch take
// less.
constexpr double kAfterMs = 5;
// Sightings needed to recognise a wait; sightings stored; one sighting in kMissedOf may lack the entry.
// Simulation with 10,000 runs (a steadily slow rank, 64 unrelated entries within 5 ms): no false match with
// eight sightings, one in seventy runs with four.
constexpr size_t kSightings = 8, kGapsRetained = 32, kMissedOf = 10;
// The same share as for gaps that end together (comm/peer_groups.cc).
constexpr float kScatterShare = 0.1f;

// Range of the middle 80 % of the values.
float range_of(std::vector<float> values) { return quantile(values, 0.9) - quantile(values, 0.1); }

// Removes a wait from the rank's excess. The rank's own work during the wait is unknown. So the rank is
// compared with peers only if it is also slow elsewhere.
void take_out(RankStep& r, float wait_ms, double step_ms) {
  r.excess -= wait_ms, r.closer -= wait_ms, r.self -= wait_ms;
  r.largest = std::min(r.largest, std::max(0.f, r.excess));
  r.path = 0;
  if (r.excess > kWaitWorth * step_ms) return;
  r.peers = 1;
  r.excess = r.closer = r.largest = 0;
}

}  // namespace

HiddenWaits::Place HiddenWaits::place_of(const Step& step, uint32_t op) {
  const Instance& instance = step.instances[step.ops[op].instance];
  return {step.ranks[step.owner[op]], instance.channel, step.ops[op].seq - step.base[instance.local]};
}

void HiddenWaits::find_longest(Step& step) {
  std::vector<uint32_t>& out = step.longest;
  out.clear();
  const auto least = static_cast<float>(kWaitWorth * step.result.step_ms);
  for (uint32_t k = 0; k < step.ops.size(); ++k)
    if (step.ops[k].excess_ms > least) out.push_back(k);
  const auto longer = [&](uint32_t a, uint32_t b) { return step.ops[a].excess_ms > step.ops[b].excess_ms; };
  const size_t n = std::min(kLongestChain, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(n), out.end(), longer);
  out.resize(n);
}

// Entries of other ranks in the last milliseconds of the gap before `op`, latest first. Skips operations in
// which the rank takes part, and ranks of the same host: a whole host may pause and resume together, which is
// no wait.
std::vector<std::pair<HiddenWaits::Place, float>> HiddenWaits::entries_before_end(const Cluster& cluster,
                                                                                  const Step& step,
                                                                                  uint32_t op) {
  std::vector<std::pair<Place, float>> out;
  const uint32_t owner = step.owner[op], rank = step.ranks[owner];
  const uint32_t host = cluster.hosts().size() > 1 ? cluster.ranks()[rank].host : kNone;
  const int64_t end = step.aligned(op, step.ops[op].start);
  const auto gap_ns = static_cast<int64_t>(step.ops[op].gap_ms / kMsPerNs);
  const int64_t begin = std::max(end - static_cast<int64_t>(kAfterMs / kMsPerNs), end - gap_ns);
  const auto latest = end + static_cast<int64_t>(kTogetherMs / kMsPerNs);
  std::vector<uint32_t> own;
  for (uint32_t k = step.begin[owner]; k < step.begin[owner + 1]; ++k) own.push_back(step.ops[k].instance);
  std::sort(own.begin(), own.end());
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    if (i == owner || (host != kNone && cluster.ranks()[step.ranks[i]].host == host)) continue;
    const auto* first = &step.ops[0] + step.begin[i];
    const auto* last = &step.ops[0] + step.begin[i + 1];
    const int64_t offset = step.clock_ns[i];
    const auto* at =
        std::lower_bound(first, last, begin - offset, [](const Op& o, int64_t ns) { return o.start < ns; });
    for (; at != last && at->start + offset <= latest; ++at)
      if (!std::binary_search(own.begin(), own.end(), at->instance))
        out.emplace_back(place_of(step, static_cast<uint32_t>(at - &step.ops[0])),
                         static_cast<float>(kMsPerNs * static_cast<double>(end - at->start - offset)));
  }
  const auto nearer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const size_t n = std::min(kWaitCandidates, out.size());
  std::partial_sort(out.begin(), out.begin() + static_cast<ptrdiff_t>(n), out.end(), nearer);
  out.resize(n);
  return out;
}

// Variation of the gap beyond the variation common to all ranks, which depends on the step's data length.
float HiddenWaits::gap_scatter(const Gap& gap) {
  std::vector<float> usual, relative;
  for (const Sighting& s : gap.sightings) usual.push_back(s.usual_ms);
  const float middle = lower_median(usual);
  for (const Sighting& s : gap.sightings)
    relative.push_back(s.usual_ms > 0 ? s.gap_ms / s.usual_ms * middle : s.gap_ms);
  return range_of(std::move(relative));
}

void HiddenWaits::correct(const Candidate& seen, uint32_t rank, std::deque<StepResult>& earlier) {
  for (const int64_t number : seen.steps) {
    // Backward: a restarted job has earlier steps with the same number.
    const auto at = std::find_if(earlier.rbegin(), earlier.rend(),
                                 [&](const StepResult& s) { return s.number == number; });
    if (at == earlier.rend()) continue;
    for (RankStep& r : at->ranks)
      if (r.rank == rank) take_out(r, r.excess, at->step_ms);
  }
}

void HiddenWaits::note(const Cluster& cluster, const Step& step, uint32_t op,
                       std::deque<StepResult>& earlier) {
  const Place place = place_of(step, op);
  if (const auto known = gaps_.find(place);
      known != gaps_.end() && (known->second.recognised || known->second.sightings.size() >= kGapsRetained))
    return;
  const auto entries = entries_before_end(cluster, step, op);
  if (entries.empty() && !gaps_.contains(place)) return;
  if (gaps_.size() >= kGapsMax) std::erase_if(gaps_, [](const auto& g) { return !g.second.recognised; });
  if (gaps_.size() >= kGapsMax) return;
  Gap& gap = gaps_[place];
  if (gap.sightings.empty())
    for (const auto& [of, after] : entries) gap.candidates.push_back({of, {}, {}});
  const float gap_ms = step.ops[op].gap_ms;
  gap.sightings.push_back({gap_ms, gap_ms - step.ops[op].excess_ms});
  for (Candidate& candidate : gap.candidates) {
    const auto same = [&](const auto& entry) { return entry.first == candidate.of; };
    const auto at = std::find_if(entries.begin(), entries.end(), same);
    if (at == entries.end()) continue;
    candidate.after_ms.push_back(at->second);
    candidate.steps.push_back(step.number);
  }
  const size_t seen = gap.sightings.size();
  std::erase_if(gap.candidates, [&](const Candidate& candidate) {
    return kMissedOf * (seen - candidate.steps.size()) > seen + kMissedOf / 2;
  });
  if (seen < kSightings || gap.candidates.empty()) return;
  const auto less = [](const Candidate& a, const Candidate& b) {
    return range_of(a.after_ms) < range_of(b.after_ms);
  };
  const Candidate best = *std::min_element(gap.candidates.begin(), gap.candidates.end(), less);
  if (!(range_of(best.after_ms) < kScatterShare * gap_scatter(gap))) return;
  gap.recognised = true;
  gap.candidates.assign(1, best);
  correct(best, place.rank, earlier);
}

void HiddenWaits::learn(const Cluster& cluster, const Step& step, std::deque<StepResult>& earlier) {
  if (step.clock_ns.size() != step.ranks.size()) return;
  for (const uint32_t op : step.longest) note(cluster, step, op, earlier);
}

void HiddenWaits::mark(Step& step) const {
  std::map<uint32_t, uint32_t> index;  // by rank: index in the step
  for (const auto& [place, gap] : gaps_)
    if (gap.recognised) index[place.rank] = index[gap.candidates[0].of.rank] = kNone;
  for (uint32_t i = 0; i < step.ranks.size() && !index.empty(); ++i)
    if (const auto at = index.find(step.ranks[i]); at != index.end()) at->second = i;
  const auto find_op = [&](const Place& place) {
    const uint32_t i = index[place.rank];
    for (uint32_t k = i == kNone ? 0 : step.begin[i]; i != kNone && k < step.begin[i + 1]; ++k)
      if (place_of(step, k) == place) return k;
    return kNone;
  };
  for (const auto& [place, gap] : gaps_) {
    if (!gap.recognised) continue;
    const uint32_t waits = find_op(place), entered = find_op(gap.candidates[0].of);
    if (waits == kNone || entered == kNone) continue;
    Op& op = step.ops[waits];
    const double after = kMsPerNs * static_cast<double>(step.aligned(waits, op.start) -
                                                        step.aligned(entered, step.ops[entered].start));
    if (!(op.excess_ms > kWaitWorth * step.result.step_ms) || after > kAfterMs || after < -kTogetherMs)
      continue;
    op.waited_for = entered;
    take_out(step.result.ranks[step.owner[waits]], op.excess_ms, step.result.step_ms);
  }
}

}  // namespace culprit::comm
