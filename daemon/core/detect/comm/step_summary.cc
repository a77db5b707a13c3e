#include "core/detect/comm/step_summary.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/limits.h"
#include "core/detect/comm/robust.h"

namespace culprit::comm {
namespace {

constexpr float kUnknownMs = std::numeric_limits<float>::quiet_NaN();
// Minimum wire size of a summary and of a stream: the number of bytes present limits their count.
constexpr size_t kVectorBytes = 14, kStreamBytes = 14;
// Minimum wire size of an operation in packed records.
constexpr size_t kOpBytes = 5;

// Times are coded in microseconds as ten bits and a power of two, ascending. The precision is 0.1 % beyond 1
// ms, the maximum two weeks. 0: unknown.
constexpr uint64_t kHalf = 512, kLongestUs = uint64_t{1} << 40;

uint32_t code_of(float ms) {
  if (std::isnan(ms)) return 0;
  const auto us = static_cast<uint64_t>(
      std::clamp(std::llround(1000.0 * double{ms}), 0ll, static_cast<long long>(kLongestUs)));
  const int beyond = static_cast<int>(std::bit_width(us)) - static_cast<int>(std::bit_width(kHalf));
  const int power = std::max(0, beyond);
  const uint64_t rounded = power == 0 ? us : (us + (uint64_t{1} << (power - 1))) >> power;
  return static_cast<uint32_t>(static_cast<uint64_t>(power) * kHalf + rounded + 1);
}
const uint32_t kCodeMax = code_of(static_cast<float>(kLongestUs) / 1000);

float ms_of(uint32_t code) {
  if (code == 0) return kUnknownMs;
  const uint64_t value = code - 1, power = value < 2 * kHalf ? 0 : value / kHalf - 1;
  return static_cast<float>(std::ldexp(static_cast<double>(value - power * kHalf), static_cast<int>(power)) /
                            1000);
}

// A rank's previous summary in the block; the next one is coded as differences from it.
struct Before {
  int64_t step = 0, begin_ms = 0;
  uint32_t span = 0;
  std::array<uint32_t, kPhases> self{};
  uint32_t reported = 0;
  std::array<uint32_t, kStreamsReported> stream{}, count{}, ms{};
};

void put_code(PackedWriter& out, float ms, uint32_t& before) {
  const uint32_t code = code_of(ms);
  out.signed_number(int64_t{code} - before);
  before = code;
}

float get_code(PackedReader& in, uint32_t& before) {
  const int64_t code = before + std::clamp<int64_t>(in.signed_number(), -int64_t{kCodeMax}, kCodeMax);
  if (code < 0 || code > kCodeMax) return in.fail(), kUnknownMs;
  before = static_cast<uint32_t>(code);
  return ms_of(before);
}

// Expected begin of the step after the previous one.
int64_t next_begin_ms(const Before& b) {
  return b.begin_ms + (b.span == 0 ? 0 : static_cast<int64_t>(ms_of(b.span)));
}

constexpr uint8_t kSameStreams = 0x80;

void pack(const RankVector& v, Before& b, PackedWriter& out) {
  out.signed_number(v.step - b.step - 1);
  b.step = v.step;
  const int64_t begin_ms = v.begin_ns / 1'000'000;
  out.signed_number(begin_ms - next_begin_ms(b));
  b.begin_ms = begin_ms;
  put_code(out, v.span_ms, b.span);
  for (size_t i = 0; i < kPhases; ++i) put_code(out, v.self_ms[i], b.self[i]);
  bool same = v.reported == b.reported && v.reported > 0;
  for (uint32_t i = 0; i < v.reported; ++i)
    same = same && v.sums[i].stream == b.stream[i] && v.sums[i].count == b.count[i];
  out.byte(static_cast<uint8_t>(v.reported | (same ? kSameStreams : 0)));
  for (uint32_t i = 0; i < v.reported; ++i) {
    if (!same) {
      out.byte(static_cast<uint8_t>(v.sums[i].stream));
      out.number(v.sums[i].count);
      if (b.stream[i] != v.sums[i].stream) b.ms[i] = 0;
      b.stream[i] = v.sums[i].stream;
      b.count[i] = v.sums[i].count;
    }
    put_code(out, v.sums[i].ms, b.ms[i]);
  }
  b.reported = v.reported;
}

bool unpack(PackedReader& in, Before& b, RankVector& v) {
  const int64_t steps = std::clamp<int64_t>(in.signed_number(), -int64_t{kCommUnknown}, kCommUnknown);
  b.step += steps + 1;
  constexpr int64_t kLastMs = limits::kCommTimeMax / 1'000'000;
  b.begin_ms = next_begin_ms(b) + std::clamp<int64_t>(in.signed_number(), -kLastMs, kLastMs);
  if (b.step < 0 || b.step >= kCommUnknown || b.begin_ms < 0 || b.begin_ms > kLastMs) return false;
  v.step = b.step;
  v.begin_ns = 1'000'000 * b.begin_ms;
  v.span_ms = get_code(in, b.span);
  for (size_t i = 0; i < kPhases; ++i) v.self_ms[i] = get_code(in, b.self[i]);
  const uint8_t reported = in.byte();
  v.reported = reported & ~kSameStreams;
  const bool same = (reported & kSameStreams) != 0;
  if (v.reported > kStreamsReported || (same && v.reported != b.reported) || std::isnan(v.span_ms))
    return false;
  for (uint32_t i = 0; i < v.reported; ++i) {
    if (!same) {
      const uint32_t stream = in.byte();
      b.count[i] = static_cast<uint32_t>(in.number(UINT32_MAX));
      if (b.stream[i] != stream) b.ms[i] = 0;
      b.stream[i] = stream;
    }
    v.sums[i] = {b.stream[i], b.count[i], get_code(in, b.ms[i])};
  }
  b.reported = v.reported;
  return in.ok();
}

void pack(const RankStreams& streams, PackedWriter& out) {
  out.number(streams.rank);
  out.number(uint64_t{streams.device} + 1);
  out.number(streams.streams.size());
  for (const Stream& s : streams.streams) {
    out.put_word(s.comm);
    out.number(s.comm_size);
    out.number(uint64_t{s.peer} + 1);
    out.byte(static_cast<uint8_t>(s.op));
    out.byte(static_cast<uint8_t>(s.group));
    out.byte(s.size_class);
  }
}

RankStreams unpack_streams(PackedReader& in) {
  RankStreams out;
  out.rank = static_cast<uint32_t>(in.number(limits::kCommRanks - 1));
  out.device = static_cast<uint32_t>(in.number(uint64_t{1} << 32) - 1);
  const uint64_t count = in.number(std::min(kStreams, in.left() / kStreamBytes));
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    Stream s;
    s.comm = in.get_word();
    s.comm_size = static_cast<uint32_t>(in.number(UINT32_MAX));
    s.peer = static_cast<uint32_t>(in.number(uint64_t{1} << 32) - 1);
    const uint8_t op = in.byte(), group = in.byte();
    s.size_class = in.byte();
    if (op == 0 || op >= kCommOps || group >= kCommGroups) in.fail();
    s.op = static_cast<CommOp>(op);
    s.group = static_cast<CommGroup>(group);
    if (is_p2p(s.op) ? s.peer >= limits::kCommRanks || s.peer == out.rank : s.peer != kCommUnknown) in.fail();
    out.streams.push_back(s);
  }
  return out;
}

}  // namespace

uint8_t size_class(uint64_t bytes) {
  return bytes == 0 ? 0
                    : static_cast<uint8_t>(std::min(255.0, 4 * std::log2(static_cast<double>(bytes)) + 1));
}

uint64_t bytes_of_class(uint8_t size_class) {
  // Slightly above the class's lower bound, so that rounding preserves the class.
  return size_class == 0 ? 0 : static_cast<uint64_t>(std::ceil(std::exp2((size_class - 0.99) / 4)));
}

void pack(const HostVectors& reported, PackedWriter& out) {
  out.number(reported.streams.size());
  for (const RankStreams& streams : reported.streams) pack(streams, out);
  out.number(reported.vectors.size());
  std::unordered_map<uint32_t, Before> before;
  int64_t next = 0;
  for (const RankVector& v : reported.vectors) {
    out.signed_number(v.streams - next);
    next = int64_t{v.streams} + 1;
    pack(v, before[v.streams], out);
  }
  out.number(reported.open_records.size());
  for (const CommRecord& r : reported.open_records)
    out.raw({reinterpret_cast<const char*>(&r), kCommRecordBytes});
  out.number(reported.answers.size());
  for (const StepRecords& answer : reported.answers) {
    out.number(static_cast<uint64_t>(answer.step));
    out.number(answer.ranks.size());
    for (const RankRecords& rank : answer.ranks) {
      out.number(rank.streams);
      out.text(rank.packed);
    }
  }
}

namespace {

void unpack_answers(PackedReader& in, size_t known, HostVectors& out) {
  const uint64_t answers = in.number(kAnswers);
  size_t reported = out.vectors.size();
  for (uint64_t i = 0; i < answers && in.ok(); ++i) {
    StepRecords& answer = out.answers.emplace_back();
    answer.step = static_cast<int64_t>(in.number(kCommUnknown - 1));
    const uint64_t ranks = in.number(kRanksReported - reported);
    reported += ranks;
    for (uint64_t k = 0; k < ranks && in.ok(); ++k) {
      RankRecords& rank = answer.ranks.emplace_back();
      rank.streams = static_cast<uint32_t>(in.number(UINT32_MAX));
      rank.packed = in.text(kAnswerBytes);
      if (rank.streams >= known) in.fail();
    }
  }
}

}  // namespace

bool unpack(PackedReader& in, size_t known, HostVectors& out) {
  const uint64_t streams = in.number(std::min(kStreamsOfHost, in.left() / 3));
  for (uint64_t i = 0; i < streams && in.ok(); ++i) out.streams.push_back(unpack_streams(in));
  known += out.streams.size();
  const uint64_t vectors = in.number(std::min(kRanksReported, in.left() / kVectorBytes));
  out.vectors.reserve(vectors);
  std::unordered_map<uint32_t, Before> before;
  int64_t next = 0;
  for (uint64_t i = 0; i < vectors && in.ok(); ++i) {
    RankVector v;
    const int64_t number =
        next + std::clamp<int64_t>(in.signed_number(), -int64_t{UINT32_MAX}, int64_t{UINT32_MAX});
    if (number < 0 || static_cast<uint64_t>(number) >= known) return in.fail(), false;
    v.streams = static_cast<uint32_t>(number);
    next = number + 1;
    if (!unpack(in, before[v.streams], v)) return in.fail(), false;
    out.vectors.push_back(v);
  }
  const uint64_t open_records = in.number(in.left() / kCommRecordBytes);
  for (uint64_t i = 0; i < open_records && in.ok(); ++i) {
    CommRecord& r = out.open_records.emplace_back();
    const std::string_view bytes = in.raw(kCommRecordBytes);
    if (!bytes.empty()) std::memcpy(static_cast<void*>(&r), bytes.data(), kCommRecordBytes);
  }
  unpack_answers(in, known, out);
  return in.ok();
}

bool unpack(const RankRecords& packed, const RankStreams& streams, int64_t step, OwnRecords& out) {
  struct Last {
    uint64_t seq = 0, bytes = 0;
  };
  std::vector<Last> last(streams.streams.size());
  PackedReader in(packed.packed);
  const uint64_t count = in.number(in.left() / kOpBytes);
  out.before_ns = static_cast<int64_t>(in.number(limits::kCommTimeMax)) - 1;
  uint64_t start = 0;
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint8_t stream = in.byte();
    if (stream >= streams.streams.size()) return false;
    const Stream& s = streams.streams[stream];
    Last& l = last[stream];
    CommRecord r;
    r.seq = l.seq += static_cast<uint64_t>(in.signed_number());
    r.bytes = l.bytes += static_cast<uint64_t>(in.signed_number());
    r.start_ns = start += static_cast<uint64_t>(in.signed_number());
    const uint64_t took = in.number();
    r.end_ns = took == 0 ? 0 : start + took - 1;
    ++l.seq;
    r.comm = s.comm;
    r.rank = streams.rank;
    r.step = static_cast<uint32_t>(step);
    r.peer = s.peer;
    r.comm_size = s.comm_size;
    r.op = s.op;
    r.group = s.group;
    r.device = streams.device;
    out.records.push_back(r);
  }
  return in.ok() && in.done();
}

// ---- host side

uint32_t StepSummarizer::stream_of(RankTable& known, const Cluster& cluster, const Slot& slot, const Op& op) {
  Stream s;
  s.comm = slot.comm;
  if (slot.peer != kNone) s.peer = slot.peer;
  s.op = op.op;
  std::vector<Stream>& list = known.streams.streams;
  for (uint32_t i = 0; i < list.size(); ++i)
    if (list[i].same_as(s)) return i;
  if (list.size() >= kStreams) return kNone;
  const CommInfo& comm = cluster.comms()[cluster.channels()[slot.channel].comm];
  s.comm_size = comm.reported_size;
  s.group = comm.group;
  s.size_class = size_class(op.bytes);
  list.push_back(s);
  known.changed = true;
  return static_cast<uint32_t>(list.size() - 1);
}

void StepSummarizer::add_streams(const Cluster& cluster, const Step& step, uint32_t i, RankVector& out) {
  const RankInfo& info = cluster.ranks()[step.ranks[i]];
  RankTable& known = ranks_[step.ranks[i]];
  std::vector<StreamSum> sums;
  for (uint32_t k = step.begin[i]; k < step.begin[i + 1]; ++k) {
    const Op& op = step.ops[k];
    const uint32_t stream = stream_of(known, cluster, info.slots[op.slot], op);
    if (stream == kNone || !op.finished) continue;
    if (stream >= sums.size()) sums.resize(stream + 1);
    sums[stream].stream = stream;
    ++sums[stream].count;
    sums[stream].ms += static_cast<float>(1e-6 * static_cast<double>(op.end - op.start));
  }
  std::erase_if(sums, [](const StreamSum& s) { return s.count == 0; });
  std::stable_sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
  if (sums.size() > kStreamsReported) sums.resize(kStreamsReported);
  std::sort(sums.begin(), sums.end(), [](const auto& a, const auto& b) { return a.stream < b.stream; });
  out.reported = static_cast<uint32_t>(sums.size());
  std::copy_n(sums.begin(), out.reported, out.sums.begin());
}

// False if the session's limit of stream tables is reached: the receiver would reject more.
bool StepSummarizer::add_rank(const Cluster& cluster, const Step& step, uint32_t i) {
  const RankInfo& info = cluster.ranks()[step.ranks[i]];
  const uint32_t from = step.begin[i], to = step.begin[i + 1];
  RankVector out;
  out.step = step.number;
  out.begin_ns = step.ops[from].start;
  out.span_ms = step.result.ranks[i].span;
  std::vector<uint32_t> last(info.slots.size(), kNone);  // by slot: its latest operation
  for (uint32_t k = from; k < to; ++k) {
    const Op& op = step.ops[k];
    const size_t phase = (k - from) * kPhases / (to - from);
    out.self_ms[phase] += op.gap_ms;
    uint32_t& before = last[op.slot];
    if (before != kNone && op.seq > step.ops[before].seq + 1) {
      // Records between the two operations were lost. The longest gap since then includes their time, so its
      // phase is unknown.
      uint32_t longest = k;
      for (uint32_t g = before + 1; g < k; ++g)
        if (step.ops[g].gap_ms > step.ops[longest].gap_ms) longest = g;
      out.self_ms[(longest - from) * kPhases / (to - from)] = kUnknownMs;
    }
    before = k;
  }
  add_streams(cluster, step, i, out);
  RankTable& known = ranks_[step.ranks[i]];
  if (known.changed && next_ >= kStreamsOfHost) {
    ++dropped_;
    return false;
  }
  if (known.changed) {
    known.streams.rank = info.rank;
    known.streams.device = info.device;
    known.number = next_++;
    known.changed = false;
    reported_.streams.push_back(known.streams);
  }
  out.streams = known.number;
  reported_.vectors.push_back(out);
  return true;
}

// Writes the format that unpack() reads.
std::string StepSummarizer::pack_rank(const Cluster& cluster, const Step& step, uint32_t i) {
  struct Last {
    uint64_t seq = 0, bytes = 0;
  };
  std::array<Last, kStreams> last{};
  const RankInfo& info = cluster.ranks()[step.ranks[i]];
  PackedWriter ops;
  uint64_t count = 0;
  int64_t start = 0;
  for (uint32_t k = step.begin[i]; k < step.begin[i + 1]; ++k) {
    const Op& op = step.ops[k];
    const uint32_t stream = stream_of(ranks_[step.ranks[i]], cluster, info.slots[op.slot], op);
    if (stream == kNone) continue;
    Last& l = last[stream];
    ops.byte(static_cast<uint8_t>(stream));
    ops.signed_number(static_cast<int64_t>(op.seq - l.seq));
    ops.signed_number(static_cast<int64_t>(op.bytes - l.bytes));
    ops.signed_number(op.start - start);
    ops.number(op.finished ? static_cast<uint64_t>(op.end - op.start) + 1 : 0);
    l = {op.seq + 1, op.bytes};
    start = op.start;
    ++count;
  }
  PackedWriter out;
  out.number(count);
  const float before = step.ops[step.begin[i]].gap_ms;
  out.number(std::isnan(before) ? 0 : static_cast<uint64_t>(1e6 * double{before}) + 1);
  out.raw(ops.bytes());
  return out.finish();
}

void StepSummarizer::keep(RetainedStep step) {
  retained_bytes_ += step.bytes;
  retained_.push_back(std::move(step));
  while (retained_bytes_ > kRetainedBytes) {
    retained_bytes_ -= retained_.front().bytes;
    retained_.pop_front();
  }
}

void StepSummarizer::add(const Cluster& cluster, const Step& step) {
  ranks_.resize(cluster.ranks().size());
  RetainedStep retained;
  retained.number = step.number;
  retained.bytes = sizeof retained;
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    if (!add_rank(cluster, step, i)) continue;
    retained.ranks.emplace_back(step.ranks[i], pack_rank(cluster, step, i));
    retained.bytes += sizeof retained.ranks.back() + retained.ranks.back().second.size();
  }
  keep(std::move(retained));
}

void StepSummarizer::answer(const std::vector<int64_t>& steps) {
  for (const int64_t number : steps) {
    const bool asked = std::any_of(reported_.answers.begin(), reported_.answers.end(),
                                   [number](const StepRecords& a) { return a.step == number; });
    if (asked || number < 0 || number >= kCommUnknown || reported_.answers.size() >= kAnswers) continue;
    StepRecords out;
    out.step = number;
    // Backward: the job may have restarted, and the last step with this number counts.
    const auto retained = std::find_if(retained_.rbegin(), retained_.rend(),
                                       [number](const RetainedStep& step) { return step.number == number; });
    for (size_t i = 0; retained != retained_.rend() && i < retained->ranks.size(); ++i) {
      const auto& [rank, packed] = retained->ranks[i];
      if (answer_bytes_ + packed.size() > kAnswerBytes) break;
      answer_bytes_ += packed.size();
      out.ranks.push_back({ranks_[rank].number, packed});
    }
    reported_.answers.push_back(std::move(out));
  }
}

HostVectors StepSummarizer::drain() {
  answer_bytes_ = 0;
  return std::exchange(reported_, {});
}

// ---- collector side

namespace {

class VectorBuilder {
 public:
  VectorBuilder(Cluster& cluster, Step& step, const std::vector<VectorSide>& sides)
      : cluster_(cluster), step_(step), sides_(sides), instances_(sides.size() / 4) {}

  void add(const RankSides& rank) {
    const auto owner = static_cast<uint32_t>(step_.ranks.size());
    step_.ranks.push_back(rank.rank);
    step_.begin.push_back(static_cast<uint32_t>(step_.ops.size()));
    add_phases(rank, owner);
    for (uint32_t k = rank.first; k < rank.first + rank.count; ++k) {
      const VectorSide& side = sides_[k];
      Op op;
      op.finished = !std::isnan(side.ms);
      if (op.finished) op.start = -static_cast<int64_t>(1e6 * static_cast<double>(side.ms));
      op.bytes = bytes_of_class(side.size_class);
      op.slot = side.slot;
      op.op = side.op;
      op.gap_ms = kUnknownMs;
      add_op(op, owner, side.count);
    }
    RankStep result;
    result.rank = rank.rank;
    result.span = rank.span_ms;
    for (const float ms : rank.self_ms)
      if (!std::isnan(ms)) result.self += ms;
    step_.result.ranks.push_back(result);
    step_.result.last_ns =
        std::max(step_.result.last_ns, rank.begin_ns + static_cast<int64_t>(1e6 * double{rank.span_ms}));
  }

  void match() {
    step_.begin.push_back(static_cast<uint32_t>(step_.ops.size()));
    std::vector<uint32_t> most(step_.instances.size(), 0);
    uint32_t first = 0;
    for (Instance& instance : step_.instances) {
      instance.first = first;
      first += std::exchange(instance.count, 0);
    }
    step_.sides.resize(first);
    for (uint32_t k = 0; k < step_.ops.size(); ++k) {
      Instance& instance = step_.instances[step_.ops[k].instance];
      step_.sides[instance.first + instance.count++] = k;
      most[step_.ops[k].instance] = std::max(most[step_.ops[k].instance], counts_[k]);
    }
    for (uint32_t k = 0; k < step_.ops.size(); ++k) {
      // After a lost record, the sum covers fewer operations, so it is scaled up.
      Op& op = step_.ops[k];
      const uint32_t all = most[op.instance];
      if (counts_[k] > 0 && counts_[k] < all)
        op.start = static_cast<int64_t>(static_cast<double>(op.start) * all / counts_[k]);
    }
    for (Instance& instance : step_.instances) check(instance);
  }

 private:
  // The stream with the smallest kind: the same for all ranks of one role.
  uint32_t marker_slot(const RankSides& rank) const {
    const RankInfo& info = cluster_.ranks()[rank.rank];
    uint32_t best = kNone;
    uint64_t least = 0;
    for (uint32_t k = rank.first; k < rank.first + rank.count; ++k) {
      const Slot& slot = info.slots[sides_[k].slot];
      const uint64_t way = slot.peer == kNone ? 0 : slot.peer > info.rank ? 1 : 2;
      const uint64_t kind = mix64(cluster_.comms()[cluster_.channels()[slot.channel].comm].shape, way);
      if (best == kNone || kind < least) best = sides_[k].slot, least = kind;
    }
    return best;
  }

  // Adds each phase as a place whose times are accumulated self time, not clock time.
  void add_phases(const RankSides& rank, uint32_t owner) {
    const uint32_t slot = marker_slot(rank);
    double at = 0;
    for (uint32_t p = 0; p < kPhases; ++p) {
      Op op;
      op.gap_ms = rank.self_ms[p];
      if (!std::isnan(op.gap_ms)) at += double{op.gap_ms};
      op.start = op.end = static_cast<int64_t>(1e6 * at);
      op.seq = p;
      op.slot = slot;
      op.instance = static_cast<uint32_t>(step_.instances.size());
      Instance& alone = step_.instances.emplace_back();
      alone.channel = cluster_.ranks()[rank.rank].slots[slot].channel;
      alone.local = local(alone.channel);
      alone.count = 1;
      push(op, owner, 0);
    }
  }

  void add_op(Op op, uint32_t owner, uint32_t count) {
    const uint32_t channel = cluster_.ranks()[step_.ranks[owner]].slots[op.slot].channel;
    const CommOp kind = op.op == CommOp::kRecv ? CommOp::kSend : op.op;
    const auto [at, fresh] = instances_.try_emplace(mix64(channel, static_cast<uint64_t>(kind)),
                                                    static_cast<uint32_t>(step_.instances.size()));
    if (fresh) {
      Instance& instance = step_.instances.emplace_back();
      instance.channel = channel;
      instance.local = local(channel);
      instance.op = kind;
    }
    op.instance = *at;
    ++step_.instances[*at].count;
    push(op, owner, count);
  }

  // Index of a channel in the step. Summaries have no sequence numbers, so its base is 0.
  uint32_t local(uint32_t channel) {
    uint32_t& at = step_.channel_at[channel];
    if (at == kNone) {
      at = static_cast<uint32_t>(step_.channels.size());
      step_.channels.push_back(channel);
      step_.base.push_back(0);
    }
    return at;
  }

  void push(const Op& op, uint32_t owner, uint32_t count) {
    step_.ops.push_back(op);
    step_.owner.push_back(owner);
    counts_.push_back(count);
  }

  void check(Instance& instance) const {
    if (instance.op == CommOp::kJoin) return;  // a phase
    for (uint32_t k = 0; k < instance.count; ++k) {
      const Op& op = step_.ops[step_.sides[instance.first + k]];
      instance.bytes = std::max(instance.bytes, op.bytes);
      instance.least_ns = std::min(instance.least_ns, op.end - op.start);
    }
    const Channel& channel = cluster_.channels()[instance.channel];
    const size_t expected = channel.sender != kNone ? 2 : cluster_.comms()[channel.comm].members.size();
    instance.complete = instance.count == expected && instance.count > 1;
    for (uint32_t k = 0; k < instance.count && instance.complete; ++k)
      instance.complete = step_.ops[step_.sides[instance.first + k]].finished;
  }

  Cluster& cluster_;
  Step& step_;
  const std::vector<VectorSide>& sides_;
  std::vector<uint32_t> counts_;  // by operation: number of summed operations
  FlatMap<uint32_t> instances_;
};

}  // namespace

void vector_step(Cluster& cluster, std::vector<RankSides> ranks, const std::vector<VectorSide>& sides,
                 Step& step) {
  cluster.settle();
  std::stable_sort(ranks.begin(), ranks.end(), [&](const RankSides& a, const RankSides& b) {
    return cluster.ranks()[a.rank].rank < cluster.ranks()[b.rank].rank;
  });
  VectorBuilder builder(cluster, step, sides);
  for (size_t i = 0; i < ranks.size(); ++i) {
    const bool twice = i > 0 && ranks[i].rank == ranks[i - 1].rank;
    step.duplicates += twice;
    if (!twice && ranks[i].count > 0) builder.add(ranks[i]);
  }
  builder.match();
  step.clock_ns.assign(step.ranks.size(), 0);
  std::vector<float> spans;
  for (const RankStep& r : step.result.ranks) spans.push_back(r.span);
  step.result.step_ms = double{spans.empty() ? 0 : quantile(spans, 0.9)};
}

std::vector<double> estimate_path(const Cluster& cluster, Step& step) {
  // Time that each rank waited for others: operation time beyond the transfer.
  std::vector<double> wait(step.ranks.size(), 0);
  std::vector<double> on_path(step.channels.size(), 0);
  FlatMap<uint32_t> slowest;  // by kind of group: Instance::local of its slowest channel
  for (const Instance& instance : step.instances) {
    if (instance.transfer_ms < 0 || !instance.complete) continue;
    for (uint32_t k = 0; k < instance.count; ++k) {
      const uint32_t side = step.sides[instance.first + k];
      const Op& op = step.ops[side];
      wait[step.owner[side]] += 1e-6 * static_cast<double>(op.end - op.start) - instance.transfer_ms;
    }
    const Channel& channel = cluster.channels()[instance.channel];
    on_path[instance.local] += instance.slower_ms;
    // Groups of one kind work in parallel, so the step waits only for the slowest.
    const auto [at, fresh] = slowest.try_emplace(
        mix64(cluster.comms()[channel.comm].shape, channel.sender == kNone), instance.local);
    if (!fresh && *at != instance.local) {
      const bool slower = on_path[instance.local] > on_path[*at];
      on_path[slower ? *at : instance.local] = 0;
      if (slower) *at = instance.local;
    }
  }
  for (const double ms : on_path) step.result.network_path_ms += ms;
  // A rank's path time: its excess minus its additional waiting, relative to the least waiting rank of its
  // role.
  std::vector<double> least;
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    const uint32_t role = step.result.ranks[i].role;
    if (role >= least.size()) least.resize(role + 1, std::numeric_limits<double>::max());
    least[role] = std::min(least[role], wait[i]);
  }
  // Delays of several ranks of one role overlap, so the step waits only for the longest.
  std::vector<double> most(least.size(), 0), sum(least.size(), 0);
  for (uint32_t i = 0; i < step.ranks.size(); ++i) {
    RankStep& r = step.result.ranks[i];
    r.path = static_cast<float>(std::max(0.0, double{r.excess} - (wait[i] - least[r.role])));
    most[r.role] = std::max(most[r.role], double{r.path});
    sum[r.role] += double{r.path};
  }
  for (RankStep& r : step.result.ranks)
    if (sum[r.role] > 0) r.path *= static_cast<float>(most[r.role] / sum[r.role]);
  return on_path;
}

}  // namespace culprit::comm
