// Which ranks told metrics, and from which hosts: so that who is suspected by them has a place. Holds a
// few words for each rank; at most limits::kCommRanks ranks and limits::kWriters hosts. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/detect/numerics/detector.h"
#include "model/metric.h"
#include "model/report.h"
#include "model/topology.h"

namespace culprit::core {

class LoopRanks {
 public:
  void take(const MetricRow& row);
  // {"kind":"event","name":"device","rank":3,"uuid":"GPU-…"}, or "serial": what the rank's device is called
  // wherever it moves.
  void take(const LoopEvent& event);
  std::optional<std::string> device_of(uint32_t rank) const;
  // Where it told its last row from.
  std::optional<std::string> host_of(uint32_t rank) const;
  // What they know of the job, where its logs do not.
  void add_summary(JobSummary& job) const;

 private:
  std::unordered_map<uint32_t, uint32_t> host_of_;  // by rank: index into hosts_, or none
  std::unordered_map<uint32_t, std::string> device_of_;
  std::unordered_map<std::string, uint32_t> hosts_;
  std::vector<const std::string*> names_;  // by index
  uint32_t last_host_ = 0;                 // rows of one host come together
  TimeNs first_ns_ = kNoTime, last_ns_ = kNoTime;
};

// Data-parallel peers by job.toml; empty where it does not tell.
numerics::Layout layout_of(const JobFile& job);

}  // namespace culprit::core
