// One collector among several: which partitions it owns, and what it has to ask of the database to keep, take
// and give back partitions. The database decides by its own clock who owns what; this class decides how long
// this process may believe it.
//
// A partition counts as owned for `fence` after the request of its last successful renewal, which is shorter
// than the lease: a process that was paused, or lost its connection, stops acting before another owner may
// begin. Times are those of a clock that counts while the machine sleeps (CLOCK_BOOTTIME).
//
// Pure; one thread. The caller carries out what due() returns as one round and gives back one answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/cluster/partition.h"
#include "model/cluster.h"

namespace culprit::cluster {

struct Timing {
  TimeNs lease_ns = 15 * kNsPerSecond;  // by the database's clock
  TimeNs fence_ns = 10 * kNsPerSecond;  // by this host's: a third of the lease for drift and delay
  TimeNs renew_ns = 5 * kNsPerSecond;   // between rounds
  TimeNs take_ns = 5 * kNsPerSecond;    // between partitions that are taken: each brings its jobs' work
  TimeNs retry_ns = kNsPerSecond;       // after a round without an answer
};

// Whether `name` owns more than an equal share while another member owns less, and none is free. Members that
// take none, or were not seen for a lease, do not count.
bool has_surplus(const ClusterView& view, const std::string& name, TimeNs lease_ns);

class Member {
 public:
  explicit Member(Timing timing = {}) : timing_(timing) {}

  // A round, in this order: adopt, renew, give, take.
  struct Work {
    // Own partitions of this name that are not in `renew`: of the process before, or of a round whose answer
    // was lost. They get a new epoch.
    bool adopt = false;
    std::vector<PartHold> renew;   // all that this process holds
    bool take = false;             // one that is free, or whose lease has ended
    std::optional<PartHold> give;  // one that is no longer held, for a member that owns less
  };
  struct Answer {
    std::vector<PartHold> adopted;
    std::vector<uint32_t> renewed;  // what is missing here belongs to another owner or process
    std::optional<PartHold> taken;
  };

  struct May {
    bool take = false;  // it is below the memory mark
    bool give = false;  // it has a surplus, and no action is at work
  };
  // Nothing: no round is due, one is at work, or stop() was called.
  std::optional<Work> due(TimeNs now, May may);
  void answered(const Answer& answer);
  // No answer: the round may have been carried out, in part, or still be.
  void failed(TimeNs now);
  // No further rounds. Returns what the database should get back.
  std::vector<PartHold> stop();

  // The epoch of an owned partition; nothing: it is not owned at `now`.
  std::optional<uint64_t> epoch(uint32_t part, TimeNs now) const;
  // Whether the database answered within the fence.
  bool is_fresh(TimeNs now) const { return answered_ns_ != kNoTime && now - answered_ns_ < timing_.fence_ns; }
  // Held partitions, owned or fenced.
  std::vector<PartHold> holds() const;
  // Partitions that the latest rounds lost to another owner, since the last call.
  std::vector<PartHold> drain_lost();

 private:
  struct Hold {
    uint64_t epoch = 0;  // 0: not held
    TimeNs renewed_ns = kNoTime;
  };
  void hold(const PartHold& one, TimeNs at);

  const Timing timing_;
  std::array<Hold, kPartitions> holds_{};
  std::vector<PartHold> lost_;
  std::optional<Work> at_work_;
  bool adopt_ = true, stopped_ = false;
  TimeNs asked_ns_ = kNoTime, next_ns_ = kNoTime, take_ns_ = kNoTime, answered_ns_ = kNoTime;
};

}  // namespace culprit::cluster
