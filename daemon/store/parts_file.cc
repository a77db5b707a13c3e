#include "store/parts_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace culprit::store {
namespace {

Status failed(const std::string& path) {
  return fail(ErrorCode::kIo, fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

std::string PartsFile::part(uint32_t number) const {
  return number == 0 ? path_ : fmt::format("{}.{}", path_, number);
}

Status PartsFile::append(std::string_view text) {
  const int fd = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed(path_);
  Status status;
  while (!text.empty() && status) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0)
      text.remove_prefix(static_cast<size_t>(n));
    else if (errno != EINTR)
      status = failed(path_);
  }
  ::close(fd);
  return status;
}

Status PartsFile::begin_part() {
  for (uint32_t number = parts_ - 1; number > 0; --number)
    if (std::rename(part(number - 1).c_str(), part(number).c_str()) != 0 && errno != ENOENT)
      return failed(part(number - 1));
  if (parts_ == 1 && std::remove(path_.c_str()) != 0 && errno != ENOENT) return failed(path_);
  return {};
}

}  // namespace culprit::store
