#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "app/checkpoint/folder.h"
#include "app/checkpoint/look.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr int kNamesTried = 100;

// The folder of a series; closes its descriptor.
class Place {
 public:
  Place(const std::string& root, const std::string& folder) {
    const int at = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) return;
    folder_ = open_below(at, folder);
    ::close(at);
  }
  Place(const Place&) = delete;
  ~Place() {
    if (folder_ >= 0) ::close(folder_);
  }
  bool is_open() const { return folder_ >= 0; }

  // Renames to NAME.torn, or NAME.2.torn and so on, without replacing a file. Returns the new name.
  Result<std::string> set_aside(const std::string& name, const std::string& ending) {
    for (int n = 1; n <= kNamesTried; ++n) {
      const std::string to = n == 1 ? name + ending : fmt::format("{}.{}{}", name, n, ending);
      if (::renameat2(folder_, name.c_str(), folder_, to.c_str(), RENAME_NOREPLACE) == 0) return to;
      if (errno != EEXIST && errno != ENOTEMPTY) return io::system_failure(name, errno);
    }
    return fail(ErrorCode::kBusy, name + ": no free name next to it");
  }

  // Adds a second name for the content, so that the first can be replaced.
  Status keep_copy(const std::string& name) {
    for (int n = 1; n <= kNamesTried; ++n) {
      const std::string to = n == 1 ? name + ".before" : fmt::format("{}.{}.before", name, n);
      if (::linkat(folder_, name.c_str(), folder_, to.c_str(), 0) == 0) return {};
      if (errno != EEXIST) return io::system_failure(name, errno);
    }
    return fail(ErrorCode::kBusy, name + ": no free name next to it");
  }

  Status rewrite(const std::string& name, const std::string& text, bool is_link) {
    if (Status stored = keep_copy(name); !stored) return stored;
    const std::string temporary = fmt::format(".{}.culprit-{}", name, ::getpid());
    if (Status made = is_link ? make_link(temporary, text) : write(temporary, text, mode_of(name)); !made) {
      ::unlinkat(folder_, temporary.c_str(), 0);
      return made;
    }
    if (::renameat(folder_, temporary.c_str(), folder_, name.c_str()) == 0) return {};
    const int error = errno;
    ::unlinkat(folder_, temporary.c_str(), 0);
    return io::system_failure(name, error);
  }

  void sync() { ::fsync(folder_); }

 private:
  mode_t mode_of(const std::string& name) const {
    struct stat info {};
    return ::fstatat(folder_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_mode & 0777 : 0644;
  }
  Status make_link(const std::string& name, const std::string& target) {
    return ::symlinkat(target.c_str(), folder_, name.c_str()) == 0 ? Status()
                                                                   : io::system_failure(name, errno);
  }
  Status write(const std::string& name, const std::string& text, mode_t mode) {
    const int file =
        ::openat(folder_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file < 0) return io::system_failure(name, errno);
    const bool done = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                      ::fchmod(file, mode) == 0 && ::fsync(file) == 0;
    const int error = errno;
    ::close(file);
    return done ? Status() : io::system_failure(name, error);
  }

  int folder_ = -1;
};

}  // namespace

Status fall_back(const CheckpointLook& look, const SeriesLook& series, std::vector<std::string>& done) {
  const auto plan = checkpoint::plan_fall_back(series.checkpoints, series.pointers);
  if (!plan) return tl::unexpected(plan.error());
  Place place(look.root, series.folder);
  if (!place.is_open()) return io::system_failure(look.root + "/" + series.folder, errno);
  // Rewrites the pointer first, so that it never names a missing checkpoint.
  for (const auto& [pointer, text] : plan->rewrite) {
    if (Status made = place.rewrite(std::string(checkpoint::name_of(pointer.path)), text, pointer.is_link);
        !made)
      return made;
    done.push_back(fmt::format("{} now names {}; the old one is kept as {}.before", pointer.path,
                               checkpoint::name_of(plan->to), pointer.path));
  }
  for (const std::string& path : plan->aside) {
    const auto name = place.set_aside(std::string(checkpoint::name_of(path)), ".torn");
    if (!name) return tl::unexpected(name.error());
    done.push_back(fmt::format("{} is now {}", path, *name));
  }
  if (!done.empty()) place.sync();
  return {};
}

}  // namespace culprit::app
