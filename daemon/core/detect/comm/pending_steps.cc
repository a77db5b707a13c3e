#include "core/detect/comm/pending_steps.h"

#include <cmath>

#include "base/check.h"
#include "base/time.h"

namespace culprit::comm {

uint64_t PendingSteps::add(const RankVector& vector, const RankStreams& streams, int64_t end_ns,
                           Cluster& cluster) {
  PendingStep& to = step(vector.step);
  to.last_ns = std::max(to.last_ns, end_ns);
  ++vectors_;
  return add_sides(vector, streams, cluster, to);
}

PendingSteps::Steps::node_type PendingSteps::extract_oldest() {
  recent_ = nullptr;
  auto node = steps_.extract(steps_.begin());
  const PendingStep& step = node.mapped();
  CULPRIT_CHECK(records_ >= step.records.size() && vectors_ >= step.ranks.size());
  records_ -= step.records.size();
  vectors_ -= step.ranks.size();
  return node;
}

// Ranks stop reporting when a ring is lost or a process is replaced. Rings are read within seconds, and host
// clocks differ by as much; blocks arrive within minutes.
bool PendingSteps::is_overdue(const PendingStep& held, size_t left) const {
  constexpr int64_t kRecordsNs = 30 * kNsPerSecond, kVectorsNs = 300 * kNsPerSecond;
  const int64_t longest = held.ranks.empty() ? kRecordsNs : kVectorsNs;
  return steps_.rbegin()->second.last_ns - held.last_ns > longest && left > 2;
}

// Limited by the useful width, and by half a gigabyte of tables at about 150 bytes per record.
size_t PendingSteps::closable_together(size_t most, size_t width) const {
  constexpr size_t kRecords = 4'000'000;
  size_t n = 0, records = 0;
  for (auto at = steps_.begin(); n < std::min(most, std::max<size_t>(1, width)); ++at, ++n) {
    records += at->second.records.size();
    if ((n > 0 && records > kRecords) || !at->second.ranks.empty()) break;
  }
  return n;
}

uint64_t add_sides(const RankVector& vector, const RankStreams& streams, Cluster& cluster,
                   PendingStep& step) {
  RankSides out;
  CommRecord record;
  record.rank = streams.rank;
  record.device = streams.device;
  out.rank = cluster.find_rank(streams.rank);
  out.begin_ns = vector.begin_ns;
  out.span_ms = vector.span_ms;
  out.self_ms = vector.self_ms;
  out.first = static_cast<uint32_t>(step.sides.size());
  for (const Stream& s : streams.streams) {
    record.comm = s.comm;
    record.comm_size = s.comm_size;
    record.peer = s.peer;
    record.op = s.op;
    record.group = s.group;
    step.sides.push_back({cluster.slot_of(out.rank, record), 0, s.op, s.size_class, NAN});
  }
  for (uint32_t i = 0; i < vector.reported; ++i) {
    if (vector.sums[i].stream >= streams.streams.size()) continue;
    VectorSide& side = step.sides[out.first + vector.sums[i].stream];
    side.ms = vector.sums[i].ms;
    side.count = vector.sums[i].count;
  }
  const auto lost = std::remove_if(step.sides.begin() + out.first, step.sides.end(),
                                   [](const VectorSide& s) { return s.slot == kNone; });
  const auto over = static_cast<uint64_t>(step.sides.end() - lost);
  step.sides.erase(lost, step.sides.end());
  out.count = static_cast<uint32_t>(step.sides.size()) - out.first;
  step.ranks.push_back(out);
  return over;
}

}  // namespace culprit::comm
