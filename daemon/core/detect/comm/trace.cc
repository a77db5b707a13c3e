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
  if (live_ || full()) close_ready();
}

void CommTrace::keep(uint32_t host, const CommRecord& record) {
  ++taken_;
  const uint32_t rank = cluster_.rank_index(record, host);
  first_ns_ = std::min(first_ns_, static_cast<int64_t>(record.start_ns));
  last_ns_ = std::max(last_ns_, static_cast<int64_t>(std::max(record.start_ns, record.end_ns)));
  if (record.op == CommOp::kJoin) {
    scattered_ += !cluster_.join(rank, record);
    return;
  }
  const auto step = static_cast<int64_t>(record.step);
  if (record.step != kCommUnknown && step <= closed_to_) {
    ++late_;
    return;
  }
  const uint32_t slot = cluster_.slot_of(rank, record);
  if (slot == kNone) {
    ++scattered_;
    return;
  }
  cluster_.note(rank, slot, record);
  if (!open_.take(record)) ++beyond_;
  ++held_records_;
  if (record.step == kCommUnknown) return unnumbered_.add(record);
  if (step != recent_step_) {
    recent_ = &held_[step];
    recent_step_ = step;
  }
  recent_->records.add(record);
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

// How many of the oldest steps are over: of a live job, whose ranks have all gone beyond; otherwise as many
// as hold half of all records, where these are too many.
size_t CommTrace::ready() const {
  // A rank in the step after the next has told all of this one, but for what is on its way.
  constexpr int64_t kBehind = 2;
  size_t n = 0, left = held_records_;
  const bool many = full();
  for (auto oldest = held_.begin(); oldest != held_.end(); ++oldest, ++n) {
    uint32_t near = 0;
    for (auto at = oldest; at != held_.end() && at->first < oldest->first + kBehind; ++at)
      near += at->second.ranks_in;
    const bool over = live_ && near == 0 && std::next(oldest) != held_.end();
    if (!over && (!many || (left <= kRecordsHeld / 2 && held_.size() - n <= kStepsHeld / 2))) break;
    left -= oldest->second.records.size();
  }
  return n;
}

void CommTrace::close_ready() {
  close(ready());
  if (!full()) return;
  number_steps();
  close(ready());
}

// Of the `most` oldest steps, those that are analysed at a time: as many as are worth it and their tables,
// some 150 bytes a record, fit into half a gigabyte.
size_t CommTrace::together(size_t most) const {
  constexpr size_t kRecords = 4'000'000;
  size_t n = 0, records = 0;
  for (auto at = held_.begin(); n < std::min(most, std::max<size_t>(1, parallel_.width)); ++at, ++n) {
    records += at->second.records.size();
    if (n > 0 && records > kRecords) break;
  }
  return n;
}

void CommTrace::close(size_t oldest) {
  if (oldest == 0) return;
  cluster_.settle();
  recent_step_ = -1;
  while (oldest > 0) {
    const size_t n = together(oldest);
    oldest -= n;
    std::vector<std::map<int64_t, Held>::node_type> held;
    for (size_t i = 0; i < n; ++i) held.push_back(held_.extract(held_.begin()));
    while (work_.size() < n) work_.push_back(std::make_unique<Step>());
    parallel_.run(n, [&](size_t i) {
      const RecordList& list = held[i].mapped().records;
      std::vector<const CommRecord*> records;
      records.reserve(list.size());
      list.for_each([&](const CommRecord& r) { records.push_back(&r); });
      build_step(cluster_, held[i].key(), records, *work_[i]);
    });
    for (size_t i = 0; i < n; ++i) {
      held_records_ -= held[i].mapped().records.size();
      closed_to_ = held[i].key();
      duplicates_ += work_[i]->duplicates;
      measure_gaps(cluster_, *work_[i]);
    }
    held.clear();
    parallel_.run(n, [this](size_t i) {
      align_clocks(cluster_, *work_[i]);
      compare_roles(cluster_, *work_[i]);
      Network::measure(cluster_, *work_[i]);
    });
    for (size_t i = 0; i < n; ++i) network_.learn(*work_[i]);
    parallel_.run(n, [this](size_t i) {
      Network::compare(*work_[i]);
      const std::vector<double> on_path = walk_path(cluster_, *work_[i]);
      Network::explain(cluster_, on_path, *work_[i]);
    });
    for (size_t i = 0; i < n; ++i) keep_result(std::move(work_[i]->result));
  }
  if (live_ || held_.empty()) work_.clear();
}

void CommTrace::keep_result(StepResult result) {
  constexpr size_t kOfStep = 8;  // what a step takes besides its ranks, counted in ranks
  rank_steps_ += result.ranks.size() + kOfStep;
  steps_.push_back(std::move(result));
  while (rank_steps_ > kRankSteps && steps_.size() > 1) {
    rank_steps_ -= steps_.front().ranks.size() + kOfStep;
    steps_.pop_front();
    ++forgotten_;
  }
}

void CommTrace::number_steps() {
  if (unnumbered_.size() == 0) return;
  std::vector<CommRecord> records;
  records.reserve(unnumbered_.size());
  unnumbered_.for_each([&](const CommRecord& r) { records.push_back(r); });
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
  close(held_.size());
}

std::optional<Stuck> CommTrace::stuck() { return open_.empty() ? std::nullopt : open_.find(cluster_); }

std::vector<std::string> CommTrace::told_drops() const {
  std::vector<std::string> out;
  const auto tell = [&out](uint64_t n, std::string_view what) {
    if (n > 0) out.push_back(fmt::format("{} {}", counted(n, "record"), what));
  };
  for (const auto& [fault, n] : faulty_) tell(n, fmt::format("of communication left out: {}", fault));
  tell(duplicates_, "of communication came twice: counted once");
  tell(late_, "of communication came when their step had been judged: left out");
  tell(unplaced_steps_, "of communication tell no step and repeat nothing that would: left out");
  tell(scattered_, "of communication are of more communicators and peers than can be followed: left out");
  tell(beyond_, "of operations under way were more than can be remembered");
  if (forgotten_ > 0)
    out.push_back(fmt::format("{} of communication are forgotten", counted(forgotten_, "step")));
  return out;
}

}  // namespace culprit::comm
