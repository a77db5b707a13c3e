// net_health against a fake sysfs, and against real links in a network namespace:
// net_health_test PLUGIN [PART_OF_A_PROMISE]
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/test_case.h"

namespace {

using health::Case;
using health::Run;
using health::World;

const char* g_plugin;

std::string port(int device) { return "sys/class/infiniband/mlx5_" + std::to_string(device) + "/ports/1/"; }

struct Net {
  World world;
  Run run;
  explicit Net(std::vector<std::string> more = {})
      : run((build(world), g_plugin), options(world, std::move(more))) {
    looks(3);
  }
  static void build(World& world) {
    for (int i = 0; i < 8; ++i) {
      world.write(port(i) + "state", "4: ACTIVE\n");
      world.write(port(i) + "rate", "400 Gb/sec (4X NDR)\n");
      for (const char* name : {"symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors"}) {
        world.write(port(i) + "counters/" + name, 70000);
      }
      for (const char* name : {"local_ack_timeout_err", "packet_seq_err"}) {
        world.write(port(i) + "hw_counters/" + name, 70000);
      }
    }
    world.write("sys/class/net/eth0/device/vendor", "0x15b3\n");
    world.write("sys/class/net/eth0/operstate", "up\n");
    world.write("sys/class/net/eth0/carrier_changes", 2);
    world.write("sys/class/net/eth0/speed", 100000);
    world.write("sys/class/net/eth0/statistics/rx_crc_errors", 12345);
    world.write("sys/class/net/lo/operstate", "unknown\n");
  }
  static std::vector<std::string> options(World& world, std::vector<std::string> more) {
    more.push_back("root=" + world.root());
    return more;
  }
  void looks(int number, double seconds = 2) {
    for (int i = 0; i < number; ++i) run.look(seconds);
  }
};

void healthy() {
  Net net;
  net.looks(20, 10);
  CULPRIT_TEST_CHECK(net.run.all() == 0);  // large counts from before the start accuse no port
}

void flap() {
  Net net;
  for (int i = 0; i < 2; ++i) {
    net.world.write(port(3) + "state", "1: DOWN\n");
    net.looks(1);
    net.world.write(port(3) + "state", "4: ACTIVE\n");
    net.world.write(port(3) + "counters/link_downed", uint64_t(70001 + i));
    net.looks(2);
  }
  CULPRIT_TEST_CHECK(net.run.raised("net.link_flap") == 1);
  const auto& finding = net.run.last("net.link_flap");
  CULPRIT_TEST_CHECK(std::string(finding.part) == "mlx5_3/1" && finding.severity == CULPRIT_WARNING);
  CULPRIT_TEST_CHECK(std::fabs(culprit_test_value(&finding, "nccl_timeout_s") - 30.06) < 0.01);
  CULPRIT_TEST_CHECK(net.run.raised("net.link_down") == 0);  // seen down once only
  net.looks(70, 20);
  CULPRIT_TEST_CHECK(net.run.cleared("net.link_flap") == 1 && net.run.all() == 2);
}

void outage() {
  Net net;
  net.world.write(port(2) + "state", "1: DOWN\n");
  net.looks(4);
  CULPRIT_TEST_CHECK(net.run.raised("net.link_down") == 1 &&
                     net.run.raised("net.outage_exceeds_timeout") == 0);
  net.looks(14);
  CULPRIT_TEST_CHECK(net.run.raised("net.outage_exceeds_timeout") == 1);
  net.world.write(port(2) + "state", "4: ACTIVE\n");
  net.looks(2);
  CULPRIT_TEST_CHECK(net.run.cleared("net.link_down") == 1 && net.run.raised("net.link_down") == 1);
}

void short_timeout() {
  Net net({"nccl_ib_timeout=14"});  // NCCL before 2.14: .5 s
  net.world.write(port(2) + "state", "1: DOWN\n");
  net.looks(3);
  CULPRIT_TEST_CHECK(net.run.raised("net.outage_exceeds_timeout") == 1);
}

void never_up() {
  World world;
  Net::build(world);
  world.write(port(7) + "state", "1: DOWN\n");
  Run run(g_plugin, Net::options(world, {}));
  for (int i = 0; i < 10; ++i) run.look(10);
  CULPRIT_TEST_CHECK(run.all() == 0);
}

void rates() {
  Net net;
  net.world.write(port(5) + "counters/symbol_error", 70009);
  net.looks(10);
  CULPRIT_TEST_CHECK(net.run.all() == 0);
  net.world.write(port(5) + "counters/symbol_error", 70030);
  net.world.write(port(6) + "hw_counters/local_ack_timeout_err", 70050);
  net.world.write("sys/class/net/eth0/statistics/rx_crc_errors", 12400);
  net.looks(10);
  CULPRIT_TEST_CHECK(net.run.raised("net.symbol_errors") == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(&net.run.last("net.symbol_errors"), "growth") == 30);
  CULPRIT_TEST_CHECK(net.run.raised("net.ack_timeouts") == 1 && net.run.raised("net.crc_errors") == 1);
  CULPRIT_TEST_CHECK(std::string(net.run.last("net.crc_errors").part) == "eth0");
  net.looks(20, 600);
  CULPRIT_TEST_CHECK(net.run.cleared("net.symbol_errors") == 1 && net.run.cleared("net.ack_timeouts") == 1);
  CULPRIT_TEST_CHECK(net.run.all() == 6);
}

void counts_after_a_reset() {
  Net net;
  net.world.write(port(5) + "counters/symbol_error", 0);
  net.looks(10);
  net.world.write(port(5) + "counters/symbol_error", 3);
  net.looks(10);
  CULPRIT_TEST_CHECK(net.run.all() == 0);
}

void speed() {
  Net net;
  net.world.write(port(1) + "rate", "200 Gb/sec (4X HDR)\n");
  net.looks(10);
  CULPRIT_TEST_CHECK(net.run.raised("net.speed_degraded") == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(&net.run.last("net.speed_degraded"), "best_gbit_s") == 400);
}

void slower_than_peers() {
  World world;
  Net::build(world);
  world.write(port(1) + "rate", "200 Gb/sec (4X HDR)\n");
  Run run(g_plugin, Net::options(world, {}));
  for (int i = 0; i < 10; ++i) run.look(2);
  CULPRIT_TEST_CHECK(run.raised("net.speed_degraded") == 1 && run.all() == 1);
}

void lost() {
  Net net;
  const std::string command = "rm -r " + net.world.path("sys/class/infiniband/mlx5_4");
  CULPRIT_TEST_CHECK(std::system(command.c_str()) == 0);
  net.looks(6);
  CULPRIT_TEST_CHECK(net.run.raised("net.device_gone") == 1 && net.run.all() == 1);
  CULPRIT_TEST_CHECK(std::string(net.run.last("net.device_gone").part) == "mlx5_4");
}

void pci() {
  World world;
  const auto device = [&world](const char* path, const char* code, int width, int width_max,
                               const char* speed) {
    const std::string folder = std::string("sys/devices/pci0000:00/") + path + "/";
    world.write(folder + "class", std::string(code) + "\n");
    world.write(folder + "current_link_width", uint64_t(width));
    world.write(folder + "max_link_width", uint64_t(width_max));
    world.write(folder + "current_link_speed", std::string(speed) + " GT/s PCIe\n");
    world.write(folder + "max_link_speed", "32.0 GT/s PCIe\n");
    world.write(folder + "aer_dev_correctable", "RxErr 5\nBadTLP 1\nTOTAL_ERR_COR 600\n");
    world.write(folder + "aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 1\n");
    const std::string name = folder.substr(0, folder.size() - 1);
    world.link("sys/bus/pci/devices/" + name.substr(name.rfind('/') + 1), "../../../../" + name);
  };
  device("0000:00:01.0", "0x060400", 16, 16, "32.0");  // a bridge
  device("0000:00:01.0/0000:01:00.0", "0x030200", 8, 16,
         "2.5");                                     // a GPU: half of its lanes; slow as it idles
  device("0000:00:02.0", "0x060400", 8, 8, "32.0");  // a slot of eight lanes
  device("0000:00:02.0/0000:02:00.0", "0x020000", 8, 16, "32.0");   // an adapter that could do 16 there
  device("0000:00:03.0", "0x060400", 16, 16, "32.0");               //
  device("0000:00:03.0/0000:03:00.0", "0x020700", 16, 16, "16.0");  // an adapter at half its speed
  Run run(g_plugin, {"root=" + world.root()});
  for (int i = 0; i < 3; ++i) run.look(60);
  CULPRIT_TEST_CHECK(run.raised("pcie.width_degraded") == 1 && run.raised("pcie.speed_degraded") == 1);
  CULPRIT_TEST_CHECK(std::string(run.last("pcie.width_degraded").part) == "0000:01:00.0");
  CULPRIT_TEST_CHECK(std::string(run.last("pcie.speed_degraded").part) == "0000:03:00.0");
  CULPRIT_TEST_CHECK(run.all() == 2);
  const std::string adapter = "sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0/";
  world.write(adapter + "aer_dev_fatal", "Undefined 0\nTOTAL_ERR_FATAL 2\n");
  world.write(adapter + "aer_dev_correctable", "RxErr 5\nTOTAL_ERR_COR 900\n");
  run.look(60);
  run.look(60);
  CULPRIT_TEST_CHECK(run.happened("pcie.aer_fatal") == 1 && run.raised("pcie.aer_corrected") == 1);
}

void hang() {
  Net net;
  const std::string pipe = net.world.path(port(6) + "state");  // a read of a pipe without a writer
  unlink(pipe.c_str());
  CULPRIT_TEST_CHECK(mkfifo(pipe.c_str(), 0600) == 0);
  net.looks(8);
  CULPRIT_TEST_CHECK(net.run.all() == 0);  // 16 s: late, but not yet hung
  net.looks(6);
  CULPRIT_TEST_CHECK(net.run.raised("net.query_hangs") == 1);
  CULPRIT_TEST_CHECK(std::string(net.run.last("net.query_hangs").part) == "mlx5_6");
  net.world.write(port(7) + "counters/symbol_error", 70030);
  net.looks(10);
  CULPRIT_TEST_CHECK(net.run.raised("net.symbol_errors") == 1 && net.run.all() == 2);
  unlink(pipe.c_str());
  net.world.write(port(6) + "state", "4: ACTIVE\n");
  net.looks(35, 10);
  CULPRIT_TEST_CHECK(net.run.cleared("net.query_hangs") == 1 && net.run.all() == 3);
}

// ---- real links

int command(const std::string& text) { return std::system(text.c_str()); }

// In a child: its own network and mounts. Returns the reason why it cannot be, or nothing.
const char* enter_namespace(const std::string& root) {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return strerror(errno);
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return strerror(errno);
  mkdir((root + "/sys").c_str(), 0755);
  // Of the new namespace: /sys shows the old one's interfaces.
  if (mount("sysfs", (root + "/sys").c_str(), "sysfs", 0, nullptr) != 0) return strerror(errno);
  if (command("ip link add left type veth peer name right && ip link set left up && ip link set right up") !=
      0) {
    return "ip link fails";
  }
  return nullptr;
}

// The kernel reports a link's state up to a second after it changed; an error after five.
bool left_is_up(const std::string& root, bool up) {
  const std::string read =
      "[ \"$(cat " + root + "/sys/class/net/left/operstate)\" " + (up ? "=" : "!=") + " up ]";
  return command("for i in $(seq 100); do " + read + " && exit 0; sleep 0.05; done; exit 1") == 0;
}

int real_flaps_inside(const std::string& root) {
  constexpr int kSkipped = 77;
  if (const char* reason = enter_namespace(root)) {
    std::printf("  skipped: no network namespace here: %s\n", reason);
    std::fflush(stdout);
    return kSkipped;
  }
  {
    Run run(g_plugin, {"root=" + root, "interfaces=left"});
    for (int i = 0; i < 3; ++i) run.look(2);
    CULPRIT_TEST_CHECK(run.all() == 0);
    for (int i = 0; i < 3; ++i) {
      CULPRIT_TEST_CHECK(command("ip link set right down && ip link set right up") == 0);
    }
    for (int i = 0; i < 3; ++i) run.look(2);
    CULPRIT_TEST_CHECK(run.raised("net.link_flap") == 1);
    CULPRIT_TEST_CHECK(culprit_test_value(&run.last("net.link_flap"), "flaps") >= 3);
    CULPRIT_TEST_CHECK(command("ip link set right down") == 0 && left_is_up(root, false));
    for (int i = 0; i < 4; ++i) run.look(2);
    CULPRIT_TEST_CHECK(run.raised("net.link_down") == 1);
    CULPRIT_TEST_CHECK(command("ip link set right up") == 0 && left_is_up(root, true));
    for (int i = 0; i < 3; ++i) run.look(2);
    CULPRIT_TEST_CHECK(run.cleared("net.link_down") == 1);
  }
  umount2((root + "/sys").c_str(), MNT_DETACH);
  return 0;
}

void real_flaps() {
  World world;
  const pid_t child = fork();
  if (child == 0) _exit(real_flaps_inside(world.root()));
  int status = 0;
  waitpid(child, &status, 0);
  CULPRIT_TEST_CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

// The host that the test runs on: nothing may be invented.
void own_host() {
  Run run(g_plugin, {});
  for (int i = 0; i < 5; ++i) run.look(2);
  run.print();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) culprit_test_fail("net_health_test PLUGIN [PART_OF_A_PROMISE]");
  g_plugin = argv[1];
  const std::vector<Case> cases = {
      {"healthy ports have no finding, whatever they counted before", healthy},
      {"flaps are one state, with their down time next to NCCL's", flap},
      {"an outage longer than NCCL's retries is an error", outage},
      {"the retries are those of the configured NCCL_IB_TIMEOUT", short_timeout},
      {"a port that was never up is not accused", never_up},
      {"error counters are judged by their growth", rates},
      {"a counter that was reset starts again", counts_after_a_reset},
      {"a port that falls to a lower speed is a finding", speed},
      {"a port slower than all its peers is a finding", slower_than_peers},
      {"an adapter that disappears is fatal", lost},
      {"PCIe width and speed are judged by what device and slot can, errors by growth", pci},
      {"a read that hangs is a finding of its adapter; the others go on", hang},
      {"flaps of a real link are counted", real_flaps},
      {"the host of the test is read", own_host},
  };
  return health::run_cases(cases, argc > 2 ? argv[2] : nullptr);
}
