#include "core/detect/comm/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "base/time.h"
#include "core/detect/comm/steps.h"

namespace culprit::comm {

void CommTrace::take(const std::string& host, std::span<const CommRecord> records) {
  const uint32_t from = host.empty() ? kNone : cluster_.host_index(host);
  for (const CommRecord& record : records) {
    if (const std::string_view fault = comm_record_fault(record); !fault.empty())
      ++faulty_[fault];
    else
      keep(from, record);
  }
  if (live_ || held_records_ > held_max()) close_ready();
}

void CommTrace::keep(uint32_t host, const CommRecord& record) {
  ++taken_;
  const uint32_t rank = cluster_.rank_index(record, host);
  first_ns_ = std::min(first_ns_, static_cast<int64_t>(record.start_ns));
  last_ns_ = std::max(last_ns_, static_cast<int64_t>(std::max(record.start_ns, record.end_ns)));
  if (record.op == CommOp::kJoin) {
    if (condenser_) condenser_->pass(record);
    return cluster_.join(rank, record);
  }
  if (!open_.take(record)) ++beyond_;
  ++held_records_;
  if (record.step != kCommUnknown) return hold(rank, record);
  unnumbered_.add(record);
  // Enough for what repeats to be seen, and soon enough to be told.
  if (live_ && unnumbered_.size() >= kRecordsHeldLive / 4) number_steps();
}

// Until its step is over.
void CommTrace::hold(uint32_t rank, const CommRecord& record) {
  const auto step = static_cast<int64_t>(record.step);
  if (step <= closed_to_) {
    ++late_;
    --held_records_;
    return;
  }
  Held& held = held_[step];
  held.records.add(record);
  held.last_ns = std::max(held.last_ns, static_cast<int64_t>(std::max(record.start_ns, record.end_ns)));
  if (live_) note_progress(rank, step);
}

void CommTrace::note_progress(uint32_t rank, int64_t step) {
  if (rank >= latest_.size()) latest_.resize(rank + 1, -1);
  int64_t& latest = latest_[rank];
  if (step <= latest) return;
  if (const auto at = held_.find(latest); at != held_.end()) --at->second.ranks_in;
  latest = step;
  ++held_[step].ranks_in;
}

void CommTrace::close_ready() {
  // A rank in the step after the next has told all of this one, but for what is on its way.
  constexpr int64_t kBehind = 2;
  while (!held_.empty()) {
    const auto oldest = held_.begin();
    uint32_t near = 0;
    for (auto at = oldest; at != held_.end() && at->first < oldest->first + kBehind; ++at)
      near += at->second.ranks_in;
    const bool over = live_ && held_.size() > 1 && ((near == 0 && all_known()) || is_overdue(oldest->second));
    if (!over && held_records_ <= held_max() && held_vectors_ <= kVectorsHeld) break;
    close(oldest);
  }
  if (held_records_ > held_max()) number_steps();
}

// A rank that tells no more (its ring was lost, its process replaced) holds nobody up while the others go on.
// Rings are read within seconds, and clocks of hosts are off by as many; blocks come within minutes.
bool CommTrace::is_overdue(const Held& held) const {
  constexpr int64_t kRecordsNs = 30 * kNsPerSecond, kVectorsNs = 300 * kNsPerSecond;
  const int64_t longest = held.ranks.empty() ? kRecordsNs : kVectorsNs;
  return held_.rbegin()->second.last_ns - held.last_ns > longest && held_.size() > 2;
}

void CommTrace::close(std::map<int64_t, Held>::iterator at) {
  const int64_t number = at->first;
  Held held = std::move(at->second);
  held_records_ -= held.records.size();
  held_vectors_ -= held.ranks.size();
  closed_to_ = number;
  held_.erase(at);
  if (held.records.size() == 0) return analyse(step_of(number, std::move(held)));
  std::vector<const CommRecord*> records;
  records.reserve(held.records.size());
  for (size_t i = 0; i < held.records.size(); ++i) records.push_back(&held.records[i]);
  Step step = build_step(cluster_, number, records);
  records = {};
  held.records = {};
  duplicates_ += step.duplicates;
  if (condenser_) {
    measure_gaps(cluster_, step);
    return condenser_->add(cluster_, step);
  }
  if (!held.ranks.empty()) {  // others tell theirs by vectors: these ranks are compared with them
    measure_gaps(cluster_, step);
    Condenser own;
    own.add(cluster_, step);
    const HostVectors told = own.take();
    for (const RankVector& v : told.vectors) add_sides(cluster_, v, told.streams[v.streams], held);
    return analyse(step_of(number, std::move(held)));
  }
  align_clocks(cluster_, step);
  measure_gaps(cluster_, step);
  compare_roles(cluster_, step);
  network_.measure(cluster_, step);
  const std::vector<double> on_path = walk_path(cluster_, step);
  network_.explain(cluster_, on_path, step);
  replay_costs(cluster_, step);
  keep_result(std::move(step.result));
}

Step CommTrace::step_of(int64_t number, Held held) {
  Step step = vector_step(cluster_, number, std::move(held.ranks), held.sides);
  duplicates_ += step.duplicates;
  return step;
}

void CommTrace::analyse(Step step) {
  compare_roles(cluster_, step);
  network_.measure(cluster_, step);
  const std::vector<double> on_path = estimate_path(cluster_, step);
  network_.explain(cluster_, on_path, step);
  keep_result(std::move(step.result));
}

void CommTrace::keep_result(StepResult result) {
  rank_steps_ += result.ranks.size();
  steps_.push_back(std::move(result));
  while (rank_steps_ > kRankSteps && steps_.size() > 1) {
    rank_steps_ -= steps_.front().ranks.size();
    steps_.pop_front();
    ++forgotten_;
  }
}

// ---- vectors

// Its streams by slots of the cluster.
void CommTrace::add_sides(Cluster& cluster, const RankVector& v, const RankStreams& streams, Held& held) {
  RankSides out;
  CommRecord record;
  record.rank = streams.rank;
  record.device = streams.device;
  out.rank = cluster.find_rank(streams.rank);
  out.begin_ns = v.begin_ns;
  out.span_ms = v.span_ms;
  out.self_ms = v.self_ms;
  out.first = static_cast<uint32_t>(held.sides.size());
  for (const Stream& s : streams.streams) {
    record.comm = s.comm;
    record.comm_size = s.comm_size;
    record.peer = s.peer;
    record.op = s.op;
    record.group = s.group;
    held.sides.push_back({cluster.slot_of(out.rank, record), 0, s.op, s.size_class, NAN});
  }
  for (uint32_t i = 0; i < v.told; ++i) {
    if (v.sums[i].stream >= streams.streams.size()) continue;
    VectorSide& side = held.sides[out.first + v.sums[i].stream];
    side.ms = v.sums[i].ms;
    side.count = v.sums[i].count;
  }
  out.count = static_cast<uint32_t>(held.sides.size()) - out.first;
  held.ranks.push_back(out);
}

void CommTrace::take_vector(uint32_t host, const RankVector& vector, const RankStreams& streams) {
  ++taken_;
  CommRecord record;
  record.rank = streams.rank;
  record.device = streams.device;
  const uint32_t rank = cluster_.rank_index(record, host);
  const int64_t end = vector.begin_ns + static_cast<int64_t>(1e6 * double{vector.span_ms});
  first_ns_ = std::min(first_ns_, vector.begin_ns);
  last_ns_ = std::max(last_ns_, end);
  if (vector.step <= closed_to_) {
    ++late_;
    return;
  }
  Held& held = held_[vector.step];
  held.last_ns = std::max(held.last_ns, end);
  add_sides(cluster_, vector, streams, held);
  ++held_vectors_;
  note_progress(rank, vector.step);
}

void CommTrace::take_standing(uint32_t host, const CommRecord& record) {
  if (const std::string_view fault = comm_record_fault(record); !fault.empty()) {
    ++faulty_[fault];
    return;
  }
  const uint32_t rank = cluster_.rank_index(record, host);
  if (record.op == CommOp::kJoin) return cluster_.join(rank, record);
  cluster_.note(rank, cluster_.slot_of(rank, record), record);
  if (!open_.take(record)) ++beyond_;
}

void CommTrace::take_vectors(const std::string& host, const HostVectors& told,
                             const std::vector<RankStreams>& streams) {
  const uint32_t from = host.empty() ? kNone : cluster_.host_index(host);
  for (const CommRecord& record : told.standing) take_standing(from, record);
  for (const RankVector& v : told.vectors)
    if (v.streams < streams.size()) take_vector(from, v, streams[v.streams]);
  close_ready();
}

// Hosts tell in blocks of a minute: of a group of which somebody is still unknown the block is to come.
bool CommTrace::all_known() {
  if (all_known_ || held_.empty() || held_.begin()->second.ranks.empty()) return true;
  cluster_.settle();
  all_known_ = std::all_of(cluster_.comms().begin(), cluster_.comms().end(), [this](const CommInfo& comm) {
    const bool members = std::all_of(comm.members.begin(), comm.members.end(),
                                     [this](uint32_t r) { return r < latest_.size() && latest_[r] >= 0; });
    return members && comm.members.size() >= comm.told_size;
  });
  return all_known_;
}

std::vector<CommRecord> CommTrace::standing() {
  note_held();
  std::vector<CommRecord> out;
  for (const RankInfo& info : cluster_.ranks())
    for (const Slot& slot : info.slots) {
      if (slot.entered == 0 || slot.left < slot.entered) continue;
      const CommInfo& comm = cluster_.comms()[cluster_.channels()[slot.channel].comm];
      CommRecord r;
      r.start_ns = r.end_ns = static_cast<uint64_t>(std::max<int64_t>(last_ns_, 1));
      r.comm = slot.comm;
      r.seq = slot.left - 1;
      r.rank = info.rank;
      r.device = info.device;
      r.comm_size = comm.told_size;
      r.group = comm.group;
      r.op = slot.peer == kNone ? CommOp::kAllReduce : slot.sends ? CommOp::kSend : CommOp::kRecv;
      if (slot.peer != kNone) r.peer = slot.peer;
      out.push_back(r);
    }
  open_.add_to(out);
  return out;
}

void CommTrace::number_steps() {
  if (unnumbered_.size() == 0) return;
  std::vector<CommRecord> records;
  records.reserve(unnumbered_.size());
  for (size_t i = 0; i < unnumbered_.size(); ++i) records.push_back(unnumbered_[i]);
  unnumbered_ = {};
  unplaced_steps_ += find_steps(records, origin_);
  for (const CommRecord& record : records) {
    if (record.step == kCommUnknown)
      --held_records_;
    else
      hold(cluster_.find_rank(record.rank), record);
  }
}

void CommTrace::settle() {
  if (live_) return close_ready();
  number_steps();
  while (!held_.empty()) close(held_.begin());
}

void CommTrace::note_held() {
  for (auto& [number, held] : held_)
    for (size_t i = 0; i < held.records.size(); ++i) {
      const CommRecord& record = held.records[i];
      const uint32_t rank = cluster_.find_rank(record.rank);
      cluster_.note(rank, cluster_.slot_of(rank, record), record);
    }
}

std::optional<Stuck> CommTrace::stuck() {
  if (open_.empty()) return std::nullopt;
  note_held();
  return open_.find(cluster_);
}

std::vector<std::string> CommTrace::told_drops() const {
  std::vector<std::string> out;
  const auto tell = [&out](uint64_t n, std::string_view what) {
    if (n > 0) out.push_back(fmt::format("{} {}", counted(n, "record"), what));
  };
  for (const auto& [fault, n] : faulty_) tell(n, fmt::format("of communication left out: {}", fault));
  tell(duplicates_, "of communication came twice: counted once");
  tell(late_, "of communication came when their step had been judged: left out");
  tell(unplaced_steps_, "of communication tell no step and repeat nothing that would: left out");
  uint64_t present = 0, told = 0;
  for (const RankInfo& r : cluster_.ranks()) present += !r.slots.empty();
  for (const CommInfo& c : cluster_.comms()) told = std::max<uint64_t>(told, c.told_size);
  told = std::max<uint64_t>(told, cluster_.ranks().size());
  if (present > 0 && told > present)
    out.push_back(fmt::format("of {} of {} that communicators speak of nothing is recorded", told - present,
                              counted(told, "rank")));
  tell(beyond_, "of operations under way were more than can be remembered");
  if (forgotten_ > 0)
    out.push_back(fmt::format("{} of communication are forgotten", counted(forgotten_, "step")));
  return out;
}

}  // namespace culprit::comm
