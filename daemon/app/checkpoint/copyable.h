// Checkpoints that are ready to be copied to another host. Blocking; one thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/checkpoint/series.h"

namespace culprit::app {

// The newest whole checkpoint of a series.
struct Copyable {
  std::string root;  // of the watched folder, links resolved
  std::string path;  // relative to it
  std::string format;
  std::optional<int64_t> step;
  TimeNs changed_ns = kNoTime;
  std::vector<std::string> files;                             // relative to the root; regular ones
  std::vector<std::pair<std::string, std::string>> pointers;  // files that name it: relative path, text
};

// Reads headers and sizes only. `parts`: files that are missing on this host are no fault, as other hosts
// have them.
Result<std::vector<Copyable>> find_copyable(const std::string& folder, bool parts, TimeNs now);

}  // namespace culprit::app
