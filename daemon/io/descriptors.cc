#include "io/descriptors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace culprit::io {
namespace {

// Same as LimitNOFILE in the systemd unit.
constexpr rlim_t kMost = 131'072;
// The reserve: a hundred clients of the API, segments of the spool and the archive, the index, the reload.
constexpr size_t kReserve = 256;

size_t limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return 1024;
  return static_cast<size_t>(std::min(files.rlim_cur, rlim_t{1} << 30));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (number_ >= 0) ::close(number_);
    number_ = other.release();
  }
  return *this;
}
Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}
int Descriptor::release() { return std::exchange(number_, -1); }

void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = std::min(files.rlim_max, kMost);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  (void)::setrlimit(RLIMIT_NOFILE, &files);  // on failure the old limit stays
}

size_t input_descriptors() {
  const size_t all = limit();
  return all - std::min(kReserve, all / 4);
}

bool is_reserved(int descriptor) {
  return descriptor >= 0 && static_cast<size_t>(descriptor) >= input_descriptors();
}

}  // namespace culprit::io
