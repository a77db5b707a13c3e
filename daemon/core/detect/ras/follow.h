// Joins consecutive answers of NCCL's RAS about one job into a RasState: which communicators show a fault,
// for how many answers it stands still, and the global ranks of the processes. A running job shows different
// counts for moments, so one answer proves less than two.
//
// Pure; one thread. Keeps of the last answer a number per communicator and per process.
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
  // `at`: when the answer came, later than the one before. The caller fills host and address of the result.
  RasState add(const RasAnswer& answer, TimeNs at);

 private:
  struct Repeat {
    uint64_t digest = 0;
    uint32_t answers = 0;  // some seconds apart: one that is saved twice counts once
    TimeNs since_ns = kNoTime;
    TimeNs last_ns = kNoTime;  // of the last one that counts
  };
  static Repeat repeated(const Repeat& known, TimeNs at);
  using CommKey = std::pair<uint64_t, std::string>;

  void note_counts(const RasAnswer& answer, TimeNs at);
  std::vector<bool> moved_processes(const RasAnswer& answer);
  void follow_comms(const RasAnswer& answer, RasState& state);

  uint32_t answers_ = 0;
  std::map<CommKey, Repeat> comms_;                                // with a fault, of the last answer
  std::map<std::pair<std::string, uint32_t>, uint64_t> launched_;  // by host and pid: operations of a process
  uint64_t all_ = 0;                                               // digest of all counts
  Repeat still_;
};

}  // namespace culprit::ras
