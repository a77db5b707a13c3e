#include "app/run/agreement.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "app/run/attempt_plan.h"
#include "app/run/launch.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr std::chrono::seconds kShowEvery{5};
constexpr size_t kEntriesMost = 8 * kHostsMost;  // files of an attempt

}  // namespace

Result<Agreement> Agreement::open(const HeldFolder& run, std::string host) {
  auto all = run.make("agreement");
  if (!all) return tl::unexpected(all.error());
  Agreement out;
  out.all_ = std::move(*all);
  out.host_ = std::move(host);
  return out;
}

Status Agreement::enter(uint32_t attempt) {
  auto at = all_.make(fmt::format("attempt-{}", attempt));
  if (!at) return tl::unexpected(at.error());
  at_ = std::move(*at);
  lives_.clear();
  shown_ = {};
  show_life();
  return {};
}

Status Agreement::write(std::string_view what, std::string_view text, bool synced) const {
  return at_.write(fmt::format("{}.{}", what, host_), text, synced);
}

void Agreement::withdraw(std::string_view what) const { at_.remove(fmt::format("{}.{}", what, host_)); }

std::optional<Agreement::Entry> Agreement::read(std::string_view what, std::string_view host) const {
  return read_file(fmt::format("{}.{}", what, host));
}

std::optional<Agreement::Entry> Agreement::read_file(const std::string& name) const {
  const auto file = at_.open_file(name, O_RDONLY);
  struct stat info {};
  if (!file || ::fstat(file->get(), &info) != 0) return std::nullopt;
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) return std::nullopt;
  if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) > kRecordBytes) return std::nullopt;
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(file->get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;  // all was there before the file got its name
    size += static_cast<size_t>(n);
  }
  return Entry{std::move(text), info.st_ctim.tv_sec * kNsPerSecond + info.st_ctim.tv_nsec};
}

std::vector<std::string> Agreement::hosts_with(std::string_view what) const {
  const std::string prefix = fmt::format("{}.", what);
  std::vector<std::string> out;
  for (const std::string& name : at_.names(kEntriesMost)) {
    if (!name.starts_with(prefix) || name.ends_with(".part") || name.ends_with(".draft")) continue;
    std::string host = name.substr(prefix.size());
    if (check_run_name(host).empty() && out.size() < kHostsMost) out.push_back(std::move(host));
  }
  return out;
}

Result<Agreement::Settled> Agreement::settle(std::string_view name, std::string_view text) const {
  const std::string agreed(name), draft = fmt::format("{}.{}.draft", name, host_);
  if (Status written = at_.write(draft, text, true); !written) return tl::unexpected(written.error());
  const int linked =
      ::linkat(at_.descriptor(), draft.c_str(), at_.descriptor(), agreed.c_str(), 0) == 0 ? 0 : errno;
  struct stat info {};
  if (::fstatat(at_.descriptor(), draft.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_nlink == 2)
    return Settled{std::string(text), true};
  if (auto other = settled(name)) return Settled{std::move(*other), false};
  return io::system_failure(at_.path() + "/" + agreed, linked != 0 ? linked : EIO);
}

std::optional<std::string> Agreement::settled(std::string_view name) const {
  auto entry = read_file(std::string(name));
  return entry ? std::optional(std::move(entry->text)) : std::nullopt;
}

void Agreement::stop() const { (void)at_.open_file("stop", O_WRONLY | O_CREAT); }

bool Agreement::show_life() {
  const auto now = Clock::now();
  if (shown_ != Clock::time_point{} && now - shown_ < kShowEvery) return true;
  shown_ = now;
  // A new file, not a new time: it makes an NFS client look up the folder's other names again.
  return at_.write("alive." + host_, "").has_value();
}

TimeNs Agreement::silence(std::string_view what, const std::string& host) {
  struct stat info {};
  Life now;
  now.seen = now.looked = Clock::now();
  const std::string name = fmt::format("{}.{}", what, host);
  if (::fstatat(at_.descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    now.inode = info.st_ino;
    now.changed_ns = info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec;
  }
  const auto [at, is_new] = lives_.try_emplace(name, now);
  Life& last = at->second;
  // Time in which this process or the folder stood still is no silence of the others.
  if (const auto gap = now.looked - last.looked; gap > 3 * kShowEvery) last.seen += gap;
  last.looked = now.looked;
  if (!is_new && (last.inode != now.inode || last.changed_ns != now.changed_ns)) last = now;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now.seen - last.seen).count();
}

}  // namespace culprit::app
