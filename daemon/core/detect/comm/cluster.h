// A job's topology from its communication records: ranks, their hosts, communicators and members. Grows with
// new ranks and communicators and deletes none; those beyond the limits are counted. Owned by CommTrace; one
// thread; pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "base/flat_map.h"
#include "model/comm.h"
#include "model/topology.h"

namespace culprit::comm {

// Null index.
constexpr uint32_t kNone = 0xffffffff;

// One side of a stream of operations: a communicator's collectives, or a rank's sends to or receives from one
// peer. Both sides of a send share a channel.
struct Slot {
  uint64_t comm = 0;  // its id
  uint32_t peer = kNone;
  bool sends = false;
  uint32_t channel = kNone;
  uint64_t entered = 0, left = 0;  // exclusive upper bounds of the sequence numbers entered and left
};

// Limits per rank and in total; records beyond them are counted and dropped. A rank with a thousand peers has
// about 2,000 slots. A slot takes 100 bytes, or a few hundred with a communicator of its own; kSlots slots
// take half a gigabyte.
constexpr size_t kRankSlots = 4096, kSlots = 1 << 22;

struct RankInfo {
  uint32_t rank = 0;
  uint32_t host = kNone, device = kNone;
  std::vector<Slot> slots;
  uint32_t last_slot = 0;  // start of the next search: operations repeat in a fixed order
  uint32_t pipeline = 0;   // parent in the union-find forest of ranks that send to one another
  int64_t last_end = 0;    // of its last closed step
  int64_t last_step = -1;
};

struct CommInfo {
  uint64_t id = 0;
  CommGroup group = CommGroup::kUnknown;
  uint32_t reported_size = 0;
  std::vector<uint32_t> members;  // indices of ranks in order of appearance; ascending after settle()
  uint32_t hosts = 0;             // number of hosts of its members; after settle()
  uint64_t shape = 0;             // equal for communicators of the same kind; after settle()
  bool changed = false;
};

struct Channel {
  uint32_t comm = kNone;                      // index
  uint32_t sender = kNone, receiver = kNone;  // indices of ranks; kNone for collectives
  uint32_t back = kNone;                      // for sends: the channel in the opposite direction
};

class Cluster {
 public:
  explicit Cluster(const JobFile* job) : job_(job) {}

  uint32_t host_index(const std::string& name);
  uint32_t find_host(const std::string& name) const {
    const auto at = host_by_name_.find(name);
    return at == host_by_name_.end() ? kNone : at->second;
  }
  // Index of the rank in a record from `host` (kNone: unknown). The first record of a rank sets its host.
  uint32_t rank_index(const CommRecord& record, uint32_t host);
  // Slot of a record (except joins) on the side of the rank that wrote it. Also registers members. kNone:
  // over the limit.
  uint32_t slot_of(uint32_t rank, const CommRecord& record);
  // Like slot_of(), for known slots only; `from`: start of the search. kNone: the slot was over the limit.
  // Any thread, while no thread adds records.
  uint32_t find_slot(uint32_t rank, const CommRecord& record, uint32_t from) const;
  // Notes that the rank entered an operation, and left it if it has ended.
  void note(uint32_t rank, uint32_t slot, uint64_t seq, bool ended) {
    CULPRIT_DCHECK(rank < ranks_.size() && slot < ranks_[rank].slots.size());
    Slot& s = ranks_[rank].slots[slot];
    s.entered = std::max(s.entered, seq + 1);
    if (ended) s.left = std::max(s.left, seq + 1);
  }
  // False: over the limit.
  bool join(uint32_t rank, const CommRecord& record);
  // Call before the analysis of steps: sorts members, computes shapes and pipeline stages.
  void settle();

  const std::vector<std::string>& hosts() const { return hosts_; }
  std::vector<RankInfo>& ranks() { return ranks_; }
  const std::vector<RankInfo>& ranks() const { return ranks_; }
  const std::vector<CommInfo>& comms() const { return comms_; }
  const std::vector<Channel>& channels() const { return channels_; }
  uint32_t find_rank(uint32_t rank) const { return rank < by_rank_.size() ? by_rank_[rank] : kNone; }
  std::optional<std::string> host_name(uint32_t rank_index) const;
  // The largest communicator of the rank that lies within one host; its members work on the same data. kNone:
  // none.
  uint32_t family(uint32_t rank_index) const { return family_[rank_index]; }
  // Ranks with the same number work on the same data: the ranks of a pipeline and their families.
  uint32_t data_of(uint32_t rank_index) const {
    const uint32_t family = family_[rank_index];
    uint32_t rank = family == kNone ? rank_index : comms_[family].members[0];
    while (ranks_[rank].pipeline != rank) rank = ranks_[rank].pipeline;
    return rank;
  }
  // Kind of a rank's stream, independent of the rank: shape of the group and direction of a send.
  uint64_t kind_of(const RankInfo& rank, const Slot& slot) const {
    const uint64_t way = slot.peer == kNone ? 0 : slot.peer > rank.rank ? 1 : 2;
    return mix64(comms_[channels_[slot.channel].comm].shape, way << 1 | (slot.sends ? 1 : 0));
  }
  // Whether reported communicator sizes are reliable: for most communicators, they equal the number of
  // members seen.
  bool sizes_hold() const { return sizes_hold_; }
  // Position of a rank in its pipeline; 0 for all ranks if positions do not distinguish them.
  uint32_t stage(uint32_t rank_index) const { return stage_[rank_index]; }

 private:
  uint32_t comm_index(const CommRecord& record);
  uint32_t add_slot(uint32_t rank, const CommRecord& record);
  void look_up(uint32_t rank, uint32_t slot);
  uint32_t channel_index(uint32_t comm, uint32_t sender, uint32_t receiver);
  void add_member(uint32_t comm, uint32_t rank);
  void mark_changed(uint32_t comm);
  uint32_t pipeline_of(uint32_t rank);
  void settle_comm(CommInfo& comm);
  bool nearer(const CommInfo& a, const CommInfo& b) const;
  void settle_stages();

  const JobFile* job_;
  std::vector<std::string> hosts_;
  std::unordered_map<std::string, uint32_t> host_by_name_;
  std::vector<RankInfo> ranks_;
  std::vector<uint32_t> by_rank_;
  std::vector<CommInfo> comms_;
  std::vector<Channel> channels_;
  std::vector<uint32_t> stage_, family_;
  FlatMap<uint32_t> comm_by_id_, channel_by_key_;
  FlatMap<uint8_t> membership_;
  using SlotName = std::tuple<uint32_t, uint64_t, uint32_t, bool>;  // rank, communicator, peer, sends
  FlatMap<uint32_t> slot_by_key_;                                   // for ranks with many slots
  std::map<SlotName, uint32_t> slot_by_name_;  // for slots whose key collides with another key
  size_t slots_ = 0;
  std::vector<uint32_t> changed_;  // communicators changed since settle()
  bool edges_changed_ = true, hosts_changed_ = false, sizes_hold_ = true;
};

}  // namespace culprit::comm
