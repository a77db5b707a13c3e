// What NCCL's RAS said of one job: the last state of each host that asked, and the names of hosts by their
// addresses. Owned by the engine; one thread; pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/detect/hang/observation.h"
#include "core/detect/ras/judge.h"
#include "model/ras.h"
#include "model/report.h"

namespace culprit::ras {

// A state and its place. `offset`: of its line in the file, in bytes; none: the file is an answer.
struct RasInput {
  RasState state;
  std::string file;
  std::optional<uint64_t> offset;
};

class RasStates {
 public:
  void add(RasInput input);
  bool empty() const { return of_host_.empty(); }
  // Ranks of the largest communicator that RAS knows.
  uint32_t ranks() const { return ranks_; }

  struct Moment {
    // Live: the job stands since then, by its clock; kNoTime: no progress was ever seen.
    TimeNs moved_ns = kNoTime;
    TimeNs now = kNoTime;  // kNoTime: offline
    TimeNs after_ns = 0;   // of the standstill until it counts
    PlaceOfRank place = {};
  };
  // What RAS says of a job that stands; empty: nothing, or it does not stand.
  struct RasJudgement {
    ras::RasVerdict verdict;
    std::vector<hang::RankExit> exits;
    bool all_answer = false;  // no process of the job is known to be gone
    std::vector<Problem> problems;
  };
  std::optional<RasJudgement> judge(const Moment& moment) const;
  uint64_t dropped() const { return dropped_; }

 private:
  const RasInput* newest() const;
  static bool counts(const RasState& state, const Moment& moment);

  std::map<std::string, RasInput> of_host_;   // by the host that asked
  std::map<std::string, std::string> hosts_;  // names by address
  uint32_t ranks_ = 0;
  uint64_t dropped_ = 0;  // states of hosts beyond the limit
};

}  // namespace culprit::ras
