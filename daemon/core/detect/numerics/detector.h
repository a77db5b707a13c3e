// Tells at which step a job's numbers went wrong, by what kind of cause and on which rank, from what its
// own loop told: silent corruption of data, a bad batch, the optimiser, or a planned change.
//
// Streaming and causal: what is told of a step was seen by the step it is `detected_at`. Rows of ranks come
// in any order and may be missing; memory is bounded by rank and metric. Pure; one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/metric.h"
#include "model/report.h"

namespace culprit::core::numerics {

// What is known of a job's ranks, from job.toml or from records of communication.
struct Layout {
  // By rank: equal numbers are data-parallel peers, who hold the same parameters and see other samples.
  // Empty: unknown, all ranks are taken as peers until their metrics and digests say otherwise.
  std::map<uint32_t, uint32_t> peers;
};

struct NumericFindings {
  std::vector<NumericFault> faults;   // by step
  std::vector<Finding> findings;      // detector "numerics", one for each fault
  std::vector<std::string> problems;  // what was seen and could not be used: a sentence each
  NumericCurves curves;               // for showing
};

class Detector {
 public:
  explicit Detector(Layout layout = {});
  ~Detector();
  Detector(Detector&&) noexcept;
  Detector& operator=(Detector&&) noexcept;

  void take(const MetricRow& row);
  void take(const LoopEvent& event);

  // Whether anything was taken.
  bool empty() const;
  // Of all that was taken. May be asked at any time, again and again; the last steps are judged as they are.
  NumericFindings findings();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::core::numerics
