// host_health against a fake /proc and /sys: host_health_test PLUGIN [PART_OF_A_PROMISE]
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/test_case.h"
#include "host_health/sources.h"
#include "host_health/watch.h"

namespace {

using health::Case;
using health::Run;
using health::World;

const char* g_plugin;

std::string psi(const char* line, double percent) {
  const std::string zero = "avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
  char text[256];
  std::snprintf(text, sizeof text, "%s avg10=0.00 avg60=%.2f avg300=0.00 total=77\n", line, percent);
  return std::string(line) == "some" ? text + ("full " + zero) : "some " + zero + text;
}

struct Host {
  World world;
  Run run;
  Host() : run((build(world), g_plugin), {"root=" + world.root()}) { looks(2); }
  static void build(World& world) {
    world.write("proc/pressure/memory", psi("full", 0));
    world.write("proc/pressure/io", psi("full", 12));
    world.write("proc/pressure/cpu", psi("some", 30));
    world.write("proc/vmstat", "nr_free_pages 1\noom_kill 41\n");
    world.write("sys/fs/cgroup/kubepods.slice/memory.events", "low 0\nmax 7\noom 9\noom_kill 9\n");
    world.write("sys/devices/system/edac/mc/mc0/ce_count", 900);
    world.write("sys/devices/system/edac/mc/mc0/ue_count", 1);
    for (int i = 0; i < 4; ++i) {
      const std::string cpu = "sys/devices/system/cpu/cpu" + std::to_string(i);
      world.write(cpu + "/thermal_throttle/core_throttle_count", 500);
      world.write(cpu + "/topology/physical_package_id", uint64_t(i / 2));
    }
    world.write("proc/self/mountinfo",
                "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n"
                "23 27 0:22 / /sys rw - sysfs sysfs rw\n");
    task(world, 100, "python3", 'R', 5);
  }
  static void task(World& world, int pid, const char* name, char state, uint64_t switches,
                   unsigned flags = 0) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    char stat[256];
    std::snprintf(stat, sizeof stat, "%d (%s) %c 1 1 1 0 -1 %u 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0\n", pid,
                  name, state, flags);
    world.write(folder + "stat", stat);
    world.write(folder + "status", "Name:\t" + std::string(name) + "\nvoluntary_ctxt_switches:\t" +
                                       std::to_string(switches) + "\nnonvoluntary_ctxt_switches:\t1\n");
    world.write(folder + "wchan", "nfs_wait_bit_killable");
  }
  void looks(int number, double seconds = 60) {
    for (int i = 0; i < number; ++i) run.look(seconds);
  }
  // The clock of the machine that the test runs on may well be unsynchronised.
  uint64_t all() const {
    return run.all() - run.raised("host.clock_unsynced") - run.cleared("host.clock_unsynced");
  }
};

void healthy() {
  Host host;
  host.looks(5);
  CULPRIT_TEST_CHECK(host.all() == 0);
}

void pressure() {
  Host host;
  host.world.write("proc/pressure/memory", psi("full", 24.5));
  host.looks(3, 10);
  CULPRIT_TEST_CHECK(host.run.raised("host.memory_pressure") == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(&host.run.last("host.memory_pressure"), "percent") == 24.5);
  host.world.write("proc/pressure/memory", psi("full", 7));  // between the two limits
  host.looks(3, 10);
  CULPRIT_TEST_CHECK(host.run.cleared("host.memory_pressure") == 0);
  host.world.write("proc/pressure/memory", psi("full", 1));
  host.looks(3, 10);
  CULPRIT_TEST_CHECK(host.run.cleared("host.memory_pressure") == 1 && host.all() == 2);
}

void out_of_memory() {
  Host host;
  host.world.write("proc/vmstat", "nr_free_pages 1\noom_kill 44\n");
  host.world.write("sys/fs/cgroup/kubepods.slice/memory.events", "low 0\nmax 7\noom 9\noom_kill 11\n");
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.happened("host.oom_kill") == 2);  // two of a group, one of none
  CULPRIT_TEST_CHECK(std::string(culprit_test_finding(host.run.raw(), 0)->part) == "kubepods.slice");
  CULPRIT_TEST_CHECK(culprit_test_value(&host.run.last("host.oom_kill"), "kills") == 1);
}

void memory_errors() {
  Host host;
  host.world.write("sys/devices/system/edac/mc/mc0/ce_count", 925);
  host.world.write("sys/devices/system/edac/mc/mc0/ue_count", 2);
  host.looks(2);
  CULPRIT_TEST_CHECK(host.run.raised("host.memory_corrected") == 1);
  CULPRIT_TEST_CHECK(host.run.happened("host.memory_uncorrected") == 1 && host.all() == 2);
}

void throttle() {
  Host host;
  for (int i = 0; i < 3; ++i) {
    host.world.write("sys/devices/system/cpu/cpu3/thermal_throttle/core_throttle_count", uint64_t(600 + i));
    host.looks(1);
  }
  CULPRIT_TEST_CHECK(host.run.raised("host.cpu_throttle") == 1);
  CULPRIT_TEST_CHECK(std::string(host.run.last("host.cpu_throttle").part) == "package 1");
  host.looks(3);
  CULPRIT_TEST_CHECK(host.run.cleared("host.cpu_throttle") == 1 && host.all() == 2);
}

void stuck() {
  Host host;
  Host::task(host.world, 200, "python3 (x)", 'D', 7);
  Host::task(host.world, 201, "dd", 'D', 100);
  Host::task(host.world, 202, "kworker", 'D', 3, 0x00200000);
  for (int i = 0; i < 4; ++i) {
    Host::task(host.world, 201, "dd", 'D', uint64_t(200 + i));  // reads all day, and runs in between
    host.looks(1);
  }
  CULPRIT_TEST_CHECK(host.run.raised("host.stuck_process") == 1);
  const std::string text = host.run.last("host.stuck_process").text;
  CULPRIT_TEST_CHECK(text.find("python3 (x)") != std::string::npos &&
                     text.find("nfs_wait") != std::string::npos);
  Host::task(host.world, 200, "python3 (x)", 'S', 8);
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.cleared("host.stuck_process") == 1 && host.all() == 2);
}

void mounts() {
  Host host;
  host.world.write("proc/self/mountinfo", "27 1 254:0 / / ro,relatime - ext4 /dev/vda rw,discard\n");
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.raised("storage.read_only") == 1);
  host.world.write("proc/self/mountinfo",
                   "27 1 254:0 / / rw - ext4 /dev/vda rw\n28 1 0:40 / /mnt/a\\040b rw - nfs4 srv:/x rw\n"
                   "29 1 254:0 /sub /bind rw - ext4 /dev/vda rw\n30 1 0:41 / /run rw - proc proc rw\n");
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.cleared("storage.read_only") == 1);
  const auto text = health::read_text(host.world.path("proc/self/mountinfo"));
  const auto found = host::mounts(*text);
  CULPRIT_TEST_CHECK(found.size() == 2 && found[1].folder == "/mnt/a b" && found[1].type == "nfs4");
}

std::string mountstats(int sends, int receives, int backlog, int timeouts) {
  char text[1024];
  std::snprintf(text, sizeof text,
                "device proc mounted on /proc with fstype proc\n"
                "device srv:/data mounted on /data with fstype nfs4 statvers=1.1\n"
                "\topts:\trw,vers=4.2\n\tage:\t100\n\txprt:\ttcp 0 0 2 0 30 %d %d 0 100 %d 2 5 0\n"
                "\tper-op statistics\n\t        NULL: 1 1 0 44 24 0 0 0 0\n"
                "\t        READ: 900 900 %d 44 24 0 0 0 0\n",
                sends, receives, backlog, timeouts);
  return text;
}

void nfs() {
  Host host;
  host.world.write("proc/self/mountstats", mountstats(1000, 1000, 0, 3));
  host.looks(2);
  host.world.write("proc/self/mountstats", mountstats(1010, 1000, 0, 3));
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.raised("storage.nfs_stall") == 1);
  CULPRIT_TEST_CHECK(std::string(host.run.last("storage.nfs_stall").part) == "/data");
  host.world.write("proc/self/mountstats", mountstats(1110, 1110, 10000, 3));
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.cleared("storage.nfs_stall") == 1);
  host.world.write("proc/self/mountstats", mountstats(1210, 1210, 20000, 4));
  host.looks(1);
  CULPRIT_TEST_CHECK(host.run.raised("storage.nfs_stall") == 2);  // a major timeout
  CULPRIT_TEST_CHECK(host.run.raised("storage.nfs_backlog") == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(&host.run.last("storage.nfs_backlog"), "waiting") == 100);
}

// What a fake root cannot play, through the judge itself.
struct Direct {
  Run run;
  culprit::Host host;
  health::Report report;
  host::Watch watch;
  Direct() : run(g_plugin, {}), host(&run.raw()->host), report(host), watch(report, "/nonexistent") {}
};

void clock_steps() {
  Direct direct;
  direct.watch.clocks(1000 * health::kSecond, 10 * health::kSecond, true, 0.01);
  direct.watch.clocks(1010 * health::kSecond + 100000000, 20 * health::kSecond, true, 0.01);  // slewed
  CULPRIT_TEST_CHECK(direct.run.all() == 0);
  direct.watch.clocks(1017 * health::kSecond, 30 * health::kSecond, true, 0.01);
  CULPRIT_TEST_CHECK(direct.run.happened("host.clock_step") == 1);
  CULPRIT_TEST_CHECK(std::fabs(culprit_test_value(&direct.run.last("host.clock_step"), "step_s") + 3.1) <
                     1e-6);
  for (int i = 0; i < 12; ++i) direct.watch.clocks(1017 * health::kSecond, 30 * health::kSecond, false, 16);
  CULPRIT_TEST_CHECK(direct.run.raised("host.clock_unsynced") == 1);
  CULPRIT_TEST_CHECK(direct.run.last("host.clock_unsynced").severity == CULPRIT_INFO);
}

void space() {
  Direct direct;
  const host::Mount mount{"/data", "xfs", false};
  const auto look = [&](double left, double inodes) {
    const host::Space space{0, 1000000000000, uint64_t(left * 1e12), 1000000, uint64_t(inodes * 1e6)};
    for (int i = 0; i < 2; ++i) direct.watch.space(mount, space);
  };
  look(0.5, 0.5);
  CULPRIT_TEST_CHECK(direct.run.all() == 0);
  look(0.04, 0.01);
  CULPRIT_TEST_CHECK(direct.run.raised("storage.space_low") == 1 &&
                     direct.run.raised("storage.inodes_low") == 1);
  look(0.001, 0.5);
  CULPRIT_TEST_CHECK(direct.run.raised("storage.space_full") == 1 &&
                     direct.run.cleared("storage.inodes_low") == 1);
  look(0.5, 0.5);
  CULPRIT_TEST_CHECK(direct.run.cleared("storage.space_full") == 1 &&
                     direct.run.cleared("storage.space_low") == 1);
}

void mount_hangs() {
  Direct direct;
  direct.watch.mount_hangs("/data", true, 31);
  direct.watch.mount_hangs("/data", true, 31);
  CULPRIT_TEST_CHECK(direct.run.raised("storage.mount_hangs") == 1);
  CULPRIT_TEST_CHECK(direct.run.last("storage.mount_hangs").severity == CULPRIT_ERR);
  direct.watch.mount_hangs("/data", false, 0);
  CULPRIT_TEST_CHECK(direct.run.cleared("storage.mount_hangs") == 1);
}

// The host that the test runs on is read, and what is found is shown.
void own_host() {
  Run run(g_plugin, {});
  for (int i = 0; i < 4; ++i) run.look(60);
  run.print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) culprit_test_fail("host_health_test PLUGIN [PART_OF_A_PROMISE]");
  g_plugin = argv[1];
  const std::vector<Case> cases = {
      {"a healthy host has no finding, whatever it counted before", healthy},
      {"memory pressure is raised once and cleared once, with hysteresis", pressure},
      {"OOM kills are those since the last look, with their group", out_of_memory},
      {"memory errors of the host are judged by their growth", memory_errors},
      {"a package whose cores throttle is a finding", throttle},
      {"a process that waits in the kernel without running is a finding; a busy reader is none", stuck},
      {"a file system that becomes read-only is a finding; mounts are listed once per device", mounts},
      {"NFS: stalls, major timeouts and a backlog", nfs},
      {"a step of the clock is a finding, a slew is none", clock_steps},
      {"space and inodes that run out are findings", space},
      {"a mount that hangs is raised once", mount_hangs},
      {"the host of the test is read", own_host},
  };
  return health::run_cases(cases, argc > 2 ? argv[2] : nullptr);
}
