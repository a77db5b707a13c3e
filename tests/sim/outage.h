// Days without a collector, in virtual time: a host writes 100 lines a second to a log that is rotated. Its
// spool fills with what nobody has acknowledged and takes nothing more, so the log waits unread, and what is
// rotated away meanwhile is lost. When the collector comes, everything that stood on the disk must arrive, in
// order and once, and lost bytes must be reported as gaps of just these bytes.
#pragma once

#include <cstdint>
#include <string>

namespace culprit::sim {

// Prints what was broken, or what it measured; false: something was.
bool run_outage(uint64_t days, const std::string& folder);

}  // namespace culprit::sim
