#include "disk_faults.h"

#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/check.h"

namespace culprit::sim {
namespace {

DiskFaults* faults = nullptr;

bool refused() {
  const int error = faults ? faults->refuse() : 0;
  if (error != 0) errno = error;
  return error != 0;
}

ssize_t sim_write(int descriptor, const void* bytes, size_t size) {
  return refused() ? -1 : write(descriptor, bytes, size);
}
ssize_t sim_pwrite(int descriptor, const void* bytes, size_t size, off_t offset) {
  return refused() ? -1 : pwrite(descriptor, bytes, size, offset);
}

}  // namespace

DiskFaults::DiskFaults(uint64_t seed) : random_(seed) {
  CULPRIT_CHECK(!faults);
  faults = this;
  std::signal(SIGXFSZ, SIG_IGN);
  // SQLite uses one of the three, by how it was built.
  sqlite3_initialize();
  sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
  vfs->xSetSystemCall(vfs, "write", reinterpret_cast<sqlite3_syscall_ptr>(sim_write));
  vfs->xSetSystemCall(vfs, "pwrite", reinterpret_cast<sqlite3_syscall_ptr>(sim_pwrite));
  vfs->xSetSystemCall(vfs, "pwrite64", reinterpret_cast<sqlite3_syscall_ptr>(sim_pwrite));
}

DiskFaults::~DiskFaults() {
  limit(false);
  faults = nullptr;
}

void DiskFaults::fill(bool full) {
  full_ = full;
  limit(full_ || dead_);
}

void DiskFaults::set_dead(bool dead) {
  dead_ = dead;
  if (dead) dies_in_ = 0;
  limit(full_ || dead_);
}

void DiskFaults::die_at(uint64_t writes, std::function<void()> on_death) {
  dies_in_ = writes;
  on_death_ = std::move(on_death);
}

int DiskFaults::refuse() {
  if (dies_in_ > 0 && --dies_in_ == 0) {
    set_dead(true);
    on_death_();
  }
  if (dead_) return EIO;
  const bool fails = full_ || (failing_per_mille_ > 0 && random_.per_mille(failing_per_mille_));
  failed_ += fails;
  return !fails ? 0 : full_ ? ENOSPC : EIO;
}

// Of the soft limit alone: it may be raised again.
void DiskFaults::limit(bool none) {
  rlimit now;
  CULPRIT_CHECK(getrlimit(RLIMIT_FSIZE, &now) == 0);
  now.rlim_cur = none ? 0 : now.rlim_max;
  CULPRIT_CHECK(setrlimit(RLIMIT_FSIZE, &now) == 0);
}

}  // namespace culprit::sim
