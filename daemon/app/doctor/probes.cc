#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>
#include <grp.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/doctor/doctor.h"
#include "base/clock.h"
#include "base/text.h"
#include "ingest/file.h"
#include "io/http/exchange.h"
#include "io/installed.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFilesMax = 10'000;       // checked per glob
constexpr size_t kEntriesMax = 1'000'000;  // visited per glob
constexpr size_t kTextBytes = 64 << 10;

Account account_of(const passwd& entry) {
  Account out{entry.pw_name, entry.pw_uid, {}};
  int count = 256;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  if (::getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) < 0) count = 0;
  groups.resize(static_cast<size_t>(count));
  out.gids.assign(groups.begin(), groups.end());
  return out;
}

std::optional<Account> account(const std::string& name) {
  std::vector<char> room(16 << 10);
  passwd entry{};
  passwd* found = nullptr;
  if (name.empty()) {
    if (::getpwuid_r(::geteuid(), &entry, room.data(), room.size(), &found) == 0 && found)
      return account_of(entry);
    return Account{std::to_string(::geteuid()), ::geteuid(), {::getegid()}};
  }
  if (::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found) != 0 || !found)
    return std::nullopt;
  return account_of(entry);
}

// The kernel's posix_acl_xattr: a version, then entries of tag, permissions and id, little-endian.
void add_acl(const std::string& path, PathFacts& out) {
  struct Entry {
    uint16_t tag, perm;
    uint32_t id;
  };
  constexpr uint16_t kUser = 0x02, kGroup = 0x08, kMask = 0x10;
  constexpr size_t kNamesMax = 1000;
  std::vector<unsigned char> bytes(sizeof(uint32_t) + kNamesMax * sizeof(Entry));
  const ssize_t size = ::getxattr(path.c_str(), "system.posix_acl_access", bytes.data(), bytes.size());
  uint32_t mask = 7;
  std::vector<Entry> entries;
  for (size_t at = sizeof(uint32_t); size > 0 && at + sizeof(Entry) <= static_cast<size_t>(size);
       at += sizeof(Entry)) {
    Entry& e = entries.emplace_back();
    std::memcpy(&e, bytes.data() + at, sizeof e);
    if (e.tag == kMask) mask = e.perm;
  }
  for (const Entry& e : entries) {
    if (e.tag == kUser) out.users[e.id] = e.perm & mask;
    if (e.tag == kGroup) out.groups[e.id] = e.perm & mask;
  }
}

PathFacts path_facts(const std::string& path) {
  PathFacts out;
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) out.link = S_ISLNK(info.st_mode);
  if (::stat(path.c_str(), &info) != 0) {
    out.error = errno;
    return out;
  }
  out.folder = S_ISDIR(info.st_mode);
  out.regular = S_ISREG(info.st_mode);
  out.mode = info.st_mode & 07777;
  out.uid = info.st_uid;
  out.gid = info.st_gid;
  add_acl(path, out);
  return out;
}

std::optional<DiskFacts> disk_facts(const std::string& path) {
  fs::path there = path;
  struct statvfs info {};
  while (::statvfs(there.c_str(), &info) != 0) {
    if (errno != ENOENT || there == there.parent_path()) return std::nullopt;
    there = there.parent_path();
  }
  DiskFacts out{info.f_bavail * info.f_frsize, info.f_favail, 0};
  std::error_code error;
  size_t entries = 0;
  fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && it != end && ++entries < kFilesMax; it.increment(error)) {
    std::error_code unsized_error;
    const bool regular = it->is_regular_file(unsized_error) && !it->is_symlink(unsized_error);
    const uint64_t size = regular ? it->file_size(unsized_error) : 0;
    if (!unsized_error) out.own_bytes += size;
  }
  return out;
}

std::optional<std::string> text_of(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::string out(kTextBytes, '\0');
  const ssize_t got = ::read(descriptor, out.data(), out.size());
  ::close(descriptor);
  if (got < 0) return std::nullopt;
  return std::string(trim(std::string_view(out).substr(0, static_cast<size_t>(got))));
}

// Expands a glob without following links to folders.
class Walk {
 public:
  Probes::Matches drain_matches(const std::string& glob) {
    const std::vector<std::string_view> names = split(std::string_view(glob).substr(1), '/');
    step("/", names, 0);
    std::sort(out_.folders.begin(), out_.folders.end());
    out_.folders.erase(std::unique(out_.folders.begin(), out_.folders.end()), out_.folders.end());
    std::sort(out_.files.begin(), out_.files.end());
    out_.files.erase(std::unique(out_.files.begin(), out_.files.end()), out_.files.end());
    return std::move(out_);
  }

 private:
  void step(const fs::path& folder, const std::vector<std::string_view>& names, size_t at) {
    const std::string name(names[at]);
    const bool last = at + 1 == names.size();
    if (name.find_first_of("*?[") == name.npos && !last) return enter(folder / name, names, at + 1);
    if (out_.files.size() + out_.folders.size() >= kFilesMax) {
      out_.cut = true;
      return;
    }
    out_.folders.push_back(folder.string());
    const bool any = name == "**";
    if (any && !last) step(folder, names, at + 1);
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (++entries_ > kEntriesMax || out_.files.size() >= kFilesMax) {
        out_.cut = true;
        return;
      }
      const std::string found = it->path().filename().string();
      if (!any && ::fnmatch(name.c_str(), found.c_str(), FNM_PERIOD) != 0) continue;
      std::error_code missing;
      const bool is_folder = fs::is_directory(it->symlink_status(missing));
      if (is_folder && (any || !last))
        step(it->path(), names, any ? at : at + 1);
      else if (!is_folder && last && !fs::is_directory(it->path(), missing))
        out_.files.push_back(it->path().string());
    }
  }

  void enter(const fs::path& folder, const std::vector<std::string_view>& names, size_t at) {
    std::error_code error;
    if (fs::is_directory(fs::symlink_status(folder, error))) step(folder, names, at);
  }

  Probes::Matches out_;
  size_t entries_ = 0;
};

std::optional<bool> clock_synchronised() {
  timex state{};
  const int reported = ::adjtimex(&state);
  if (reported < 0) return std::nullopt;
  return reported != TIME_ERROR && !(state.status & STA_UNSYNC);
}

uint64_t descriptors_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

bool has_openat2() {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long descriptor = ::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);
  if (descriptor >= 0) ::close(static_cast<int>(descriptor));
  return descriptor >= 0;
}

Status connect_to(const std::string& address) {
  const std::string path = address.starts_with("unix:") ? address.substr(5) : address;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path)
    return fail(ErrorCode::kInvalid, fmt::format("{}: too long for a socket", path));
  std::memcpy(name.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return tl::unexpected(ingest::system_error(path, errno));
  const int failed = ::connect(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof name) ? errno : 0;
  ::close(descriptor);
  // EAGAIN: the socket exists but is busy.
  if (failed && failed != EAGAIN) return tl::unexpected(ingest::system_error(path, failed));
  return {};
}

constexpr size_t kAnswerBytes = 16 << 20;
constexpr TimeNs kAnswersWithin = 3 * kNsPerSecond;  // a working daemon answers in milliseconds

Result<std::string> get(const DoctorRequest& request) {
  const auto& [address, path, token, cert] = request;
  const bool is_unix = address.starts_with("unix:");
  const bool tls = !is_unix && !cert.empty();
  io::HttpRequest sent;
  sent.url = fmt::format("{}://{}{}", tls ? "https" : "http", is_unix ? "localhost" : address, path);
  if (is_unix) sent.socket = address.substr(5);
  if (tls) {  // the daemon's own certificate is known, so its names are not checked
    sent.ca_file = cert;
    sent.ca_alone = true;
    sent.skip_name_check = true;
  }
  if (!token.empty()) sent.headers.push_back("Authorization: Bearer " + token);
  sent.within_ns = kAnswersWithin;
  std::string body;
  sent.on_body = [&](long, std::string_view bytes) {
    if (body.size() + bytes.size() > kAnswerBytes) return false;
    body += bytes;
    return true;
  };
  const auto answer = io::http_exchange(sent);
  if (!answer) return fail(ErrorCode::kIo, fmt::format("{}: {}", address, answer.error().reason));
  if (answer->status == 200) return body;
  const auto json = parse_json(body);
  const auto why = json.is_object() ? json.find("error") : json.end();
  return fail(ErrorCode::kIo,
              json.is_object() && why != json.end() && why->is_string()
                  ? why->get<std::string>()
                  : fmt::format("{}: {} is answered with status {}", address, path, answer->status));
}

}  // namespace

Probes machine_probes() {
  Probes out;
  out.account = account;
  out.path = path_facts;
  out.disk = disk_facts;
  out.text = text_of;
  out.glob = [](const std::string& glob) { return Walk().drain_matches(glob); };
  out.clock_synchronised = clock_synchronised;
  out.now = wall_now;
  out.descriptors_max = descriptors_max;
  out.has_openat2 = has_openat2;
  out.helper = [](const std::string& name) { return io::installed_helper(name); };
  out.processes = [] { return look_at_processes({"/proc", wall_now(), wall_now}); };
  out.network = [](const std::string& pid) { return network_namespace("/proc", pid); };
  out.connect = connect_to;
  out.get = get;
  return out;
}

}  // namespace culprit::app
