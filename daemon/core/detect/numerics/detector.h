// Finds the step, the kind of cause and the rank at which a job's metrics went wrong. The input is what the
// training loop reports. Causes: silent data corruption, a bad batch, the optimiser, or a planned change.
//
// Streaming and causal: a fault with `detected_at` N uses only rows up to step N. Rows of ranks arrive in any
// order and may be missing. Memory is bounded by the number of ranks and metrics. Pure; one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/metric.h"
#include "model/report.h"

namespace culprit::numerics {

// Known facts on a job's ranks, from job.toml or from communication records.
struct Layout {
  // By rank: ranks with equal numbers are data-parallel peers, with the same parameters and different
  // samples. Empty: unknown; all ranks are peers until their metrics and digests differ.
  std::map<uint32_t, uint32_t> peers;
};

struct NumericFindings {
  std::vector<NumericFault> faults;   // by step
  std::vector<Finding> findings;      // detector "numerics", one for each fault or wrong device
  std::vector<std::string> problems;  // input that could not be used, one sentence each
  std::vector<std::string> open;      // what stays undecided, and what would decide it
  NumericCurves curves;               // for display
};

class Detector {
 public:
  explicit Detector(Layout layout = {});
  ~Detector();
  Detector(Detector&&) noexcept;
  Detector& operator=(Detector&&) noexcept;

  void add(const MetricRow& row);
  void add(const LoopEvent& event);

  // Whether no row and no event was added.
  bool empty() const;
  // Findings over all input so far. Callable at any time, repeatedly. Includes incomplete last steps.
  NumericFindings findings();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::numerics
