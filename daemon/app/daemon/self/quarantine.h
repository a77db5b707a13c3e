// Rules (and in-process plugins) that are disabled until their text changes, because the process died in
// them. A rule is disabled after two deaths within a week, or after one death while it ran longer than the
// watchdog allows. One death alone proves little: the OOM killer, an operator's kill or another fault may end
// the process in any rule. Ends that the process chooses itself (SIGTERM, a hanging disk) blame no rule.
// Likewise, a job gets no engine for a week after the process twice ran out of memory while working on that
// job. An input (a dump's file, the RAS service of a user) is not read for a week after one such death: the
// memory was clearly the reader's, and one lost input costs little.
//
// Stored in <state_dir>/quarantine.json, which an operator may read, edit and delete. One thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/daemon/self/black_box.h"
#include "base/status.h"
#include "base/time.h"
#include "core/rules/rule.h"

namespace culprit::app {

struct Quarantined {
  std::string kind;  // "rule", "plugin", "job" or "input"
  std::string id, why;
  uint64_t text_hash = 0;
  TimeNs since_ns = kNoTime;  // time of the last death in this rule, plugin, job or input
  uint32_t deaths = 1;
  bool is_active = false;  // true: disabled; false: only recorded
};

class Quarantine {
 public:
  // A missing file is an empty list. An unreadable or damaged file is an error: continue with an empty list,
  // which replaces the file at the next write.
  static Result<Quarantine> read(const std::string& path);
  explicit Quarantine(std::string path) : path_(std::move(path)) {}

  // Adds the rule or job and writes the file. Returns whether it is now disabled.
  Result<bool> add(const BlackBox::Crashed& crashed, TimeNs now);
  // Removes rules that are gone or whose text changed; writes the file if anything changed.
  Status keep_only(std::span<const rules::Rule> rules);

  const std::vector<Quarantined>& items() const { return items_; }
  std::vector<std::string> rules() const;             // ids, for EngineOptions::quarantined
  std::vector<std::string> jobs(TimeNs now) const;    // ids, for LiveOptions::evidence_only
  std::vector<std::string> inputs(TimeNs now) const;  // names in the black box's form
  std::vector<std::string> plugins() const;           // names of plugins that the daemon does not run
                                                      // in-process

 private:
  std::vector<std::string> within_a_week(std::string_view kind, TimeNs now) const;
  Status write() const;
  std::string path_;
  std::vector<Quarantined> items_;
};

}  // namespace culprit::app
