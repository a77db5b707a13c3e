// Operations that never ended: who is in them, who is missing, and who it is that the others wait for. Rules
// R1 and R2: a rank whose peers entered an operation and which has not, and which waits for nobody itself (it
// hangs on its host); a rank that has not left an operation which its peers have (it hangs on its device).
// Owned by CommTrace, one thread, pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/detect/comm/cluster.h"

namespace culprit::comm {

struct Stuck {
  int64_t since_ns = 0;        // the earliest entry into what never ended
  uint64_t waiting = 0;        // ranks inside of an operation that did not end
  uint64_t comm = 0, seq = 0;  // in which the most wait for them
  CommOp op = CommOp::kJoin;
  bool on_device = false;       // they entered and did not leave, where their peers did
  bool absent = false;          // nothing was recorded of them
  std::vector<uint32_t> ranks;  // indices: who it is; empty: not to be told
};

// Operations that were begun and have not ended yet.
class OpenOperations {
 public:
  // False where nobody can say who it was: there are too many.
  bool take(const CommRecord& record);
  bool empty() const { return open_.empty(); }
  void add_to(std::vector<CommRecord>& out) const {
    for (const auto& [key, record] : open_) out.push_back(record);
  }
  // The cluster's slots tell who entered and left what.
  std::optional<Stuck> find(const Cluster& cluster) const;

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
  std::unordered_map<Key, CommRecord, Hash> open_;
};

}  // namespace culprit::comm
