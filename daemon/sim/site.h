// Constant properties of a simulated site (Site) and of one job (Run): names, addresses, clocks, settings.
// Values, made from the seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "sim/log_job.h"
#include "sim/random.h"
#include "sim/spec.h"
#include "sim/template.h"

namespace culprit::sim {

struct Site {
  uint32_t hosts = 0, ranks_per_host = 0, ranks = 0;
  uint32_t iterations = 0;
  std::string framework, layout;
  Accel accel = Accel::kNvidia;
  Launcher launcher = Launcher::kTorchrun;
  uint32_t name_scheme = 0;
  uint32_t python_style = 0;   // of Shape::kPython
  bool new_torch = true;       // of Shape::kTorchCpp and kElastic
  bool kernel_logs = false;    // whether kernel logs exist
  bool job_file = false;       // whether job.toml is written
  bool padded_labels = false;  // srun -l pads its labels
  std::string user, model, root, revision;
  uint32_t tp = 1, pp = 1, dp = 1, layers = 32, batch = 512;
  uint64_t iteration_us = 2'000'000;
  uint32_t log_every = 1, checkpoint_every = 50, evaluate_every = 100;
  uint32_t monitor_s = 30;        // period of the background lines of a host
  uint32_t chatter_per_host = 3;  // debug lines per host and iteration
  uint32_t timeout_s = 600;       // of collectives
  Random random{0};               // for choices common to all jobs of the site
};

struct RunHost {
  std::string name, ip;
  int64_t skew_ns = 0;
  int64_t delay_ns = 0;   // delay of its start
  uint32_t chatty = 100;  // percent of the usual debug lines
  uint32_t pid = 0;       // of its first rank; those of the others follow
  int64_t boot_ns = 0;    // when its kernel started
};

// A line with a fixed time, whatever the job does.
struct PlannedLine {
  TimeNs time_ns = 0;  // true time
  uint32_t host = 0, slot = 0;
  Shape shape = Shape::kRaw;
  Tone tone = Tone::kInfo;
  std::string text;  // a template
};

struct Run {
  std::vector<RunHost> hosts;
  TimeNs start_ns = 0;
  uint64_t job_number = 0;
  uint32_t port = 29500;
  int64_t first_iteration = 0;  // resumed from a checkpoint
  uint32_t fault_host = 0, fault_local = 0;
  uint8_t exit_code = 1;  // of the first process that ends; 128 + signal
  // Set if the job's other data has the same times: start of the first iteration (0: after the start-up),
  // duration of each iteration (empty: by the site), further lines sorted by time, and whether the job
  // ends.
  TimeNs first_iteration_ns = 0;
  std::vector<int64_t> steps_us;
  std::vector<PlannedLine> planned;
  bool ends = true;
  Random random{0};
};

Site make_site(const LogJobOptions& options);
// `index` 0 is the job under test; healthy jobs count from 1.
Run make_run(const Site& site, uint64_t seed, uint32_t index);

uint32_t pid_of(const Run& run, uint32_t host, uint32_t local);
// The PCI bus of a local device.
std::string bus_of(uint32_t local);

}  // namespace culprit::sim
