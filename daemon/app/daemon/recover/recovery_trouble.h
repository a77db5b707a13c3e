// Why the controller does nothing, for people: in /v1/recovery, /v1/status, /metrics and the commands.
#pragma once

#include <string>

#include "base/time.h"

namespace culprit::app {

struct RecoveryTrouble {
  std::string text;  // one sentence: subject and reason
  TimeNs since_ns = kNoTime;
  std::string remedy;  // a shell command that mends it, or shows more; empty: another collector acts

  bool is_fault() const { return !remedy.empty(); }
};

}  // namespace culprit::app
