#include "sim/cluster/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/cluster/incident.h"

namespace culprit::sim {
namespace {

using P = ClusterParams;
constexpr int64_t kDayS = 86'400, kYearS = 365 * kDayS, kMillion = 1'000'000;

constexpr ClusterParam kParams[] = {
    {"hosts", &P::hosts, 1, 100'000, false, "hosts of all jobs together", "the measure: 1,200"},
    {"gpus_per_host", &P::gpus_per_host, 1, 64, false, "GPUs of a host", "the measure: 8"},
    {"spares", &P::spares, -1, 10'000, true, "idle hosts in addition; -1: P99 of the hosts in repair",
     "ByteRobust: P99 of a binomial"},
    {"jobs", &P::jobs, 1, 1000, false, "jobs of equal size", "the measure: one job"},
    {"days", &P::days, 1, 3650, false, "days of simulated time", "ByteRobust: 3 months"},
    {"incidents_per_day", &P::incidents_per_day, 0, 100'000, true, "incidents a day, of the whole cluster",
     "the measure: 12"},
    {"switch_hosts", &P::switch_hosts, 1, 10'000, false, "hosts below a leaf switch", "chosen"},
    {"group_hosts", &P::group_hosts, 1, 10'000, true, "hosts of a parallel group",
     "ByteRobust: groups of 8 machines"},
    {"checkpoint_every_s", &P::checkpoint_every_s, 1, kDayS, true, "s of training between checkpoints",
     "chosen; ByteRobust saves every step"},
    {"save_stall_ms", &P::save_stall_ms, 0, 3'600'000, true, "ms that a save stops the training",
     "chosen; asynchronous save"},
    {"hot_restart_s", &P::hot_restart_s, 1, kDayS, true,
     "s from the order to training again, on hosts at hand", "the measure: 60"},
    {"requeue_s", &P::requeue_s, 1, kDayS, true, "s from a requeue to training again",
     "the measure: 600; FT-HSDP: 10 min"},
    {"exit_s", &P::exit_s, 0, kDayS, false, "s until all processes of a crash have ended",
     "chosen; launchers"},
    {"watchdog_s", &P::watchdog_s, 1, kDayS, true, "s until the job's own watchdog ends a hang",
     "PyTorch: 600 s for NCCL"},
    {"hang_after_s", &P::hang_after_s, 1, kDayS, true, "s without progress until agents report a hang",
     "[hang]: max(60 s, 5 x median step)"},
    {"kernel_s", &P::kernel_s, 0, kDayS, false, "s until a kernel or driver line is known", "chosen"},
    {"peers_s", &P::peers_s, 0, kDayS, false, "s until peers' counters are compared", "chosen"},
    {"stacks_s", &P::stacks_s, 0, kDayS, false, "s to capture stacks of a hang",
     "capture limit of the controller's stop: 10 s"},
    {"logs_s", &P::logs_s, 0, kDayS, false, "s from the end to a diagnosis of logs", "chosen"},
    {"slow_s", &P::slow_s, 1, kDayS, true, "s for one measurement of a slow host", "chosen"},
    {"scheduler_s", &P::scheduler_s, 1, kDayS, true, "s until the scheduler declares a host down",
     "Slurm: SlurmdTimeout 300"},
    {"wrong_ppm", &P::wrong_ppm, 0, kMillion, true, "verdicts that name an innocent host, per million",
     "57 of 60 right at confidence .85 or more"},
    {"plugin_ppm", &P::plugin_ppm, 0, kMillion, true,
     "broken hosts of a hang or slow job that a device plugin confirms, per million", "chosen"},
    {"forged_hosts", &P::forged_hosts, 1, 10'000, true, "hosts that one forgery names", "chosen"},
    {"end_tasks_s", &P::end_tasks_s, 0, kDayS, true, "s to end a job's processes", "Slurm 22.05: 3.87 s"},
    {"isolate_s", &P::isolate_s, 0, kDayS, false, "s to drain or taint a host", "Slurm 22.05: below 1 s"},
    {"node_check_s", &P::node_check_s, 1, kDayS, true, "s for a check while the job waits", "chosen"},
    {"check_s", &P::check_s, 1, kYearS, true, "s for the check of an isolated host", "chosen"},
    {"check_finds_ppm", &P::check_finds_ppm, 0, kMillion, false, "faults that a check finds, per million",
     "chosen"},
    {"outage_s", &P::outage_s, 1, kDayS, true, "mean s of an outage of storage or a switch", "chosen"},
    {"recur_s", &P::recur_s, 1, kYearS, true, "mean s of training until an intermittent fault returns",
     "chosen"},
    {"slow_percent", &P::slow_percent, 1, 10'000, true, "% that a slow host adds to a step", "chosen"},
    {"person_s", &P::person_s, 1, kYearS, true, "s until a person acts on an alert with its cause", "chosen"},
    {"notice_s", &P::notice_s, 1, kYearS, true, "s until a person finds a cause without an alert", "chosen"},
    {"slow_notice_s", &P::slow_notice_s, 1, kYearS, true, "s until a person finds a slow host", "chosen"},
    {"repair_s", &P::repair_s, 1, kYearS, true, "mean s to repair a host", "chosen"},
    {"bad_repair_ppm", &P::bad_repair_ppm, 0, kMillion, false, "repairs that leave the fault, per million",
     "chosen"},
};

}  // namespace

std::span<const ClusterParam> cluster_params() { return kParams; }

const ClusterParam* cluster_param(std::string_view name) {
  const auto* at = std::find_if(std::begin(kParams), std::end(kParams),
                                [&](const ClusterParam& p) { return name == p.name; });
  return at == std::end(kParams) ? nullptr : at;
}

Status set_cluster_param(ClusterParams& params, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return fail(ErrorCode::kInvalid, text + ": not NAME=VALUE");
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  const ClusterParam* param = cluster_param(name);
  if (param == nullptr) return fail(ErrorCode::kInvalid, name + ": no such parameter; --list has them");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size())
    return fail(ErrorCode::kInvalid, fmt::format("{}: '{}' is not a whole number", name, value));
  if (number < param->low || number > param->high)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: {} is not within {} to {}", name, number, param->low, param->high));
  params.*(param->value) = number;
  return {};
}

int64_t spares_for(const ClusterParams& params) {
  const double n = static_cast<double>(params.hosts);
  const double repairs = static_cast<double>(params.incidents_per_day) *
                         static_cast<double>(params.repair_s) / static_cast<double>(kDayS) *
                         static_cast<double>(lasting_host_faults_ppm()) / 1e6;
  const double p = std::min(repairs / n, 0.5);
  // Terms relative to the first one: only multiplication, so every machine gives the same number.
  std::vector<double> terms{1};
  double all = 1;
  for (int64_t k = 0; k < params.hosts; ++k) {
    const double term =
        terms.back() * ((n - static_cast<double>(k)) / static_cast<double>(k + 1)) * (p / (1 - p));
    if (term < terms.back() && term < all * 1e-12) break;
    terms.push_back(term);
    all += term;
  }
  double sum = 0;
  for (size_t k = 0; k < terms.size(); ++k)
    if (sum += terms[k]; sum >= 0.99 * all) return static_cast<int64_t>(k);
  return params.hosts;
}

}  // namespace culprit::sim
