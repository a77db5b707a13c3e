// gpu_health against a fake NVML and fake files: gpu_health_test PLUGIN FAKE_NVML [PART_OF_A_PROMISE]
#include <string>
#include <vector>

#include "common/test_case.h"

namespace {

using health::Case;
using health::Run;
using health::World;

const char* g_plugin;
const char* g_nvml;

struct Gpus {
  World world;
  Run run;
  explicit Gpus(const std::string& scenario = "", std::vector<std::string> more = {})
      : run((write(world, scenario), g_plugin), options(world, std::move(more))) {
    run.look(1);   // finds the GPUs
    run.look(15);  // the first look at each
  }
  static void write(World& world, const std::string& scenario) {
    world.write("scenario", scenario);
    setenv("FAKE_NVML", world.path("scenario").c_str(), 1);
  }
  static std::vector<std::string> options(World& world, std::vector<std::string> more) {
    more.push_back(std::string("nvml=") + g_nvml);
    more.push_back("root=" + world.root());
    more.push_back("npu_smi=" + world.path("npu-smi"));
    return more;
  }
  void set(const std::string& scenario) { write(world, scenario); }
  void looks(int number) {
    for (int i = 0; i < number; ++i) run.look(15);
  }
};

void healthy() {
  Gpus gpus;
  gpus.looks(4);
  CULPRIT_TEST_CHECK(gpus.run.all() == 0);
}

void throttle() {
  Gpus gpus;
  gpus.set("gpu 3 reasons 64\ngpu 3 temperature 91\ngpu 3 sm 900\n");
  gpus.looks(1);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.thermal_throttle") == 0);  // once may be a moment
  gpus.looks(4);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.thermal_throttle") == 1);
  const auto& finding = gpus.run.last("gpu.thermal_throttle");
  CULPRIT_TEST_CHECK(finding.device == 3 && finding.severity == CULPRIT_WARNING);
  CULPRIT_TEST_CHECK(std::string(finding.symptom) == "slowdown");
  CULPRIT_TEST_CHECK(culprit_test_value(&finding, "temperature_c") == 91);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.temperature_high") == 1);
  gpus.set("");
  gpus.looks(6);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.thermal_throttle") == 1);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.temperature_high") == 1);
  CULPRIT_TEST_CHECK(gpus.run.all() == 4);
}

void power() {
  Gpus gpus("gpu 0 reasons 4\n");  // a software power cap: how a busy GPU runs
  gpus.set("gpu 0 reasons 4\ngpu 1 reasons 128\ngpu 2 reasons 8\n");
  gpus.looks(3);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.power_brake") == 1 && gpus.run.last("gpu.power_brake").device == 1);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.hw_slowdown") == 1 && gpus.run.last("gpu.hw_slowdown").device == 2);
  CULPRIT_TEST_CHECK(gpus.run.all() == 2);
}

void memory() {
  Gpus gpus("gpu 1 uncorrected 2\ngpu 1 corrected 90000\ngpu 2 remap_pending 1\n");
  gpus.looks(3);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.rows_remap_pending") == 1);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.ecc_uncorrected_earlier") == 1);
  CULPRIT_TEST_CHECK(gpus.run.all() == 2);  // what was counted before is accused once, as such
  gpus.set("gpu 1 uncorrected 3\ngpu 1 corrected 92000\ngpu 2 remap_pending 1\ngpu 4 remap_failed 1\n");
  gpus.looks(2);
  CULPRIT_TEST_CHECK(gpus.run.happened("gpu.ecc_uncorrected") == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(&gpus.run.last("gpu.ecc_uncorrected"), "errors") == 1);
  CULPRIT_TEST_CHECK(gpus.run.last("gpu.ecc_uncorrected").severity == CULPRIT_ERR);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.ecc_corrected") == 1);
  CULPRIT_TEST_CHECK(gpus.run.last("gpu.rows_remap_failed").device == 4);
  gpus.set("");  // reset: all counts are 0
  gpus.looks(2);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.rows_remap_pending") == 1);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.ecc_uncorrected_earlier") == 1);
  CULPRIT_TEST_CHECK(gpus.run.happened("gpu.ecc_uncorrected") == 1);
}

void falls_off() {
  Gpus gpus;
  gpus.set("gpu 5 lost_in_query 1\n");
  gpus.looks(2);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.fell_off") == 1);
  const auto& finding = gpus.run.last("gpu.fell_off");
  CULPRIT_TEST_CHECK(finding.device == 5 && finding.severity == CULPRIT_FATAL);
  CULPRIT_TEST_CHECK(std::string(finding.action) == "isolate");
  gpus.set("gpu 5 lost 1\ngpu 1 remap_pending 1\n");  // from the handle on
  gpus.looks(2);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.fell_off") == 1);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.rows_remap_pending") == 1);  // the others go on
  gpus.set("");
  gpus.looks(1);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.fell_off") == 1);
}

void disappears() {
  Gpus gpus("count 8\n");
  gpus.set("count 7\n");
  gpus.looks(2);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.fell_off") == 1 && gpus.run.last("gpu.fell_off").device == 7);
}

void hangs() {
  Gpus gpus("count 16\n");
  gpus.set("count 16\ngpu 6 hang 60\ngpu 9 remap_pending 1\n");
  gpus.looks(2);  // 15 s: late, but not yet hung
  CULPRIT_TEST_CHECK(gpus.run.all() == 0);
  gpus.looks(2);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.query_hangs") == 1);
  CULPRIT_TEST_CHECK(gpus.run.last("gpu.query_hangs").device == 6);
  CULPRIT_TEST_CHECK(culprit_test_value(&gpus.run.last("gpu.query_hangs"), "waited_s") >= 20);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.rows_remap_pending") == 1);  // GPU 9 was behind it
  gpus.looks(10);  // the others are asked without a wait, and GPU 6 not at all
  CULPRIT_TEST_CHECK(gpus.run.all() == 2);
  gpus.set("count 16\n");
  gpus.looks(1);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.rows_remap_pending") == 1);
  gpus.looks(20);  // past retry_s
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.query_hangs") == 1);
  CULPRIT_TEST_CHECK(gpus.run.all() == 4);
}

void crashes() {
  Gpus gpus;
  gpus.set("gpu 2 crash 1\ngpu 3 remap_pending 1\n");
  gpus.looks(3);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.query_crashes") == 1);
  CULPRIT_TEST_CHECK(gpus.run.last("gpu.query_crashes").device == 2);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.rows_remap_pending") == 1);
}

void links() {
  Gpus gpus;
  gpus.set("gpu 0 links 17\ngpu 1 link_errors 5\ngpu 2 link_crc 9000\n");
  gpus.looks(3);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.nvlink_down") == 1);
  CULPRIT_TEST_CHECK(std::string(gpus.run.last("gpu.nvlink_down").part) == "nvlink 17");
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.nvlink_errors") == 1 && gpus.run.raised("gpu.nvlink_crc") == 1);
  CULPRIT_TEST_CHECK(std::string(gpus.run.last("gpu.nvlink_errors").part) == "nvlink 4");
  CULPRIT_TEST_CHECK(gpus.run.all() == 3);
}

void fewer_links() {
  Gpus gpus("gpu 4 links 12\n");
  gpus.looks(3);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.nvlink_fewer") == 1 &&
                     gpus.run.last("gpu.nvlink_fewer").device == 4);
  CULPRIT_TEST_CHECK(gpus.run.all() == 1);
}

void pcie_and_recovery() {
  Gpus gpus("gpu 0 replays 5000\n");
  gpus.set("gpu 0 replays 5020\ngpu 1 recovery 2\n");
  gpus.looks(1);
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.pcie_replays") == 1 && gpus.run.raised("gpu.recovery_needed") == 1);
  CULPRIT_TEST_CHECK(std::string(gpus.run.last("gpu.recovery_needed").text).find("reboot") !=
                     std::string::npos);
  gpus.looks(15);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.pcie_replays") == 1);
}

void xids() {
  Gpus gpus;
  gpus.set("xid 3 79\nxid 4 13\n");
  gpus.looks(3);
  CULPRIT_TEST_CHECK(gpus.run.happened("gpu.xid") == 2);
  CULPRIT_TEST_CHECK(gpus.run.last("gpu.xid").device == 4 &&
                     gpus.run.last("gpu.xid").severity == CULPRIT_WARNING);
  CULPRIT_TEST_CHECK(culprit_test_finding(gpus.run.raw(), 0)->severity == CULPRIT_ERR);
}

void driver_mismatch() {
  Gpus gpus("init 18\n");
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.driver_mismatch") == 1);
  gpus.set("");
  gpus.run.look(300);
  CULPRIT_TEST_CHECK(gpus.run.cleared("gpu.driver_mismatch") == 1);
}

void no_driver() {
  World world;
  Run run(g_plugin, {"nvml=/nonexistent/libnvidia-ml.so.1", "root=" + world.root()});
  for (int i = 0; i < 5; ++i) run.look(15);
  CULPRIT_TEST_CHECK(run.all() == 0 && run.raw()->log_lines == 1);
}

void amd() {
  World world;
  const std::string card = "sys/class/drm/card1/device/";
  world.write(card + "vendor", "0x1002\n");
  world.write(card + "ras/umc_err_count", "ue: 0\nce: 3\n");
  world.write(card + "ras/gpu_vram_bad_pages", "0x00000001 : 0x00001000 : R\n");
  world.write(card + "hwmon/hwmon3/temp2_input", 65000);
  world.write(card + "hwmon/hwmon3/temp2_crit", 100000);
  world.write("sys/class/drm/card0/device/vendor", "0x1a03\n");
  Run run(g_plugin, {"nvml=/nonexistent", "root=" + world.root()});
  run.look(1);
  run.look(15);
  CULPRIT_TEST_CHECK(run.all() == 0);
  world.write(card + "ras/umc_err_count", "ue: 1\nce: 3\n");
  world.write(card + "ras/gpu_vram_bad_pages", "0x00000001 : 0x00001000 : R\n0x2 : 0x1000 : P\n");
  world.write(card + "hwmon/hwmon3/temp2_input", 99000);
  run.look(15);
  run.look(15);
  CULPRIT_TEST_CHECK(run.happened("gpu.ecc_uncorrected") == 1 && run.raised("gpu.pages_retire_pending") == 1);
  CULPRIT_TEST_CHECK(run.raised("gpu.temperature_high") == 1 && run.all() == 3);
}

void ascend() {
  World world;
  const auto table = [](const char* health) {
    return std::string("#!/bin/sh\ncat <<'END'\n") +
           "+------------------------------------------------------------------------------------------+\n"
           "| npu-smi 23.0.2                   Version: 23.0.2                                         |\n"
           "+---------------------------+---------------+----------------------------------------------+\n"
           "| NPU   Name                | Health        | Power(W)    Temp(C)     Hugepages-Usage(page) |\n"
           "| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)   |\n"
           "+===========================+===============+==============================================+\n"
           "| 0     910B3               | OK            | 94.5        48          0    / 0              |\n"
           "| 0                         | 0000:C1:00.0  | 0           0    / 0    3408 / 65536          |\n"
           "+===========================+===============+==============================================+\n"
           "| 1     910B3               | " +
           health +
           "       | 94.5        71          0    / 0              |\n"
           "| 0                         | 0000:C2:00.0  | 0           0    / 0    3408 / 65536          |\n"
           "+===========================+===============+==============================================+"
           "\nEND\n";
  };
  world.write("npu-smi", table("OK   "));
  chmod(world.path("npu-smi").c_str(), 0755);
  Run run(g_plugin, {"nvml=/nonexistent", "root=" + world.root(), "npu_smi=" + world.path("npu-smi")});
  for (int i = 0; i < 3; ++i) run.look(15);
  CULPRIT_TEST_CHECK(run.all() == 0);
  world.write("npu-smi", table("Alarm"));
  for (int i = 0; i < 3; ++i) run.look(15);
  CULPRIT_TEST_CHECK(run.raised("npu.health") == 1 && run.last("npu.health").device == 1);
  CULPRIT_TEST_CHECK(culprit_test_value(&run.last("npu.health"), "temperature_c") == 71);
}

void state_survives() {
  Gpus gpus("gpu 2 remap_pending 1\n");
  CULPRIT_TEST_CHECK(gpus.run.raised("gpu.rows_remap_pending") == 1);
  culprit_detector* old = gpus.run.raw()->detector;
  std::string state(size_t(old->save_state(old, nullptr, 0)), '\0');
  CULPRIT_TEST_CHECK(old->save_state(old, state.data(), state.size()) == int64_t(state.size()));
  Run next(g_plugin, Gpus::options(gpus.world, {}));
  culprit_detector* detector = next.raw()->detector;
  CULPRIT_TEST_CHECK(detector->load_state(detector, state.data(), state.size()) == CULPRIT_OK);
  for (int i = 0; i < 3; ++i) next.look(15);
  CULPRIT_TEST_CHECK(next.all() == 0);
  gpus.set("");
  next.look(15);
  CULPRIT_TEST_CHECK(next.cleared("gpu.rows_remap_pending") == 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) culprit_test_fail("gpu_health_test PLUGIN FAKE_NVML [PART_OF_A_PROMISE]");
  g_plugin = argv[1];
  g_nvml = argv[2];
  const std::vector<Case> cases = {
      {"healthy GPUs have no finding", healthy},
      {"a thermal throttle is raised once and cleared once", throttle},
      {"a power brake and a protection slowdown are findings, a power cap is none", power},
      {"memory errors from before the start are reported once, as such; new ones as errors", memory},
      {"a GPU that falls off in mid-query is fatal, and the others go on", falls_off},
      {"a GPU that is not listed any more has fallen off", disappears},
      {"a query that hangs for 60 s is a finding of its GPU; 15 others go on", hangs},
      {"a query that ends its process is a finding of its GPU; the others go on", crashes},
      {"an NVLink that goes down, repeats or miscounts is named", links},
      {"a GPU with fewer NVLinks than all its peers is a finding", fewer_links},
      {"PCIe replays and a wanted recovery are findings", pcie_and_recovery},
      {"Xid events carry their GPU, and a severity by their number", xids},
      {"a driver that does not fit its library is a finding until it fits", driver_mismatch},
      {"a host without a driver has no finding and one line of log", no_driver},
      {"AMD: counters of sysfs", amd},
      {"Ascend: the table of npu-smi", ascend},
      {"a new instance takes over the raised states", state_survives},
  };
  return health::run_cases(cases, argc > 3 ? argv[3] : nullptr);
}
