#include "core/detect/comm/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "base/text.h"
#include "base/time.h"

namespace culprit::comm {

void CommTrace::add_records(const std::string& host, std::span<const CommRecord> records) {
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
    open_.note_alive(record);  // tracers repeat joins while no operations run
    if (condenser_) condenser_->pass(record);
    scattered_ += !cluster_.join(rank, record);
    return;
  }
  const auto start = static_cast<int64_t>(record.start_ns);
  if (start < started_ns_) {
    ++late_;
    return;
  }
  const uint32_t slot = cluster_.slot_of(rank, record);
  if (slot == kNone) {
    ++scattered_;
    return;
  }
  // Applies to late records too: the end of an operation ends the waits for it.
  cluster_.note(rank, slot, record);
  if (!open_.add(record)) ++beyond_;
  ++held_records_;
  if (record.step != kCommUnknown) return buffer(rank, record);
  unnumbered_.add(record);
  // Number the steps early enough for timely results, with enough records to find repetition.
  if (live_ && unnumbered_.size() >= kRecordsHeldLive / 4) number_steps();
}

// Holds a record until its step is over.
void CommTrace::buffer(uint32_t rank, const CommRecord& record) {
  const auto step = static_cast<int64_t>(record.step);
  const auto start = static_cast<int64_t>(record.start_ns);
  const int64_t last = std::max(start, static_cast<int64_t>(record.end_ns));
  if (step <= closed_to_) {
    --held_records_;
    if (!goes_back(rank, step, start)) {
      ++late_;
      return;
    }
    PendingStep& held = again_[step];
    held.records.add(record);
    held.last_ns = std::max(held.last_ns, last);
    ++again_records_;
    return note_back(rank, step, start);
  }
  if (step != recent_step_) {
    recent_ = &held_[step];
    recent_step_ = step;
  }
  recent_->records.add(record);
  recent_->last_ns = std::max(recent_->last_ns, last);
  if (!live_) return;
  note_progress(rank, step);
  newest_ns_[rank] = std::max(newest_ns_[rank], start);
}

void CommTrace::note_progress(uint32_t rank, int64_t step) {
  if (rank >= latest_.size()) {
    latest_.resize(rank + 1, -1);
    newest_ns_.resize(rank + 1, 0);
  }
  int64_t& latest = latest_[rank];
  if (step <= latest) return;
  known_ += latest < 0;
  if (back_.erase(rank) > 0 && back_.empty()) drop_again();  // it caught up with the others
  if (const auto at = held_.find(latest); at != held_.end()) --at->second.ranks_in;
  latest = step;
  ++held_[step].ranks_in;
}

// ---- restart of the job

// Distinguishes a restart from late or repeated records: those were entered before the rank's latest entry.
bool CommTrace::goes_back(uint32_t rank, int64_t step, int64_t begin_ns) const {
  return live_ && rank < latest_.size() && step < latest_[rank] && begin_ns > newest_ns_[rank];
}

void CommTrace::note_back(uint32_t rank, int64_t step, int64_t begin_ns) {
  Back& back = back_.try_emplace(rank, Back{step, begin_ns}).first->second;
  back.step = std::max(back.step, step);
  back.first_ns = std::min(back.first_ns, begin_ns);
  // Over the limit, only the input is dropped; the fact that the rank went back is kept.
  if (again_records_ > kRecordsHeldLive || again_vectors_ > kVectorsHeld || again_.size() > kStepsHeld)
    drop_again();
  if (2 * back_.size() >= known_) start_again();
}

void CommTrace::drop_again() {
  late_ += again_records_ + again_vectors_;
  again_.clear();
  again_records_ = again_vectors_ = 0;
}

// Judges the steps that all ranks left, and drops the interrupted ones, whose rest is unknown. Usual network
// durations are kept: the hosts are mostly the same.
void CommTrace::start_again() {
  const auto back = std::exchange(back_, {});
  // Other ranks may have restarted earlier than those seen so far, on clocks that differ.
  started_ns_ = 1 + *std::max_element(newest_ns_.begin(), newest_ns_.end());
  for (const auto& [rank, b] : back) started_ns_ = std::min(started_ns_, b.first_ns);
  size_t left = 0;
  for (auto at = held_.begin(); at != held_.end() && at->second.ranks_in == 0; ++at) ++left;
  close(left);
  for (const auto& [number, held] : held_) {
    CULPRIT_CHECK(held_records_ >= held.records.size() && held_vectors_ >= held.ranks.size());
    held_records_ -= held.records.size();
    held_vectors_ -= held.ranks.size();
    cut_off_ += held.records.size() + held.ranks.size();
  }
  held_ = std::exchange(again_, {});
  held_records_ += std::exchange(again_records_, 0);
  held_vectors_ += std::exchange(again_vectors_, 0);
  recent_step_ = closed_to_ = -1;
  latest_.assign(latest_.size(), -1);
  known_ = 0;
  all_known_ = false;
  for (RankInfo& info : cluster_.ranks()) {
    info.last_end = 0;
    info.last_step = -1;
    // A communicator may restart its numbers at 0.
    for (Slot& slot : info.slots) slot.entered = slot.left = 0;
  }
  open_.forget_before(started_ns_);
  mismatches_.clear();
  left_out_.clear();
  hidden_waits_.clear();
  asked_.forget();
  for (const auto& [rank, b] : back) note_progress(rank, b.step);
  for (const auto& [number, held] : held_)
    held.records.for_each([this](const CommRecord& r) {
      const uint32_t rank = cluster_.find_rank(r.rank);
      if (const uint32_t slot = cluster_.slot_of(rank, r); slot != kNone) cluster_.note(rank, slot, r);
    });
}

// ---- finished steps

// Number of oldest steps to close. For a live job: steps that all ranks passed. Over the memory limit: as
// many as bring it below. For files it is half of the limit, because many steps can be analysed in parallel.
size_t CommTrace::ready() {
  // A rank two steps ahead has sent this step, except for records in transit.
  constexpr int64_t kBehind = 2;
  const size_t part = live_ ? 1 : 2;
  const bool many = full();
  size_t n = 0, records = held_records_, vectors = held_vectors_;
  for (auto oldest = held_.begin(); oldest != held_.end(); ++oldest, ++n) {
    uint32_t near = 0;
    for (auto at = oldest; at != held_.end() && at->first < oldest->first + kBehind; ++at)
      near += at->second.ranks_in;
    const PendingStep& held = oldest->second;
    const size_t left = held_.size() - n;
    const bool over =
        live_ && left > 1 && ((near == 0 && (held.ranks.empty() || all_known())) || is_overdue(held, left));
    const bool fits =
        records <= held_max() / part && vectors <= kVectorsHeld / part && left <= kStepsHeld / part;
    if (!over && (!many || fits)) break;
    records -= held.records.size();
    vectors -= held.ranks.size();
  }
  return n;
}

void CommTrace::close_ready() {
  close(ready());
  if (!full()) return;
  number_steps();
  close(ready());
}

// Whether a step need not wait longer for a rank that no longer reports (lost ring, replaced process). Rings
// are read within seconds, and host clocks differ by as much; blocks arrive within minutes.
bool CommTrace::is_overdue(const PendingStep& held, size_t left) const {
  constexpr int64_t kRecordsNs = 30 * kNsPerSecond, kVectorsNs = 300 * kNsPerSecond;
  const int64_t longest = held.ranks.empty() ? kRecordsNs : kVectorsNs;
  return held_.rbegin()->second.last_ns - held.last_ns > longest && left > 2;
}

// Number of steps among the `most` oldest that are analysed in parallel. Limited by the useful width, and by
// half a gigabyte of tables at about 150 bytes per record. Ends before a step with summaries.
size_t CommTrace::closable_together(size_t most) const {
  constexpr size_t kRecords = 4'000'000;
  size_t n = 0, records = 0;
  for (auto at = held_.begin(); n < std::min(most, std::max<size_t>(1, parallel_.width)); ++at, ++n) {
    records += at->second.records.size();
    if ((n > 0 && records > kRecords) || !at->second.ranks.empty()) break;
  }
  return n;
}

void CommTrace::close(size_t oldest) {
  if (oldest == 0) return;
  recent_step_ = -1;
  while (oldest > 0) {
    cluster_.settle();
    const size_t n = condenser_ ? 0 : closable_together(oldest);
    if (n > 0)
      close_plain(n);
    else
      close_reported();
    oldest -= std::max<size_t>(1, n);
  }
  if (live_ || held_.empty()) work_.clear();
}

void CommTrace::build(int64_t number, const RecordList& list, Step& step) const {
  std::vector<const CommRecord*> records;
  records.reserve(list.size());
  list.for_each([&](const CommRecord& r) { records.push_back(&r); });
  build_step(cluster_, number, records, step);
}

// Closes steps that have only records.
void CommTrace::close_plain(size_t n) {
  std::vector<std::map<int64_t, PendingStep>::node_type> held;
  for (size_t i = 0; i < n; ++i) held.push_back(held_.extract(held_.begin()));
  while (work_.size() < n) work_.push_back(std::make_unique<Step>());
  parallel_.run(n, [&](size_t i) { build(held[i].key(), held[i].mapped().records, *work_[i]); });
  for (size_t i = 0; i < n; ++i) {
    held_records_ -= held[i].mapped().records.size();
    closed_to_ = held[i].key();
    duplicates_ += work_[i]->duplicates;
    find_mismatches(cluster_, *work_[i], mismatches_);
    left_out_.add(cluster_, *work_[i]);
    measure_gaps(cluster_, *work_[i]);
  }
  held.clear();
  parallel_.run(n, [this](size_t i) {
    align_clocks(cluster_, *work_[i]);
    compare_peers(cluster_, *work_[i]);
    Network::measure(cluster_, *work_[i]);
  });
  for (size_t i = 0; i < n; ++i) {
    network_.learn(*work_[i]);
    hidden_waits_.learn(cluster_, *work_[i], steps_);
  }
  parallel_.run(n, [this](size_t i) {
    hidden_waits_.mark(*work_[i]);
    Network::compare(*work_[i]);
    const std::vector<double> on_path = walk_path(cluster_, *work_[i]);
    Network::explain(cluster_, on_path, *work_[i]);
    replay_costs(cluster_, *work_[i]);
  });
  for (size_t i = 0; i < n; ++i) keep_result(std::move(work_[i]->result));
}

// Closes the oldest step if it has summaries, or becomes a summary for a collector.
void CommTrace::close_reported() {
  auto node = held_.extract(held_.begin());
  const int64_t number = node.key();
  PendingStep held = std::move(node.mapped());
  held_records_ -= held.records.size();
  held_vectors_ -= held.ranks.size();
  closed_to_ = number;
  if (held.records.size() > 0) {
    if (work_.empty()) work_.push_back(std::make_unique<Step>());
    Step& step = *work_[0];
    build(number, held.records, step);
    held.records = {};
    duplicates_ += step.duplicates;
    measure_gaps(cluster_, step);
    if (condenser_) return condenser_->add(cluster_, step);
    // Ranks with records are compared with ranks that sent summaries, so records become summaries too.
    StepSummarizer own;
    own.add(cluster_, step);
    const HostVectors reported = own.drain();
    for (const RankVector& v : reported.vectors) add_sides(v, reported.streams[v.streams], held);
  }
  analyse(number, std::move(held));
}

void CommTrace::analyse(int64_t number, PendingStep held) {
  Step step = vector_step(cluster_, number, std::move(held.ranks), held.sides);
  duplicates_ += step.duplicates;
  compare_peers(cluster_, step);
  Network::measure(cluster_, step);
  network_.learn(step);
  Network::compare(step);
  const std::vector<double> on_path = estimate_path(cluster_, step);
  Network::explain(cluster_, on_path, step);
  step.result.basis = Basis::kSums;
  step.result.network_by_sums = true;
  asked_.scale(step.result);
  keep_result(std::move(step.result));
}

void CommTrace::keep_result(StepResult result) {
  constexpr size_t kOfStep = 8;  // memory of a step apart from its ranks, counted in ranks
  rank_steps_ += result.ranks.size() + kOfStep;
  for (NetEffect& effect : result.network) effect.channels = {};
  steps_.push_back(std::move(result));
  while (rank_steps_ > kRankSteps && steps_.size() > 1) {
    rank_steps_ -= steps_.front().ranks.size() + kOfStep;
    steps_.pop_front();
    ++forgotten_;
  }
}

// ---- summaries

// Maps the streams of a summary to slots of the cluster.
void CommTrace::add_sides(const RankVector& v, const RankStreams& streams, PendingStep& held) {
  RankSides out;
  CommRecord record;
  record.rank = streams.rank;
  record.device = streams.device;
  out.rank = cluster_.find_rank(streams.rank);
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
    held.sides.push_back({cluster_.slot_of(out.rank, record), 0, s.op, s.size_class, NAN});
  }
  for (uint32_t i = 0; i < v.reported; ++i) {
    if (v.sums[i].stream >= streams.streams.size()) continue;
    VectorSide& side = held.sides[out.first + v.sums[i].stream];
    side.ms = v.sums[i].ms;
    side.count = v.sums[i].count;
  }
  const auto lost = std::remove_if(held.sides.begin() + out.first, held.sides.end(),
                                   [](const VectorSide& s) { return s.slot == kNone; });
  scattered_ += static_cast<uint64_t>(held.sides.end() - lost);
  held.sides.erase(lost, held.sides.end());
  out.count = static_cast<uint32_t>(held.sides.size()) - out.first;
  held.ranks.push_back(out);
}

void CommTrace::add_summary(uint32_t host, const RankVector& vector, const RankStreams& streams) {
  ++taken_;
  CommRecord record;
  record.rank = streams.rank;
  record.device = streams.device;
  const uint32_t rank = cluster_.rank_index(record, host);
  const int64_t end = vector.begin_ns + static_cast<int64_t>(1e6 * double{vector.span_ms});
  first_ns_ = std::min(first_ns_, vector.begin_ns);
  last_ns_ = std::max(last_ns_, end);
  const bool back = vector.step <= closed_to_;
  if (vector.begin_ns < started_ns_ || (back && !goes_back(rank, vector.step, vector.begin_ns))) {
    ++late_;
    return;
  }
  PendingStep& held = (back ? again_ : held_)[vector.step];
  held.last_ns = std::max(held.last_ns, end);
  add_sides(vector, streams, held);
  if (back) {
    ++again_vectors_;
    return note_back(rank, vector.step, vector.begin_ns);
  }
  ++held_vectors_;
  note_progress(rank, vector.step);
  newest_ns_[rank] = std::max(newest_ns_[rank], vector.begin_ns);
}

void CommTrace::add_standing(uint32_t host, const CommRecord& record) {
  if (const std::string_view fault = comm_record_fault(record); !fault.empty()) {
    ++faulty_[fault];
    return;
  }
  const uint32_t rank = cluster_.rank_index(record, host);
  const bool joins = record.op == CommOp::kJoin;
  const uint32_t slot = joins ? kNone : cluster_.slot_of(rank, record);
  if (joins ? !cluster_.join(rank, record) : slot == kNone) {
    ++scattered_;
    return;
  }
  if (joins || static_cast<int64_t>(record.start_ns) < started_ns_) return;
  cluster_.note(rank, slot, record);
  if (!open_.add(record)) ++beyond_;
}

void CommTrace::add_summaries(const std::string& host, const HostVectors& reported,
                              const std::vector<RankStreams>& streams) {
  const uint32_t from = host.empty() ? kNone : cluster_.host_index(host);
  for (const CommRecord& record : reported.standing) add_standing(from, record);
  for (const RankVector& v : reported.vectors)
    if (v.streams < streams.size()) add_summary(from, v, streams[v.streams]);
  for (const StepRecords& answer : reported.answers) add_answer(from, answer, streams);
  close_ready();
}

// ---- requested records

std::vector<StepsWanted> CommTrace::request_records(const std::vector<Culprit>& culprits) {
  return live_ ? asked_.choose(cluster_, steps_, culprits, last_ns_) : std::vector<StepsWanted>();
}

void CommTrace::add_answer(uint32_t host, const StepRecords& reported,
                           const std::vector<RankStreams>& streams) {
  RecordRequests::HostAnswer out;
  out.host = host;
  out.step = reported.step;
  for (const RankRecords& rank : reported.ranks) {
    OwnRecords own;
    if (rank.streams >= streams.size() || !unpack(rank, streams[rank.streams], reported.step, own)) {
      ++faulty_["it breaks its format"];
      continue;
    }
    for (const CommRecord& record : own.records) {
      if (const std::string_view fault = comm_record_fault(record); !fault.empty()) {
        ++faulty_[fault];
        continue;
      }
      if (cluster_.slot_of(cluster_.rank_index(record, host), record) != kNone) out.records.push_back(record);
    }
    if (own.before_ns >= 0) out.before[streams[rank.streams].rank] = own.before_ns;
  }
  asked_.add_answer(std::move(out), last_ns_);
}

void CommTrace::look_at_answers() {
  for (const int64_t number : asked_.complete(last_ns_)) {
    // Backward: the job may have restarted, and the last step with this number counts.
    const auto sums =
        std::find_if(steps_.rbegin(), steps_.rend(), [number](const auto& s) { return s.number == number; });
    if (sums != steps_.rend() && sums->basis == Basis::kSums) {
      Step step;
      step.number = step.result.number = number;
      if (look_at_records(asked_.answer(number), step)) asked_.correct(*sums, step.result);
    }
    asked_.done(number);
  }
  for (StepResult& step : steps_) asked_.scale_again(step);
  asked_.scaled();
}

// Analyses a step of the answering ranks alone. The answer also gives their own work before the first
// operation.
bool CommTrace::look_at_records(const RecordRequests::Answer& answer, Step& step) {
  cluster_.settle();
  std::vector<const CommRecord*> records;
  std::map<uint32_t, int64_t> first;  // by rank: first entry
  for (const CommRecord& r : answer.records) {
    records.push_back(&r);
    const auto start = static_cast<int64_t>(r.start_ns);
    if (const auto [at, fresh] = first.try_emplace(r.rank, start); !fresh)
      at->second = std::min(at->second, start);
  }
  build_step(cluster_, step.number, records, step);
  std::vector<std::pair<int64_t, int64_t>> saved;
  for (const uint32_t rank : step.ranks) {
    RankInfo& info = cluster_.ranks()[rank];
    saved.emplace_back(info.last_end, info.last_step);
    const auto before = answer.before.find(info.rank);
    info.last_step = before == answer.before.end() ? -1 : step.number - 1;
    if (before != answer.before.end()) info.last_end = first[info.rank] - before->second;
  }
  measure_gaps(cluster_, step);
  for (size_t i = 0; i < step.ranks.size(); ++i) {
    RankInfo& info = cluster_.ranks()[step.ranks[i]];
    std::tie(info.last_end, info.last_step) = saved[i];
  }
  if (step.ranks.empty()) return false;
  align_clocks(cluster_, step);
  compare_peers(cluster_, step);
  Network::measure(cluster_, step);
  of_asked_.learn(step);
  Network::compare(step);
  const std::vector<double> on_path = walk_path(cluster_, step);
  Network::explain(cluster_, on_path, step);
  replay_costs(cluster_, step);
  return true;
}

// Whether all members of all groups have reported. Hosts send a block per minute, so a missing member's block
// may still arrive.
bool CommTrace::all_known() {
  if (all_known_) return true;
  cluster_.settle();
  all_known_ = std::all_of(cluster_.comms().begin(), cluster_.comms().end(), [this](const CommInfo& comm) {
    const bool members = std::all_of(comm.members.begin(), comm.members.end(),
                                     [this](uint32_t r) { return r < latest_.size() && latest_[r] >= 0; });
    return members && comm.members.size() >= comm.reported_size;
  });
  return all_known_;
}

std::vector<CommRecord> CommTrace::standing() const {
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
      r.comm_size = comm.reported_size;
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
  unnumbered_.for_each([&](const CommRecord& r) { records.push_back(r); });
  unnumbered_ = {};
  unplaced_steps_ += find_steps(records, step_count_);
  for (const CommRecord& record : records) {
    if (record.step == kCommUnknown)
      --held_records_;
    else
      buffer(cluster_.find_rank(record.rank), record);
  }
}

void CommTrace::settle() {
  if (live_) {
    close_ready();
  } else {
    number_steps();
    close(held_.size());
  }
  look_at_answers();
  cluster_.settle();  // includes ranks of steps in progress
}

std::vector<Mismatch> CommTrace::mismatches(Stopped stopped) const {
  std::vector<Mismatch> out = mismatches_;
  if (stopped != Stopped::kByClock) return out;
  for (const auto& [number, held] : held_) {
    if (!held.ranks.empty()) continue;
    Step step;
    build(number, held.records, step);
    find_mismatches(cluster_, step, out);
  }
  return out;
}

std::optional<Stuck> CommTrace::stuck(Stopped stopped) const {
  return open_.empty() || stopped == Stopped::kNo ? std::nullopt : open_.find(cluster_, stopped);
}

std::vector<std::string> CommTrace::drop_sentences() const {
  std::vector<std::string> out;
  const auto add = [&out](uint64_t n, std::string_view what) {
    if (n > 0) out.push_back(fmt::format("{} {}", counted(n, "record"), what));
  };
  for (const auto& [fault, n] : faulty_) add(n, fmt::format("of communication left out: {}", fault));
  add(duplicates_, "of communication came twice: counted once");
  add(late_, "of communication came when their step had been judged: left out");
  add(cut_off_, "of communication are of steps in which the job was cut off and started again: left out");
  add(unplaced_steps_, "of communication tell no step and repeat nothing that would: left out");
  add(scattered_, "of communication are of more communicators and peers than can be followed: left out");
  if (const auto ranks = missing()) out.push_back("not there: " + *ranks);
  add(beyond_, "of operations under way were more than can be remembered");
  if (forgotten_ > 0)
    out.push_back(fmt::format("{} of communication are forgotten", counted(forgotten_, "step")));
  return out;
}

std::optional<std::string> CommTrace::missing() const {
  std::vector<bool> here;
  uint64_t present = 0, reported = cluster_.ranks().size();
  for (const RankInfo& r : cluster_.ranks()) {
    if (r.rank >= here.size()) here.resize(r.rank + 1, false);
    here[r.rank] = !r.slots.empty();
    present += here[r.rank];
  }
  for (const CommInfo& c : cluster_.comms()) reported = std::max<uint64_t>(reported, c.reported_size);
  if (present == 0 || reported <= present) return std::nullopt;
  std::string out = fmt::format("communication records of {} of {} that communicators speak of",
                                reported - present, counted(reported, "rank"));
  // Ranks are numbered from 0. If the present ranks exceed the reported number, the missing ones are unknown.
  if (here.size() > reported) return out;
  here.resize(reported, false);
  constexpr size_t kShown = 8;
  size_t shown = 0;
  for (size_t from = 0; from < here.size(); ++from) {
    if (here[from]) continue;
    size_t to = from;
    while (to + 1 < here.size() && !here[to + 1]) ++to;
    if (shown++ == kShown) return out + " and others";
    out += fmt::format("{} {}", shown == 1 ? (reported - present > 1 ? ": ranks" : ": rank") : ",", from);
    if (to > from) out += fmt::format(" to {}", to);
    from = to;
  }
  return out;
}

}  // namespace culprit::comm
