#include "io/trusted_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <fstream>
#include <optional>

#include "base/text.h"
#include "io/descriptors.h"
#include "io/system_error.h"

namespace culprit::io {
namespace {

constexpr int kWalkFlags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
constexpr int kFileFlags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
constexpr int kProgramFlags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
constexpr int kLinks = 40;  // the kernel's own limit

bool any_user_writes(const struct stat& folder) { return (folder.st_mode & S_IWOTH) != 0; }
bool others_write(const struct stat& entry) { return (entry.st_mode & (S_IWGRP | S_IWOTH)) != 0; }
bool is_sticky(const struct stat& folder) {
  return S_ISDIR(folder.st_mode) && (folder.st_mode & S_ISVTX) != 0;
}

bool is_read_only(const Descriptor& at) {
  struct statvfs info {};
  return ::fstatvfs(at.get(), &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

// The overflow uid of our user namespace, if the host's root is not mapped there; nullopt: root is mapped.
std::optional<uid_t> uid_of_unknown_root() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0, outside = 0, count = 0;
  bool any = false;
  for (; map >> inside >> outside >> count; any = true)
    if (outside == 0 && count > 0) return std::nullopt;
  uid_t overflow = 0;
  if (!any || !(std::ifstream("/proc/sys/kernel/overflowuid") >> overflow)) return std::nullopt;
  return overflow;
}

// "user 12002", without a name: a look-up may block on a hung network service.
std::string user(uid_t uid) { return uid == 0 ? "root" : fmt::format("user {}", uid); }

enum class Wanted : uint8_t { kFolder, kFile, kProgram };

class Walk {
 public:
  Walk(uid_t trusted_uid, Writers writers)
      : trusted_uid_(trusted_uid), unknown_root_(uid_of_unknown_root()), writers_(writers) {}

  Result<int> open(const std::string& path, Wanted wanted) {
    const bool file = wanted != Wanted::kFolder;
    if (wanted == Wanted::kProgram) file_flags_ = kProgramFlags;
    if (const Status begun = begin(path); !begun) return tl::unexpected(begun.error());
    while (!parts_.empty()) {
      const std::string part = std::move(parts_.front());
      parts_.pop_front();
      if (const Status stepped = step(part, file && parts_.empty()); !stepped)
        return tl::unexpected(stepped.error());
    }
    if (file) return file_.is_open() ? Result<int>(file_.release()) : no_file();
    if (shared_ && shared_->owner != status_.st_uid) return replaceable(status_.st_uid);
    Descriptor opened(::openat(at_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.is_open()) return reason();
    return opened.release();
  }

 private:
  // A component of a sticky folder that belongs to neither root nor the trusted user.
  struct Shared {
    std::string path;
    uid_t owner = 0;
  };

  static tl::unexpected<Error> reason() {
    const int number = errno;
    Error error = system_error("x", number);  // the reason without the subject
    error.text.erase(0, 3);
    if (number == ELOOP) error.text = "is a link, or is reached through one, which is not followed";
    return tl::unexpected(std::move(error));
  }
  static tl::unexpected<Error> no_file() { return fail(ErrorCode::kInvalid, "it is no regular file"); }
  bool is_trusted(uid_t uid) const {
    return uid == 0 || uid == trusted_uid_ || (unknown_root_ && uid == *unknown_root_);
  }

  Status begin(const std::string& path) {
    if (!path.starts_with('/')) {
      char folder[PATH_MAX];
      if (!::getcwd(folder, sizeof folder)) return reason();
      add_parts(path);
      add_parts(folder);
    } else {
      add_parts(path);
    }
    if (const Status entered = enter_root(); !entered) return entered;
    return has_trusted_writers("/", at_, status_);
  }

  // Inserts parts at the front: the target of a link precedes the rest.
  void add_parts(const std::string& path) {
    std::vector<std::string> parts;
    for (const std::string_view part : split(path, '/'))
      if (!part.empty() && part != ".") parts.emplace_back(part);
    parts_.insert(parts_.begin(), parts.begin(), parts.end());
  }

  Status enter_root() {
    Descriptor root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root.is_open() || ::fstat(root.get(), &status_) != 0) return reason();
    at_ = std::move(root);
    path_.clear();
    return {};
  }

  // `last`: the last component of a file's path.
  Status step(const std::string& part, bool last) {
    if (part == "..") return enter(Descriptor(::openat(at_.get(), "..", kWalkFlags | O_DIRECTORY)), "..");
    const std::string path = path_ + "/" + part;
    Descriptor next(::openat(at_.get(), part.c_str(), kWalkFlags));
    struct stat status;
    if (!next.is_open() || ::fstat(next.get(), &status) != 0) return reason();
    if (const Status stays = cannot_be_replaced(path, status); !stays) return stays;
    if (const Status sound = has_trusted_writers(path, next, status); !sound) return sound;
    if (S_ISLNK(status.st_mode)) return follow(next, path, status);
    if (last) return open_last(part, path);
    // O_DIRECTORY triggers an automounter's mount.
    return enter(Descriptor(::openat(at_.get(), part.c_str(), kWalkFlags | O_DIRECTORY)), part);
  }

  Status enter(Descriptor next, const std::string& part) {
    if (!next.is_open() || ::fstat(next.get(), &status_) != 0) return reason();
    at_ = std::move(next);
    path_ = part == ".." ? path_.substr(0, path_.rfind('/') == path_.npos ? 0 : path_.rfind('/'))
                         : path_ + "/" + part;
    return {};
  }

  // Reads owner and mode again from the opened descriptor, so that the opened file is the checked one.
  Status open_last(const std::string& part, const std::string& path) {
    Descriptor file(::openat(at_.get(), part.c_str(), file_flags_));
    struct stat status;
    if (!file.is_open() || ::fstat(file.get(), &status) != 0) return reason();
    if (!S_ISREG(status.st_mode)) return no_file();
    if (const Status sound = has_trusted_writers(path, file, status); !sound) return sound;
    if (any_user_writes(status) && !is_read_only(file)) return open_to_all(path, status);
    file_ = std::move(file);
    return {};
  }

  // kOwner: checks the component's own owner and mode.
  Status has_trusted_writers(const std::string& path, const Descriptor& at, const struct stat& status) const {
    if (writers_ != Writers::kOwner) return {};
    if (!is_trusted(status.st_uid))
      return fail(ErrorCode::kDenied, fmt::format("{} belongs to {}, who is not trusted; run chown root {}",
                                                  path, user(status.st_uid), path));
    if (S_ISLNK(status.st_mode) || !others_write(status) || is_sticky(status) || is_read_only(at)) return {};
    return open_to_all(path, status);
  }

  static tl::unexpected<Error> open_to_all(const std::string& path, const struct stat& status) {
    return fail(ErrorCode::kDenied,
                fmt::format("{} has mode {:04o}, so that others could {} it; run chmod "
                            "go-w {}",
                            path, status.st_mode & 07777,
                            S_ISREG(status.st_mode) ? "change" : "replace what is in", path));
  }

  // Whether only trusted users can replace this component.
  Status cannot_be_replaced(const std::string& path, const struct stat& component) {
    if (writers_ == Writers::kOwner || !any_user_writes(status_)) return {};
    const std::string folder = path_.empty() ? "/" : path_;
    if (!is_sticky(status_) && !(writers_ == Writers::kGroup && is_read_only(at_)))
      return fail(
          ErrorCode::kDenied,
          fmt::format("any user could replace {}: {} of {} has mode {:04o}; run chmod o-w {}, or chmod "
                      "+t {}",
                      path, folder, user(status_.st_uid), status_.st_mode & 07777, folder, folder));
    if (is_trusted(component.st_uid)) return {};
    if (writers_ == Writers::kGroup)
      return fail(ErrorCode::kDenied, fmt::format("{} belongs to {}, and any user could have put it there; "
                                                  "run chown root {}",
                                                  path, user(component.st_uid), path));
    if (shared_ && shared_->owner != component.st_uid) return replaceable(component.st_uid);
    shared_ = {path, component.st_uid};
    return {};
  }

  // `below`: owner of the component reached through the shared one.
  tl::unexpected<Error> replaceable(uid_t below) const {
    return fail(ErrorCode::kDenied,
                fmt::format("{0} belongs to {1} and is in a folder that any user may write to, and what is "
                            "watched below it belongs to {2}: {1} could replace it; run chown root {0}",
                            shared_->path, user(shared_->owner), user(below)));
  }

  Status follow(const Descriptor& link, const std::string& path, const struct stat& status) {
    if (!is_trusted(status.st_uid))
      return fail(ErrorCode::kDenied,
                  fmt::format("{} is a link of {}, which is not followed: only links of root and of the "
                              "daemon's user are; configure the path that it leads to",
                              path, user(status.st_uid)));
    if (++links_ > kLinks) return fail(ErrorCode::kIo, path + ": too many links");
    char target[PATH_MAX + 1];
    const ssize_t size = ::readlinkat(link.get(), "", target, sizeof target);
    if (size < 0) return reason();
    const std::string to(target, static_cast<size_t>(size));
    add_parts(to);
    return to.starts_with('/') ? enter_root() : Status();
  }

  const uid_t trusted_uid_;
  const std::optional<uid_t> unknown_root_;
  const Writers writers_;
  std::deque<std::string> parts_;  // components still to open
  Descriptor at_;                  // the folder reached so far
  struct stat status_ = {};        // status of at_
  std::string path_;               // of it, "" for "/"
  std::optional<Shared> shared_;
  Descriptor file_;  // the last component, if it is a file
  int file_flags_ = kFileFlags;
  int links_ = 0;
};

}  // namespace

Result<int> open_trusted_file(const std::string& path, uid_t trusted_uid, Writers writers) {
  return Walk(trusted_uid, writers).open(path, Wanted::kFile);
}

Result<int> open_trusted_folder(const std::string& path, uid_t trusted_uid, Writers writers) {
  return Walk(trusted_uid, writers).open(path, Wanted::kFolder);
}

Status check_trusted_program(const std::string& path, uid_t trusted_uid) {
  const auto opened = Walk(trusted_uid, Writers::kOwner).open(path, Wanted::kProgram);
  if (!opened) return tl::unexpected(opened.error());
  const Descriptor program(*opened);
  return {};
}

}  // namespace culprit::io
