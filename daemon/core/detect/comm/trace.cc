#include "core/detect/comm/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"

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

void CommTrace::add_records(std::span<const HostRecords> blocks) {
  // Live jobs need records one by one, because ranks may return to earlier steps, and steps close.
  std::vector<SortedBlock> sorted(blocks.size());
  if (!live_ && !condenser_ && open_.empty()) sorted = sort(blocks);
  for (size_t i = 0; i < blocks.size(); ++i) {
    // Records of this block may end operations that an earlier block began.
    if (!sorted[i].sorted || !open_.empty())
      add_records(*blocks[i].host, blocks[i].records);
    else
      keep(std::move(sorted[i]));
  }
}

std::vector<SortedBlock> CommTrace::sort(std::span<const HostRecords> blocks) {
  std::unordered_map<std::string_view, uint32_t> index;
  std::vector<std::vector<uint32_t>> hosts;  // in order of appearance: blocks
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].host->empty()) continue;
    const auto [at, fresh] = index.try_emplace(*blocks[i].host, static_cast<uint32_t>(hosts.size()));
    if (fresh) hosts.emplace_back();
    hosts[at->second].push_back(i);
  }
  std::vector<SortedBlock> out(blocks.size());
  // Neighbouring hosts go to one thread, because their ranks share cache lines.
  const size_t parts = std::min(hosts.size(), 4 * finished_.width());
  finished_.parallel().run(parts, [&](size_t part) {
    for (size_t h = part * hosts.size() / parts; h < (part + 1) * hosts.size() / parts; ++h)
      sort_blocks(blocks, hosts[h], cluster_, open_, out);
  });
  return out;
}

void CommTrace::keep(SortedBlock block) {
  taken_ += block.records;
  first_ns_ = std::min(first_ns_, block.first_ns);
  last_ns_ = std::max(last_ns_, block.last_ns);
  for (SortedBlock::Run& run : block.runs) {
    if (run.step <= closed_to_)
      late_ += run.records.size();
    else
      held_.add(run.step, std::move(run.records));
  }
  if (full()) close_ready();
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
  cluster_.note(rank, slot, record.seq, record.end_ns != 0);
  if (!open_.add(record)) ++beyond_;
  if (record.step != kCommUnknown) return buffer(record.step, {rank, slot, record});
  unnumbered_.add(record);
  // Number the steps early enough for timely results, with enough records to find repetition.
  if (live_ && unnumbered_.size() >= kRecordsHeldLive / 4) number_steps();
}

// Holds a record until its step is over.
void CommTrace::buffer(int64_t step, const SortedRecord& record) {
  if (step <= closed_to_) {
    if (!goes_back(record.rank, step, record.start)) {
      ++late_;
      return;
    }
    again_.add(step, record);
    return note_back(record.rank, step, record.start);
  }
  held_.add(step, record);
  if (live_) note_progress(record.rank, step, record.start);
}

void CommTrace::note_progress(uint32_t rank, int64_t step, int64_t begin_ns) {
  if (progress_.advance(rank, step, begin_ns)) drop_again();
}

// ---- restart of the job

void CommTrace::note_back(uint32_t rank, int64_t step, int64_t begin_ns) {
  progress_.note_back(rank, step, begin_ns);
  // Over the limit, the input is dropped; the rank remains marked as returned.
  if (again_.records() > kRecordsHeldLive || again_.vectors() > kVectorsHeld || again_.size() > kStepsHeld)
    drop_again();
  if (progress_.restarted()) start_again();
}

void CommTrace::drop_again() {
  late_ += again_.records() + again_.vectors();
  again_.clear();
}

// Judges the steps that all ranks left. Drops interrupted steps, because their remainder is unknown.
void CommTrace::start_again() {
  started_ns_ = progress_.restarted_ns();
  size_t left = 0;
  for (auto at = held_.steps().begin(); at != held_.steps().end(); ++at, ++left)
    if (progress_.ranks_in(at->first, at->first + 1) > 0) break;
  close(left);
  cut_off_ += held_.records() + held_.vectors();
  held_ = std::exchange(again_, {});
  closed_to_ = -1;
  for (RankInfo& info : cluster_.ranks()) {
    info.last_end = 0;
    info.last_step = -1;
    // A communicator may restart its numbers at 0.
    for (Slot& slot : info.slots) slot.entered = slot.left = 0;
  }
  open_.forget_before(started_ns_);
  finished_.restart();
  for (const int64_t step : progress_.restart()) (void)held_.step(step);  // its input may have been dropped
  for (const auto& [number, held] : held_.steps())
    held.records.for_each(
        [this](const SortedRecord& r) { cluster_.note(r.rank, r.slot, r.seq, r.end != 0); });
}

// ---- finished steps

// Number of oldest steps to close. For a live job: steps that all ranks passed. Over the memory limit: enough
// steps to get below it; for files, below half of it, because many steps are analysed in parallel.
size_t CommTrace::ready() {
  // A rank two steps ahead has sent this step, except for records in transit.
  constexpr int64_t kBehind = 2;
  const size_t part = live_ ? 1 : 2;
  const bool many = full();
  const auto& steps = held_.steps();
  size_t n = 0, records = held_records(), vectors = held_.vectors();
  for (auto oldest = steps.begin(); oldest != steps.end(); ++oldest, ++n) {
    const PendingStep& held = oldest->second;
    const size_t left = steps.size() - n;
    const auto passed = [&] {
      return progress_.ranks_in(oldest->first, oldest->first + kBehind) == 0 &&
             (held.ranks.empty() || progress_.is_complete(cluster_));
    };
    const bool over = live_ && left > 1 && (passed() || held_.is_overdue(held, left));
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

void CommTrace::close(size_t oldest) {
  if (oldest == 0) return;
  while (oldest > 0) {
    cluster_.settle();
    const size_t n = condenser_ ? 0 : held_.closable_together(oldest, finished_.width());
    if (n > 0)
      close_plain(n);
    else
      close_reported();
    oldest -= std::max<size_t>(1, n);
  }
  if (live_ || held_.size() == 0) finished_.release_tables();
}

// Closes steps that have only records.
void CommTrace::close_plain(size_t n) {
  std::vector<PendingSteps::Steps::node_type> steps;
  for (size_t i = 0; i < n; ++i) steps.push_back(held_.extract_oldest());
  closed_to_ = steps.back().key();
  finished_.add_records(std::move(steps), cluster_);
}

// Closes the oldest step, which has summaries or becomes a summary for a collector.
void CommTrace::close_reported() {
  auto node = held_.extract_oldest();
  const int64_t number = closed_to_ = node.key();
  PendingStep held = std::move(node.mapped());
  if (held.records.size() > 0) {
    const Step& step = finished_.build(number, held.records, cluster_);
    held.records = {};
    if (condenser_) return condenser_->add(cluster_, step);
    // Ranks with records are compared with ranks that sent summaries, so records become summaries too.
    StepSummarizer own;
    own.add(cluster_, step);
    const HostVectors reported = own.drain();
    for (const RankVector& v : reported.vectors)
      scattered_ += add_sides(v, reported.streams[v.streams], cluster_, held);
  }
  finished_.add_summaries(number, std::move(held), cluster_);
}

// ---- summaries

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
  scattered_ += (back ? again_ : held_).add(vector, streams, end, cluster_);
  if (back) return note_back(rank, vector.step, vector.begin_ns);
  note_progress(rank, vector.step, vector.begin_ns);
}

void CommTrace::add_open(uint32_t host, const CommRecord& record) {
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
  cluster_.note(rank, slot, record.seq, record.end_ns != 0);
  if (!open_.add(record)) ++beyond_;
}

void CommTrace::add_summaries(const std::string& host, const HostVectors& reported,
                              const std::vector<RankStreams>& streams) {
  const uint32_t from = host.empty() ? kNone : cluster_.host_index(host);
  for (const CommRecord& record : reported.open_records) add_open(from, record);
  for (const RankVector& v : reported.vectors)
    if (v.streams < streams.size()) add_summary(from, v, streams[v.streams]);
  for (const StepRecords& answer : reported.answers) add_answer(from, answer, streams);
  close_ready();
}

// ---- requested records

std::vector<StepsWanted> CommTrace::request_records(const std::vector<Culprit>& culprits) {
  if (!live_) return {};
  return finished_.request_records(cluster_, culprits, last_ns_);
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
  finished_.add_answer(std::move(out), last_ns_);
}

std::vector<CommRecord> CommTrace::open_records() const {
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
    if (record.step == kCommUnknown) continue;
    const uint32_t rank = cluster_.find_rank(record.rank);
    buffer(record.step, {rank, cluster_.slot_of(rank, record), record});
  }
}

void CommTrace::settle() {
  if (live_) {
    close_ready();
  } else {
    number_steps();
    close(held_.size());
  }
  finished_.correct_by_answers(cluster_, last_ns_);
  cluster_.settle();  // includes ranks of steps in progress
}

std::vector<Mismatch> CommTrace::mismatches(Stopped stopped) const {
  std::vector<Mismatch> out = finished_.mismatches();
  if (stopped != Stopped::kByClock && stopped != Stopped::kRanksEnded) return out;
  for (const auto& [number, held] : held_.steps()) {
    if (!held.ranks.empty()) continue;
    Step step;
    build_step(cluster_, number, held.records, step);
    find_mismatches(cluster_, step, out);
  }
  return out;
}

std::optional<Stuck> CommTrace::stuck(Stopped stopped) const {
  const bool may_end = stopped == Stopped::kNo || stopped == Stopped::kRanksEnded;
  return open_.empty() || may_end ? std::nullopt : open_.find(cluster_, stopped);
}

std::vector<std::string> CommTrace::drop_sentences() const {
  std::vector<std::string> out;
  const auto add = [&out](uint64_t n, std::string_view what) {
    if (n > 0) out.push_back(fmt::format("{} {}", counted(n, "record"), what));
  };
  for (const auto& [fault, n] : faulty_) add(n, fmt::format("of communication left out: {}", fault));
  add(finished_.duplicates(), "of communication came twice: counted once");
  add(late_, "of communication came when their step had been judged: left out");
  add(cut_off_, "of communication are of steps in which the job was cut off and started again: left out");
  add(unplaced_steps_, "of communication tell no step and repeat nothing that would: left out");
  add(scattered_, "of communication are of more communicators and peers than can be followed: left out");
  if (const auto ranks = missing()) out.push_back("not there: " + *ranks);
  add(beyond_, "of operations under way were more than can be remembered");
  if (const uint64_t n = finished_.forgotten(); n > 0)
    out.push_back(fmt::format("{} of communication are forgotten", counted(n, "step")));
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
