#include "respond/checkpoint/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/system_error.h"

namespace culprit::respond::checkpoint {
namespace {

// Opens the parent folder of `path` below the open folder `root`; closes `root`. -1 and errno.
int open_parent(int root, std::string_view path) {
  int at = root;
  for (size_t slash = path.find('/'); at >= 0 && slash != path.npos; slash = path.find('/')) {
    const std::string part(path.substr(0, slash));
    const int next = ::openat(at, part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error = errno;
    ::close(at);
    errno = error;
    at = next;
    path.remove_prefix(slash + 1);
  }
  return at;
}

}  // namespace

Result<SourceFile> SourceFile::open(const std::string& root, const std::string& path) {
  const std::string name = root + "/" + path;
  if (!copies::is_safe_path(path)) return fail(ErrorCode::kInvalid, name + ": has no usable name");
  const int top = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (top < 0) return io::system_failure(root, errno);
  struct stat of_root {};
  if (::fstat(top, &of_root) != 0) {
    const int error = errno;
    ::close(top);
    return io::system_failure(root, error);
  }
  const int parent = open_parent(top, path);
  if (parent < 0) return io::system_failure(name, errno);
  const std::string last = path.substr(path.rfind('/') + 1);
  const int file = ::openat(parent, last.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  const int error = errno;
  ::close(parent);
  if (file < 0) return io::system_failure(name, error);
  SourceFile out(file, root, path);
  struct stat info {};
  if (::fstat(file, &info) != 0) return io::system_failure(name, errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kInvalid, name + ": is no regular file");
  if (info.st_dev != of_root.st_dev)
    return fail(ErrorCode::kInvalid, name + ": is on another file system than its folder");
  // Read-ahead would load pages that read() could not take for its own.
  (void)::posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
  return out;
}

SourceFile::SourceFile(SourceFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      root_(std::move(other.root_)),
      path_(std::move(other.path_)) {}

SourceFile& SourceFile::operator=(SourceFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(root_, other.root_);
  std::swap(path_, other.path_);
  return *this;
}

SourceFile::~SourceFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<copies::File> SourceFile::facts() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return io::system_failure(name(), errno);
  copies::File out;
  out.path = path_;
  out.size = static_cast<uint64_t>(info.st_size);
  out.modified_ns = std::max<TimeNs>(0, info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec);
  out.mode = info.st_mode & 0777;
  out.uid = info.st_uid;
  out.gid = info.st_gid;
  return out;
}

Result<uint64_t> SourceFile::changed_mark() const {
  struct stat info {};
  if (::fstat(descriptor_, &info) != 0) return io::system_failure(name(), errno);
  return static_cast<uint64_t>(info.st_ctim.tv_sec * kNsPerSecond + info.st_ctim.tv_nsec) * 31 + info.st_ino;
}

Result<size_t> SourceFile::read(char* out, size_t size, uint64_t offset) {
  size_t done = 0;
  while (done < size) {
    iovec at{out + done, size - done};
    const auto from = static_cast<off_t>(offset + done);
    ssize_t n = ::preadv2(descriptor_, &at, 1, from, RWF_NOWAIT);
    if (n > 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    n = ::pread(descriptor_, out + done, size - done, from);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io::system_failure(name(), errno);
    if (n == 0) break;
    (void)::posix_fadvise(descriptor_, from, n, POSIX_FADV_DONTNEED);
    done += static_cast<size_t>(n);
  }
  return done;
}

Result<std::vector<copies::File>> describe(const std::string& root, const std::vector<std::string>& paths) {
  std::vector<copies::File> out;
  for (const std::string& path : paths) {
    auto file = SourceFile::open(root, path);
    if (!file) return tl::unexpected(file.error());
    auto facts = file->facts();
    if (!facts) return tl::unexpected(facts.error());
    out.push_back(std::move(*facts));
  }
  return out;
}

}  // namespace culprit::respond::checkpoint
