// Ranks whose processes are gone while the job did not end: killed, or ended by themselves without a word.
// Their peers only report a closed connection, or wait for them.
//
// Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/detect/analysis.h"
#include "core/detect/view.h"
#include "model/finding.h"

namespace culprit::detect {

// The process of a rank was seen to be gone.
struct RankExited {
  uint32_t rank = 0;
  std::string host;
  std::optional<uint32_t> pid;
};

class RankExits {
 public:
  void take(const RankExited& exited, TimeNs now);
  // A process of the rank sent records (again), so it is alive.
  void returned(uint32_t rank) { exits_.erase(rank); }
  bool empty() const { return exits_.empty(); }
  // Adds a fault for ranks that ended without a word while other ranks report a lost peer or wait for them.
  // Findings of that waiting alone are merged into it.
  struct Job {
    const View& view;
    const Fate& fate;
    size_t ranks = 0;
    TimeNs progressed_ns = kNoTime;    // its last progress, on the clock of take()
    bool one_host = false;             // all ranks run on one: local numbers are ranks
    std::optional<int64_t> iteration;  // the last that lines, heartbeats or traces show
  };
  void judge(const Job& job, std::vector<Finding>& findings) const;

 private:
  struct Exit {
    RankExited of;
    TimeNs time_ns = kNoTime;
  };
  std::vector<const Exit*> wordless(const Job& job) const;
  static Finding fault_of(const View& view, const std::vector<const Exit*>& gone);

  std::map<uint32_t, Exit> exits_;
};

}  // namespace culprit::detect
