// Days without a collector, in virtual time. A host writes 100 lines a second to a rotated log. Its spool
// fills with unacknowledged frames and takes no more, so the log waits unread, and parts rotated away
// meanwhile are lost. When the collector returns, everything on the disk must arrive, in order and once. Lost
// bytes must be reported as gaps of exactly these bytes.
#pragma once

#include <cstdint>
#include <string>

namespace culprit::sim {

// Prints a failure, or the measured values; false: a failure.
bool run_outage(uint64_t days, const std::string& folder);

}  // namespace culprit::sim
