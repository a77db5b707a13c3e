// Peers: ranks with the same operations in a step. Compares their self time place by place.
#include <cmath>
#include <map>
#include <span>

#include "core/detect/comm/robust.h"
#include "core/detect/comm/step.h"

namespace culprit::comm {
namespace {

// Maximum number of places of a role: kPlaces times the operations of the median member, plus kPlacesMore. It
// bounds the tables of places and members. A place is compared if at least half of the members have it.
constexpr size_t kPlaces = 4, kPlacesMore = 64;

// Values per cache line. Rows have an odd number of cache lines: with a power of two, a column would map to
// one cache set.
constexpr size_t kLine = 16;

// Share of the step by which each rank of a group must be slower than all ranks of a usual group.
constexpr float kDiffers = 0.02f;

// Ranks of one role in a step, and their gaps by place. A place is an operation's kind and number in the
// step, so lost records leave other places unchanged. The member with the most operations defines the places;
// members far above the median are skipped.
class Role {
 public:
  Role(const Cluster& cluster, Step& step, std::vector<uint32_t> members)
      : cluster_(cluster), step_(step), members_(std::move(members)) {}

  void compare(uint32_t number) {
    make_places();
    const size_t n = members_.size();
    row_ = ((n + kLine - 1) / kLine | 1) * kLine;
    gaps_.assign(places_.size() * row_, NAN);
    ops_.assign(places_.size() * row_, kNone);
    lost_.assign(places_.size() * row_, false);
    awaits_.assign(places_.size(), false);
    for (uint32_t m = 0; m < n; ++m) place(m);
    usual_.assign(places_.size(), 0);
    compared_.assign(places_.size(), false);
    for (uint32_t p = 0; p < places_.size(); ++p) compare_place(p);
    for (uint32_t m = 0; m < n; ++m) {
      RankStep& out = step_.result.ranks[members_[m]];
      out.role = number;
      out.peers = static_cast<uint32_t>(n);
      write_excess(m);
      add_up(m, out);
    }
  }

 private:
  size_t at(uint32_t place, uint32_t member) const { return place * row_ + member; }

  void keys_of(uint32_t member, std::vector<uint64_t>& keys) {
    const uint32_t i = members_[member];
    const RankInfo& info = cluster_.ranks()[step_.ranks[i]];
    keys.clear();
    streams_.assign(info.slots.size() * kCommOps, {});  // few slots, many operations
    for (uint32_t k = step_.begin[i]; k < step_.begin[i + 1]; ++k) {
      const Op& op = step_.ops[k];
      OpStream& stream = streams_[op.slot * kCommOps + static_cast<size_t>(op.op)];
      if (stream.kind == 0)
        stream = {side_kind(cluster_, step_.ranks[i], op),
                  step_.base[step_.local(info.slots[op.slot].channel)]};
      keys.push_back(mix64(stream.kind, op.seq - stream.base));
    }
  }

  void make_places() {
    const auto length = [this](uint32_t m) -> size_t {
      return step_.begin[members_[m] + 1] - step_.begin[members_[m]];
    };
    std::vector<size_t> lengths;
    for (uint32_t m = 0; m < members_.size(); ++m) lengths.push_back(length(m));
    const size_t most = kPlaces * lower_median(lengths) + kPlacesMore;
    uint32_t longest = kNone;
    for (uint32_t m = 0; m < members_.size(); ++m)
      if (length(m) <= most && (longest == kNone || length(m) > length(longest))) longest = m;
    keys_of(longest, places_);
    place_of_ = FlatMap<uint32_t>(places_.size());
    for (uint32_t p = 0; p < places_.size(); ++p) place_of_.try_emplace(places_[p], p);
    find_behind(&step_.ops[step_.begin[members_[longest]]]);
  }

  // For each place, the first place that begins after its end: the only place where a rank can wait for the
  // operation's end.
  void find_behind(const Op* ops) {
    behind_.resize(places_.size());
    for (uint32_t p = 0; p < behind_.size(); ++p) {
      const auto over = [](const Op& op, int64_t end) { return op.start < end; };
      const Op* next = std::lower_bound(ops + p + 1, ops + places_.size(), ops[p].end - kQueuedNs, over);
      behind_[p] = static_cast<uint32_t>(next - ops);
    }
  }

  void place(uint32_t member) {
    keys_of(member, keys_);
    const uint32_t from = step_.begin[members_[member]];
    placed_.assign(places_.size(), kNone);
    uint32_t next = 0;
    for (uint32_t k = 0; k < keys_.size(); ++k) {
      uint32_t p = next;
      if (p >= places_.size() || places_[p] != keys_[k]) {
        const uint32_t* found = place_of_.find(keys_[k]);
        if (!found) continue;
        p = *found;
      }
      next = p + 1;
      if (placed_[p] != kNone) continue;
      placed_[p] = from + k;
      const Op& op = step_.ops[from + k];
      ops_[at(p, member)] = from + k;
      gaps_[at(p, member)] = op.gap_ms;
      if (op.awaited != kNone) awaits_[p] = true;
    }
    // After a lost record, the following gap includes the lost operation. This gap is at the next place; for
    // a background operation, at the place after its end.
    for (uint32_t p = 0; p < places_.size(); ++p) {
      if (placed_[p] != kNone) continue;
      for (const uint32_t q : {p + 1, behind_[p]})
        if (q < places_.size()) gaps_[at(q, member)] = NAN, lost_[at(q, member)] = true;
    }
  }

  // Whether gaps that began apart end together. Then an unrecorded awaited operation ends them. Each rank's
  // own work in the gap is unknown; its maximum is the shortest gap.
  bool ends_together(uint32_t p) {
    begins_.clear(), ends_.clear();
    double first = INFINITY, last = -INFINITY;
    for (uint32_t m = 0; m < members_.size(); ++m) {
      const uint32_t k = ops_[at(p, m)];
      if (k == kNone || std::isnan(gaps_[at(p, m)])) continue;
      const auto end = static_cast<double>(step_.ops[k].start + step_.clock_ns[members_[m]]) * 1e-6;
      ends_.push_back(end);
      begins_.push_back(end - gaps_[at(p, m)]);
      first = std::min(first, begins_.back());
      last = std::max(last, begins_.back());
    }
    if (ends_.size() < 3) return false;
    // Spread without the outermost values, which may belong to the culprit.
    const auto spread = [](std::vector<double>& v) { return quantile(v, 0.9) - quantile(v, 0.1); };
    const double apart = spread(ends_);
    return apart < 0.1 * (last - first) && apart < 0.1 * spread(begins_);
  }

  float after_awaited(uint32_t k) const {
    const Op& op = step_.ops[k];
    if (op.awaited == kNone || std::isnan(op.gap_ms)) return op.gap_ms;
    return static_cast<float>(static_cast<double>(op.start - step_.ops[op.awaited].end) * 1e-6);
  }

  static float spread(std::vector<float>& values) {
    const float middle = lower_median(values);
    for (float& v : values) v = std::abs(v - middle);
    return lower_median(values);
  }

  // Decides whether ranks waited for a background operation at a place. If so, the time since its end is
  // similar among peers. Otherwise the time since the previous operation is similar.
  void choose_awaited(uint32_t p) {
    if (!awaits_[p]) return;
    std::vector<float> with, without;
    bool any = false;
    for (uint32_t m = 0; m < members_.size(); ++m) {
      const uint32_t k = ops_[at(p, m)];
      if (k == kNone || std::isnan(gaps_[at(p, m)])) continue;
      any = any || step_.ops[k].awaited != kNone;
      with.push_back(after_awaited(k));
      without.push_back(step_.ops[k].gap_ms);
    }
    if (!any || (with.size() > 1 && spread(with) > spread(without))) return;
    for (uint32_t m = 0; m < members_.size(); ++m) {
      const uint32_t k = ops_[at(p, m)];
      if (k == kNone || step_.ops[k].awaited == kNone || std::isnan(step_.ops[k].gap_ms)) continue;
      Op& op = step_.ops[k];
      op.gap_ms = after_awaited(k);
      op.before = op.awaited;
      if (!std::isnan(gaps_[at(p, m)])) gaps_[at(p, m)] = op.gap_ms;
    }
  }

  void compare_place(uint32_t p) {
    const size_t n = members_.size();
    choose_awaited(p);
    const std::span<float> gaps{gaps_.data() + at(p, 0), n};
    values_.clear();
    for (const float gap : gaps)
      if (!std::isnan(gap)) values_.push_back(gap);
    compared_[p] = 2 * values_.size() >= n && values_.size() > 1;
    if (!compared_[p]) {
      std::fill(gaps.begin(), gaps.end(), NAN);
      return;
    }
    usual_[p] = lower_median(values_);
    const float most = *std::max_element(values_.begin(), values_.end());
    if (most - usual_[p] > 0.002 * step_.result.step_ms && ends_together(p))
      std::fill(gaps.begin(), gaps.end(), usual_[p]);
  }

  // Iterates by member, because operations are stored by rank.
  void write_excess(uint32_t m) {
    for (uint32_t p = 0; p < places_.size(); ++p) {
      const uint32_t k = ops_[at(p, m)];
      if (k == kNone) continue;
      Op& op = step_.ops[k];
      op.excess_ms = gaps_[at(p, m)] - usual_[p];
      // Excludes a wait whose record was lost.
      if (compared_[p] && lost_[at(p, m)] && op.gap_ms > usual_[p]) op.gap_ms = usual_[p];
    }
  }

  void add_up(uint32_t m, RankStep& out) const {
    double excess = 0, usual = 0;
    for (uint32_t p = 0; p < places_.size(); ++p) {
      const float gap = gaps_[at(p, m)];
      if (std::isnan(gap)) continue;
      const float e = gap - usual_[p];
      excess += e;
      usual += usual_[p];
      out.largest = std::max(out.largest, e);
      out.gaps += usual_[p] > 0;
    }
    out.excess = static_cast<float>(excess);
    out.self = static_cast<float>(excess + usual);
    if (excess <= 0 || usual <= 0) return;
    const double half = 0.5 * excess / usual;
    double even = 0;
    for (uint32_t p = 0; p < places_.size(); ++p) {
      const float gap = gaps_[at(p, m)];
      if (!std::isnan(gap) && gap - usual_[p] >= half * usual_[p]) even += usual_[p];
    }
    out.even = static_cast<float>(even / usual);
  }

  // Kind and first number of a rank's operations of one kind in one slot; kind 0: not looked up.
  struct OpStream {
    uint64_t kind = 0, base = 0;
  };

  const Cluster& cluster_;
  Step& step_;
  std::vector<uint32_t> members_;  // indices into Step::ranks
  std::vector<uint64_t> places_, keys_;
  std::vector<OpStream> streams_;  // of one member, by slot and operation
  std::vector<uint32_t> placed_;   // of one member, by place: its operation
  FlatMap<uint32_t> place_of_;
  std::vector<uint32_t> behind_;         // by place
  std::vector<bool> awaits_, compared_;  // by place: some operation has `awaited`; enough members have a gap
  std::vector<float> usual_, values_;    // by place; of one place
  std::vector<double> begins_, ends_;    // of one place
  size_t row_ = 0;                       // length of a row in the tables by place, then member:
  std::vector<float> gaps_;
  std::vector<uint32_t> ops_;
  std::vector<bool> lost_;  // the previous record was lost
};

// Replicas have different data; all ranks of a pipeline share theirs. So data causes an excess of most ranks
// of a pipeline on several hosts, relative to their usual work. For a pipeline with few recorded ranks, the
// allowance is kSlack times the kOfMost quantile of the other pipelines.
constexpr double kOfMost = 0.9, kSlack = 2;
constexpr size_t kOthers = 4;  // pipelines needed to estimate the effect of data

void leave_out_data(const Cluster& cluster, Step& step) {
  std::map<uint32_t, std::vector<uint32_t>> mates;
  for (uint32_t i = 0; i < step.ranks.size(); ++i)
    if (step.result.ranks[i].peers > 1) mates[cluster.data_of(step.ranks[i])].push_back(i);
  if (mates.size() < 2) return;
  std::vector<float> known;
  std::vector<uint32_t> alone;
  for (const auto& [data, list] : mates) {
    const auto host_of = [&](uint32_t i) { return cluster.ranks()[step.ranks[i]].host; };
    const bool one_host =
        std::all_of(list.begin(), list.end(), [&](uint32_t i) { return host_of(i) == host_of(list[0]); });
    if (list.size() < 3 || one_host) {
      alone.insert(alone.end(), list.begin(), list.end());
      continue;
    }
    std::vector<float> shares;
    for (const uint32_t i : list) {
      const RankStep& r = step.result.ranks[i];
      shares.push_back(r.self > r.excess ? r.excess / (r.self - r.excess) : 0);
    }
    const float share = lower_median(shares);
    known.push_back(std::abs(share));
    for (const uint32_t i : list) {
      RankStep& r = step.result.ranks[i];
      r.excess -= share * (r.self - r.excess);
    }
  }
  if (known.size() < kOthers) return;
  const auto slack = static_cast<float>(kSlack) * quantile(known, kOfMost);
  for (const uint32_t i : alone) {
    RankStep& r = step.result.ranks[i];
    if (r.excess > 0) r.excess = std::max(0.f, r.excess - slack * (r.self - r.excess));
  }
}

// Sets `closer`: excess beyond the family's median, because a family on one host shares its data.
void compare_families(const Cluster& cluster, Step& step) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>> families;
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    RankStep& r = step.result.ranks[i];
    r.closer = r.excess;
    if (const uint32_t family = cluster.family(r.rank); family != kNone)
      families[{family, r.role}].push_back(i);
  }
  for (const auto& [key, list] : families) {
    if (list.size() < 2 || list.size() == step.result.ranks[list[0]].peers) continue;
    std::vector<float> values;
    for (const uint32_t i : list) values.push_back(step.result.ranks[i].excess);
    const float usual = lower_median(values);
    for (const uint32_t i : list) step.result.ranks[i].closer -= usual;
  }
}

// Groups of one shape across hosts; each rank of the role is in exactly one.
using Groups = std::map<uint32_t, std::vector<uint32_t>>;  // by communicator: indices into Step::ranks

std::map<uint64_t, Groups> groups_of(const Cluster& cluster, const Step& step,
                                     const std::vector<uint32_t>& role) {
  std::map<uint64_t, Groups> by_shape;
  for (const uint32_t i : role)
    for (const Slot& slot : cluster.ranks()[step.ranks[i]].slots) {
      const uint32_t comm = cluster.channels()[slot.channel].comm;
      const CommInfo& info = cluster.comms()[comm];
      if (slot.peer != kNone || info.hosts < 2 || info.members.size() >= role.size()) continue;
      by_shape[info.shape][comm].push_back(i);
    }
  std::erase_if(by_shape, [&](const auto& entry) {
    std::vector<uint32_t> ranks;
    for (const auto& [comm, list] : entry.second) ranks.insert(ranks.end(), list.begin(), list.end());
    std::sort(ranks.begin(), ranks.end());
    return entry.second.size() < 2 || !std::ranges::equal(ranks, role);
  });
  return by_shape;
}

// Self times of the ranks of a group. Milliseconds.
struct GroupTimes {
  uint32_t comm = kNone;
  float least = 0, middle = 0, most = 0;
};

GroupTimes times_of(const std::vector<float>& self_ms, uint32_t comm, const std::vector<uint32_t>& ranks) {
  std::vector<float> self;
  for (const uint32_t i : ranks) self.push_back(self_ms[i]);
  const auto [least, most] = std::minmax_element(self.begin(), self.end());
  GroupTimes out{comm, *least, 0, *most};
  out.middle = lower_median(self);
  return out;
}

// Whether some group differs from the others as a whole. Notes the slowest such group in the result.
// `self_ms`: by index into Step::ranks.
bool groups_differ(Step& step, const std::vector<float>& self_ms, const Groups& groups) {
  std::vector<GroupTimes> times;
  for (const auto& [comm, list] : groups) {
    if (list.size() < 2) return false;
    times.push_back(times_of(self_ms, comm, list));
  }
  std::ranges::sort(times, {}, &GroupTimes::middle);
  const GroupTimes &usual = times[(times.size() - 1) / 2], &slowest = times.back();
  if (slowest.least - usual.most <= kDiffers * static_cast<float>(step.result.step_ms)) return false;
  step.result.slow_group = slowest.comm;
  step.result.slow_group_ratio = usual.middle > 0 ? slowest.middle / usual.middle : 1;
  return true;
}

// Splits a role by reduction group. Stages without recorded sends have the same operations. If all ranks of
// one group, on several hosts, are slower than those of another, their work differs. Then only ranks of one
// group are peers. Returns one or more parts of the role.
std::vector<std::vector<uint32_t>> split_by_group(const Cluster& cluster, Step& step,
                                                  const std::vector<float>& self_ms,
                                                  std::vector<uint32_t> role) {
  for (const auto& [shape, groups] : groups_of(cluster, step, role)) {
    if (!groups_differ(step, self_ms, groups)) continue;
    std::vector<std::vector<uint32_t>> out;
    for (const auto& [comm, list] : groups) out.push_back(list);
    return out;
  }
  return {std::move(role)};
}

}  // namespace

uint64_t side_kind(const Cluster& cluster, uint32_t rank, const Op& op) {
  const RankInfo& info = cluster.ranks()[rank];
  return mix64(cluster.kind_of(info, info.slots[op.slot]), static_cast<uint64_t>(op.op));
}

void compare_peers(const Cluster& cluster, Step& step) {
  FlatMap<uint32_t> roles;
  std::vector<std::vector<uint32_t>> members;
  std::vector<bool> seen;
  std::vector<uint64_t> kinds;
  std::vector<float> self_ms(step.ranks.size(), 0);
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    const uint32_t rank = step.ranks[i];
    // The role is the set of operation kinds: lost records change counts, but not the set.
    uint64_t role = mix64(cluster.stage(rank), 0);
    seen.assign(cluster.ranks()[rank].slots.size() * kCommOps, false);
    kinds.clear();
    for (uint32_t k = step.begin[i]; k < step.begin[i + 1]; ++k) {
      Op& op = step.ops[k];
      op.excess_ms = NAN;
      const size_t at = op.slot * kCommOps + static_cast<size_t>(op.op);
      if (!seen[at]) kinds.push_back(side_kind(cluster, rank, op));
      seen[at] = true;
      if (!std::isnan(op.gap_ms)) self_ms[i] += op.gap_ms;
    }
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    for (const uint64_t kind : kinds) role = mix64(role, kind);
    const auto [at, fresh] = roles.try_emplace(role, static_cast<uint32_t>(members.size()));
    if (fresh) members.emplace_back();
    members[*at].push_back(i);
  }
  for (size_t r = 0; r < members.size(); ++r) {
    auto parts = split_by_group(cluster, step, self_ms, std::move(members[r]));
    members[r] = std::move(parts[0]);
    members.insert(members.end(), std::make_move_iterator(parts.begin() + 1),
                   std::make_move_iterator(parts.end()));
  }
  for (uint32_t r = 0; r < members.size(); ++r) {
    Role role(cluster, step, std::move(members[r]));
    role.compare(r);
  }
  leave_out_data(cluster, step);
  compare_families(cluster, step);
}

}  // namespace culprit::comm
