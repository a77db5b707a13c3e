#include "respond/advice_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "io/descriptors.h"
#include "io/system_error.h"

namespace culprit::respond {
namespace {

constexpr const char* kFolder = "advice";
constexpr size_t kRecordsMost = 1024;
constexpr TimeNs kRetention = TimeNs{24} * 3600 * kNsPerSecond;  // a record that is not changed any more

tl::unexpected<Error> failed(const std::string& what, int error) { return io::system_failure(what, error); }

bool is_own(const struct stat& found, mode_t kind) {
  return (found.st_mode & S_IFMT) == kind && found.st_uid == ::geteuid();
}

// Processes trust records of the owner of the rings, and of root.
Result<io::Descriptor> open_rings(const std::string& path) {
  io::Descriptor rings(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!rings.is_open()) return failed(path, errno);
  struct stat found {};
  if (::fstat(rings.get(), &found) != 0) return failed(path, errno);
  if (found.st_uid != ::geteuid() && ::geteuid() != 0)
    return fail(ErrorCode::kDenied,
                fmt::format("{} belongs to uid {}, and not to the daemon's user: no job would trust advice "
                            "there",
                            path, found.st_uid));
  return rings;
}

// The rings' folder is open to all users, so that another one may have taken the name: it is moved aside.
Result<io::Descriptor> open_folder(const io::Descriptor& rings, const std::string& path, TimeNs now_ns) {
  for (int round = 0; round < 2; ++round) {
    if (::mkdirat(rings.get(), kFolder, 0755) != 0 && errno != EEXIST) return failed(path, errno);
    io::Descriptor folder(::openat(rings.get(), kFolder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat found {};
    if (folder.is_open() && ::fstat(folder.get(), &found) == 0 && is_own(found, S_IFDIR)) {
      if ((found.st_mode & 07777) != 0755 && ::fchmod(folder.get(), 0755) != 0) return failed(path, errno);
      return folder;
    }
    const std::string aside = fmt::format("{}.refused-{}", kFolder, now_ns);
    if (::renameat(rings.get(), kFolder, rings.get(), aside.c_str()) != 0)
      return failed(path + ": it is another user's, and cannot be moved aside", errno);
  }
  return fail(ErrorCode::kIo, path + ": another user takes the name again and again");
}

// rw for the owner, r for this user alone (acl(5): the form of the kernel's extended attribute).
Status let_read(int file, uint32_t uid) {
  if (uid == ::geteuid()) return {};
  constexpr uint32_t kNoId = 0xffffffff;
  std::string list;
  put<uint32_t>(list, 2);
  const auto entry = [&](uint16_t tag, uint16_t rights, uint32_t id) {
    put(list, tag), put(list, rights), put(list, id);
  };
  entry(0x01, 6, kNoId), entry(0x02, 4, uid), entry(0x04, 0, kNoId);
  entry(0x10, 4, kNoId), entry(0x20, 0, kNoId);
  if (::fsetxattr(file, "system.posix_acl_access", list.data(), list.size(), 0) == 0) return {};
  return failed(fmt::format("no access list lets uid {} alone read it", uid), errno);
}

// Records that have not changed for a day go.
size_t count_records(int folder, TimeNs now_wall_s) {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const names = copy < 0 ? nullptr : ::fdopendir(copy);
  if (names == nullptr) {
    if (copy >= 0) ::close(copy);
    return 0;
  }
  size_t count = 0;
  std::vector<std::string> old;
  while (const dirent* one = ::readdir(names)) {
    struct stat found {};
    if (one->d_name[0] == '.' || ::fstatat(folder, one->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
    ++count;
    if (found.st_mtim.tv_sec + kRetention / kNsPerSecond < now_wall_s) old.emplace_back(one->d_name);
  }
  ::closedir(names);
  for (const std::string& name : old) count -= ::unlinkat(folder, name.c_str(), 0) == 0;
  return count;
}

Status make_record(int folder, const std::string& name, uint32_t uid, const std::string& bytes) {
  const std::string making = "." + name;
  (void)::unlinkat(folder, making.c_str(), 0);
  io::Descriptor file(
      ::openat(folder, making.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return failed(name, errno);
  Status done;
  if (const int full = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes.size())); full != 0)
    done = failed(name, full);
  else if (::fchmod(file.get(), 0600) != 0)
    done = failed(name, errno);
  else if (::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    done = failed(name, errno);
  else
    done = let_read(file.get(), uid);
  if (done && ::renameat(folder, making.c_str(), folder, name.c_str()) != 0) done = failed(name, errno);
  if (!done) (void)::unlinkat(folder, making.c_str(), 0);
  return done;
}

// The sequence is odd while the rest changes.
Status change_record(int file, const std::string& name, std::string bytes) {
  void* const at = ::mmap(nullptr, kAdviceBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return failed(name, errno);
  std::atomic_ref<uint64_t> sequence(*static_cast<uint64_t*>(at));
  const uint64_t even = (sequence.load(std::memory_order_relaxed) + 2) & ~uint64_t{1};
  sequence.store(even - 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(static_cast<char*>(at) + sizeof even, bytes.data() + sizeof even, bytes.size() - sizeof even);
  std::atomic_thread_fence(std::memory_order_release);
  sequence.store(even == 0 ? 2 : even, std::memory_order_release);
  ::munmap(at, kAdviceBytes);
  (void)::futimens(file, nullptr);  // its age
  return {};
}

}  // namespace

TimeNs since_boot_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return TimeNs{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

Result<uint64_t> put_advice(const AdviceTarget& target, Advice advice, TimeNs now_ns) {
  if (const Status sound = check_advice(advice); !sound) return tl::unexpected(sound.error());
  auto rings = open_rings(target.rings);
  if (!rings) return tl::unexpected(rings.error());
  const std::string path = target.rings + "/" + kFolder;
  auto folder = open_folder(*rings, path, now_ns);
  if (!folder) return tl::unexpected(folder.error());
  const std::string name = advice_file_name(target.uid, target.job);
  const size_t records = count_records(folder->get(), ::time(nullptr));
  io::Descriptor file(::openat(folder->get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat found {};
  const bool there = file.is_open() && ::fstat(file.get(), &found) == 0 && is_own(found, S_IFREG) &&
                     found.st_size == kAdviceBytes && let_read(file.get(), target.uid);
  if (there) {
    std::string before(kAdviceBytes, '\0');
    const bool read = ::pread(file.get(), before.data(), before.size(), 0) == ssize_t{kAdviceBytes};
    const auto known = read ? decode_advice(before) : std::nullopt;
    if (known && known->advice.id >= advice.id) advice.id = std::min(known->advice.id, kAdviceIdMax - 1) + 1;
    const Status done = change_record(file.get(), path + "/" + name, encode_advice(advice, now_ns, 2));
    if (!done) return tl::unexpected(done.error());
    return advice.id;
  }
  if (records >= kRecordsMost)
    return fail(ErrorCode::kBusy, fmt::format("{} has {} records already", path, records));
  const Status done = make_record(folder->get(), name, target.uid, encode_advice(advice, now_ns, 2));
  if (!done) return tl::unexpected(Error{done.error().code, path + "/" + done.error().text});
  return advice.id;
}

}  // namespace culprit::respond
