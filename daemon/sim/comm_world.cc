#include "sim/comm_world.h"

#include <bit>

namespace culprit::sim {
namespace {

// Sends below this size are buffered: NCCL's simple protocol moves slices of 512 KiB, its low-latency
// protocol some KiB.
constexpr uint64_t kEagerBytes = 64 << 10;
constexpr uint64_t kLaunchNs = 8'000, kExitNs = 1'500;
// Fitted: host-caused gaps below 10 ms spread by about a factor of e.
constexpr int64_t kHostSpread = 60'000;

enum Tag : uint64_t { kLottery = 1, kSample, kHot, kGc, kGcLength, kGcPlace };

bool of_stream(CommGroup kind) { return kind == CommGroup::kDp || kind == CommGroup::kEdp; }

int64_t factor(const std::vector<int64_t>& of, size_t i) { return of.empty() ? kUnit : of[i]; }

uint64_t log2_of(uint64_t n) { return static_cast<uint64_t>(std::bit_width(n - 1)); }

}  // namespace

CommWorld::CommWorld(const CommSite& site, bool keep_records)
    : site_(site), keep_(keep_records), ranks_(site.world), channels_(2 * size_t{site.world}) {
  for (uint8_t kind = 0; kind < kCommGroups; ++kind) groups_[kind].resize(site.groups[kind].count());
  for (uint32_t rank = 0; rank < site.world; ++rank)
    lottery_.push_back(lognormal_unit(mix64(mix64(site.seed, kLottery), rank), site.lottery));
  sample_.resize(size_t{site.dp} * site.micro_batches);
}

std::span<const CommRecord> CommWorld::records(uint32_t rank) const {
  return {records_.data() + first_record_[rank], ranks_[rank].records};
}

void CommWorld::prepare(const CommPhase& phase, const CommEffects& effects) {
  phase_ = phase;
  effects_ = &effects;
  const uint64_t step_key = mix64(site_.seed, uint64_t{phase.step} << 8 | phase.part);
  for (size_t i = 0; i < sample_.size(); ++i)
    sample_[i] = lognormal_unit(mix64(mix64(step_key, kSample), i), site_.sequence);
  first_record_.clear();
  size_t total = 0;
  for (uint32_t r = 0; r < site_.world; ++r) {
    const CommProgram& program = phase.programs[site_.stage_of(r)];
    Rank& rank = ranks_[r];
    first_record_.push_back(total);
    total += program.records;
    rank.next = rank.done = rank.taken = rank.awaiting = rank.records = 0;
    rank.issues.clear();
    rank.pause_ns = 0;
    const uint64_t key = mix64(step_key, mix64(kGc, r));
    if (phase.part != 0 || site_.gc_every == 0 || key % site_.gc_every != 0) continue;
    rank.pause_ns = scaled(site_.gc_ns, lognormal_unit(mix64(key, kGcLength), kUnit / 3));
    rank.pause_at = static_cast<uint32_t>(mix64(key, kGcPlace) % program.actions.size());
  }
  if (phase.part == 0) {
    for (const CommEffects::Pause& pause : effects.pauses) {
      const CommProgram& program = phase.programs[site_.stage_of(pause.rank)];
      ranks_[pause.rank].pause_ns = pause.ns;
      ranks_[pause.rank].pause_at = static_cast<uint32_t>(pause.place % program.actions.size());
    }
    for (const CommEffects::Stop& stop : effects.stops) {
      ranks_[stop.rank].stop_at = stop.action;
      ranks_[stop.rank].stop_device = stop.device;
    }
  }
  if (keep_) records_.assign(total, CommRecord{});
}

uint64_t CommWorld::run(const CommPhase& phase, const CommEffects& effects) {
  prepare(phase, effects);
  for (uint32_t rank = site_.world; rank-- > 0;) ready_.push_back(rank);
  while (!ready_.empty()) {
    const uint32_t rank = ready_.back();
    ready_.pop_back();
    advance(rank);
  }
  uint64_t last = 0;
  for (uint32_t r = 0; r < site_.world; ++r) {
    last = std::max(last, ranks_[r].at);
    stuck_ |= ranks_[r].next < phase.programs[site_.stage_of(r)].actions.size() || ranks_[r].busy;
  }
  for (auto& kind : groups_)
    for (Group& group : kind) group.root_end = 0;
  for (Channel& channel : channels_) {
    if (channel.head != channel.sends.size()) continue;
    channel.sends.clear();
    channel.head = 0;
  }
  return last;
}

void CommWorld::advance(uint32_t r) {
  Rank& rank = ranks_[r];
  const auto& actions = phase_.programs[site_.stage_of(r)].actions;
  while (rank.next < actions.size()) {
    const uint32_t index = rank.next;
    if (rank.pause_ns != 0 && index == rank.pause_at) {
      rank.at += rank.pause_ns;
      rank.pause_ns = 0;
    }
    if (phase_.part == 0 && index == rank.stop_at && !rank.stop_device) return;
    ++rank.next;
    if (!act(r, index)) return;
  }
}

// False: the rank waits, and the event that ends this wait makes the rank ready.
bool CommWorld::act(uint32_t r, uint32_t index) {
  Rank& rank = ranks_[r];
  const CommAct& one = phase_.programs[site_.stage_of(r)].actions[index];
  switch (one.act) {
    case Act::kCompute:
    case Act::kExpert:
    case Act::kHost:
      rank.at += compute_ns(r, index);
      return true;
    case Act::kEnter:
      enter(r, index, rank.at);
      return false;
    case Act::kIssue:
      rank.issues.push_back({rank.at, index});
      start_stream(r);
      return true;
    case Act::kAwait:
      if (rank.done < one.count) {
        rank.awaiting = one.count;
        return false;
      }
      rank.at = std::max(rank.at, rank.stream);
      return true;
    case Act::kTransfer:
    case Act::kPost:
      return transfer(r, one);
    case Act::kBroadcast:
      return broadcast(r, one);
  }
  return true;
}

uint64_t CommWorld::compute_ns(uint32_t r, uint32_t index) const {
  const CommAct& one = phase_.programs[site_.stage_of(r)].actions[index];
  const uint64_t step_key = mix64(site_.seed, uint64_t{phase_.step} << 8 | phase_.part);
  const uint64_t key = mix64(mix64(step_key, r), index);
  const uint64_t launch = scaled(kLaunchNs, exponential_unit(mix64(key, 1)));
  if (one.act == Act::kHost)
    return launch + scaled(scaled(one.amount, lognormal_unit(key, kHostSpread)), factor(effects_->host, r));
  uint64_t ns = scaled(scaled(one.amount, lottery_[r]), lognormal_unit(key, site_.noise));
  ns = scaled(ns, sample_[size_t{site_.sample_of(r)} * site_.micro_batches + one.micro_batch]);
  if (one.act == Act::kExpert) {
    // The preferred experts change per batch; a small part of the preference is constant.
    ns = scaled(ns, lognormal_unit(mix64(key, kHot), site_.expert));
    if (site_.cp * site_.dp > site_.ep)
      ns = scaled(ns, lognormal_unit(mix64(mix64(site_.seed, kHot), site_.expert_of(r)), site_.expert / 8));
  }
  if (site_.stage != 0 && site_.pp > 1 && site_.stage_of(r) + 1 == site_.pp) ns = scaled(ns, site_.stage);
  const uint64_t tail = mix64(key, 2);
  if (tail % 100'000 < site_.tail_per_100k) ns += scaled(ns / 5, exponential_unit(mix64(key, 3)));
  if (phase_.step == 0 && site_.warm_up != kUnit)
    ns = scaled(scaled(ns, site_.warm_up), lognormal_unit(mix64(key, 4), kUnit / 8));
  return launch + scaled(ns, factor(effects_->compute, r));
}

uint32_t CommWorld::record(uint32_t r, const CommAct& one, uint64_t at_ns) {
  Rank& rank = ranks_[r];
  const uint32_t index = rank.records++;
  if (CommRecord* out = at(r, index)) {
    const uint32_t number = site_.of(one.group).of_rank[r];
    out->start_ns = at_ns;
    out->comm = site_.id(one.group, number);
    out->bytes = one.amount;
    out->rank = r;
    out->step = phase_.step;
    out->comm_size = site_.of(one.group).size(number);
    out->op = one.op;
    out->group = one.group;
  }
  return index;
}

void CommWorld::enter(uint32_t r, uint32_t index, uint64_t at_ns) {
  Rank& rank = ranks_[r];
  const CommAct& one = phase_.programs[site_.stage_of(r)].actions[index];
  const uint32_t number = site_.of(one.group).of_rank[r];
  const uint32_t made = record(r, one, at_ns);
  const auto kind = static_cast<size_t>(one.group);
  if (CommRecord* out = at(r, made)) out->seq = rank.seq[kind];
  ++rank.seq[kind];
  rank.pending[of_stream(one.group)] = made;
  if (phase_.part == 0 && rank.stop_device && rank.stop_at == index) rank.next = 0xfffffffe;
  Group& group = groups_[kind][number];
  group.latest = std::max(group.latest, at_ns);
  if (++group.arrived == site_.of(one.group).size(number)) complete(one.group, number, one);
}

void CommWorld::complete(CommGroup kind, uint32_t number, const CommAct& one) {
  const CommGroups& all = site_.of(kind);
  Group& group = groups_[static_cast<size_t>(kind)][number];
  const uint32_t first = all.members[all.first[number]];
  const uint64_t key =
      mix64(mix64(site_.seed, ranks_[first].seq[static_cast<size_t>(kind)]), site_.id(kind, number));
  const uint64_t end_ns = group.latest + collective_ns(one, number, key);
  group.arrived = 0;
  group.latest = 0;
  for (uint32_t i = all.first[number]; i < all.first[number + 1]; ++i)
    leave(all.members[i], end_ns + mix64(key, i) % kExitNs, of_stream(kind));
}

void CommWorld::leave(uint32_t r, uint64_t end_ns, bool stream) {
  Rank& rank = ranks_[r];
  if (!stream && rank.next == 0xfffffffe) {  // the device hangs in this operation
    rank.next = rank.stop_at;
    rank.stop_device = false;
    return;
  }
  end(r, rank.pending[stream], end_ns);
  if (!stream) {
    rank.at = end_ns;
    ready_.push_back(r);
    return;
  }
  rank.stream = end_ns;
  rank.busy = false;
  ++rank.done;
  if (rank.awaiting != 0 && rank.done >= rank.awaiting) {
    rank.awaiting = 0;
    rank.at = std::max(rank.at, end_ns);
    ready_.push_back(r);
  }
  start_stream(r);
}

void CommWorld::start_stream(uint32_t r) {
  Rank& rank = ranks_[r];
  if (rank.busy || rank.taken == rank.issues.size()) return;
  const Issue issue = rank.issues[rank.taken++];
  rank.busy = true;
  enter(r, issue.action, std::max(issue.at, rank.stream));
}

bool CommWorld::broadcast(uint32_t r, const CommAct& one) {
  Rank& rank = ranks_[r];
  const CommGroups& all = site_.of(one.group);
  const uint32_t number = all.of_rank[r], root = all.members[all.first[number]];
  Group& group = groups_[static_cast<size_t>(one.group)][number];
  const uint32_t made = record(r, one, rank.at);
  if (CommRecord* out = at(r, made)) out->seq = rank.seq[static_cast<size_t>(one.group)];
  ++rank.seq[static_cast<size_t>(one.group)];
  rank.pending[0] = made;
  if (r != root && group.root_end == 0) {
    group.waiting.push_back(r);
    return false;
  }
  if (r == root) {
    group.root_end = rank.at + collective_ns(one, number, 0);
    for (const uint32_t other : group.waiting)
      leave(other, std::max(group.root_end, ranks_[other].at + site_.hop_ns), false);
    group.waiting.clear();
  }
  rank.at = r == root ? group.root_end : std::max(group.root_end, rank.at + site_.hop_ns);
  end(r, made, rank.at);
  return true;
}

bool CommWorld::transfer(uint32_t r, const CommAct& one) {
  Rank& rank = ranks_[r];
  const bool eager = one.amount < kEagerBytes, waits = one.act == Act::kTransfer;
  if (waits) {
    rank.parts = static_cast<uint32_t>(std::popcount(one.parts)) + 1;  // one for this loop itself
    rank.until = rank.at;
    rank.first_of_batch = rank.records;
  }
  for (uint32_t bit = 0; bit < 4; ++bit) {
    if ((one.parts >> bit & 1) == 0) continue;
    const bool send = bit == 0 || bit == 2;
    const uint32_t peer = bit == 0 || bit == 3 ? site_.next(r) : site_.previous(r);
    CommAct named = one;
    named.op = send ? CommOp::kSend : CommOp::kRecv;
    const uint32_t made = record(r, named, rank.at);
    if (CommRecord* out = at(r, made)) {
      out->peer = peer;
      out->seq = rank.parts_seq[bit];
    }
    ++rank.parts_seq[bit];
    const uint32_t channel = send ? 2 * r + (bit == 2) : 2 * peer + (bit == 3);
    Channel& c = channels_[channel];
    if (send) {
      c.sends.push_back({rank.at, made, waits && !eager});
      if (eager) end(r, made, rank.at + site_.hop_ns);
      if (eager && waits) part_done(r, rank.at + site_.hop_ns);
    } else {
      c.recv_at = rank.at;
      c.recv_record = made;
      c.waiting = true;
    }
    if (c.waiting && c.head < c.sends.size()) match(channel);
  }
  if (!waits) return true;
  part_done(r, rank.at);
  return false;
}

void CommWorld::match(uint32_t channel) {
  Channel& c = channels_[channel];
  const uint32_t sender = channel / 2;
  const uint32_t receiver = channel % 2 == 0 ? site_.next(sender) : site_.previous(sender);
  const Send send = c.sends[c.head++];
  const uint64_t end_ns = std::max(send.at, c.recv_at) + transfer_ns(channel);
  c.waiting = false;
  const CommRecord* sent = at(sender, send.record);
  if (sent != nullptr && sent->end_ns == 0) end(sender, send.record, end_ns);
  end(receiver, c.recv_record, end_ns);
  if (send.waits) part_done(sender, end_ns);
  part_done(receiver, end_ns);
}

// Operations that started together may be one fused kernel with the same times.
void CommWorld::part_done(uint32_t r, uint64_t end_ns) {
  Rank& rank = ranks_[r];
  rank.until = std::max(rank.until, end_ns);
  if (--rank.parts != 0) return;
  if (site_.fused)
    for (uint32_t i = rank.first_of_batch; i < rank.records; ++i)
      if (const CommRecord* one = at(r, i); one != nullptr && is_p2p(one->op)) end(r, i, rank.until);
  rank.at = rank.until;
  ready_.push_back(r);
}

// Ring: each rank sends (n - 1) / n of the bytes, twice (reduce and distribute). Small operations use a
// tree.
uint64_t CommWorld::collective_ns(const CommAct& one, uint32_t number, uint64_t key) const {
  const CommGroups& all = site_.of(one.group);
  const uint64_t n = all.size(number), times = one.op == CommOp::kAllReduce ? 2 : 1;
  const uint64_t bytes = n < 2 ? 0 : one.amount * times / n * (n - 1);
  uint64_t ns = (bytes * all.ns_per_mib[number]) >> 20;
  ns = scaled(ns, factor(effects_->group[static_cast<size_t>(one.group)], number));
  ns += site_.hop_ns * times * (1 + log2_of(n)) * (all.spans[number] ? 3 : 1);
  return scaled(ns, lognormal_unit(key, kUnit / 32));
}

uint64_t CommWorld::transfer_ns(uint32_t channel) const {
  const uint32_t sender = channel / 2;
  const uint32_t receiver = channel % 2 == 0 ? site_.next(sender) : site_.previous(sender);
  const bool near = site_.host_of(sender) == site_.host_of(receiver);
  const uint64_t bytes = site_.token_bytes / (site_.sequence_parallel ? site_.tp : 1);
  const uint64_t per_mib = near ? site_.nvlink_ns_per_mib : site_.nic_ns_per_mib;
  return site_.hop_ns + scaled((bytes * per_mib) >> 20, factor(effects_->channel, channel));
}

}  // namespace culprit::sim
