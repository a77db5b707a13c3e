#include "core/detect/ras/follow.h"

#include <algorithm>

#include "base/limits.h"
#include "core/detect/ras/spread.h"

namespace culprit::ras {
namespace {

// Answers closer together count as one moment.
constexpr TimeNs kApartNs = 5 * kNsPerSecond;

uint64_t place_key(const RasMember& member) { return uint64_t{member.process} << 32 | member.device; }

// Global ranks of devices: the ranks in the largest communicator, if complete and if no communicator of equal
// size has different ranks.
class WorldRanks {
 public:
  explicit WorldRanks(const RasAnswer& answer) {
    for (const RasComm& comm : answer.comms) {
      if (comm.size != answer.largest || comm.size == 0) continue;
      if (comm.ranks.empty() ? answer.largest_comms > 1
                             : comm.ranks.size() + comm.missing.size() != comm.size)
        sound_ = false;
      for (const RasRank& rank : comm.ranks) add(rank.member);
      for (const RasMissing& missing : comm.missing) add(missing.member);
      for (const RasSpread& spread : comm.spreads)
        for (const RasGroup& group : spread.groups)
          for (const RasMember& member : group.listed) add(member);
    }
    if (!sound_) ranks_.clear();
  }
  uint32_t of(const RasMember& member) const {
    const auto known = ranks_.find(place_key(member));
    return known == ranks_.end() ? kRasUnknown : known->second;
  }
  // For a process with one device.
  uint32_t of_process(uint32_t process, uint32_t device) const {
    RasMember member;
    member.process = process;
    member.device = device;
    return of(member);
  }

 private:
  void add(const RasMember& member) {
    if (member.process == kRasUnknown) return;
    const auto [at, fresh] = ranks_.try_emplace(place_key(member), member.rank);
    if (!fresh && at->second != member.rank) sound_ = false;
  }

  std::unordered_map<uint64_t, uint32_t> ranks_;
  bool sound_ = true;
};

// Moves the processes of the named members into the state's own table, and sets the members' ranks.
class Naming {
 public:
  Naming(const RasAnswer& answer, const WorldRanks& world, RasState& state)
      : answer_(answer), world_(world), state_(state) {}

  void name(RasMember& member) {
    member.world = world_.of(member);
    member.process = process(member.process);
  }
  uint32_t process(uint32_t from) {
    if (from >= answer_.processes.size()) return kRasUnknown;
    const auto [at, fresh] = moved_.try_emplace(from, static_cast<uint32_t>(state_.processes.size()));
    if (fresh) state_.processes.push_back(answer_.processes[from]);
    return at->second;
  }
  void name(RasCommState& comm) {
    for (RasMissing& missing : comm.missing) name(missing.member);
    for (RasSpread& spread : comm.spreads) name(spread.groups);
    name(comm.phases);
  }

 private:
  void name(std::vector<RasGroup>& groups) {
    for (RasGroup& group : groups)
      for (RasMember& member : group.listed) name(member);
  }

  const RasAnswer& answer_;
  const WorldRanks& world_;
  RasState& state_;
  std::map<uint32_t, uint32_t> moved_;
};

// The members' global ranks; empty if one is unknown.
RankList members_of(const RasComm& comm, const WorldRanks& world) {
  std::vector<uint32_t> ranks;
  for (const RasRank& rank : comm.ranks) ranks.push_back(world.of(rank.member));
  for (const RasMissing& missing : comm.missing) ranks.push_back(world.of(missing.member));
  std::sort(ranks.begin(), ranks.end());
  const bool whole = ranks.size() == comm.size && !ranks.empty() && ranks.back() != kRasUnknown &&
                     std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
  if (!whole) return {};
  RankList out(ranks);
  return out.runs().size() <= limits::kRasRuns ? out : RankList();
}

// Largest communicators first: a state has limited room.
std::vector<RasCommState> faulty_comms(const RasAnswer& answer, const WorldRanks& world, uint64_t& dropped) {
  std::vector<RasCommState> out;
  for (const RasComm& comm : answer.comms) {
    RasCommState one = condense(comm, answer.functions);
    if (!shows_fault(one)) continue;
    one.members = members_of(comm, world);
    out.push_back(std::move(one));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const RasCommState& a, const RasCommState& b) { return a.size > b.size; });
  if (out.size() > limits::kRasCommsMax) {
    dropped += out.size() - limits::kRasCommsMax;
    out.resize(limits::kRasCommsMax);
  }
  return out;
}

}  // namespace

// The processes that launched operations since the last answer. The text format lacks this.
std::vector<bool> Follower::moved_processes(const RasAnswer& answer) {
  std::vector<uint64_t> launched(answer.processes.size());
  for (const RasComm& comm : answer.comms)
    for (const RasRank& rank : comm.ranks)
      if (rank.member.process < launched.size())
        for (const uint64_t count : rank.counts) launched[rank.member.process] += count;
  std::vector<bool> moved(launched.size());
  decltype(launched_) next;
  for (size_t i = 0; i < launched.size() && answer.json; ++i) {
    const auto key = std::pair(answer.processes[i].host, answer.processes[i].pid);
    const auto known = launched_.find(key);
    moved[i] = known != launched_.end() && known->second != launched[i];
    next.emplace(key, launched[i]);
  }
  launched_ = std::move(next);
  return moved;
}

// Counts one more answer with the same content.
Follower::Repeat Follower::repeated(const Repeat& known, TimeNs at) {
  Repeat out = known;
  if (known.last_ns != kNoTime && at != kNoTime && at - known.last_ns < kApartNs) return out;
  if (at == kNoTime) return out;
  ++out.answers;
  out.last_ns = at;
  return out;
}

void Follower::note_counts(const RasAnswer& answer, TimeNs at) {
  uint64_t all = answer.comms_seen;
  for (const RasComm& comm : answer.comms) all += digest_counts(comm);
  // The text format has no counts of healthy communicators, so only a persistent fault proves a standstill.
  const bool proves = answer.json || !answer.comms.empty();
  const bool same = answers_ > 0 && proves && all == all_;
  still_ = same ? repeated(still_, at) : Repeat{all, 1, at, at};
  all_ = all;
  ++answers_;
}

void Follower::follow_comms(const RasAnswer& answer, RasState& state) {
  const std::vector<bool> moved = moved_processes(answer);
  std::map<CommKey, Repeat> next;
  for (const RasComm& comm : answer.comms) {
    const CommKey key(comm.hash, comm.secondary);
    const uint64_t digest = digest_of(comm);
    const bool moves = std::any_of(comm.ranks.begin(), comm.ranks.end(), [&](const RasRank& rank) {
      return rank.member.process < moved.size() && moved[rank.member.process];
    });
    const auto known = comms_.find(key);
    const bool same = known != comms_.end() && known->second.digest == digest && !moves;
    next[key] = same ? repeated(known->second, state.at_ns) : Repeat{digest, 1, state.at_ns, state.at_ns};
  }
  for (RasCommState& comm : state.comms) {
    const Repeat& repeat = next[{comm.hash, comm.secondary}];
    comm.answers = repeat.answers;
    comm.since_ns = repeat.since_ns;
  }
  comms_ = std::move(next);
}

RasState Follower::add(const RasAnswer& answer, TimeNs at) {
  note_counts(answer, at);
  RasState state;
  state.version = answer.version;
  state.at_ns = at;
  state.json = answer.json;
  state.answers = answers_;
  state.still = still_.answers;
  state.still_since_ns = still_.since_ns;
  state.comms_seen = answer.comms_seen;
  state.ranks = answer.largest;
  state.exited_processes = answer.exited_processes;
  state.dead_processes = answer.dead_processes;
  state.dropped = answer.dropped;
  const WorldRanks world(answer);
  state.comms = faulty_comms(answer, world, state.dropped);
  follow_comms(answer, state);
  Naming naming(answer, world, state);
  for (RasCommState& comm : state.comms) naming.name(comm);
  for (const RasExit& exited : answer.exited) {
    if (state.exited.size() >= limits::kRasListed) break;
    RasExit& named = state.exited.emplace_back(exited);
    named.world = world.of_process(exited.process, exited.device);
    named.process = naming.process(exited.process);
  }
  return state;
}

}  // namespace culprit::ras
