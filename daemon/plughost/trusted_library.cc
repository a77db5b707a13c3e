#include "plughost/trusted_library.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "io/system_error.h"

namespace culprit::plughost {
namespace {

tl::unexpected<Error> system_reason(int number) {
  Error error = io::system_error("x", number);
  error.text.erase(0, 3);
  return tl::unexpected(std::move(error));
}

// "root", "user 12002"; no name, because a look-up may ask a hung network service.
std::string user_of(uid_t uid) { return uid == 0 ? "root" : fmt::format("user {}", uid); }

Status check_rights(const std::string& what, const struct stat& status, uid_t trusted_uid) {
  if (status.st_uid != 0 && status.st_uid != trusted_uid)
    return fail(ErrorCode::kDenied, fmt::format("{} belongs to {}, who is not trusted; run chown root {}",
                                                what, user_of(status.st_uid), what));
  if (S_ISLNK(status.st_mode)) return {};
  const bool sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || sticky) return {};
  return fail(ErrorCode::kDenied, fmt::format("{} has mode {:04o}, so that others could replace it; run "
                                              "chmod go-w {}",
                                              what, status.st_mode & 07777, what));
}

// Of each folder of the path, and of its last component.
Status check_components(const std::string& path, uid_t trusted_uid) {
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    struct stat status;
    if (::lstat(part.c_str(), &status) != 0) return system_reason(errno);
    if (const Status sound = check_rights(part, status, trusted_uid); !sound) return sound;
  }
  return {};
}

Status check_opened(int descriptor, const std::string& path, uid_t trusted_uid) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return system_reason(errno);
  if (!S_ISREG(status.st_mode)) return fail(ErrorCode::kInvalid, "it is no regular file");
  char real[PATH_MAX + 1];
  const ssize_t size = ::readlink(fmt::format("/proc/self/fd/{}", descriptor).c_str(), real, PATH_MAX);
  if (size < 0) return system_reason(errno);
  if (const Status sound = check_rights(path, status, trusted_uid); !sound) return sound;
  for (const std::string& written : {path, std::string(real, static_cast<size_t>(size))})
    if (const Status sound = check_components(written, trusted_uid); !sound) return sound;
  return {};
}

}  // namespace

Result<int> open_trusted_library(const std::string& path, uid_t trusted_uid) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return system_reason(errno);
  const Status sound = check_opened(descriptor, path, trusted_uid);
  if (sound) return descriptor;
  ::close(descriptor);
  return tl::unexpected(sound.error());
}

}  // namespace culprit::plughost
