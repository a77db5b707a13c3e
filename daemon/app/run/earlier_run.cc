#include "app/run/earlier_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

namespace culprit::app {
namespace {

constexpr size_t kSignsSeen = 100'000;
constexpr size_t kAttemptsSeen = 10'000;
constexpr size_t kNewestAttempts = 2;  // members pass from one attempt to the next one at different times
// After a silence of so long the members of a run count each other as lost.
constexpr TimeNs kLongSilent = 300 * kNsPerSecond;

bool is_lock(std::string_view name) { return name.ends_with(".lock"); }

TimeNs changed_ns(const struct stat& info) {
  return info.st_ctim.tv_sec * kNsPerSecond + info.st_ctim.tv_nsec;
}

// Numbers of the newest attempts.
std::vector<uint32_t> newest_attempts(const HeldFolder& agreement) {
  constexpr std::string_view kPrefix = "attempt-";
  std::vector<uint32_t> out;
  for (const std::string& name : agreement.names(kAttemptsSeen)) {
    if (!name.starts_with(kPrefix)) continue;
    uint32_t number = 0;
    const auto [end, error] =
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) out.push_back(number);
  }
  std::ranges::sort(out, std::greater());
  out.resize(std::min(out.size(), kNewestAttempts));
  return out;
}

}  // namespace

bool holds_lock(const HeldFolder& run) {
  const auto members = run.enter("members");
  if (!members) return false;
  return std::ranges::any_of(members->names(kSignsSeen), [&](const std::string& name) {
    if (!is_lock(name)) return false;
    const auto lock = members->open_file(name, O_RDWR);
    return !lock || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0;
  });
}

EarlierRun::Sign EarlierRun::newest_sign() const {
  Sign out{};
  const auto agreement = run_.enter("agreement");
  if (!agreement) return out;
  for (const uint32_t number : newest_attempts(*agreement)) {
    const auto attempt = agreement->enter(fmt::format("attempt-{}", number));
    if (!attempt) continue;
    for (const std::string& name : attempt->names(kSignsSeen)) {
      struct stat info {};
      if (name.starts_with("alive.") &&
          ::fstatat(attempt->descriptor(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
        out = std::max(out, Sign{changed_ns(info), info.st_ino});
    }
  }
  return out;
}

std::optional<TimeNs> EarlierRun::age_of(const Sign& sign) const {
  const auto members = run_.enter("members");
  if (!members || sign == Sign{}) return std::nullopt;
  const std::string name = fmt::format("{}.now", ::getpid());
  struct stat info {};
  {
    const auto file = members->open_file(name, O_WRONLY | O_CREAT | O_EXCL);
    if (!file || ::fstat(file->get(), &info) != 0) return std::nullopt;
  }
  members->remove(name);
  return changed_ns(info) - sign.first;
}

EarlierRun::State EarlierRun::look(TimeNs now) {
  const auto members = run_.enter("members");
  if (!members || std::ranges::none_of(members->names(kSignsSeen), is_lock)) return State::kActive;
  if (holds_lock(run_)) return State::kActive;
  const Sign sign = newest_sign();
  if (since_ == kNoTime) {
    since_ = now, first_ = sign;
    const auto age = age_of(sign);
    return age && *age >= kLongSilent ? State::kEnded : State::kUnclear;
  }
  if (sign != first_) return State::kActive;
  return now - since_ >= silent_ ? State::kEnded : State::kUnclear;
}

}  // namespace culprit::app
