// Sentences for the daemon's log about who read which evidence: each source once a minute per reader, and at
// most kSourcesPerMinute sources; further reads of the minute are counted. Pure: time is an argument. One
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "serve/api.h"

namespace culprit::app {

class ReadAudit {
 public:
  static constexpr size_t kSourcesPerMinute = 100;  // `culprit bundle` reads all sources of a job
  static constexpr size_t kReaders = 1000;

  // What to log now: about this read, and about earlier minutes. `mono`: a clock that never steps.
  std::vector<std::string> on_read(const serve::EvidenceQuery& query, const serve::Reader& reader,
                                   TimeNs mono);

 private:
  struct Minute {
    TimeNs since = kNoTime;
    std::set<std::string> sources;
    uint64_t left_out = 0;
  };
  std::map<std::string, Minute> readers_;
  uint64_t unlisted_ = 0;  // reads of readers beyond kReaders
};

}  // namespace culprit::app
