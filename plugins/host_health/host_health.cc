// The detector host_health: looks at the kernel's counters, and asks for the space of each mount in a child
// process (common/queries.h), since a file server may not answer.
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "common/files.h"
#include "common/queries.h"
#include "common/report.h"
#include "host_health/sources.h"
#include "host_health/watch.h"

namespace host {
namespace {

using health::Queries;

constexpr int64_t kOftenNs = 10 * health::kSecond, kSeldomNs = health::kMinute;
constexpr int64_t kRetryNs = 5 * health::kMinute;

std::string answer(const std::string& folder) {
  struct statvfs found = {};
  Space space;
  if (statvfs(folder.c_str(), &found) != 0) {
    space.error = errno;
  } else {
    space.bytes = uint64_t(found.f_blocks) * found.f_frsize;
    space.bytes_free = uint64_t(found.f_bavail) * found.f_frsize;
    space.inodes = found.f_files;
    space.inodes_free = found.f_favail;
  }
  return std::string(reinterpret_cast<const char*>(&space), sizeof space);
}

int64_t now_of(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t(time.tv_sec) * health::kSecond + time.tv_nsec;
}

class HostHealth : public culprit::Detector {
 public:
  explicit HostHealth(const culprit::Host& host)
      : Detector(host),
        root_(host.option("root")),
        report_(host),
        watch_(report_, root_),
        // The mounts of a test's root are below it.
        queries_({host.integer("timeout_s") * health::kSecond, kRetryNs},
                 [this](const std::string& folder) { return answer(root_ + folder); }) {}

  void tick(int64_t wall_ns) override {
    const int64_t now_ns = clock_.advance(wall_ns);
    for (const Queries::Result& result : queries_.poll(now_ns)) take(result);
    if (due(often_at_ns_, kOftenNs, now_ns)) {
      watch_.pressure();
      watch_.out_of_memory();
      clocks();
    }
    if (!due(seldom_at_ns_, kSeldomNs, now_ns)) return;
    watch_.edac(now_ns);
    watch_.throttle(now_ns);
    watch_.nfs(now_ns);
    watch_.tasks(now_ns);
    mounts_.clear();
    for (Mount& mount : watch_.mounts()) {
      queries_.ask(mount.folder, now_ns);
      mounts_[mount.folder] = std::move(mount);
    }
  }

  std::string save_state() override { return report_.save(); }
  void load_state(const std::string& state) override { report_.load(state); }

 private:
  static bool due(int64_t& at_ns, int64_t interval_ns, int64_t now_ns) {
    if (now_ns < at_ns) return false;
    at_ns = now_ns + interval_ns;
    return true;
  }

  // CLOCK_BOOTTIME goes on while the host is suspended, as the wall clock does.
  void clocks() {
    timex state = {};
    const int result = adjtimex(&state);
    const bool synchronised = result >= 0 && result != TIME_ERROR && !(state.status & STA_UNSYNC);
    watch_.clocks(now_of(CLOCK_REALTIME), now_of(CLOCK_BOOTTIME), result < 0 || synchronised,
                  double(state.maxerror) * 1e-6);
  }

  void take(const Queries::Result& result) {
    const bool answered = result.outcome == Queries::Outcome::kAnswered;
    watch_.mount_hangs(result.subject, !answered, double(result.waited_ns) * 1e-9);
    Space space;
    const auto mount = mounts_.find(result.subject);
    if (!answered || mount == mounts_.end() || result.bytes.size() != sizeof space) return;
    std::memcpy(&space, result.bytes.data(), sizeof space);
    watch_.space(mount->second, space);
  }

  const std::string root_;
  health::TickClock clock_;
  health::Report report_;
  Watch watch_;
  Queries queries_;
  int64_t often_at_ns_ = 0, seldom_at_ns_ = 0;
  std::map<std::string, Mount> mounts_;
};

constexpr culprit_option kOptionTable[] = {
    {sizeof(culprit_option), "timeout_s", "30", "Seconds after which a file system hangs.", 2, 600,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "root", "", "Folder before /proc and /sys, for tests and containers.", 0, 0,
     CULPRIT_OPTION_TEXT, 0},
};
constexpr const culprit_option* kOptions[] = {&kOptionTable[0], &kOptionTable[1]};
constexpr culprit_description kDescription = {sizeof kDescription,
                                              CULPRIT_ABI_MAJOR,
                                              CULPRIT_ABI_MINOR,
                                              "host_health",
                                              "1.0",
                                              "Culprit",
                                              "Finds faults of memory, storage, clock and CPUs of the host.",
                                              0,
                                              1000,
                                              kOptions,
                                              std::size(kOptions)};

}  // namespace
}  // namespace host

CULPRIT_PLUGIN(host::HostHealth, host::kDescription)
