// Ranks whose processes ended while the job continued: killed, or ended without a message. Other ranks only
// report a closed connection, or wait.
//
// Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/detect/logs/analysis.h"
#include "core/detect/logs/view.h"
#include "model/finding.h"

namespace culprit::detect {

// Report that the process of a rank no longer exists.
struct RankExited {
  uint32_t rank = 0;
  std::string host;
  std::optional<uint32_t> pid;
};

class RankExits {
 public:
  void add(const RankExited& exited, TimeNs now);
  // A process of the rank sent records again, so the rank is alive.
  void returned(uint32_t rank) { exits_.erase(rank); }
  bool empty() const { return exits_.empty(); }
  // Adds a fault for ranks that ended without a message while other ranks report a lost peer or wait. The
  // fault absorbs findings that only describe this waiting.
  struct Job {
    const View& view;
    const RunEnd& outcome;
    size_t ranks = 0;
    TimeNs progressed_ns = kNoTime;    // last progress, on the clock of add()
    bool one_host = false;             // all ranks run on one host: local rank numbers are global
    std::optional<int64_t> iteration;  // last iteration in lines, heartbeats or traces
  };
  void judge(const Job& job, std::vector<Finding>& findings) const;

 private:
  struct Exit {
    RankExited of;
    TimeNs time_ns = kNoTime;
  };
  std::vector<const Exit*> wordless(const Job& job) const;
  static Finding fault_of(const View& view, const std::vector<const Exit*>& exited);

  std::map<uint32_t, Exit> exits_;
};

}  // namespace culprit::detect
