#include "io/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/system_error.h"

namespace culprit::io {
namespace {

// Repeats a call that a signal interrupted.
template <class Call>
auto again(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Handle final : public FileHandle {
 public:
  Handle(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}
  ~Handle() override { ::close(descriptor_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Status append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = again([&] { return ::write(descriptor_, bytes.data(), bytes.size()); });
      if (n < 0) return system_failure(path_, errno);
      // A nearly full disk accepts part of the bytes and reports the reason at the next call.
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }

  Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = again(
          [&] { return ::pread(descriptor_, out + done, size - done, static_cast<off_t>(offset + done)); });
      if (n < 0) return system_failure(path_, errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  Status truncate(uint64_t size) override {
    if (again([&] { return ::ftruncate(descriptor_, static_cast<off_t>(size)); }) == 0) return {};
    return system_failure(path_, errno);
  }

  Status sync() override {
    if (again([&] { return ::fdatasync(descriptor_); }) == 0) return {};
    return system_failure(path_, errno);
  }

  Result<FileStatus> status() override {
    struct stat status;
    if (::fstat(descriptor_, &status) != 0) return system_failure(path_, errno);
    struct statx more = {};
    // Old kernels and sandboxes may lack statx().
    if (::statx(descriptor_, "", AT_EMPTY_PATH, STATX_BTIME, &more) != 0 && errno != ENOSYS && errno != EPERM)
      return system_failure(path_, errno);
    const bool born = (more.stx_mask & STATX_BTIME) != 0;
    return FileStatus{static_cast<uint64_t>(status.st_size), status.st_dev, status.st_ino,
                      status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec,
                      born ? more.stx_btime.tv_sec * kNsPerSecond + more.stx_btime.tv_nsec : kNoTime};
  }

 private:
  const int descriptor_;
  const std::string path_;
};

int flags_of(OpenFor what) {
  switch (what) {
    case OpenFor::kRead:
      return O_RDONLY;
    case OpenFor::kAppend:
      return O_RDWR | O_APPEND;
    case OpenFor::kCreate:
      return O_RDWR | O_APPEND | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

int open_again(const std::string& path, int flags) {
  return again([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0600); });
}

class RealFiles final : public Files {
 public:
  Result<std::unique_ptr<FileHandle>> open(const std::string& path, OpenFor what) override {
    const int descriptor = open_again(path, flags_of(what));
    if (descriptor < 0) return system_failure(path, errno);
    return std::make_unique<Handle>(descriptor, path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) == 0) return {};
    return system_failure(from + " to " + to, errno);
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return {};
    return system_failure(path, errno);
  }

  Status make_folder(const std::string& path) override {
    for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
      const std::string part = path.substr(0, end);
      // mkdir() may fail with another error for an existing folder, if we may not write to its parent.
      if (!is_folder(part) && ::mkdir(part.c_str(), 0700) != 0 && !(errno == EEXIST && is_folder(part))) {
        if (errno == EEXIST) return fail(ErrorCode::kInvalid, part + ": is there already and is no folder");
        return system_failure(part, errno);
      }
      if (end == path.npos) return {};
    }
  }

  Result<std::vector<std::string>> list(const std::string& folder) override {
    DIR* open = ::opendir(folder.c_str());
    if (open == nullptr) return system_failure(folder, errno);
    std::vector<std::string> names;
    for (errno = 0; const dirent* entry = ::readdir(open); errno = 0) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int failed = errno;
    ::closedir(open);
    if (failed != 0) return system_failure(folder, failed);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status sync_folder(const std::string& folder) override {
    const int descriptor = open_again(folder, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return system_failure(folder, errno);
    const int failed = again([&] { return ::fsync(descriptor); }) == 0 ? 0 : errno;
    ::close(descriptor);
    if (failed != 0) return system_failure(folder, failed);
    return {};
  }

  Result<DiskSpace> space(const std::string& folder) override {
    struct statvfs status;
    if (again([&] { return ::statvfs(folder.c_str(), &status); }) != 0) return system_failure(folder, errno);
    const auto bytes = [&](fsblkcnt_t blocks) { return static_cast<uint64_t>(blocks) * status.f_frsize; };
    return DiskSpace{bytes(status.f_bavail), bytes(status.f_blocks - status.f_bfree)};
  }

 private:
  static bool is_folder(const std::string& path) {
    struct stat status;
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  }
};

}  // namespace

Files& real_files() {
  static RealFiles files;
  return files;
}

}  // namespace culprit::io
