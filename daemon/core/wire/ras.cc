#include "core/wire/ras.h"

#include <algorithm>

#include "base/limits.h"
#include "core/wire/packed_time.h"

namespace culprit::wire {
namespace {

constexpr uint64_t kRasMostGroups = 64, kRasMostProcesses = 65'536;
constexpr uint8_t kRasUnresponsive = 1, kRasDead = 2;
constexpr uint8_t kRasJson = 1;

// kRasUnknown is the largest number: sent as 0, it needs one byte.
void put_id(PackedWriter& out, uint32_t id) { out.number(id == kRasUnknown ? 0 : uint64_t{id} + 1); }
uint32_t get_id(PackedReader& in) {
  const uint64_t id = in.number(kRasUnknown);
  return id == 0 ? kRasUnknown : static_cast<uint32_t>(id - 1);
}
uint32_t get_count(PackedReader& in) { return static_cast<uint32_t>(in.number(UINT32_MAX)); }

void put(PackedWriter& out, const RasMember& member) {
  out.number(member.rank);
  put_id(out, member.process);
  put_id(out, member.device);
  put_id(out, member.world);
}
RasMember get_member(PackedReader& in, size_t processes) {
  RasMember m;
  m.rank = get_count(in);
  m.process = get_id(in);
  m.device = get_id(in);
  m.world = get_id(in);
  if (m.process != kRasUnknown && m.process >= processes) in.fail();
  return m;
}

void put(PackedWriter& out, const std::vector<RasGroup>& groups) {
  const size_t count = std::min<size_t>(groups.size(), kRasMostGroups);
  out.number(count);
  for (size_t i = 0; i < count; ++i) {
    out.number(groups[i].value);
    out.number(groups[i].ranks);
    out.number(groups[i].listed.size());
    for (const RasMember& member : groups[i].listed) put(out, member);
  }
}
std::vector<RasGroup> get_groups(PackedReader& in, size_t processes) {
  std::vector<RasGroup> out;
  const uint64_t count = in.number(kRasMostGroups);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    RasGroup& group = out.emplace_back();
    group.value = in.number();
    group.ranks = get_count(in);
    const uint64_t listed = in.number(limits::kRasListed);
    for (uint64_t m = 0; m < listed && in.ok(); ++m) group.listed.push_back(get_member(in, processes));
  }
  return out;
}

void put(PackedWriter& out, const RankList& ranks) {
  out.number(ranks.runs().size());
  for (const RankList::Run& run : ranks.runs()) {
    out.number(run.first);
    out.number(run.step);
    out.number(run.count);
  }
}
RankList get_ranks(PackedReader& in) {
  RankList out;
  uint64_t last = 0;
  const uint64_t runs = in.number(limits::kRasRuns);
  for (uint64_t r = 0; r < runs && in.ok(); ++r) {
    const uint64_t first = in.number(limits::kCommRanks), step = in.number(limits::kCommRanks);
    const uint64_t count = in.number(limits::kCommRanks);
    if (count == 0 || step == 0 || (r > 0 && first <= last) ||
        first + step * (count - 1) >= limits::kCommRanks)
      return in.fail(), RankList();
    last = first + step * (count - 1);
    out.add({static_cast<uint32_t>(first), static_cast<uint32_t>(step), static_cast<uint32_t>(count)});
  }
  return out;
}

void put(PackedWriter& out, const RasCommState& comm) {
  out.put_word(comm.hash);
  out.text(comm.secondary);
  for (const uint32_t n : {comm.size, comm.reporting, comm.missing_ranks, comm.errors, comm.answers})
    out.number(n);
  wire::put_time(out, comm.since_ns);
  put(out, comm.members);
  out.number(comm.missing.size());
  for (const RasMissing& missing : comm.missing) {
    put(out, missing.member);
    out.byte(
        static_cast<uint8_t>((missing.unresponsive ? kRasUnresponsive : 0) | (missing.dead ? kRasDead : 0)));
  }
  out.number(comm.spreads.size());
  for (const RasSpread& spread : comm.spreads) {
    out.text(spread.function);
    put(out, spread.groups);
  }
  put(out, comm.phases);
}
RasCommState get_comm(PackedReader& in, size_t processes) {
  RasCommState comm;
  comm.hash = in.get_word();
  comm.secondary = in.text(limits::kNameBytes);
  for (uint32_t* n : {&comm.size, &comm.reporting, &comm.missing_ranks, &comm.errors, &comm.answers})
    *n = get_count(in);
  comm.since_ns = wire::get_time(in);
  comm.members = get_ranks(in);
  const uint64_t missing = in.number(limits::kRasListed);
  for (uint64_t i = 0; i < missing && in.ok(); ++i) {
    RasMissing& one = comm.missing.emplace_back();
    one.member = get_member(in, processes);
    const uint8_t flags = in.byte();
    one.unresponsive = (flags & kRasUnresponsive) != 0;
    one.dead = (flags & kRasDead) != 0;
  }
  const uint64_t spreads = in.number(kRasFunctions);
  for (uint64_t i = 0; i < spreads && in.ok(); ++i) {
    RasSpread& spread = comm.spreads.emplace_back();
    spread.function = in.text(limits::kNameBytes);
    spread.groups = get_groups(in, processes);
  }
  comm.phases = get_groups(in, processes);
  return comm;
}

void put_exits(PackedWriter& out, const RasState& state) {
  out.number(state.exited.size());
  for (const RasExit& exited : state.exited) {
    put_id(out, exited.process);
    put_id(out, exited.device);
    put_id(out, exited.world);
    out.byte(exited.dead);
  }
}
void get_exits(PackedReader& in, RasState& state) {
  const uint64_t count = in.number(limits::kRasListed);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    RasExit& exited = state.exited.emplace_back();
    exited.process = get_id(in);
    exited.device = get_id(in);
    exited.world = get_id(in);
    exited.dead = in.byte() != 0;
    if (exited.process != kRasUnknown && exited.process >= state.processes.size()) in.fail();
  }
}

}  // namespace

std::string pack_ras(const ras::RasInput& input) {
  const RasState& s = input.state;
  PackedWriter out;
  for (const std::string* text : {&s.host, &s.address, &s.version})
    out.text(std::string_view(*text).substr(0, limits::kNameBytes));
  wire::put_time(out, s.at_ns);
  wire::put_time(out, s.still_since_ns);
  out.byte(s.json ? kRasJson : 0);
  for (const uint32_t n : {s.answers, s.still, s.ranks, s.exited_processes, s.dead_processes}) out.number(n);
  out.number(s.comms_seen);
  out.number(s.dropped);
  out.number(s.user ? s.user->value + 1 : 0);
  out.number(s.processes.size());
  for (const RasProcess& process : s.processes) {
    out.text(process.host);
    out.number(process.pid);
  }
  out.number(s.comms.size());
  for (const RasCommState& comm : s.comms) put(out, comm);
  put_exits(out, s);
  out.text(std::string_view(input.file).substr(0, limits::kPathBytes));
  out.number(input.offset ? *input.offset + 1 : 0);
  return out.finish();
}

ras::RasInput unpack_ras(PackedReader& in) {
  ras::RasInput input;
  RasState& s = input.state;
  for (std::string* text : {&s.host, &s.address, &s.version}) *text = in.text(limits::kNameBytes);
  s.at_ns = wire::get_time(in);
  s.still_since_ns = wire::get_time(in);
  s.json = (in.byte() & kRasJson) != 0;
  for (uint32_t* n : {&s.answers, &s.still, &s.ranks, &s.exited_processes, &s.dead_processes})
    *n = get_count(in);
  s.comms_seen = in.number();
  s.dropped = in.number();
  if (const uint64_t user = in.number(Principal::kEnd); user > 0) s.user = Principal::from(user - 1);
  const uint64_t processes = in.number(kRasMostProcesses);
  for (uint64_t i = 0; i < processes && in.ok(); ++i) {
    std::string host(in.text(limits::kNameBytes));
    s.processes.push_back({std::move(host), get_count(in)});
  }
  const uint64_t comms = in.number(limits::kRasCommsMax);
  for (uint64_t i = 0; i < comms && in.ok(); ++i) s.comms.push_back(get_comm(in, s.processes.size()));
  get_exits(in, s);
  input.file = in.text(limits::kPathBytes);
  if (const uint64_t offset = in.number(uint64_t{1} << 60); offset > 0) input.offset = offset - 1;
  return input;
}

}  // namespace culprit::wire
