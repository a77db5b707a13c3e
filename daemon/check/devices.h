// What the kernel shows of this host's hardware, without root: PCIe links that are narrower or slower than
// both ends allow, devices that do not answer, fatal PCIe errors, uncorrected errors of memory.
//
// Blocking on /sys; any thread. Unknown values count for nothing.
#pragma once

#include <string>

#include "check/part.h"

namespace culprit::check {

Part check_pcie(const std::string& sys = "/sys");
// Uncorrected errors since boot, by the EDAC drivers; no answer where there are none.
Part check_memory_errors(const std::string& sys = "/sys");
// GPUs and other accelerators on the PCI bus.
size_t count_accelerators(const std::string& sys = "/sys");

}  // namespace culprit::check
