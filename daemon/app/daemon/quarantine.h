// Rules (and in-process plugins) that the process died in, and that are not run again until their text
// changes: those in which it died twice within a week, or once after it had stood still in them for longer
// than the watchdog allows. One death alone says little: the OOM killer, an operator's kill or a fault of
// something else ends the process wherever it is, and that may be in any rule. Ends that the process chooses
// itself (SIGTERM, a disk that hangs) name no rule.
//
// Kept in <state_dir>/quarantine.json, which an operator may read, edit and delete. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/daemon/black_box.h"
#include "base/status.h"
#include "base/time.h"
#include "core/rules/rule.h"

namespace culprit::app {

struct Quarantined {
  std::string kind;  // "rule" or "plugin"
  std::string id, why;
  uint64_t text_hash = 0;
  TimeNs since_ns = kNoTime;  // when the process died in it last
  uint32_t deaths = 1;
  bool stands = false;  // it is not run; else it is only remembered
};

class Quarantine {
 public:
  // A file that is missing is an empty list; one that cannot be read or is damaged is an error: go on with
  // an empty one, which replaces the file when there is something to keep.
  static Result<Quarantine> read(const std::string& path);
  explicit Quarantine(std::string path) : path_(std::move(path)) {}

  // Keeps it, on disk too. Whether it is not run any more.
  Result<bool> add(const BlackBox::Crashed& crashed, TimeNs now);
  // Forgets rules whose text is another now, or that are gone; writes where something changed.
  Status keep_only(std::span<const rules::Rule> rules);

  const std::vector<Quarantined>& items() const { return items_; }
  std::vector<std::string> rules() const;  // ids, for EngineOptions::quarantined

 private:
  Status write() const;
  std::string path_;
  std::vector<Quarantined> items_;
};

}  // namespace culprit::app
