// Plugin findings about one job, stored by fault and subject, and passed to the correlator as detector
// findings. A raised state lasts until it is cleared, or until its plugin loses its state.
//
// Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/detect/logs/view.h"
#include "core/job_scope.h"
#include "model/finding.h"
#include "model/plugin_finding.h"
#include "model/topology.h"

namespace culprit::core {

// A finding and its place. `offset`: of its line in the file, in bytes.
struct FindingInput {
  PluginFinding finding;
  std::string file;
  uint64_t offset = 0;
  std::optional<Principal> user = {};  // its only writer; none: the daemon or root
  std::string agent = {};              // host of the reporting daemon; empty: read from a file
};

// Whether the finding is about Culprit itself: a plugin that crashed, hung or was refused.
bool is_about_culprit(const PluginFinding& finding);
// Whether the plugin lost its state: it will not clear its raised states.
bool forgets(const PluginFinding& finding);

class PluginFindings {
 public:
  // Returns the finding if it must be reported at once: a new fault.
  std::optional<Finding> add(FindingInput input);
  // Ends the states raised by this plugin on this host.
  void forget(FindingInput input);
  bool empty() const { return retained_.empty(); }
  // One finding per fault and subject of this job. The ranks of devices come from `job` and the logs.
  std::vector<Finding> findings(const detect::View& view, const JobFile& job, const JobScope& scope) const;
  uint64_t dropped() const { return dropped_; }

 private:
  struct RetainedFinding {
    PluginFinding first;
    std::optional<Principal> user;
    std::string agent;
    TimeNs first_ns = kNoTime, last_ns = kNoTime;
    std::vector<TimeNs> times;  // of the last occurrences
    uint64_t count = 0;
    bool is_active = false, cleared = false;
    std::vector<Evidence> evidence;  // the first ones
  };
  // Plugin, id, host, peer, part, rank, device and writer: no user or host changes the finding of another.
  using MaybeNumber = std::optional<uint32_t>;
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string, MaybeNumber,
                         MaybeNumber, std::optional<Principal>, std::string>;
  // `over`: the state ended while the job ran.
  static Finding finding_of(const RetainedFinding& retained, bool over);
  bool may_keep(std::optional<Principal> user);

  std::map<Key, RetainedFinding> retained_;
  std::map<Principal, size_t> of_user_;
  uint64_t dropped_ = 0;  // beyond the limits of subjects
};

}  // namespace culprit::core
