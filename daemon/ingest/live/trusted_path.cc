#include "ingest/live/trusted_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <optional>

#include "base/text.h"
#include "ingest/live/safe_open.h"
#include "io/system_error.h"

namespace culprit::ingest {
namespace {

constexpr int kWalkFlags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
constexpr int kLinks = 40;  // the kernel's own limit

bool any_user_writes(const struct stat& folder) { return (folder.st_mode & S_IWOTH) != 0; }
bool is_sticky(const struct stat& folder) { return (folder.st_mode & S_ISVTX) != 0; }

// "user 12002"; no name, because a look-up may ask a hung network service.
std::string user(uid_t uid) { return uid == 0 ? "root" : fmt::format("user {}", uid); }

class Walk {
 public:
  explicit Walk(uid_t daemon_uid) : daemon_uid_(daemon_uid) {}

  Result<int> open(const std::string& path) {
    add_parts(path);
    if (const Status begun = enter_root(); !begun) return tl::unexpected(begun.error());
    while (!parts_.empty()) {
      const std::string part = std::move(parts_.front());
      parts_.pop_front();
      if (const Status stepped = step(part); !stepped) return tl::unexpected(stepped.error());
    }
    if (shared_ && shared_->owner != status_.st_uid) return replaceable(status_.st_uid);
    Descriptor opened(::openat(at_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.is_open()) return reason();
    return opened.release();
  }

 private:
  // A component of a sticky folder that belongs to neither root nor the daemon.
  struct Shared {
    std::string path;
    uid_t owner = 0;
  };

  static tl::unexpected<Error> reason() {
    const int number = errno;
    return fail(io::system_error("", number).code, reason_of(number));
  }
  bool is_trusted(uid_t uid) const { return uid == 0 || uid == daemon_uid_; }

  // To the front: what a link leads to comes before the rest.
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

  Status step(const std::string& part) {
    if (part == "..") return enter(Descriptor(::openat(at_.get(), "..", kWalkFlags | O_DIRECTORY)), "..");
    const std::string path = path_ + "/" + part;
    Descriptor next(::openat(at_.get(), part.c_str(), kWalkFlags));
    struct stat status;
    if (!next.is_open() || ::fstat(next.get(), &status) != 0) return reason();
    if (const Status stays = cannot_be_replaced(path, status); !stays) return stays;
    if (S_ISLNK(status.st_mode)) return follow(next, path, status);
    // With O_DIRECTORY an automounter mounts what belongs there.
    return enter(Descriptor(::openat(at_.get(), part.c_str(), kWalkFlags | O_DIRECTORY)), part);
  }

  Status enter(Descriptor next, const std::string& part) {
    if (!next.is_open() || ::fstat(next.get(), &status_) != 0) return reason();
    at_ = std::move(next);
    path_ = part == ".." ? path_.substr(0, path_.rfind('/') == path_.npos ? 0 : path_.rfind('/'))
                         : path_ + "/" + part;
    return {};
  }

  // Whether only trusted users could put something else at this place.
  Status cannot_be_replaced(const std::string& path, const struct stat& component) {
    if (!any_user_writes(status_)) return {};
    const std::string folder = path_.empty() ? "/" : path_;
    if (!is_sticky(status_))
      return fail(
          ErrorCode::kDenied,
          fmt::format("any user could replace {}: {} of {} has mode {:04o}; run chmod o-w {}, or chmod "
                      "+t {}",
                      path, folder, user(status_.st_uid), status_.st_mode & 07777, folder, folder));
    if (is_trusted(component.st_uid)) return {};
    if (shared_ && shared_->owner != component.st_uid) return replaceable(component.st_uid);
    shared_ = {path, component.st_uid};
    return {};
  }

  // `below`: the owner of what is reached through it.
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

  const uid_t daemon_uid_;
  std::deque<std::string> parts_;  // still to open
  Descriptor at_;                  // the folder that was reached
  struct stat status_ = {};        // of it
  std::string path_;               // of it, "" for "/"
  std::optional<Shared> shared_;
  int links_ = 0;
};

}  // namespace

Result<int> open_trusted_folder(const std::string& path, uid_t daemon_uid) {
  return Walk(daemon_uid).open(path);
}

}  // namespace culprit::ingest
