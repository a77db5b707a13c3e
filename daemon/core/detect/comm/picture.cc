#include "core/detect/comm/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace culprit::comm {
namespace {

// Width of a picture in units: more than the columns of any screen, to allow zooming.
constexpr double kUnits = 8192;
// Minimum number of parts per rank.
constexpr size_t kPartsLeast = 8;

// Last arrival at an operation, with all inputs of a side's wait in one place: the step's tables exceed the
// cache, and memory latency dominates.
struct Arrival {
  int64_t at = INT64_MIN;       // its entry, on the first host's clock
  int64_t duration_ns = 0;      // of its side
  int64_t longest_ns = 0;       // longest wait for this arrival
  uint32_t side = kNone;        // index into Step::ops
  bool leave_together = false;  // is_synchronising()
};

// One rank's time in the step, in nanoseconds.
struct Span {
  int64_t own = 0, wait = 0, move = 0;
  uint32_t op = kNone;    // index into Step::ops
  uint32_t last = kNone;  // index into Step::ops of the side that came last; kNone: its own, or unknown
  int64_t length() const { return own + wait + move; }
};

struct RankTime {
  uint32_t at = 0;  // index into Step::ranks
  bool empty = true;
  int64_t begin = 0, end = 0;
  int64_t waited = 0, awaited = 0;
};

class Painter {
 public:
  Painter(const Cluster& cluster, const Step& step) : cluster_(cluster), step_(step) {}

  StepPicture run() {
    arrivals();
    ranks_.reserve(step_.ranks.size());
    for (uint32_t i = 0; i < step_.ranks.size(); ++i) ranks_.push_back(follow(i, [](const Span&) {}));
    for (const Arrival& a : arrivals_)
      if (a.side != kNone) ranks_[step_.owner[a.side]].awaited += a.longest_ns;
    scale();
    choose_rows();
    out_.step = step_.number;
    out_.step_ms = step_.result.step_ms;
    out_.ranks = step_.ranks.size();
    out_.chain = step_.result.chain;
    return std::move(out_);
  }

 private:
  void arrivals() {
    arrivals_.resize(step_.instances.size());
    for (uint32_t i = 0; i < arrivals_.size(); ++i) arrivals_[i] = arrival(step_.instances[i]);
  }

  // If all sides leave together, the shortest side arrived last, so no clocks are compared.
  Arrival arrival(const Instance& x) const {
    Arrival out;
    const bool together = out.leave_together = is_synchronising(x.op);
    if (x.count < 2) return out;
    int64_t most = INT64_MIN, least = INT64_MAX;
    for (uint32_t s = 0; s < x.count; ++s) {
      step_.prefetch_side(x.first + s);
      const uint32_t side = step_.sides[x.first + s];
      const Op& op = step_.ops[side];
      if (!op.finished) continue;
      const int64_t came = together ? op.start - op.end : step_.aligned(side, op.start);
      if (came > most) most = came, out.side = side;
      least = std::min(least, came);
    }
    if (out.side == kNone) return out;
    const Op& last = step_.ops[out.side];
    out.at = step_.aligned(out.side, last.start);
    out.duration_ns = last.end - last.start;
    out.longest_ns = together ? most - least : 0;
    if (static_cast<double>(out.longest_ns) * kMsPerNs <= kTogetherMs) out.longest_ns = 0;
    return out;
  }

  // How long side `k`, entered at `start`, waited for the last one.
  int64_t wait_of(uint32_t k, int64_t start) const {
    const Op& op = step_.ops[k];
    const Arrival& a = arrivals_[op.instance];
    if (a.side == kNone || a.side == k) return 0;
    const int64_t length = op.end - op.start;
    if (a.leave_together) return std::max<int64_t>(0, length - a.duration_ns);
    const int64_t wait = a.at - start;
    return wait > length ? 0 : std::max<int64_t>(0, wait);  // side `k` had left before the last one entered
  }

  // Calls `take` with the rank's spans in order. Repeated calls for a rank give the same spans.
  template <class Take>
  RankTime follow(uint32_t i, Take take) {
    RankTime out;
    out.at = i;
    const uint32_t first = step_.begin[i], end = step_.begin[i + 1];
    if (first == end) return out;
    const float gap = step_.ops[first].gap_ms;
    const auto before =
        std::isnan(gap) ? int64_t{0} : static_cast<int64_t>(gap / static_cast<float>(kMsPerNs));
    out.begin = step_.aligned(first, step_.ops[first].start) - std::max<int64_t>(0, before);
    out.end = out.begin;
    for (uint32_t k = first; k < end; ++k) {
      const Op& op = step_.ops[k];
      if (k + kPrefetchAhead < end) __builtin_prefetch(&arrivals_[step_.ops[k + kPrefetchAhead].instance]);
      if (!op.finished || op.background) continue;
      // A background operation that ended before this one began: the rank may have waited for it.
      if (op.awaited != kNone) pass(op.awaited, out, take);
      pass(k, out, take);
    }
    return out;
  }

  // Accounts for operation `k`: from its entry or the rank's last end, whichever is later, to its end.
  template <class Take>
  void pass(uint32_t k, RankTime& out, Take& take) {
    const Op& op = step_.ops[k];
    const int64_t clock_ns = step_.clock_ns[out.at], start = op.start + clock_ns, end = op.end + clock_ns;
    if (end <= out.end) return;
    Span span;
    span.op = k;
    span.own = std::max<int64_t>(0, start - out.end);
    const int64_t entered = std::max(start, out.end);
    span.wait = std::clamp<int64_t>(start + wait_of(k, start) - entered, 0, end - entered);
    span.move = end - entered - span.wait;
    if (static_cast<double>(span.wait) * kMsPerNs > kTogetherMs) {
      Arrival& a = arrivals_[op.instance];
      span.last = a.side;
      out.waited += span.wait;
      // If the sides do not end together, waits are only known per side, so the maximum is taken here.
      if (!a.leave_together) a.longest_ns = std::max(a.longest_ns, span.wait);
    }
    take(span);
    out.empty = false;
    out.end = end;
  }

  void scale() {
    int64_t end = INT64_MIN;
    for (const RankTime& r : ranks_) {
      if (r.empty) continue;
      begin_ = std::min(begin_, r.begin);
      end = std::max(end, r.end);
    }
    unit_ns_ = end > begin_ ? static_cast<double>(end - begin_) / kUnits : 1;
    out_.unit_ms = unit_ns_ * kMsPerNs;
  }

  double path_of(const RankTime& r) const { return step_.result.ranks[r.at].path; }

  // Order of rows: time that others waited for the rank, minus its own waiting, descending.
  bool worse(const RankTime& a, const RankTime& b) const {
    const int64_t x = a.awaited - a.waited, y = b.awaited - b.waited;
    if (x != y) return x > y;
    return cluster_.ranks()[step_.ranks[a.at]].rank < cluster_.ranks()[step_.ranks[b.at]].rank;
  }

  void choose_rows() {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < ranks_.size(); ++i)
      if (!ranks_[i].empty) order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](uint32_t a, uint32_t b) { return worse(ranks_[a], ranks_[b]); });
    std::vector<std::pair<uint32_t, uint32_t>> rows;  // rank, and number of ranks in its row
    const size_t single = order.size() <= kPictureRows ? order.size() : kPictureSingles;
    for (size_t i = 0; i < single; ++i) rows.emplace_back(order[i], 1);
    std::map<uint32_t, size_t> by_host;  // index into `rows`
    for (size_t i = single; i < order.size(); ++i) {
      const uint32_t host = cluster_.ranks()[step_.ranks[order[i]]].host;
      const auto [at, fresh] = by_host.try_emplace(host, rows.size());
      if (fresh)
        rows.emplace_back(order[i], 1);
      else
        ++rows[at->second].second;
    }
    if (rows.size() > kPictureRows) rows.resize(kPictureRows);
    const size_t parts = std::max(kPartsLeast, kPictureParts / std::max<size_t>(1, rows.size()));
    for (const auto& [i, of] : rows) out_.rows.push_back(row_of(ranks_[i], of, parts));
    std::stable_sort(out_.rows.begin(), out_.rows.end(),
                     [](const auto& a, const auto& b) { return a.rank < b.rank; });
  }

  StepPicture::Row row_of(const RankTime& r, uint32_t of, size_t most) {
    const uint32_t rank = step_.ranks[r.at];
    const RankInfo& info = cluster_.ranks()[rank];
    StepPicture::Row row;
    row.rank = info.rank;
    row.host = cluster_.host_name(rank);
    if (info.device != kNone) row.device = info.device;
    row.of = of;
    row.wait_ms = static_cast<double>(r.waited) * kMsPerNs;
    row.awaited_ms = static_cast<double>(r.awaited) * kMsPerNs;
    row.path_ms = path_of(r);
    // Edges are rounded, not lengths: errors do not add up.
    int64_t at = r.begin;
    uint32_t drawn = row.begin = units(at);
    const auto step_to = [&](int64_t length) {
      at += length;
      const uint32_t from = std::exchange(drawn, std::max(drawn, units(at)));
      return drawn - from;
    };
    std::vector<Span> spans;
    follow(r.at, [&spans](const Span& span) { spans.push_back(span); });
    for (const Span& s : joined(spans, most)) {
      StepPicture::Part part;
      part.own = step_to(s.own);
      part.wait = step_to(s.wait);
      part.move = step_to(s.move);
      part.op = op_index(s.op);
      if (s.last != kNone) part.last = cluster_.ranks()[step_.ranks[step_.owner[s.last]]].rank;
      row.parts.push_back(part);
    }
    return row;
  }

  uint32_t units(int64_t at) const {
    return static_cast<uint32_t>(
        std::lround(std::clamp(static_cast<double>(at - begin_) / unit_ns_, 0.0, kUnits)));
  }

  // Returns at most `most` spans: the longest stay, and those between them are merged.
  static std::vector<Span> joined(const std::vector<Span>& spans, size_t most) {
    if (spans.size() <= most) return spans;
    std::vector<uint32_t> order(spans.size());
    std::iota(order.begin(), order.end(), 0);
    const size_t retained = (most - 1) / 2;
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(retained), order.end(),
                     [&](uint32_t a, uint32_t b) {
                       const int64_t x = spans[a].length(), y = spans[b].length();
                       return x != y ? x > y : a < b;
                     });
    std::vector<bool> whole(spans.size(), false);
    for (size_t i = 0; i < retained; ++i) whole[order[i]] = true;
    std::vector<Span> out;
    bool open = false;
    int64_t longest = 0;  // longest wait of a span within the merged one
    for (size_t i = 0; i < spans.size(); ++i) {
      if (whole[i] || !open) {
        out.push_back(spans[i]);
        longest = spans[i].wait;
      } else {
        Span& to = out.back();
        if (spans[i].wait > longest) longest = spans[i].wait, to.op = spans[i].op, to.last = spans[i].last;
        to.own += spans[i].own, to.wait += spans[i].wait, to.move += spans[i].move;
      }
      open = !whole[i];
    }
    return out;
  }

  uint32_t op_index(uint32_t k) {
    const Instance& x = step_.instances[step_.ops[k].instance];
    const CommGroup group = cluster_.comms()[cluster_.channels()[x.channel].comm].group;
    const auto [at, fresh] =
        ops_.try_emplace({step_.ops[k].op, group}, static_cast<uint32_t>(out_.ops.size()));
    if (fresh) {
      std::string name(to_string(step_.ops[k].op));
      if (group != CommGroup::kUnknown) name += fmt::format(" {}", to_string(group));
      out_.ops.push_back(std::move(name));
    }
    return at->second;
  }

  const Cluster& cluster_;
  const Step& step_;
  StepPicture out_;
  LargeTable<Arrival> arrivals_;  // by instance
  std::vector<RankTime> ranks_;   // by index into Step::ranks
  std::map<std::pair<CommOp, CommGroup>, uint32_t> ops_;
  int64_t begin_ = INT64_MAX;
  double unit_ns_ = 1;
};

double cost_of(const StepResult& result) {
  double out = std::max(0.0, result.network_path_ms);
  for (const RankStep& r : result.ranks) out += std::max(0.f, r.path);
  return out;
}

}  // namespace

StepPicture picture_of(const Cluster& cluster, const Step& step) { return Painter(cluster, step).run(); }

void Pictures::offer(const Cluster& cluster, const Step& step) {
  if (step.ranks.size() < 2 || step.ops.empty()) return;
  ++offered_;
  // Samples the usual step at step counts that are powers of two.
  const bool usual = offered_ >= 4 && std::has_single_bit(offered_);
  if (usual) usual_ = picture_of(cluster, step);
  const double cost = cost_of(step.result);
  // After a restart, a step number may repeat.
  std::erase_if(slowest_, [&](const Retained& x) { return x.picture.step == step.number; });
  const auto least =
      std::min_element(slowest_.begin(), slowest_.end(),
                       [](const Retained& a, const Retained& b) { return a.cost_ms < b.cost_ms; });
  if (slowest_.size() >= kPictures) {
    if (cost <= least->cost_ms) return;
    slowest_.erase(least);
  }
  slowest_.push_back({cost, usual ? usual_ : picture_of(cluster, step)});
}

std::vector<StepPicture> Pictures::all() const {
  std::vector<StepPicture> out;
  for (const Retained& x : slowest_) out.push_back(x.picture);
  const bool there = std::ranges::any_of(out, [&](const StepPicture& x) { return x.step == usual_.step; });
  if (!usual_.rows.empty() && !there) out.push_back(usual_);
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

}  // namespace culprit::comm
