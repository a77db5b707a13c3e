// What failures cost and what recovery was worth: effective training time (ETTR) per job and over jobs, time
// lost by cause, time to detect, to decide and to run again. From attempts as plain values.
//
// ETTR is productive time by wall time from the first attempt's begin to the last one's end. Productive is
// the time from the first step of an attempt to its last progress, without the part behind the last whole
// checkpoint if the attempt failed: it is computed again.
//
// Pure; any thread. Seconds as double; NaN never; unknown times count nothing.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/recovery_ledger.h"

namespace culprit::recover {

struct Quantiles {
  uint64_t count = 0;
  double median_s = 0, p90_s = 0, most_s = 0;
};
// Nearest rank; of an empty list all are 0.
Quantiles quantiles_of(std::vector<double> seconds);

// Of one failed attempt.
struct Loss {
  double stalled_s = 0;  // last progress to the end: hang, detection
  double redone_s = 0;   // work behind the last whole checkpoint
  double away_s = 0;     // end to the next attempt's first step
  double total() const { return stalled_s + redone_s + away_s; }
};

struct Cost {
  uint64_t jobs = 0, attempts = 0, failures = 0;
  double wall_s = 0, productive_s = 0;
  std::map<std::string, double> lost_s;  // by class of the cause: "device"; empty name: no verdict
  Quantiles detect;                      // last progress to the verdict
  Quantiles decide;                      // verdict to decision
  Quantiles again;                       // decision to the next attempt's first step
  double ettr() const { return wall_s <= 0 ? 0 : productive_s / wall_s; }
};

// The single times behind the quantiles, in seconds.
struct CostSpans {
  std::vector<double> detect, decide, again;
};

// `attempts` of one job in order. `next`: the following attempt, or null.
Loss loss_of(const AttemptRecord& attempt, const AttemptRecord* next);
// Attempts of any jobs in any order; grouped by the job's identity without `restarts`.
Cost cost_of(std::span<const AttemptRecord> attempts);
// Without quantiles; appends the single times to `spans`.
Cost cost_of(std::span<const AttemptRecord> attempts, CostSpans& spans);
// Fills in the quantiles.
void add_quantiles(CostSpans spans, Cost& cost);

}  // namespace culprit::recover
