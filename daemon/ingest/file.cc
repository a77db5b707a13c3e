#include "ingest/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace culprit::ingest {
namespace {

// Repeats `once(out, size, done)` until `size` bytes are read, the input ends, or an error occurs.
template <class Once>
ReadOutcome read_full(char* out, size_t size, Once once) {
  ReadOutcome outcome;
  while (outcome.bytes < size) {
    const ssize_t n = once(out + outcome.bytes, size - outcome.bytes, outcome.bytes);
    if (n == 0) break;
    if (n > 0) {
      outcome.bytes += static_cast<size_t>(n);
    } else if (errno != EINTR && errno != EAGAIN) {
      outcome.error = errno;
      break;
    }
  }
  return outcome;
}

// Waits until the stream is readable or at its end; false once `stop` is set. The signal that sets `stop` may
// interrupt another thread, so this thread polls it.
bool wait_for(int descriptor, const std::atomic<bool>* stop) {
  constexpr int kLookMs = 100;  // an unnoticeable delay after Ctrl-C
  for (;;) {
    if (stop && *stop) return false;
    struct pollfd ready = {descriptor, POLLIN, 0};
    const int found = ::poll(&ready, 1, stop ? kLookMs : -1);
    if (found > 0 || (found < 0 && errno != EINTR)) return true;  // the read reports the error
  }
}

// O_NONBLOCK: opening a pipe without a writer would block before fstat() can identify it.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

const char* name_of_type(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<File> File::opened(int descriptor, const std::string& subject) {
  File file;
  file.descriptor_ = descriptor;
  struct stat status;
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0)
    return tl::unexpected(system_error(subject, errno));
  const bool regular = S_ISREG(status.st_mode);
  file.stream_ = descriptor == STDIN_FILENO || S_ISFIFO(status.st_mode);
  if (!regular && !file.stream_)
    return fail(ErrorCode::kInvalid, subject + ": is " + name_of_type(status.st_mode) + ", not a file");
  if (!regular) return file;
  file.modified_ns_ = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
  if (!file.stream_) file.size_ = static_cast<uint64_t>(status.st_size);
  // Only requests a larger read-ahead; a failure has no effect.
  (void)::posix_fadvise(file.descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  return file;
}

Result<File> File::open(const std::string& path) {
  auto file = opened(::open(path.c_str(), kOpenFlags), path);
  if (file && file->stream_) return fail(ErrorCode::kInvalid, path + ": is a pipe, not a file");
  return file;
}

Result<File> File::open_stream(const std::string& path, const std::atomic<bool>* stop) {
  auto file =
      path == "-" ? opened(STDIN_FILENO, "standard input") : opened(::open(path.c_str(), kOpenFlags), path);
  if (file) file->stop_ = stop;
  return file;
}

File::File(File&& other) noexcept { *this = std::move(other); }

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(stream_, other.stream_);
  std::swap(stop_, other.stop_);
  std::swap(size_, other.size_);
  std::swap(modified_ns_, other.modified_ns_);
  return *this;
}

File::~File() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

ReadOutcome File::read(char* out, size_t size) {
  return read_full(out, size, [this](char* to, size_t n, size_t) -> ssize_t {
    if (stream_ && !wait_for(descriptor_, stop_)) return 0;
    return ::read(descriptor_, to, n);
  });
}

ReadOutcome File::read_at(char* out, size_t size, uint64_t offset) const {
  return read_full(out, size, [this, offset](char* to, size_t n, size_t done) {
    return ::pread(descriptor_, to, n, static_cast<off_t>(offset + done));
  });
}

uint64_t File::data_from(uint64_t offset) const {
  const off_t found = ::lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return static_cast<uint64_t>(found);
  // ENXIO: only a hole or the end follows. Other errors, of file systems without holes: all is data.
  return errno == ENXIO && offset < size_ ? size_ : offset;
}

}  // namespace culprit::ingest
