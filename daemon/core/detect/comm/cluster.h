// What a job's communication records tell of the job itself: its ranks and where they run, its groups and
// who is in them. It grows with the records and forgets nothing; ranks and communicators beyond its limits
// are counted. Owned by CommTrace, one thread, pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "model/comm.h"
#include "model/topology.h"

namespace culprit::comm {

// Of every index below: there is none.
constexpr uint32_t kNone = 0xffffffff;

// One side of a stream of operations: a communicator's collectives, or what a rank sends to or receives from
// a peer. Both sides of a send share a channel.
struct Slot {
  uint64_t comm = 0;  // its id
  uint32_t peer = kNone;
  bool sends = false;
  uint32_t channel = kNone;
  uint64_t entered = 0, left = 0;  // operations up to these (not included) were
};

// Of a rank, and of all: beyond, records are counted and left out. A rank that sends to a thousand others and
// receives from them has some two thousand; a hundred bytes each, and a few hundred where each has a
// communicator of its own, are half a gigabyte.
constexpr size_t kRankSlots = 4096, kSlots = 1 << 22;

struct RankInfo {
  uint32_t rank = 0;
  uint32_t host = kNone, device = kNone;
  std::vector<Slot> slots;
  uint32_t last_slot = 0;  // where the search begins: operations come in a steady order
  uint32_t pipeline = 0;   // forest of ranks that send to one another
  int64_t last_end = 0;    // of its last closed step
  int64_t last_step = -1;
};

struct CommInfo {
  uint64_t id = 0;
  CommGroup group = CommGroup::kUnknown;
  uint32_t told_size = 0;
  std::vector<uint32_t> members;  // indices of ranks, as they were seen; ascending after settle()
  uint32_t hosts = 0;             // that its members run on; after settle()
  uint64_t shape = 0;             // the same for groups that are alike; after settle()
  bool changed = false;
};

struct Channel {
  uint32_t comm = kNone;                      // index
  uint32_t sender = kNone, receiver = kNone;  // indices of ranks; kNone of collectives
  uint32_t back = kNone;                      // of sends: the channel the other way
};

class Cluster {
 public:
  explicit Cluster(const JobFile* job) : job_(job) {}

  uint32_t host_index(const std::string& name);
  // The rank that a record of `host` (kNone: unknown) names; where it runs is what the first of them says.
  uint32_t rank_index(const CommRecord& record, uint32_t host);
  // Of a record that is no join, by the rank that wrote it. Members are noted on the way. kNone: there are
  // too many.
  uint32_t slot_of(uint32_t rank, const CommRecord& record);
  // The same of what is known; `from`: where the search begins. kNone: it was one too many. Any thread, while
  // nothing is added.
  uint32_t find_slot(uint32_t rank, const CommRecord& record, uint32_t from) const;
  // That an operation was entered, and left where it has ended.
  void note(uint32_t rank, uint32_t slot, const CommRecord& record) {
    Slot& s = ranks_[rank].slots[slot];
    s.entered = std::max(s.entered, record.seq + 1);
    if (record.end_ns != 0) s.left = std::max(s.left, record.seq + 1);
  }
  // False: there are too many.
  bool join(uint32_t rank, const CommRecord& record);
  // Before steps are analysed: members in order, shapes, places of ranks in their pipelines.
  void settle();

  const std::vector<std::string>& hosts() const { return hosts_; }
  std::vector<RankInfo>& ranks() { return ranks_; }
  const std::vector<RankInfo>& ranks() const { return ranks_; }
  const std::vector<CommInfo>& comms() const { return comms_; }
  const std::vector<Channel>& channels() const { return channels_; }
  uint32_t find_rank(uint32_t rank) const { return rank < by_rank_.size() ? by_rank_[rank] : kNone; }
  std::optional<std::string> host_name(uint32_t rank_index) const;
  // The largest group within its host that a rank is in: its members work on one piece of data; kNone.
  uint32_t family(uint32_t rank_index) const { return family_[rank_index]; }
  // Ranks of one number work on one piece of data: those of a pipeline, and of their families.
  uint32_t data_of(uint32_t rank_index) const {
    const uint32_t family = family_[rank_index];
    uint32_t rank = family == kNone ? rank_index : comms_[family].members[0];
    while (ranks_[rank].pipeline != rank) rank = ranks_[rank].pipeline;
    return rank;
  }
  // What a stream of a rank is, whoever's it is: the kind of its group, and which way it sends.
  uint64_t kind_of(const RankInfo& rank, const Slot& slot) const {
    const uint64_t way = slot.peer == kNone ? 0 : slot.peer > rank.rank ? 1 : 2;
    return mix64(comms_[channels_[slot.channel].comm].shape, way << 1 | (slot.sends ? 1 : 0));
  }
  // Whether what is told of a group's size can be believed: of most groups as many members were seen.
  bool sizes_hold() const { return sizes_hold_; }
  // Where a rank stands among those of its pipeline; 0 for all where nothing can be told apart by it.
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
  FlatMap<uint32_t> slot_by_key_;                                   // of ranks with many
  std::map<SlotName, uint32_t> slot_by_name_;                       // of those whose key is another's too
  size_t slots_ = 0;
  std::vector<uint32_t> changed_;  // communicators, since settle()
  bool edges_changed_ = true, hosts_changed_ = false, sizes_hold_ = true;
};

}  // namespace culprit::comm
