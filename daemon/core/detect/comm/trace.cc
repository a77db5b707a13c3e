#include "core/detect/comm/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "base/time.h"

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
    open_.note_alive(record);  // tracers write joins again while nothing else happens
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
  // Of a record that is late as well: that an operation ended ends the waiting for it.
  cluster_.note(rank, slot, record);
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
  const auto start = static_cast<int64_t>(record.start_ns);
  const int64_t last = std::max(start, static_cast<int64_t>(record.end_ns));
  if (step <= closed_to_) {
    --held_records_;
    if (!goes_back(rank, step, start)) {
      ++late_;
      return;
    }
    Held& held = again_[step];
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
  if (back_.erase(rank) > 0 && back_.empty()) drop_again();  // it came up with the others
  if (const auto at = held_.find(latest); at != held_.end()) --at->second.ranks_in;
  latest = step;
  ++held_[step].ranks_in;
}

// ---- a job that is started again

// What comes late, or again, was entered before what came last.
bool CommTrace::goes_back(uint32_t rank, int64_t step, int64_t begin_ns) const {
  return live_ && rank < latest_.size() && step < latest_[rank] && begin_ns > newest_ns_[rank];
}

void CommTrace::note_back(uint32_t rank, int64_t step, int64_t begin_ns) {
  Back& back = back_.try_emplace(rank, Back{step, begin_ns}).first->second;
  back.step = std::max(back.step, step);
  back.first_ns = std::min(back.first_ns, begin_ns);
  // That a rank is back is remembered where what it tells would be too much.
  if (again_records_ > kRecordsHeldLive || again_vectors_ > kVectorsHeld || again_.size() > kStepsHeld)
    drop_again();
  if (2 * back_.size() >= known_) start_again();
}

void CommTrace::drop_again() {
  late_ += again_records_ + again_vectors_;
  again_.clear();
  again_records_ = again_vectors_ = 0;
}

// Steps that all have left are judged; of those in which the job was cut off nobody knows how they would have
// gone on. What is known of parts of the network stays: the hosts are mostly the same.
void CommTrace::start_again() {
  const auto back = std::exchange(back_, {});
  // Ranks that are to come may have begun before those that are back, on clocks that differ.
  started_ns_ = 1 + *std::max_element(newest_ns_.begin(), newest_ns_.end());
  for (const auto& [rank, b] : back) started_ns_ = std::min(started_ns_, b.first_ns);
  size_t left = 0;
  for (auto at = held_.begin(); at != held_.end() && at->second.ranks_in == 0; ++at) ++left;
  close(left);
  for (const auto& [number, held] : held_) {
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
    for (Slot& slot : info.slots) slot.entered = slot.left = 0;  // a communicator may be counted from 0 again
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

// ---- steps that are over

// How many of the oldest steps are over: of a live job, whose ranks have all gone beyond. Where more is held
// than may be, as many as bring it below: of files, whose steps are all there to be analysed at a time, half.
size_t CommTrace::ready() {
  // A rank in the step after the next has told all of this one, but for what is on its way.
  constexpr int64_t kBehind = 2;
  const size_t part = live_ ? 1 : 2;
  const bool many = full();
  size_t n = 0, records = held_records_, vectors = held_vectors_;
  for (auto oldest = held_.begin(); oldest != held_.end(); ++oldest, ++n) {
    uint32_t near = 0;
    for (auto at = oldest; at != held_.end() && at->first < oldest->first + kBehind; ++at)
      near += at->second.ranks_in;
    const Held& held = oldest->second;
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

// A rank that tells no more (its ring was lost, its process replaced) holds nobody up while the others go on.
// Rings are read within seconds, and clocks of hosts are off by as many; blocks come within minutes.
bool CommTrace::is_overdue(const Held& held, size_t left) const {
  constexpr int64_t kRecordsNs = 30 * kNsPerSecond, kVectorsNs = 300 * kNsPerSecond;
  const int64_t longest = held.ranks.empty() ? kRecordsNs : kVectorsNs;
  return held_.rbegin()->second.last_ns - held.last_ns > longest && left > 2;
}

// Of the `most` oldest steps, those that are analysed at a time: as many as are worth it and their tables,
// some 150 bytes a record, fit into half a gigabyte. None that others tell by vectors.
size_t CommTrace::together(size_t most) const {
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
    const size_t n = condenser_ ? 0 : together(oldest);
    if (n > 0)
      close_plain(n);
    else
      close_told();
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

// Steps of which there are records and nothing else.
void CommTrace::close_plain(size_t n) {
  std::vector<std::map<int64_t, Held>::node_type> held;
  for (size_t i = 0; i < n; ++i) held.push_back(held_.extract(held_.begin()));
  while (work_.size() < n) work_.push_back(std::make_unique<Step>());
  parallel_.run(n, [&](size_t i) { build(held[i].key(), held[i].mapped().records, *work_[i]); });
  for (size_t i = 0; i < n; ++i) {
    held_records_ -= held[i].mapped().records.size();
    closed_to_ = held[i].key();
    duplicates_ += work_[i]->duplicates;
    find_mismatches(cluster_, *work_[i], mismatches_);
    left_out_.take(cluster_, *work_[i]);
    measure_gaps(cluster_, *work_[i]);
  }
  held.clear();
  parallel_.run(n, [this](size_t i) {
    align_clocks(cluster_, *work_[i]);
    compare_roles(cluster_, *work_[i]);
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

// The oldest step, that is told by vectors: to others, or by others.
void CommTrace::close_told() {
  auto node = held_.extract(held_.begin());
  const int64_t number = node.key();
  Held held = std::move(node.mapped());
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
    // These ranks are compared with those that others tell.
    Condenser own;
    own.add(cluster_, step);
    const HostVectors told = own.take();
    for (const RankVector& v : told.vectors) add_sides(v, told.streams[v.streams], held);
  }
  analyse(number, std::move(held));
}

void CommTrace::analyse(int64_t number, Held held) {
  Step step = vector_step(cluster_, number, std::move(held.ranks), held.sides);
  duplicates_ += step.duplicates;
  compare_roles(cluster_, step);
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
  constexpr size_t kOfStep = 8;  // what a step takes besides its ranks, counted in ranks
  rank_steps_ += result.ranks.size() + kOfStep;
  for (NetEffect& effect : result.network) effect.channels = {};
  steps_.push_back(std::move(result));
  while (rank_steps_ > kRankSteps && steps_.size() > 1) {
    rank_steps_ -= steps_.front().ranks.size() + kOfStep;
    steps_.pop_front();
    ++forgotten_;
  }
}

// ---- vectors

// Its streams by slots of the cluster.
void CommTrace::add_sides(const RankVector& v, const RankStreams& streams, Held& held) {
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
  for (uint32_t i = 0; i < v.told; ++i) {
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

void CommTrace::take_vector(uint32_t host, const RankVector& vector, const RankStreams& streams) {
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
  Held& held = (back ? again_ : held_)[vector.step];
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

void CommTrace::take_standing(uint32_t host, const CommRecord& record) {
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
  if (!open_.take(record)) ++beyond_;
}

void CommTrace::take_vectors(const std::string& host, const HostVectors& told,
                             const std::vector<RankStreams>& streams) {
  const uint32_t from = host.empty() ? kNone : cluster_.host_index(host);
  for (const CommRecord& record : told.standing) take_standing(from, record);
  for (const RankVector& v : told.vectors)
    if (v.streams < streams.size()) take_vector(from, v, streams[v.streams]);
  for (const StepRecords& answer : told.answers) take_answer(from, answer, streams);
  close_ready();
}

// ---- records that were asked for

std::vector<StepsWanted> CommTrace::ask(const std::vector<Culprit>& culprits) {
  return live_ ? asked_.choose(cluster_, steps_, culprits, last_ns_) : std::vector<StepsWanted>();
}

void CommTrace::take_answer(uint32_t host, const StepRecords& told, const std::vector<RankStreams>& streams) {
  Asked::OfHost out;
  out.host = host;
  out.step = told.step;
  for (const RankRecords& rank : told.ranks) {
    OwnRecords own;
    if (rank.streams >= streams.size() || !unpack(rank, streams[rank.streams], told.step, own)) {
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
  asked_.take(std::move(out), last_ns_);
}

void CommTrace::look_at_answers() {
  for (const int64_t number : asked_.complete(last_ns_)) {
    // The last of that number: the job may have gone back.
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

// As if nobody else had been in it. What ranks did before it is told beside.
bool CommTrace::look_at_records(const Asked::Answer& answer, Step& step) {
  cluster_.settle();
  std::vector<const CommRecord*> records;
  std::map<uint32_t, int64_t> first;  // by rank: its first entry
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
  compare_roles(cluster_, step);
  Network::measure(cluster_, step);
  of_asked_.learn(step);
  Network::compare(step);
  const std::vector<double> on_path = walk_path(cluster_, step);
  Network::explain(cluster_, on_path, step);
  replay_costs(cluster_, step);
  return true;
}

// Hosts tell in blocks of a minute: of a group of which somebody is still unknown the block is to come.
bool CommTrace::all_known() {
  if (all_known_) return true;
  cluster_.settle();
  all_known_ = std::all_of(cluster_.comms().begin(), cluster_.comms().end(), [this](const CommInfo& comm) {
    const bool members = std::all_of(comm.members.begin(), comm.members.end(),
                                     [this](uint32_t r) { return r < latest_.size() && latest_[r] >= 0; });
    return members && comm.members.size() >= comm.told_size;
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
  unnumbered_.for_each([&](const CommRecord& r) { records.push_back(r); });
  unnumbered_ = {};
  unplaced_steps_ += find_steps(records, step_count_);
  for (const CommRecord& record : records) {
    if (record.step == kCommUnknown)
      --held_records_;
    else
      hold(cluster_.find_rank(record.rank), record);
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
  cluster_.settle();  // with ranks of steps that go on
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

std::vector<std::string> CommTrace::told_drops() const {
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
  uint64_t present = 0, told = cluster_.ranks().size();
  for (const RankInfo& r : cluster_.ranks()) {
    if (r.rank >= here.size()) here.resize(r.rank + 1, false);
    here[r.rank] = !r.slots.empty();
    present += here[r.rank];
  }
  for (const CommInfo& c : cluster_.comms()) told = std::max<uint64_t>(told, c.told_size);
  if (present == 0 || told <= present) return std::nullopt;
  std::string out = fmt::format("communication records of {} of {} that communicators speak of",
                                told - present, counted(told, "rank"));
  // Ranks of a job are numbered from 0; where those that are here are not, nobody knows who is missing.
  if (here.size() > told) return out;
  here.resize(told, false);
  constexpr size_t kShown = 8;
  size_t shown = 0;
  for (size_t from = 0; from < here.size(); ++from) {
    if (here[from]) continue;
    size_t to = from;
    while (to + 1 < here.size() && !here[to + 1]) ++to;
    if (shown++ == kShown) return out + " and others";
    out += fmt::format("{} {}", shown == 1 ? (told - present > 1 ? ": ranks" : ": rank") : ",", from);
    if (to > from) out += fmt::format(" to {}", to);
    from = to;
  }
  return out;
}

}  // namespace culprit::comm
