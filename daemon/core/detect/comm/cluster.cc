#include "core/detect/comm/cluster.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace culprit::comm {
namespace {

// Slots of a rank that a linear search covers before the index is used.
constexpr uint32_t kScanned = 32;

uint64_t slot_key(uint32_t rank, uint64_t comm, uint32_t peer, bool sends) {
  return mix64(mix64(comm, uint64_t{rank} << 1 | static_cast<uint64_t>(sends)), peer);
}

}  // namespace

uint32_t Cluster::host_index(const std::string& name) {
  const auto [at, fresh] = host_by_name_.try_emplace(name, static_cast<uint32_t>(hosts_.size()));
  if (fresh) hosts_.push_back(name);
  return at->second;
}

uint32_t Cluster::rank_index(const CommRecord& record, uint32_t host) {
  if (record.rank >= by_rank_.size()) by_rank_.resize(record.rank + 1, kNone);
  uint32_t& index = by_rank_[record.rank];
  if (index == kNone) {
    index = static_cast<uint32_t>(ranks_.size());
    RankInfo info;
    info.rank = record.rank;
    info.pipeline = index;
    info.host = host;
    if (host == kNone)
      if (const auto name = host_of_rank(*job_, record.rank)) info.host = host_index(*name);
    ranks_.push_back(std::move(info));
    edges_changed_ = true;
  }
  RankInfo& info = ranks_[index];
  // Until now, the rank was only known as a peer of other ranks, whose records lack its host.
  if (info.host == kNone && host != kNone) {
    info.host = host;
    hosts_changed_ = true;
  }
  if (info.device == kNone) info.device = record.device;
  return index;
}

std::optional<std::string> Cluster::host_name(uint32_t rank_index) const {
  CULPRIT_CHECK(rank_index < ranks_.size());
  const uint32_t host = ranks_[rank_index].host;
  CULPRIT_CHECK(host == kNone || host < hosts_.size());
  return host == kNone ? std::nullopt : std::optional(hosts_[host]);
}

uint32_t Cluster::comm_index(const CommRecord& record) {
  const auto [at, fresh] = comm_by_id_.try_emplace(record.comm, static_cast<uint32_t>(comms_.size()));
  if (fresh) {
    comms_.emplace_back();
    comms_.back().id = record.comm;
  }
  CommInfo& comm = comms_[*at];
  if (comm.group == CommGroup::kUnknown) comm.group = record.group;
  if (record.comm_size > comm.reported_size) {
    comm.reported_size = record.comm_size;
    mark_changed(*at);
  }
  return *at;
}

void Cluster::add_member(uint32_t comm, uint32_t rank) {
  if (!membership_.try_emplace(uint64_t{comm} << 32 | rank, 1).second) return;
  CULPRIT_CHECK(comm < comms_.size() && rank < ranks_.size());
  comms_[comm].members.push_back(rank);
  mark_changed(comm);
}

void Cluster::mark_changed(uint32_t comm) {
  if (!std::exchange(comms_[comm].changed, true)) changed_.push_back(comm);
}

bool Cluster::join(uint32_t rank, const CommRecord& record) {
  if (membership_.size() >= kSlots) return false;
  add_member(comm_index(record), rank);
  return true;
}

uint32_t Cluster::channel_index(uint32_t comm, uint32_t sender, uint32_t receiver) {
  const uint64_t key = mix64(comm, uint64_t{sender} << 32 | receiver);
  const auto [at, fresh] = channel_by_key_.try_emplace(key, static_cast<uint32_t>(channels_.size()));
  const uint32_t channel = *at;
  if (!fresh) return channel;
  channels_.push_back({comm, sender, receiver, kNone});
  const uint32_t* back = channel_by_key_.find(mix64(comm, uint64_t{receiver} << 32 | sender));
  if (sender != receiver && back) {
    channels_[channel].back = *back;
    channels_[*back].back = channel;
  }
  return channel;
}

uint32_t Cluster::pipeline_of(uint32_t rank) {
  while (ranks_[rank].pipeline != rank) {
    ranks_[rank].pipeline = ranks_[ranks_[rank].pipeline].pipeline;
    rank = ranks_[rank].pipeline;
  }
  return rank;
}

uint32_t Cluster::find_slot(uint32_t rank, const CommRecord& record, uint32_t from) const {
  const bool p2p = is_p2p(record.op), sends = record.op == CommOp::kSend;
  const uint32_t peer = p2p ? record.peer : kNone;
  const std::vector<Slot>& slots = ranks_[rank].slots;
  const auto n = static_cast<uint32_t>(slots.size());
  const auto is = [&](const Slot& s) {
    return s.comm == record.comm && s.peer == peer && s.sends == (p2p && sends);
  };
  for (uint32_t k = 0, i = from; k < std::min(n, kScanned); ++k, ++i) {
    if (i >= n) i = 0;
    if (is(slots[i])) return i;
  }
  if (n <= kScanned) return kNone;
  const uint32_t* found = slot_by_key_.find(slot_key(rank, record.comm, peer, p2p && sends));
  if (!found) return kNone;
  if (is(slots[*found])) return *found;
  const auto named = slot_by_name_.find({rank, record.comm, peer, p2p && sends});
  return named == slot_by_name_.end() ? kNone : named->second;
}

// Adds a slot to the index. A trace may choose communicator ids whose keys collide.
void Cluster::look_up(uint32_t rank, uint32_t slot) {
  const Slot& s = ranks_[rank].slots[slot];
  if (!slot_by_key_.try_emplace(slot_key(rank, s.comm, s.peer, s.sends), slot).second)
    slot_by_name_.try_emplace({rank, s.comm, s.peer, s.sends}, slot);
}

uint32_t Cluster::slot_of(uint32_t rank, const CommRecord& record) {
  uint32_t& last = ranks_[rank].last_slot;
  const uint32_t found = find_slot(rank, record, last);
  if (found == kNone) return add_slot(rank, record);
  return last = found;
}

uint32_t Cluster::add_slot(uint32_t rank, const CommRecord& record) {
  if (slots_ >= kSlots || ranks_[rank].slots.size() >= kRankSlots) return kNone;
  const uint32_t comm = comm_index(record);
  add_member(comm, rank);
  Slot slot;
  slot.comm = record.comm;
  if (is_p2p(record.op)) {
    slot.peer = record.peer;
    slot.sends = record.op == CommOp::kSend;
    // If the peer wrote no records, only other ranks' records mention it.
    CommRecord named;
    named.rank = slot.peer;
    const uint32_t other = rank_index(named, kNone);
    add_member(comm, other);
    slot.channel = slot.sends ? channel_index(comm, rank, other) : channel_index(comm, other, rank);
    ranks_[pipeline_of(rank)].pipeline = pipeline_of(other);
    edges_changed_ = true;
  } else {
    slot.channel = channel_index(comm, kNone, kNone);
  }
  std::vector<Slot>& slots = ranks_[rank].slots;
  const auto index = static_cast<uint32_t>(slots.size());
  slots.push_back(slot);
  ++slots_;
  if (slots.size() == kScanned + 1)
    for (uint32_t i = 0; i < index; ++i) look_up(rank, i);
  if (slots.size() > kScanned) look_up(rank, index);
  return index;
}

void Cluster::settle_comm(CommInfo& comm) {
  std::sort(comm.members.begin(), comm.members.end(),
            [this](uint32_t a, uint32_t b) { return ranks_[a].rank < ranks_[b].rank; });
  std::vector<uint32_t> hosts;
  for (const uint32_t m : comm.members) hosts.push_back(ranks_[m].host);
  std::sort(hosts.begin(), hosts.end());
  comm.hosts = static_cast<uint32_t>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
  // Groups of one size and stride are of the same kind, whatever their names. If members are missing, the
  // most frequent stride counts.
  std::map<uint32_t, uint32_t> strides;
  for (size_t i = 1; i < comm.members.size(); ++i)
    ++strides[ranks_[comm.members[i]].rank - ranks_[comm.members[i - 1]].rank];
  uint32_t stride = 0, most = 0;
  for (const auto& [s, n] : strides)
    if (n > most) stride = s, most = n;
  const uint64_t size = std::max<uint64_t>(comm.reported_size, comm.members.size());
  comm.shape = mix64(size << 32 | stride, static_cast<uint64_t>(comm.group));
  comm.changed = false;
}

// Ranks that send to one another form a pipeline, possibly with a ring. The n-th ranks of all pipelines have
// the same stage. With a single pipeline, or sends between all ranks, most ranks would have no peer. Then all
// stages are 0, and operations alone define the roles.
void Cluster::settle_stages() {
  stage_.assign(ranks_.size(), 0);
  std::vector<std::pair<uint64_t, uint32_t>> order;
  for (uint32_t r = 0; r < ranks_.size(); ++r)
    order.emplace_back(uint64_t{pipeline_of(r)} << 32 | ranks_[r].rank, r);
  std::sort(order.begin(), order.end());
  std::vector<uint32_t> count;
  uint32_t place = 0, alone = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    place = i > 0 && order[i].first >> 32 == order[i - 1].first >> 32 ? place + 1 : 0;
    stage_[order[i].second] = place;
    if (place >= count.size()) count.resize(place + 1, 0);
    ++count[place];
  }
  for (const uint32_t n : count) alone += n == 1;
  if (2 * alone >= count.size() && count.size() > 1) std::fill(stage_.begin(), stage_.end(), 0);
  edges_changed_ = false;
}

// Whether group `a` is more likely than `b` to work on one piece of data: the larger group, else the one with
// closer ranks.
bool Cluster::nearer(const CommInfo& a, const CommInfo& b) const {
  if (a.members.size() != b.members.size()) return a.members.size() > b.members.size();
  const auto width = [this](const CommInfo& c) {
    return ranks_[c.members.back()].rank - ranks_[c.members.front()].rank;
  };
  return width(a) < width(b);
}

void Cluster::settle() {
  if (std::exchange(hosts_changed_, false)) {
    changed_.resize(comms_.size());
    std::iota(changed_.begin(), changed_.end(), 0u);
  }
  const bool changed = family_.size() != ranks_.size() || !changed_.empty();
  for (const uint32_t comm : changed_) settle_comm(comms_[comm]);
  changed_.clear();
  if (changed) {
    size_t as_reported = 0;
    for (const CommInfo& comm : comms_) as_reported += comm.reported_size == comm.members.size();
    sizes_hold_ = 2 * as_reported >= comms_.size();
    family_.assign(ranks_.size(), kNone);
    for (uint32_t c = 0; c < comms_.size(); ++c) {
      const CommInfo& comm = comms_[c];
      if (comm.hosts != 1 || comm.members.size() < 2 || ranks_[comm.members[0]].host == kNone) continue;
      if (comm.group == CommGroup::kEp || comm.group == CommGroup::kDp || comm.group == CommGroup::kEdp)
        continue;  // members work on different batches
      for (const uint32_t m : comm.members)
        if (family_[m] == kNone || nearer(comm, comms_[family_[m]])) family_[m] = c;
    }
  }
  if (edges_changed_ || stage_.size() != ranks_.size()) settle_stages();
}

}  // namespace culprit::comm
