#include "ingest/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <system_error>
#include <utility>

namespace culprit::ingest {
namespace {

// Repeats `once(out, size, done)` until `size` bytes are there, the input ends or fails.
template <class Once>
ReadOutcome read_full(char* out, size_t size, Once once) {
  ReadOutcome outcome;
  while (outcome.bytes < size) {
    const ssize_t n = once(out + outcome.bytes, size - outcome.bytes, outcome.bytes);
    if (n == 0) break;
    if (n > 0) {
      outcome.bytes += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      // Standard input that somebody made non-blocking: wait for it.
      struct pollfd ready = {STDIN_FILENO, POLLIN, 0};
      (void)::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      outcome.error = errno;
      break;
    }
  }
  return outcome;
}

const char* name_of_type(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Error system_error(const std::string& subject, int error) {
  std::string reason = std::generic_category().message(error);
  // "Permission denied" reads on after the subject, "Input/output error" does too; no reason begins with a
  // name.
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  ErrorCode code = ErrorCode::kIo;
  if (error == ENOENT || error == ENOTDIR) code = ErrorCode::kNotFound;
  if (error == EACCES || error == EPERM) code = ErrorCode::kDenied;
  return Error{code, (subject.empty() ? "\"\"" : subject) + ": " + reason};
}

Result<File> File::open(const std::string& path) {
  File file;
  const bool standard_input = path == "-";
  // O_NONBLOCK: a pipe without a writer would hold us up before we could see that it is one.
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  file.descriptor_ = standard_input ? STDIN_FILENO : ::open(path.c_str(), flags);
  if (file.descriptor_ < 0) return tl::unexpected(system_error(path, errno));
  struct stat status;
  if (::fstat(file.descriptor_, &status) != 0) {
    const int error = errno;
    return tl::unexpected(system_error(standard_input ? "standard input" : path, error));
  }
  if (!standard_input && !S_ISREG(status.st_mode))
    return fail(ErrorCode::kInvalid, path + ": is " + name_of_type(status.st_mode) + ", not a file");
  if (!S_ISREG(status.st_mode)) return file;
  file.modified_ns_ = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
  if (!standard_input) file.size_ = static_cast<uint64_t>(status.st_size);
  // Only a wider read-ahead is asked for: its refusal changes nothing.
  (void)::posix_fadvise(file.descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  return file;
}

File::File(File&& other) noexcept { *this = std::move(other); }

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(modified_ns_, other.modified_ns_);
  return *this;
}

File::~File() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

ReadOutcome File::read(char* out, size_t size) {
  return read_full(out, size, [this](char* to, size_t n, size_t) { return ::read(descriptor_, to, n); });
}

ReadOutcome File::read_at(char* out, size_t size, uint64_t offset) const {
  return read_full(out, size, [this, offset](char* to, size_t n, size_t done) {
    return ::pread(descriptor_, to, n, static_cast<off_t>(offset + done));
  });
}

uint64_t File::data_from(uint64_t offset) const {
  const off_t found = ::lseek(descriptor_, static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return static_cast<uint64_t>(found);
  // ENXIO: nothing but a hole follows, or the end; file systems without holes answer otherwise: all is data.
  return errno == ENXIO && offset < size_ ? size_ : offset;
}

}  // namespace culprit::ingest
