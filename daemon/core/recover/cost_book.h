// What failures cost (cost.h), kept while attempts change: a page, a scrape or a command asks it, and not the
// ledger. Of an attempt only its times are kept, some 130 bytes.
//
// Pure; one thread. Sums are those of cost_of() over all attempts that were put in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/recover/cost.h"
#include "model/recovery_ledger.h"

namespace culprit::recover {

// Upper bounds in seconds of the histograms of times to detect, to decide and to run again.
inline constexpr std::array<double, 9> kCostBounds = {1, 5, 15, 60, 180, 600, 1800, 7200, 43200};

struct CostHistogram {
  std::array<uint64_t, kCostBounds.size() + 1> counts = {};  // the last: above all bounds
  double sum_s = 0;
};

class CostBook {
 public:
  struct JobCost {
    ScheduledJob job;
    Cost cost;
    TimeNs last_ns = kNoTime;  // begin or end of its latest attempt
  };

  void put(const AttemptRecord& attempt);  // a new attempt, or one that changed
  void prune(TimeNs until);                // forgets jobs whose last attempt is from before
  // Without quantiles.
  const Cost& total() const { return total_; }
  const CostHistogram& detect() const { return detect_; }
  const CostHistogram& decide() const { return decide_; }
  const CostHistogram& again() const { return again_; }
  // All single times, for quantiles. Copies them.
  CostSpans spans() const;
  // The jobs with the latest attempts first.
  std::vector<JobCost> newest(size_t most) const;
  // The cost of one job, by the id at its scheduler; the newest if it was used again. Nothing: unknown.
  const JobCost* find(const std::string& id) const;

 private:
  struct Times {
    TimeNs begin_ns, end_ns, first_step_ns, last_progress_ns, saved_ns, detected_ns, decided_ns;
    std::string cause;
    bool has_root = false, has_decision = false;
  };
  struct Job {
    std::map<uint32_t, Times> attempts;
    JobCost cost;
    CostSpans spans;
  };

  void add(const Job& job, int sign);
  static void count(Job& job);

  std::map<std::string, Job> jobs_;  // by the job's identity without restarts
  std::map<std::string, std::string> newest_of_id_;
  Cost total_;
  CostHistogram detect_, decide_, again_;
};

}  // namespace culprit::recover
