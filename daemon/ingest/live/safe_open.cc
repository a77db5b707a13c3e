#include "ingest/live/safe_open.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "ingest/file.h"
#include "io/descriptors.h"
#include "io/trusted_path.h"

namespace culprit::ingest {
namespace {

constexpr int kFileFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW;
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

// Local file systems, where inotify reports every change. It misses changes by other hosts (NFS, SMB, Lustre,
// FUSE), so unlisted file systems are polled.
constexpr std::array<uint64_t, 9> kLocal = {
    0xef53,      // ext2, ext3, ext4
    0x58465342,  // xfs
    0x9123683e,  // btrfs
    0x01021994,  // tmpfs
    0x858458f6,  // ramfs
    0x794c7630,  // overlayfs
    0xf2f52010,  // f2fs
    0x2fc12fc1,  // zfs
    0xca451a4e,  // bcachefs
};

Look look_of(const struct stat& status) {
  Look look;
  look.device = status.st_dev;
  look.inode = status.st_ino;
  look.size = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  look.allocated = static_cast<uint64_t>(status.st_blocks) * 512;
  look.modified_ns = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
  look.changed_ns = status.st_ctim.tv_sec * kNsPerSecond + status.st_ctim.tv_nsec;
  look.uid = status.st_uid;
  look.regular = S_ISREG(status.st_mode);
  look.linked = status.st_nlink > 0;
  return look;
}

// "." for the folder itself, as the *at() calls want it.
const char* name_for(const std::string& below) { return below.empty() ? "." : below.c_str(); }

Entry::Type type_of(int folder, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return Entry::Type::kFile;
    case DT_DIR:
      return Entry::Type::kFolder;
    case DT_LNK:
      return Entry::Type::kLink;
    case DT_UNKNOWN:
      break;
    default:
      return Entry::Type::kOther;
  }
  struct stat status;
  if (::fstatat(folder, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return Entry::Type::kOther;
  if (S_ISREG(status.st_mode)) return Entry::Type::kFile;
  if (S_ISDIR(status.st_mode)) return Entry::Type::kFolder;
  return S_ISLNK(status.st_mode) ? Entry::Type::kLink : Entry::Type::kOther;
}

// CallWatch: uncertain failures, and the errno of the last one.
thread_local uint64_t uncertain_calls = 0;
thread_local int uncertain_error = 0;

}  // namespace

CallWatch::CallWatch() : before_(uncertain_calls) {}
bool CallWatch::failed() const { return uncertain_calls != before_; }
int CallWatch::error() { return uncertain_error; }

bool is_uncertain(int error) {
  switch (error) {
    case 0:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EACCES:
    case EPERM:
    case EINVAL:
    case EXDEV:
    case ENXIO:
    case ESTALE:
    case ENAMETOOLONG:
    case EOVERFLOW:
      return false;
    default:
      return true;
  }
}

int note_call(int error) {
  if (!is_uncertain(error)) return error;
  ++uncertain_calls;
  return uncertain_error = error;
}

int look_at(int descriptor, Look& out) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) return note_call(errno);
  out = look_of(status);
  return 0;
}

std::string reason_of(int error) {
  if (error == ELOOP) return "is a link, or is reached through one, which is not followed";
  // "x: reason" without its subject.
  return system_error("x", error).text.substr(3);
}

Status SafeFolder::open(const std::string& path) {
  const auto opened = io::open_trusted_folder(path, ::geteuid(), io::Writers::kWatched);
  if (!opened) return tl::unexpected(opened.error());
  root_ = Descriptor(*opened);
  if (io::is_reserved(root_.get())) {
    close();
    return fail(ErrorCode::kIo, reason_of(EMFILE));
  }
  return {};
}

bool SafeFolder::still_at(const std::string& path) const {
  if (!root_.is_open()) return false;
  const auto opened = io::open_trusted_folder(path, ::geteuid(), io::Writers::kWatched);
  if (!opened) return false;
  const Descriptor there(*opened);
  struct stat now, ours;
  return ::fstat(there.get(), &now) == 0 && ::fstat(root_.get(), &ours) == 0 && now.st_dev == ours.st_dev &&
         now.st_ino == ours.st_ino;
}

bool is_local_file_system(int descriptor) {
  struct statfs status;
  if (::fstatfs(descriptor, &status) != 0) return false;
  const auto type = static_cast<uint64_t>(status.f_type) & 0xffffffff;
  return std::find(kLocal.begin(), kLocal.end(), type) != kLocal.end();
}

bool SafeFolder::is_local(const std::string& below) const {
  Descriptor folder;
  return open_below(below, kFolderFlags, folder) == 0 && is_local_file_system(folder.get());
}

int SafeFolder::look(const std::string& below, Look& out) const {
  // A link in the path is checked here by its target; open_file() refuses links.
  before_call();
  struct stat status;
  if (::fstatat(root_.get(), name_for(below), &status, AT_SYMLINK_NOFOLLOW) != 0) return note_call(errno);
  out = look_of(status);
  return 0;
}

int SafeFolder::open_file(const std::string& below, Descriptor& out) const {
  Descriptor file;
  before_call();
  if (const int error = open_below(below, kFileFlags, file)) return note_call(error);
  Look look;
  if (const int error = look_at(file.get(), look)) return error;
  if (!look.regular) return EINVAL;
  out = std::move(file);
  return 0;
}

int SafeFolder::list(const std::string& below, size_t max, std::vector<Entry>& out) const {
  out.clear();
  before_call();
  Descriptor folder;
  if (const int error = open_below(below, kFolderFlags, folder)) return error;
  const int number = folder.release();
  const std::unique_ptr<DIR, int (*)(DIR*)> reading(::fdopendir(number), &::closedir);
  if (!reading) {
    const int error = errno;
    ::close(number);
    return error;
  }
  int error = 0;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(reading.get());
    if (entry == nullptr) {
      error = errno;
      break;
    }
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    if (out.size() == max) {
      error = EOVERFLOW;
      break;
    }
    out.push_back({entry->d_name, entry->d_ino, type_of(number, *entry)});
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return error;
}

TimeNs SafeFolder::born_ns(const std::string& below) const {
  before_call();
  struct statx status;
  if (::statx(root_.get(), name_for(below), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) != 0) {
    note_call(errno == ENOSYS ? 0 : errno);
    return kNoTime;
  }
  if ((status.stx_mask & STATX_BTIME) == 0) return kNoTime;
  return status.stx_btime.tv_sec * kNsPerSecond + status.stx_btime.tv_nsec;
}

int SafeFolder::open_below(const std::string& below, int flags, Descriptor& out) const {
  int error = open_any(below, flags, out);
  if (error == 0 && io::is_reserved(out.get())) {
    out = Descriptor();
    error = EMFILE;
  }
  shortage_ |= error == EMFILE || error == ENFILE;
  return error;
}

int SafeFolder::open_any(const std::string& below, int flags, Descriptor& out) const {
  if (!openat2_refused_) {
    open_how how = {};
    how.flags = static_cast<uint64_t>(flags);
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const long got = ::syscall(SYS_openat2, root_.get(), name_for(below), &how, sizeof how);
      if (got >= 0) {
        out = Descriptor(static_cast<int>(got));
        return 0;
      }
      // EAGAIN: a concurrent rename on the path made RESOLVE_BENEATH uncertain.
      if (errno != EAGAIN && errno != EINTR) break;
    }
    // EPERM comes from a system call filter; a file's own refusal is EACCES.
    if (errno != ENOSYS && errno != EPERM) return errno;
    openat2_refused_ = true;
  }
  return walk_below(below, flags, out);
}

int SafeFolder::walk_below(const std::string& below, int flags, Descriptor& out) const {
  Descriptor held;
  int folder = root_.get();
  size_t from = 0;
  for (size_t end; (end = below.find('/', from)) != below.npos; from = end + 1) {
    const std::string name = below.substr(from, end - from);
    if (name == ".." || end == 0) return EXDEV;
    Descriptor next(::openat(folder, name_for(name), kFolderFlags));
    if (!next.is_open()) {
      // O_DIRECTORY reports a link as ENOTDIR.
      const int error = errno;
      struct stat status;
      const bool link = error == ENOTDIR &&
                        ::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                        S_ISLNK(status.st_mode);
      return link ? ELOOP : error;
    }
    held = std::move(next);
    folder = held.get();
  }
  const std::string last = below.substr(from);
  if (last == "..") return EXDEV;
  Descriptor opened(::openat(folder, name_for(last), flags));
  if (!opened.is_open()) return errno;
  out = std::move(opened);
  return 0;
}

}  // namespace culprit::ingest
