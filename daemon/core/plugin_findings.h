// Findings of plugins about one job: kept by fault and subject, and given to the correlator as findings of
// detectors. A state that was raised stands until it is cleared.
//
// Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/detect/logs/view.h"
#include "model/finding.h"
#include "model/plugin_finding.h"
#include "model/topology.h"

namespace culprit::core {

// A finding and its place. `offset`: of its line in the file, in bytes.
struct FindingInput {
  PluginFinding finding;
  std::string file;
  uint64_t offset = 0;
  std::optional<uint32_t> user;  // who alone wrote it; none: the daemon or root
};

// Whether the finding is about Culprit itself: a plugin that crashed, hung or was refused.
bool is_about_culprit(const PluginFinding& finding);

class PluginFindings {
 public:
  // Returns the finding if it is worth a report at once: of severity error or fatal, and not known yet.
  std::optional<Finding> add(FindingInput input);
  bool empty() const { return kept_.empty(); }
  // One finding for each fault and subject. Ranks of devices come from `job` and from the logs.
  std::vector<Finding> findings(const detect::View& view, const JobFile& job) const;
  uint64_t dropped() const { return dropped_; }

 private:
  struct Kept {
    PluginFinding first;
    std::optional<uint32_t> user;
    TimeNs first_ns = kNoTime, last_ns = kNoTime;
    std::vector<TimeNs> times;  // of the last occurrences
    uint64_t count = 0;
    bool stands = false;
    std::vector<Evidence> evidence;  // the first ones
  };
  // Plugin, id, host, peer, part, rank, device, and the user: no user changes what the daemon or another user
  // said.
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string,
                         std::optional<uint32_t>, std::optional<uint32_t>, std::optional<uint32_t>>;
  static Finding finding_of(const Kept& kept);

  std::map<Key, Kept> kept_;
  uint64_t dropped_ = 0;  // beyond the limit of subjects
};

// Joins what a detector measured (slowness, a hang, wrong numbers) with the finding of a plugin that explains
// it: the same symptom at the same place and time. One fault with the evidence of both.
void join_plugins(std::vector<Finding>& findings);

}  // namespace culprit::core
