// Writes the record of advice for one user's job below the folder of the rings. The folder "advice" and the
// record belong to the daemon's user; an access list lets that one user read it, and no other. A record that
// is there is changed in place under its sequence number, since processes have mapped it; a new one is made
// under a temporary name. Links are not followed.
//
// Blocking; one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "model/advice.h"

namespace culprit::respond {

struct AdviceTarget {
  std::string rings;  // the folder
  uint32_t uid = 0;
  std::string job;  // its name, without an owner
};

// The id in the record: the advice's own, or one more than that of the record before, if that is larger.
// `now_ns`: CLOCK_BOOTTIME. An error is one sentence; the record is then as before, or no advice.
Result<uint64_t> put_advice(const AdviceTarget& target, Advice advice, TimeNs now_ns);

// CLOCK_BOOTTIME.
TimeNs since_boot_ns();

}  // namespace culprit::respond
