// Joins consecutive NCCL RAS answers about one job into a RasState: communicators with a fault, the number of
// unchanged answers, and the global ranks of the processes. In a running job, counts differ momentarily, so
// one answer is weaker evidence than two.
//
// Pure; one thread. Stores one number per communicator and per process of the last answer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/ras.h"

namespace culprit::ras {

class Follower {
 public:
  // `at`: time of the answer, later than the previous one. The caller fills in the result's host and address.
  RasState add(const RasAnswer& answer, TimeNs at);

 private:
  struct Repeat {
    uint64_t digest = 0;
    uint32_t answers = 0;  // seconds apart: an answer saved twice counts once
    TimeNs since_ns = kNoTime;
    TimeNs last_ns = kNoTime;  // time of the last counted answer
  };
  static Repeat repeated(const Repeat& known, TimeNs at);
  using CommKey = std::pair<uint64_t, std::string>;

  void note_counts(const RasAnswer& answer, TimeNs at);
  std::vector<bool> moved_processes(const RasAnswer& answer);
  void follow_comms(const RasAnswer& answer, RasState& state);

  uint32_t answers_ = 0;
  std::map<CommKey, Repeat> comms_;  // communicators with a fault in the last answer
  std::map<std::pair<std::string, uint32_t>, uint64_t> launched_;  // operations of a process, by host and pid
  uint64_t all_ = 0;                                               // digest of all counts
  Repeat still_;
};

}  // namespace culprit::ras
