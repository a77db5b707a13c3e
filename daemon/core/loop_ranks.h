// The ranks that reported metrics, and their hosts: gives suspected ranks a place. Stores a few words per
// rank, for at most limits::kCommRanks ranks and limits::kWriters hosts. Pure; one thread.
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
  void add(const MetricRow& row);
  // {"kind":"event","name":"device","rank":3,"uuid":"GPU-…"}, or "serial": an id that the device has on any
  // host.
  void add(const LoopEvent& event);
  std::optional<std::string> device_of(uint32_t rank) const;
  // The host of the rank's last row.
  std::optional<std::string> host_of(uint32_t rank) const;
  const std::vector<const std::string*>& hosts() const { return names_; }
  // Adds ranks, hosts and times that the job's logs do not show.
  void add_summary(JobSummary& job) const;

 private:
  std::unordered_map<uint32_t, uint32_t> host_of_;  // by rank: index into hosts_, or none
  std::unordered_map<uint32_t, std::string> device_of_;
  std::unordered_map<std::string, uint32_t> hosts_;
  std::vector<const std::string*> names_;  // by index
  uint32_t last_host_ = 0;                 // consecutive rows often have one host
  TimeNs first_ns_ = kNoTime, last_ns_ = kNoTime;
};

// Data-parallel peers according to job.toml; empty if unspecified.
numerics::Layout layout_of(const JobFile& job);

}  // namespace culprit::core
