#include "core/wire/flight.h"

#include <algorithm>

#include "base/limits.h"
#include "core/wire/packed_time.h"

namespace culprit::wire {
namespace {

constexpr size_t kWordBytes = 2048;       // a file name of 1,024 bytes, a function name and a line number
constexpr size_t kPackedBytes = 1 << 20;  // limit of one dump: the eight dumps of a host fit a block of 8 MiB
constexpr size_t kWords = 1 << 18, kStacks = 1 << 13;

constexpr uint8_t kHasHost = 1, kGuessed = 2;        // flags of a dump
constexpr uint8_t kP2p = 4, kDone = 8, kDated = 16;  // flags of an operation, next to the state

void put_counter(PackedWriter& out, const std::optional<int64_t>& value) {
  out.byte(value.has_value());
  if (value) out.signed_number(*value);
}
std::optional<int64_t> get_counter(PackedReader& in) {
  return in.byte() ? std::optional(in.signed_number()) : std::nullopt;
}

// Encodes runs as (first rank minus the previous run's last one, step, length).
void put_ranks(PackedWriter& out, const RankList& ranks) {
  out.number(ranks.runs().size());
  uint32_t before = 0;
  for (const RankList::Run& run : ranks.runs()) {
    out.number(run.first - before);
    out.number(run.step);
    out.number(run.count);
    before = run.first + (run.count - 1) * run.step;
  }
}

// Keeps ranks as runs: expanded to a list, a few bytes could become a million numbers.
RankList get_ranks(PackedReader& in, size_t& room) {
  RankList out;
  uint64_t last = 0;
  const uint64_t runs = in.number(limits::kCommRanks);
  for (uint64_t r = 0; r < runs && in.ok(); ++r) {
    const uint64_t first = last + in.number(limits::kCommRanks);
    const uint64_t step = in.number(limits::kCommRanks), length = in.number(limits::kCommRanks);
    if (length == 0 || length > room || (step == 0 && length > 1) || (r > 0 && first == last) ||
        first + step * (length - 1) >= limits::kCommRanks)
      return in.fail(), RankList();
    room -= length;
    last = first + step * (length - 1);
    out.add({static_cast<uint32_t>(first), static_cast<uint32_t>(step), static_cast<uint32_t>(length)});
  }
  return out;
}

void put_op(PackedWriter& out, const FlightOp& op, TimeNs before) {
  const bool dated = op.created_ns >= 0 && op.created_ns <= limits::kCommTimeMax;
  out.byte(static_cast<uint8_t>(static_cast<uint8_t>(op.state) | (op.p2p ? kP2p : 0) | (op.done ? kDone : 0) |
                                (dated ? kDated : 0)));
  for (const uint32_t at : {op.group, op.name, op.in_sizes, op.out_sizes, op.dtypes, op.stack})
    out.number(at);
  out.signed_number(op.seq);
  if (dated) out.signed_number(op.created_ns - before);
}

uint32_t index(PackedReader& in, size_t size) {
  if (size == 0) return in.fail(), 0;
  return static_cast<uint32_t>(in.number(size - 1));
}

FlightOp get_op(PackedReader& in, const FlightDump& dump, TimeNs before) {
  FlightOp op;
  const uint8_t bits = in.byte();
  if ((bits & 3) > static_cast<uint8_t>(FlightState::kCompleted)) in.fail();
  op.state = static_cast<FlightState>(bits & 3);
  op.p2p = (bits & kP2p) != 0;
  op.done = (bits & kDone) != 0;
  op.group = index(in, dump.groups.size());
  for (uint32_t* at : {&op.name, &op.in_sizes, &op.out_sizes, &op.dtypes}) *at = index(in, dump.words.size());
  op.stack = index(in, dump.stacks.size());
  op.seq = in.signed_number();
  if (!(bits & kDated)) return op;
  op.created_ns =
      static_cast<TimeNs>(static_cast<uint64_t>(before) + static_cast<uint64_t>(in.signed_number()));
  if (op.created_ns < 0 || op.created_ns > limits::kCommTimeMax) in.fail();
  return op;
}

}  // namespace

std::optional<std::string> pack_flight(const FlightDump& dump) {
  PackedWriter out;
  out.number(dump.rank);
  out.byte(static_cast<uint8_t>((dump.host ? kHasHost : 0) | (dump.host_guessed ? kGuessed : 0)));
  if (dump.host) out.text(std::string_view(*dump.host).substr(0, limits::kNameBytes));
  out.text(std::string_view(dump.file).substr(0, limits::kPathBytes));
  out.text(std::string_view(dump.version).substr(0, limits::kNameBytes));
  put_time(out, dump.written_ns);
  out.number(dump.words.size());
  for (const std::string& word : dump.words) out.text(std::string_view(word).substr(0, kWordBytes));
  out.number(dump.stacks.size());
  for (const std::vector<uint32_t>& stack : dump.stacks) {
    out.number(stack.size());
    for (const uint32_t frame : stack) out.number(frame);
  }
  out.number(dump.groups.size());
  size_t ranks = 0;
  for (const FlightGroup& group : dump.groups) {
    out.text(std::string_view(group.name).substr(0, limits::kNameBytes));
    out.text(std::string_view(group.description).substr(0, limits::kNameBytes));
    put_ranks(out, group.ranks);
    ranks += group.ranks.size();
    put_counter(out, group.enqueued);
    put_counter(out, group.completed);
    if (out.size() > kPackedBytes || ranks > limits::kFlightRanks) return std::nullopt;
  }
  out.number(dump.ops.size());
  TimeNs before = 0;
  for (const FlightOp& op : dump.ops) {
    put_op(out, op, before);
    if (op.created_ns <= limits::kCommTimeMax) before = std::max(before, op.created_ns);
  }
  return out.size() > kPackedBytes ? std::nullopt : std::optional(out.finish());
}

FlightDump unpack_flight(PackedReader& in, size_t& room) {
  FlightDump dump;
  dump.rank = static_cast<uint32_t>(in.number(limits::kCommRanks - 1));
  const uint8_t bits = in.byte();
  if (bits & kHasHost) dump.host = std::string(in.text(limits::kNameBytes));
  dump.host_guessed = (bits & kGuessed) != 0;
  dump.file = in.text(limits::kPathBytes);
  dump.version = in.text(limits::kNameBytes);
  dump.written_ns = get_time(in);
  const uint64_t words = in.number(kWords);
  for (uint64_t i = 0; i < words && in.ok(); ++i) dump.words.emplace_back(in.text(kWordBytes));
  const uint64_t stacks = in.number(kStacks);
  for (uint64_t i = 0; i < stacks && in.ok(); ++i) {
    std::vector<uint32_t>& stack = dump.stacks.emplace_back();
    const uint64_t frames = in.number(limits::kDumpFrames);
    for (uint64_t f = 0; f < frames && in.ok(); ++f) stack.push_back(index(in, dump.words.size()));
  }
  const uint64_t groups = in.number(limits::kDumpGroups);
  for (uint64_t g = 0; g < groups && in.ok(); ++g) {
    FlightGroup& group = dump.groups.emplace_back();
    group.name = in.text(limits::kNameBytes);
    group.description = in.text(limits::kNameBytes);
    group.ranks = get_ranks(in, room);
    group.enqueued = get_counter(in);
    group.completed = get_counter(in);
  }
  const uint64_t ops = in.number(limits::kFlightOpsSent);
  TimeNs before = 0;
  for (uint64_t i = 0; i < ops && in.ok(); ++i) {
    dump.ops.push_back(get_op(in, dump, before));
    before = std::max(before, dump.ops.back().created_ns);
  }
  return in.ok() ? dump : FlightDump{};
}

}  // namespace culprit::wire
