#include "core/detect/comm/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
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
  if (live_ || held_records_ > kRecordsHeld) close_ready();
}

void CommTrace::keep(uint32_t host, const CommRecord& record) {
  ++taken_;
  const uint32_t rank = cluster_.rank_index(record, host);
  first_ns_ = std::min(first_ns_, static_cast<int64_t>(record.start_ns));
  last_ns_ = std::max(last_ns_, static_cast<int64_t>(std::max(record.start_ns, record.end_ns)));
  if (record.op == CommOp::kJoin) return cluster_.join(rank, record);
  if (!open_.take(record)) ++beyond_;
  ++held_records_;
  if (record.step == kCommUnknown) return unnumbered_.add(record);
  const auto step = static_cast<int64_t>(record.step);
  if (step <= closed_to_) {
    ++late_;
    --held_records_;
    return;
  }
  held_[step].records.add(record);
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
    const bool over = live_ && near == 0 && held_.size() > 1;
    if (!over && held_records_ <= kRecordsHeld) break;
    close(oldest);
  }
  if (held_records_ > kRecordsHeld) number_steps();
}

void CommTrace::close(std::map<int64_t, Held>::iterator at) {
  std::vector<const CommRecord*> records;
  records.reserve(at->second.records.size());
  for (size_t i = 0; i < at->second.records.size(); ++i) records.push_back(&at->second.records[i]);
  Step step = build_step(cluster_, at->first, records);
  held_records_ -= records.size();
  closed_to_ = at->first;
  records = {};
  held_.erase(at);
  duplicates_ += step.duplicates;
  align_clocks(cluster_, step);
  measure_gaps(cluster_, step);
  compare_roles(cluster_, step);
  network_.measure(cluster_, step);
  const std::vector<double> on_path = walk_path(cluster_, step);
  network_.explain(cluster_, on_path, step);
  replay_costs(cluster_, step);
  rank_steps_ += step.result.ranks.size();
  steps_.push_back(std::move(step.result));
  while (rank_steps_ > kRankSteps && steps_.size() > 1) {
    rank_steps_ -= steps_.front().ranks.size();
    steps_.pop_front();
    ++forgotten_;
  }
}

void CommTrace::number_steps() {
  if (unnumbered_.size() == 0) return;
  std::vector<CommRecord> records;
  records.reserve(unnumbered_.size());
  for (size_t i = 0; i < unnumbered_.size(); ++i) records.push_back(unnumbered_[i]);
  unnumbered_ = {};
  unplaced_steps_ += find_steps(records);
  for (const CommRecord& record : records) {
    if (record.step == kCommUnknown || static_cast<int64_t>(record.step) <= closed_to_) {
      --held_records_;
      continue;
    }
    held_[record.step].records.add(record);
  }
}

void CommTrace::settle() {
  if (live_) return close_ready();
  number_steps();
  while (!held_.empty()) close(held_.begin());
}

std::optional<Stuck> CommTrace::stuck() {
  if (open_.empty()) return std::nullopt;
  for (auto& [number, held] : held_)
    for (size_t i = 0; i < held.records.size(); ++i) {
      const CommRecord& record = held.records[i];
      const uint32_t rank = cluster_.find_rank(record.rank);
      cluster_.note(rank, cluster_.slot_of(rank, record), record);
    }
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
