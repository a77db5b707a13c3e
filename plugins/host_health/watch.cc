#include "host_health/watch.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "common/files.h"
#include "host_health/kinds.h"

namespace host {
namespace {

using health::Count;
using health::format;
using health::list;
using health::read_number;
using health::read_text;
using health::Seen;
using health::Subject;

constexpr size_t kCpusMax = 1024, kTasksMax = 32768, kStuckMax = 64;

}  // namespace

void Watch::pressure() {
  const struct {
    const char* file;
    const char* line;
    double limit;
    const Kind& kind;
  } rows[] = {{"memory", "full", kMemoryFull, kMemoryPressure},
              {"io", "full", kIoFull, kIoPressure},
              {"cpu", "some", kCpuSome, kCpuPressure}};
  for (const auto& row : rows) {
    const auto text = read_text(root_ + "/proc/pressure/" + row.file, 512);
    const auto share = text ? host::pressure(*text, row.line) : std::nullopt;
    if (!share) continue;
    const double limit = row.limit * (report_.raised(row.kind, Subject()) ? 0.5 : 1);
    report_.state(row.kind, Subject(), *share >= limit, [&] {
      return Seen{format("pressure of %s: %s %.1f %% of the last minute (limit %.0f %%)", row.file, row.line,
                         *share, row.limit),
                  {{"percent", *share}}};
    });
  }
}

// The kernel counts all kills in vmstat, those within a group also there; groups say whose job it was.
void Watch::out_of_memory() {
  const auto look = [this](const std::string& group, const std::optional<std::string>& text) -> uint64_t {
    const auto kills = text ? counter(*text, "oom_kill") : std::nullopt;
    if (!kills) return 0;
    return oom_.emplace(group, Count(health::kHour)).first->second.look(*kills, 0);
  };
  uint64_t all = look("", read_text(root_ + "/proc/vmstat"));
  const std::string groups = root_ + "/sys/fs/cgroup";
  for (const std::string& group : list(groups)) {
    if (oom_.size() > 256) break;
    const uint64_t kills = look(group, read_text(groups + "/" + group + "/memory.events", 4096));
    if (kills == 0) continue;
    all -= std::min(all, kills);
    report_.happened(kOom, Subject{group},
                     {format("%llu processes of group %s", (unsigned long long)kills, group.c_str()),
                      {{"kills", double(kills)}}});
  }
  if (all > 0) {
    report_.happened(kOom, Subject(),
                     {format("%llu processes", (unsigned long long)all), {{"kills", double(all)}}});
  }
}

void Watch::clocks(int64_t wall_ns, int64_t steady_ns, bool synchronised, double error_s) {
  const int64_t offset_ns = wall_ns - steady_ns;
  const double step_s = double(offset_ns - offset_ns_) * 1e-9;
  if (offset_known_ && std::fabs(step_s) >= kClockStep_s) {
    report_.happened(kClockStep, Subject(),
                     {format("the clock was set by %+.3f s", step_s), {{"step_s", step_s}}});
  }
  offset_ns_ = offset_ns;
  offset_known_ = true;
  report_.state(kClockUnsynced, Subject(), !synchronised, [&] {
    return Seen{synchronised ? "the clock is synchronised"
                             : format("the kernel's clock is not synchronised (error up to %.3f s)", error_s),
                {{"error_s", error_s}}};
  });
}

void Watch::edac(int64_t now_ns) {
  const std::string folder = root_ + "/sys/devices/system/edac/mc";
  for (const std::string& name : list(folder)) {
    if (name.compare(0, 2, "mc") != 0) continue;
    const Subject subject{name};
    const auto corrected = read_number(folder + "/" + name + "/ce_count");
    const auto uncorrected = read_number(folder + "/" + name + "/ue_count");
    if (uncorrected) {
      Count& count = uncorrected_.emplace(name, Count(24 * health::kHour)).first->second;
      if (const uint64_t grown = count.look(*uncorrected, now_ns)) {
        report_.happened(kMemoryUncorrected, subject,
                         {format("%s: %llu uncorrectable errors", name.c_str(), (unsigned long long)grown),
                          {{"errors", double(grown)}}});
      }
    }
    if (!corrected) continue;
    Count& count = corrected_.emplace(name, Count(24 * health::kHour)).first->second;
    count.look(*corrected, now_ns);
    const double recent = count.recent(now_ns);
    const double limit = kCorrectedPerDay * (report_.raised(kMemoryCorrected, subject) ? 0.25 : 1);
    report_.state(kMemoryCorrected, subject, recent >= limit, [&] {
      return Seen{format("%s: %.0f corrected errors within a day", name.c_str(), recent),
                  {{"errors_per_day", recent}}};
    });
  }
}

// Cores of one package throttle together: the package is what is reported.
void Watch::throttle(int64_t now_ns) {
  const std::string folder = root_ + "/sys/devices/system/cpu";
  std::map<std::string, uint64_t> totals;
  size_t cpus = 0;
  for (const std::string& name : list(folder)) {
    if (name.compare(0, 3, "cpu") != 0 || name.size() < 4 || name[3] < '0' || name[3] > '9') continue;
    if (++cpus > kCpusMax) break;
    const std::string cpu = folder + "/" + name;
    const auto count = read_number(cpu + "/thermal_throttle/core_throttle_count");
    if (!count) {
      if (cpus == 1) return;  // not of this kind of CPU
      continue;
    }
    const auto package = read_text(cpu + "/topology/physical_package_id", 16);
    totals["package " + package.value_or("0")] += *count;
  }
  for (const auto& [package, total] : totals) {
    Count& count = throttles_.emplace(package, Count(health::kMinute)).first->second;
    const uint64_t grown = count.look(total, now_ns);
    report_.state(kCpuThrottle, Subject{package}, grown > 0, [&, package = package] {
      return Seen{
          package + format(": cores throttled %llu times since the last look", (unsigned long long)grown),
          {{"throttles", double(grown)}}};
    });
  }
}

void Watch::nfs(int64_t now_ns) {
  const auto text = read_text(root_ + "/proc/self/mountstats");
  if (!text || text->find("fstype nfs") == std::string::npos) return;
  for (const auto& [folder, rpc] : rpcs(*text)) nfs_mount(folder, rpc, now_ns);
}

void Watch::nfs_mount(const std::string& folder, const Rpc& rpc, int64_t now_ns) {
  Nfs& mount = nfs_[folder];
  const bool fresh = !mount.known || rpc.sends < mount.last.sends;  // mounted again
  // A mount that is idle sends nothing; after lost replies it has more sends than receives for ever.
  const bool answered = fresh || rpc.receives != mount.last.receives || rpc.sends == mount.sends;
  if (answered) mount.answered_ns = now_ns, mount.sends = rpc.sends;
  const double silent_s = double(now_ns - mount.answered_ns) * 1e-9;
  const uint64_t sends = fresh ? 0 : rpc.sends - mount.last.sends;
  const uint64_t timeouts =
      fresh || rpc.timeouts < mount.last.timeouts ? 0 : rpc.timeouts - mount.last.timeouts;
  const bool stalls = silent_s >= double(kRpcStall_s) || timeouts > 0;
  report_.state(kNfsStall, Subject{folder}, stalls, [&] {
    return Seen{stalls ? folder + format(": requests are unanswered for %.0f s, %llu ran out of time",
                                         silent_s, (unsigned long long)timeouts)
                       : folder + ": the server answers again",
                {{"silent_s", silent_s}, {"timeouts", double(timeouts)}}};
  });
  const uint64_t backlog = fresh || rpc.backlog < mount.last.backlog ? 0 : rpc.backlog - mount.last.backlog;
  const double waiting = sends > 0 ? double(backlog) / double(sends) : 0;
  report_.state(kNfsBacklog, Subject{folder}, waiting >= kRpcBacklog, [&] {
    return Seen{folder + format(": %.0f requests wait for a slot on average", waiting),
                {{"waiting", waiting}}};
  });
  mount.last = rpc;
  mount.known = true;
}

// A process in uninterruptible sleep that has not run since the last look. One that reads a disk all day
// is often in that state, but runs in between.
void Watch::tasks(int64_t now_ns) {
  std::map<std::string, Stuck> open_fd;
  size_t count = 0;
  for (const std::string& pid : list(root_ + "/proc")) {
    if (pid[0] < '0' || pid[0] > '9' || ++count > kTasksMax) continue;
    const std::string folder = root_ + "/proc/" + pid;
    const auto text = read_text(folder + "/stat", 1024);
    const auto found = text ? task(*text) : std::nullopt;
    if (!found || found->state != 'D' || found->kernel || open_fd.size() >= kStuckMax) continue;
    std::string status = read_text(folder + "/status", 8192).value_or("");
    std::replace(status.begin(), status.end(), '\t', ' ');
    const auto at = status.find("\nvoluntary_ctxt_switches:");
    const uint64_t switches =
        at == std::string::npos
            ? 0
            : health::number(health::words(std::string_view(status).substr(at + 1, 64).substr(24))[0])
                  .value_or(0);
    Stuck entry{found->start, switches, now_ns, found->name};
    const auto before = stuck_.find(pid);
    if (before != stuck_.end() && before->second.start == entry.start &&
        before->second.switches == switches) {
      entry.since_ns = before->second.since_ns;
    }
    open_fd[pid] = entry;
  }
  stuck_.swap(open_fd);
  for (const auto& [pid, entry] : stuck_) {
    const double stuck_s = double(now_ns - entry.since_ns) * 1e-9;
    report_.state(kStuck, Subject{"pid " + pid}, stuck_s >= double(kStuck_s),
                  [&, pid = pid, name = entry.name] {
                    const auto place = read_text(root_ + "/proc/" + pid + "/wchan", 128);
                    return Seen{format("%s (pid %s) waits in the kernel for %.0f s: %s", name.c_str(),
                                       pid.c_str(), stuck_s, place.value_or("").c_str()),
                                {{"seconds", stuck_s}}};
                  });
  }
  for (const auto& [pid, entry] : open_fd) {  // ran again, or ended
    if (stuck_.count(pid)) continue;
    report_.state(kStuck, Subject{"pid " + pid}, false, [name = entry.name, pid = pid] {
      return Seen{name + " (pid " + pid + ") runs again or ended", {}};
    });
  }
}

std::vector<Mount> Watch::mounts() {
  const auto text = read_text(root_ + "/proc/self/mountinfo");
  std::vector<Mount> found = host::mounts(text.value_or(""));
  for (const Mount& mount : found) {
    bool& writable = writable_[mount.folder];
    if (!mount.read_only) writable = true;
    report_.state(kReadOnly, Subject{mount.folder}, writable && mount.read_only, [&] {
      return Seen{mount.folder + (mount.read_only ? ": is read-only now" : ": can be written again"), {}};
    });
  }
  return found;
}

void Watch::space(const Mount& mount, const Space& space) {
  const Subject subject{mount.folder};
  if (space.error != 0 || space.bytes == 0 || mount.read_only) return;
  const double left = double(space.bytes_free) / double(space.bytes);
  const auto seen = [&] {
    return Seen{mount.folder + format(" (%s): %.1f of %.1f GB are free", mount.type.c_str(),
                                      double(space.bytes_free) * 1e-9, double(space.bytes) * 1e-9),
                {{"free_bytes", double(space.bytes_free)}, {"free_part", left}}};
  };
  const auto below = [&](const Kind& kind, double part, double limit) {
    return part < limit * (report_.raised(kind, subject) ? 1.2 : 1);
  };
  report_.state(kSpaceFullKind, subject, below(kSpaceFullKind, left, kSpaceFull), seen);
  report_.state(kSpaceLowKind, subject, below(kSpaceLowKind, left, kSpaceLow), seen);
  if (space.inodes == 0) return;  // btrfs has no fixed number
  const double inodes = double(space.inodes_free) / double(space.inodes);
  report_.state(kInodesLowKind, subject, below(kInodesLowKind, inodes, kInodesLow), [&] {
    return Seen{mount.folder + format(": %.1f %% of the inodes are free", inodes * 100),
                {{"free_part", inodes}}};
  });
}

void Watch::mount_hangs(const std::string& folder, bool bad, double waited_s) {
  report_.state(kMountHangs, Subject{folder}, bad, [&] {
    return Seen{bad ? folder + format(": no answer for %.0f s", waited_s) : folder + ": answers again",
                {{"waited_s", waited_s}}};
  });
}

}  // namespace host
