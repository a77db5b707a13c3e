// The NCCL RAS states of one job: the last state from each host, and host names by address. Owned by the
// engine; one thread; pure.
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

// A state and its location. `offset`: byte offset of its line in the file; none: the file is one answer.
struct RasInput {
  RasState state;
  std::string file;
  std::optional<uint64_t> offset;
};

class RasStates {
 public:
  void add(RasInput input);
  bool empty() const { return of_host_.empty(); }
  // Number of ranks in the largest communicator.
  uint32_t ranks() const { return ranks_; }

  struct Moment {
    // Live: start of the standstill, by the job's clock; kNoTime: no progress so far.
    TimeNs moved_ns = kNoTime;
    TimeNs now = kNoTime;  // kNoTime: offline
    TimeNs after_ns = 0;   // duration from which a standstill counts
    PlaceOfRank place = {};
  };
  // The RAS result for a job that stands still; empty: no evidence, or no standstill.
  struct RasJudgement {
    ras::RasVerdict verdict;
    std::vector<hang::RankExit> exits;
    bool all_answer = false;  // no process of the job is known to have exited
    std::vector<Problem> problems;
  };
  std::optional<RasJudgement> judge(const Moment& moment) const;
  uint64_t dropped() const { return dropped_; }

 private:
  const RasInput* newest() const;
  static bool counts(const RasState& state, const Moment& moment);

  std::map<std::string, RasInput> of_host_;   // by the querying host
  std::map<std::string, std::string> hosts_;  // names by address
  uint32_t ranks_ = 0;
  uint64_t dropped_ = 0;  // states of hosts beyond the limit
};

}  // namespace culprit::ras
