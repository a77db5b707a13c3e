// Operations that never ended: their participants, the missing ranks, and the rank that the others wait for.
// Rule R1: a rank did not enter an operation that its peers entered, and it waits for no other rank. Then its
// host process hangs. Rule R2: a rank did not leave an operation that its peers left. Then its device hangs.
// A trace cut off in the middle of a run also has open operations. In such a trace no operation lasts longer
// than usual, and some ranks are in no operation.
// Owned by CommTrace; one thread; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "core/detect/comm/cluster.h"

namespace culprit::comm {

// Whether open operations can still end.
enum class Stopped : uint8_t {
  kNo,
  kRanksEnded,  // a rank's process ended: its open operations cannot end, other operations may
  kRecordsEnd,  // the records end; they may be cut off in the middle of a run
  kByClock,     // no progress for longer than the hang limit
};

struct Stuck {
  int64_t since_ns = 0;        // earliest entry into an operation that never ended
  uint64_t waiting = 0;        // number of ranks inside an operation that did not end
  uint64_t comm = 0, seq = 0;  // first operation that waits for the most awaited rank
  CommOp op = CommOp::kJoin;
  bool on_device = false;       // peers left the operation; the stuck ranks entered it and did not leave
  bool absent = false;          // no record of the stuck ranks exists
  std::vector<uint32_t> ranks;  // indices of the stuck ranks; empty: unknown
  std::vector<uint32_t> in;     // indices of the ranks that wait in the operation
};

// Operations that have begun and not ended.
class OpenOperations {
 public:
  // Notes that the rank was alive at the record's time.
  void note_alive(const CommRecord& record);

  // Returns false if the limit is reached; then results no longer name a rank.
  bool add(const CommRecord& record);
  bool empty() const { return open_.empty(); }
  // Drops operations entered before `ns`: the job was restarted since.
  void forget_before(int64_t ns) {
    std::erase_if(open_, [ns](const auto& one) { return static_cast<int64_t>(one.second.start_ns) < ns; });
  }
  void add_to(std::vector<CommRecord>& out) const {
    for (const auto& [key, record] : open_) out.push_back(record);
  }
  // The slots of `cluster` hold the operations that each rank entered and left.
  std::optional<Stuck> find(const Cluster& cluster, Stopped stopped) const;

 private:
  struct Key {
    uint64_t comm, seq;
    uint32_t rank, peer;
    uint16_t op;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& k) const {
      return mix64(mix64(k.comm, k.seq), uint64_t{k.rank} << 32 | (k.peer ^ k.op));
    }
  };
  bool overdue(const Cluster& cluster, const std::vector<const CommRecord*>& open) const;

  std::unordered_map<Key, CommRecord, Hash> open_;
  // Longest duration of each kind, over operations recorded at both entry and exit; last timestamp of each
  // rank. If no operation was recorded twice, an open record means that the process stopped inside the
  // operation.
  FlatMap<int64_t> longest_;
  std::vector<int64_t> last_ns_;
  uint64_t closed_ = 0;
};

}  // namespace culprit::comm
