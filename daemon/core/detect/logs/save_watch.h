// What a job says of its checkpoints while it runs, and of the advice that its loop got (docs/formats.md,
// "Advice"). A save counts once no rank is within it any more. Pure; time is an argument, on the daemon's
// clock. Memory is bounded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/detect/logs/stall.h"
#include "core/logs/job_log.h"
#include "model/advice.h"
#include "model/metric.h"

namespace culprit::detect {

class SaveWatch {
 public:
  struct Saved {
    int64_t iteration = -1;  // -1: unknown
    TimeNs at_ns = kNoTime;
  };
  // `iteration`: the job's latest; -1: unknown.
  void phase(const PhaseSeen& seen, int64_t iteration, TimeNs now);
  // Events `advice` of the loop; others have no effect.
  void event(const LoopEvent& event, TimeNs now);
  // Lines that state a finished save. `log` is settled. Call it with each report.
  void lines(const logs::JobLog& log, int64_t iteration);

  // The newest one.
  std::optional<Saved> saved() const { return saved_; }
  // The newest advice that the loop reported on, at most kAdvice, by id.
  const std::map<uint64_t, AdviceSummary>& advice() const { return advice_; }
  // A sentence for each of them.
  std::vector<std::string> sentences() const;

  static constexpr size_t kAdvice = 16;

 private:
  void save(int64_t iteration, TimeNs now);

  std::set<uint32_t> within_;  // ranks within a save
  std::optional<Saved> saved_;
  TimeNs line_ns_ = kNoTime;
  std::map<uint64_t, AdviceSummary> advice_;
};

}  // namespace culprit::detect
