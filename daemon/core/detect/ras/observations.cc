#include "core/detect/ras/observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/limits.h"

namespace culprit::ras {
namespace {

// Common fields of the observations of one group of ranks.
struct GroupFacts {
  const RasCommState* comm;
  const std::string* function;
  uint64_t value = 0, most = 0;
};

class ObservationMaker {
 public:
  ObservationMaker(const RasState& state, const RasContext& context) : state_(state), context_(context) {}

  RasObservations run() {
    for (const RasCommState& comm : state_.comms) {
      if (comm.answers < 2) continue;
      for (const RasSpread& spread : comm.spreads) add_spread(comm, spread);
    }
    std::set<uint32_t> known;
    for (const RasExit& exited : state_.exited) {
      RasMember member;
      member.process = exited.process;
      member.device = exited.device;
      member.world = exited.world;
      if (known.insert(exited.process).second) add_exit(member, exited.dead, nullptr);
    }
    for (const RasCommState& comm : state_.comms)
      for (const RasMissing& missing : comm.missing)
        if ((missing.dead || missing.unresponsive) && known.insert(missing.member.process).second)
          add_exit(missing.member, missing.dead, &comm);
    return std::move(out_);
  }

 private:
  static hang::ObservedGroup group_of(const RasCommState& comm) {
    hang::ObservedGroup group;
    group.key = hex64(comm.hash);
    if (!comm.secondary.empty()) group.key += "/" + comm.secondary;
    group.members = comm.members;
    group.size = comm.size;
    return group;
  }

  Evidence evidence(std::string text) const {
    Evidence e;
    e.file = context_.file;
    e.offset = context_.offset;
    e.text = std::move(text);
    e.time_ns = state_.at_ns;
    e.uid = state_.user;
    return e;
  }

  // Fills in a member's place in an observation or exit.
  template <class Place>
  void place(const RasMember& member, Place& to) const {
    if (member.world != kRasUnknown) to.rank = member.world;
    if (to.rank && context_.place) to.host = context_.place(*to.rank).host;
    if (member.device < limits::kDevicesOfHost) to.device = member.device;
    if (member.process >= state_.processes.size()) return;
    const RasProcess& process = state_.processes[member.process];
    to.pid = process.pid;
    if (!to.host && context_.host) to.host = context_.host(process.host);
    if (!to.host) to.host = process.host;
  }

  void add_observation(const RasMember& member, bool in_comm, const GroupFacts& facts) {
    hang::Observation s;
    s.source = hang::ObservationSource::kRas;
    place(member, s);
    if (in_comm) s.group_rank = member.rank;
    s.group = group_of(*facts.comm);
    s.enqueued = static_cast<int64_t>(facts.value);
    s.counted = *facts.function;
    s.at_ns = state_.at_ns;
    if (facts.value == facts.most) {
      s.call = hang::ObservedCall{};
      s.call->op = *facts.function;
      s.call->seq = static_cast<int64_t>(facts.value);
      s.state = hang::ObservedState::kInCall;
      if (facts.comm->since_ns != kNoTime) s.waited_ns = state_.at_ns - facts.comm->since_ns;
    }
    s.evidence = evidence(fmt::format("NCCL RAS: launched {} up to #{} of {}",
                                      facts.function->empty() ? "operations" : *facts.function, facts.value,
                                      s.group.key));
    out_.observations.push_back(std::move(s));
  }

  void add_spread(const RasCommState& comm, const RasSpread& spread) {
    GroupFacts facts{&comm, &spread.function};
    std::set<uint32_t> listed;
    const RasGroup* rest = nullptr;
    bool whole = !comm.members.empty();
    for (const RasGroup& group : spread.groups) {
      facts.most = std::max(facts.most, group.value);
      if (group.listed.size() == group.ranks) continue;
      whole = whole && !rest && group.listed.empty();
      rest = &group;
    }
    for (const RasGroup& group : spread.groups)
      for (const RasMember& member : group.listed) {
        facts.value = group.value;
        add_observation(member, true, facts);
        listed.insert(member.world);
      }
    for (const RasMissing& missing : comm.missing) listed.insert(missing.member.world);
    if (!whole || !rest || listed.size() + rest->ranks != comm.members.size()) return;
    facts.value = rest->value;
    for (const uint32_t rank : comm.members.all()) {
      if (listed.contains(rank)) continue;
      RasMember member;
      member.world = rank;
      add_observation(member, false, facts);
    }
  }

  void add_exit(const RasMember& member, bool dead, const RasCommState* comm) {
    if (member.process == kRasUnknown && member.world == kRasUnknown) return;
    hang::RankExit d;
    d.source = hang::ObservationSource::kRas;
    d.kind = dead ? hang::ExitKind::kExited : hang::ExitKind::kUnresponsive;
    place(member, d);
    if (comm) d.group = group_of(*comm);
    const std::string answer = dead ? "unreachable for a minute or more" : "no answer";
    d.reason = dead ? answer : answer + " to NCCL RAS";
    d.at_ns = state_.at_ns;
    d.evidence = evidence("NCCL RAS: " + answer);
    out_.exits.push_back(std::move(d));
  }

  const RasState& state_;
  const RasContext& context_;
  RasObservations out_;
};

}  // namespace

RasObservations observations_of(const RasState& state, const RasContext& context) {
  return ObservationMaker(state, context).run();
}

}  // namespace culprit::ras
