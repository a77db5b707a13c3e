// Faults of the disk below SQLite and the spool, which write to real files: writes fail now and then, the
// disk is full, or the process dies within a write. One per process, one thread.
//
// SQLite offers its system calls for replacement; a full disk is also a limit of file sizes for the process
// (EFBIG in place of ENOSPC), so that the spool meets it. Nothing is printed meanwhile.
#pragma once

#include <cstdint>
#include <functional>

#include "sim/random.h"

namespace culprit::sim {

class DiskFaults {
 public:
  explicit DiskFaults(uint64_t seed);
  ~DiskFaults();
  DiskFaults(const DiskFaults&) = delete;

  void fail(uint32_t per_mille) { failing_per_mille_ = per_mille; }  // of SQLite's writes
  void fill(bool full);
  // Within this write of SQLite's, counted from now, `on_death` is called and no write succeeds any more.
  void die_at(uint64_t writes, std::function<void()> on_death);
  // The process is dead: what its objects write while they are destroyed has no effect.
  void set_dead(bool dead);
  bool failing() const { return full_ || failing_per_mille_ > 0; }
  uint64_t failed() const { return failed_; }

  int refuse();  // errno of this write, 0: it is done

 private:
  void limit(bool none);

  Random random_;
  uint32_t failing_per_mille_ = 0;
  uint64_t dies_in_ = 0, failed_ = 0;
  bool full_ = false, dead_ = false;
  std::function<void()> on_death_;
};

}  // namespace culprit::sim
