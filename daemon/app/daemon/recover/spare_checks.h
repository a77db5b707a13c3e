// When the hosts of the pool of spares are checked: each at its arrival in the pool, and again each
// `every_ns`. No answer is asked for again later, and reported once; it says nothing about the host.
//
// Time is an argument; nothing blocks. One thread. Memory: one entry per spare.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/recover/controller.h"

namespace culprit::app {

class SpareChecks {
 public:
  static constexpr size_t kAtOnce = 8;                          // checks that run, of all spares
  static constexpr TimeNs kFirstDelay = 600 * kNsPerSecond;     // to the next one without an answer, doubled
  static constexpr TimeNs kAfterFailure = 3600 * kNsPerSecond;  // of a host that was not isolated

  // Spares to check now. Those that left the pool are forgotten. `every_ns` 0: none is due.
  std::vector<std::string> due(const std::vector<std::string>& spares, TimeNs every_ns, TimeNs now);

  struct Taken {
    bool is_spare = false;  // a check of ours: the answer is about a spare
    std::string note;       // what a person should know; empty: nothing new
  };
  Taken answered(const recover::HostChecked& answer, TimeNs now);
  // Spares whose latest answer is a failure.
  std::vector<std::string> failed() const;

 private:
  struct Spare {
    bool waits = false;  // for an answer
    std::optional<recover::CheckAnswer> last;
    std::string why;  // of the last answer that was none; reported
    TimeNs next_ns = kNoTime, delay_ns = kFirstDelay;
  };
  std::map<std::string, Spare> spares_;
  TimeNs every_ns_ = 0;
};

}  // namespace culprit::app
