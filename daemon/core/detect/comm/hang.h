// Operations that never ended: who is in them, who is missing, and who it is that the others wait for. Rules
// R1 and R2: a rank whose peers entered an operation and which has not, and which waits for no other rank (it
// hangs on its host); a rank that has not left an operation which its peers have (it hangs on its device). A
// trace that ends in the middle of a run has open operations too: there nobody stands in one for longer than
// its like take, and some ranks are in none.
// Owned by CommTrace, one thread, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/flat_map.h"
#include "core/detect/comm/cluster.h"

namespace culprit::comm {

// Whether operations that have not ended will not.
enum class Stopped : uint8_t {
  kNo,
  kRecordsEnd,  // they may also have been cut off in the middle of a run
  kByClock,     // nothing went on for as long as it takes to call it a hang
};

struct Stuck {
  int64_t since_ns = 0;        // the earliest entry into what never ended
  uint64_t waiting = 0;        // ranks inside of an operation that did not end
  uint64_t comm = 0, seq = 0;  // the first that waits for the one whom most wait for
  CommOp op = CommOp::kJoin;
  bool on_device = false;       // they entered and did not leave, where their peers did
  bool absent = false;          // nothing was recorded of them
  std::vector<uint32_t> ranks;  // indices: who it is; empty: not to be told
};

// Operations that were begun and have not ended yet.
class OpenOperations {
 public:
  // Notes that the rank was alive at the record's time.
  void note_alive(const CommRecord& record);

  // False where nobody can say who it was: there are too many.
  bool take(const CommRecord& record);
  bool empty() const { return open_.empty(); }
  // What was entered before nobody is in any more: the job was started again since.
  void forget_before(int64_t ns) {
    std::erase_if(open_, [ns](const auto& one) { return static_cast<int64_t>(one.second.start_ns) < ns; });
  }
  void add_to(std::vector<CommRecord>& out) const {
    for (const auto& [key, record] : open_) out.push_back(record);
  }
  // The cluster's slots tell who entered and left what.
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
  // Of operations that were written at entry and again at exit: the longest of each kind; the last stamp of
  // each rank. Where none was, operations are open only because the process was stopped in them.
  FlatMap<int64_t> longest_;
  std::vector<int64_t> last_ns_;
  uint64_t closed_ = 0;
};

}  // namespace culprit::comm
