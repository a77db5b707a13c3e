// What the plugins cost an idle host with 8 fake GPUs and 8 fake ports: CPU and anonymous memory of a process
// for each plugin and of the children that it asks through.
//
//   bench_plugins_idle PLUGIN_FOLDER FAKE_NVML [SECONDS [--gate]]
//
// With --gate the exit status is 1 if all together cost more than .3 % of a core or 12 MB.
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/test_case.h"

namespace {

constexpr double kCpuPercentMax = 0.3, kMegabytesMax = 12;
constexpr int kWarmUp_s = 3;

void build(health::World& world) {
  const char* counters[] = {"symbol_error",
                            "link_error_recovery",
                            "link_downed",
                            "port_rcv_errors",
                            "local_link_integrity_errors",
                            "excessive_buffer_overrun_errors",
                            "port_rcv_remote_physical_errors",
                            "port_xmit_discards"};
  const char* hardware[] = {"local_ack_timeout_err", "packet_seq_err", "rnr_nak_retry_err",
                            "req_transport_retries_exceeded", "rx_icrc_encapsulated"};
  for (int i = 0; i < 8; ++i) {
    const std::string port = "sys/class/infiniband/mlx5_" + std::to_string(i) + "/ports/1/";
    world.write(port + "state", "4: ACTIVE\n");
    world.write(port + "rate", "400 Gb/sec (4X NDR)\n");
    for (const char* name : counters) world.write(port + "counters/" + name, 0);
    for (const char* name : hardware) world.write(port + "hw_counters/" + name, 0);
    const std::string interface = "sys/class/net/ib" + std::to_string(i) + "/";
    world.write(interface + "device/vendor", "0x15b3\n");
    world.write(interface + "operstate", "up\n");
    world.write(interface + "carrier_changes", 1);
    for (const char* name : {"rx_crc_errors", "tx_errors", "tx_carrier_errors", "rx_missed_errors"}) {
      world.write(interface + "statistics/" + name, 0);
    }
    for (const char* code : {"0x020700", "0x030200"}) {
      const std::string name = "0000:" + std::to_string(10 + i) + (code[3] == '2' ? ":00.0" : ":01.0");
      const std::string folder = "sys/bus/pci/devices/" + name + "/";
      world.write(folder + "class", std::string(code) + "\n");
      for (const char* file : {"current_link_width", "max_link_width"}) world.write(folder + file, 16);
      for (const char* file : {"current_link_speed", "max_link_speed"}) {
        world.write(folder + file, "32.0 GT/s PCIe\n");
      }
      world.write(folder + "aer_dev_correctable", "RxErr 0\nTOTAL_ERR_COR 0\n");
    }
  }
}

struct Cost {
  double cpu_ns = 0, anonymous_bytes = 0;
  int processes = 0;
};

void add(pid_t pid, Cost& cost) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto schedstat = health::read_text(folder + "/schedstat");
  cost.cpu_ns += schedstat ? health::real(*schedstat).value_or(0) : 0;
  const std::string status = health::read_text(folder + "/status").value_or("");
  const size_t at = status.find("RssAnon:");
  if (at != std::string::npos) cost.anonymous_bytes += health::real(status.substr(at + 8)).value_or(0) * 1024;
  ++cost.processes;
  const std::string children =
      health::read_text(folder + "/task/" + std::to_string(pid) + "/children").value_or("");
  for (const auto child : health::words(children)) add(pid_t(*health::number(child)), cost);
}

[[noreturn]] void run(const std::string& library, const std::vector<std::string>& options) {
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  pointers.push_back(nullptr);
  culprit_test* test = culprit_test_open(library.c_str(), pointers.data());
  while (true) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (culprit_test_tick(test, int64_t(now.tv_sec) * 1000000000 + now.tv_nsec) != CULPRIT_OK) _exit(1);
    const timespec second = {1, 0};
    nanosleep(&second, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_plugins_idle PLUGIN_FOLDER FAKE_NVML [SECONDS [--gate]]\n");
    return 2;
  }
  const int seconds = argc > 3 ? std::atoi(argv[3]) : 60;
  health::World world;
  build(world);
  const std::string folder = argv[1];
  struct Plugin {
    const char* name;
    std::vector<std::string> options;
    pid_t pid = -1;
    Cost before = {}, after = {};
  };
  std::vector<Plugin> plugins = {
      {"gpu_health", {std::string("nvml=") + argv[2], "root=" + world.root(), "npu_smi=/nonexistent"}},
      {"net_health", {"root=" + world.root()}},
      {"host_health", {}}};
  for (Plugin& plugin : plugins) {
    plugin.pid = fork();
    if (plugin.pid == 0) run(folder + "/" + plugin.name + ".so", plugin.options);
  }
  sleep(kWarmUp_s);
  for (Plugin& plugin : plugins) add(plugin.pid, plugin.before);
  sleep(unsigned(seconds));
  double cpu = 0, megabytes = 0;
  bool whole = true;
  for (Plugin& plugin : plugins) {
    add(plugin.pid, plugin.after);
    const double percent = (plugin.after.cpu_ns - plugin.before.cpu_ns) / (seconds * 1e9) * 100;
    const double anonymous = plugin.after.anonymous_bytes * 1e-6;
    std::printf("%-12s %.4f %% of a core, %.2f MB anonymous, %d processes\n", plugin.name, percent, anonymous,
                plugin.after.processes);
    cpu += percent;
    megabytes += anonymous;
    whole = whole && waitpid(plugin.pid, nullptr, WNOHANG) == 0;
    kill(plugin.pid, SIGKILL);
    waitpid(plugin.pid, nullptr, 0);
  }
  std::printf("all          %.4f %% of a core (limit %.1f), %.2f MB anonymous (limit %.0f), over %d s\n", cpu,
              kCpuPercentMax, megabytes, kMegabytesMax, seconds);
  if (!whole) std::printf("a plugin ended by itself\n");
  const bool gate = argc > 4 && std::strcmp(argv[4], "--gate") == 0;
  return !whole || (gate && (cpu > kCpuPercentMax || megabytes > kMegabytesMax));
}
