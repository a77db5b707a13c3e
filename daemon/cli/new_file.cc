#include "cli/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/random.h"

namespace culprit::cli {
namespace {

constexpr int kNamesTried = 8;  // names of 64 random bits: a second collision is an attack

tl::unexpected<Error> new_file_failure(const std::string& path, int error) {
  return tl::unexpected(
      Error{ErrorCode::kIo, fmt::format("{}: {}", path, std::generic_category().message(error))});
}

}  // namespace

NewFile::NewFile(std::string path, int folder) : path_(std::move(path)), folder_(folder) {
  name_ = path_.substr(path_.rfind('/') + 1);  // npos + 1 is 0
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      name_(std::move(other.name_)),
      temporary_(std::exchange(other.temporary_, {})),
      folder_(std::exchange(other.folder_, -1)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlinkat(folder_, temporary_.c_str(), 0);
  if (folder_ >= 0) ::close(folder_);
}

Result<NewFile> NewFile::create(const std::string& path, mode_t mode) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  NewFile out(path, ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (out.folder_ < 0) return new_file_failure(path, errno);
  if (out.name_.empty()) return new_file_failure(path, EISDIR);
  if (const Status made = out.create_temporary(mode); !made) return tl::unexpected(made.error());
  return out;
}

Status NewFile::create_temporary(mode_t mode) {
  int error = EEXIST;
  for (int i = 0; error == EEXIST && i < kNamesTried; ++i) {
    // not longer for a long name_
    const std::string name = fmt::format(".culprit-{:016x}.part", random_number());
    descriptor_ = ::openat(folder_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    error = descriptor_ < 0 ? errno : 0;
    if (error == 0) temporary_ = name;
  }
  return error == 0 ? Status() : failed(error);
}

Status NewFile::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return failed(n < 0 ? errno : EIO);
    text.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Status NewFile::finish() {
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      ::renameat(folder_, temporary_.c_str(), folder_, name_.c_str()) != 0)
    return failed(errno);
  temporary_.clear();
  return {};
}

Status NewFile::failed(int error) const { return new_file_failure(path_, error); }

}  // namespace culprit::cli
