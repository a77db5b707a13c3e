// Parameters of a simulated cluster: one table of names, values and sources. Plain values. The world knows
// nothing of the controller's thresholds, so none of them is here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace culprit::sim {

struct ClusterParams {
  // The cluster and its jobs.
  int64_t hosts = 1200;  // of all jobs together; spares come on top
  int64_t gpus_per_host = 8;
  int64_t spares = -1;  // -1: by spares_for()
  int64_t jobs = 1;
  int64_t days = 90;
  int64_t incidents_per_day = 12;
  int64_t switch_hosts = 32;
  int64_t group_hosts = 8;
  // A job.
  int64_t checkpoint_every_s = 120;
  int64_t save_stall_ms = 500;
  int64_t hot_restart_s = 60;
  int64_t requeue_s = 600;
  int64_t exit_s = 10;
  int64_t watchdog_s = 600;
  // What the agents see, and when.
  int64_t hang_after_s = 60;
  int64_t kernel_s = 1;
  int64_t peers_s = 15;
  int64_t stacks_s = 10;
  int64_t logs_s = 5;
  int64_t slow_s = 300;
  int64_t scheduler_s = 300;
  int64_t wrong_ppm = 50'000;
  int64_t plugin_ppm = 500'000;
  int64_t forged_hosts = 4;
  // Actions.
  int64_t end_tasks_s = 4;
  int64_t isolate_s = 1;
  int64_t node_check_s = 120;
  int64_t check_s = 1800;
  int64_t check_finds_ppm = 900'000;
  // Faults over time.
  int64_t outage_s = 600;
  int64_t recur_s = 21'600;
  int64_t slow_percent = 20;
  // People.
  int64_t person_s = 900;
  int64_t notice_s = 3600;
  int64_t slow_notice_s = 86'400;
  int64_t repair_s = 86'400;
  int64_t bad_repair_ppm = 100'000;
};

struct ClusterParam {
  const char* name;
  int64_t ClusterParams::*value;
  int64_t low, high;   // allowed range, inclusive
  bool sweep;          // halved and doubled by a sweep
  const char* about;   // with its unit
  const char* source;  // where the default comes from; "chosen": without one
};

std::span<const ClusterParam> cluster_params();
// Null: no such name.
const ClusterParam* cluster_param(std::string_view name);
// "NAME=VALUE". Fails for an unknown name, a value that is no number, or one out of range.
Status set_cluster_param(ClusterParams& params, const std::string& text);
// With 99 %, no more than so many of `hosts` are being repaired at a time (Binomial, at the incidents, repair
// time and mix of faults given).
int64_t spares_for(const ClusterParams& params);

}  // namespace culprit::sim
