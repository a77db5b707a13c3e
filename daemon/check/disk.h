// A test of a disk: bytes are written to a temporary file without a name, synced, and read again past the
// page cache where the file system allows it.
//
// Blocking, perhaps for ever on a dead mount: run it in a process that may be killed. Leaves nothing behind.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"
#include "check/part.h"

namespace culprit::check {

struct DiskTest {
  std::string folder;
  uint64_t bytes = 64 << 20;
  TimeNs until_ns = 0;  // monotonic
  uint64_t seed = 0;
  bool disturb = false;  // for tests: one byte is changed between writing and reading
};
Part test_disk(const DiskTest& test);

}  // namespace culprit::check
