#include "sim/log_job.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "sim/files.h"
#include "sim/truth.h"

namespace culprit::sim {

namespace {

// Upper limits: a larger job shows nothing new.
constexpr uint32_t kHostsMax = 65'536, kRanksPerHostMax = 64, kIterationsMax = 10'000'000, kHealthyMax = 1000;
// Size limit of a healthy job: it shows the templates of the padding, so it can be smaller.
constexpr uint64_t kHealthyBytes = 16 << 20;

bool named(const std::vector<NamedChoice>& choices, std::string_view name) {
  return std::any_of(choices.begin(), choices.end(), [&](const NamedChoice& c) { return c.name == name; });
}

Status check(const LogJobOptions& o) {
  if (o.hosts < 2 || o.hosts > kHostsMax)
    return fail(ErrorCode::kInvalid, fmt::format("hosts: {} is not in 2..{}", o.hosts, kHostsMax));
  if (o.ranks_per_host < 1 || o.ranks_per_host > kRanksPerHostMax)
    return fail(ErrorCode::kInvalid,
                fmt::format("ranks per host: {} is not in 1..{}", o.ranks_per_host, kRanksPerHostMax));
  if (o.iterations < 5 || o.iterations > kIterationsMax)
    return fail(ErrorCode::kInvalid,
                fmt::format("iterations: {} is not in 5..{}", o.iterations, kIterationsMax));
  if (o.healthy > kHealthyMax)
    return fail(ErrorCode::kInvalid, fmt::format("healthy jobs: {} is more than {}", o.healthy, kHealthyMax));
  if (o.fault != "none" && !find_fault(o.fault))
    return fail(ErrorCode::kInvalid, "fault: there is no kind named " + o.fault);
  if (!named(log_layouts(), o.layout))
    return fail(ErrorCode::kInvalid, "layout: there is none named " + o.layout);
  if (!o.framework.empty() && !named(log_frameworks(), o.framework))
    return fail(ErrorCode::kInvalid, "framework: there is none named " + o.framework);
  return {};
}

}  // namespace

const std::vector<NamedChoice>& log_faults() {
  static const std::vector<NamedChoice> choices = [] {
    std::vector<NamedChoice> out;
    for (const auto all : {faults_hardware(), faults_cluster(), faults_program(), faults_quiet()})
      for (const FaultKind& kind : all) out.push_back({kind.name, kind.help});
    return out;
  }();
  return choices;
}

const std::vector<NamedChoice>& log_layouts() {
  static const std::vector<NamedChoice> choices = {
      {"files", "one file for each host: <host>.log"},
      {"host-dirs", "a folder for each host, with train.log and dmesg.log"},
      {"ranks", "one file for each rank: rank_131.log, hosts in job.toml"},
      {"torchrun", "torchrun's tree: <host>/<run>/attempt_0/<local rank>/{stdout,stderr}.log"},
      {"slurm", "one file for each task: <job>_<host>_<task>.out"},
      {"srun-l", "one stream, \"131: \" before each line, hosts in job.toml"},
      {"rank-stream", "one stream, \"[rank131]: \" before each line, hosts in job.toml"},
      {"default-files", "one file for each host, \"[default3]:\" before each line"},
      {"pdsh", "one stream, \"node-17: \" before each line"},
      {"mpirun", "one stream of mpirun --tag-output, hosts in job.toml"},
      {"k8s", "one stream of pods, \"[pod/name] \" before each line"},
      {"compose", "one stream, \"worker-3 | \" before each line"},
      {"syslog", "one syslog file of all hosts"},
      {"ascend-plog", "a folder for each worker with Ascend's process logs"},
      {"workers", "one file for each host: worker_3.log"},
      {"journald", "one journal, as journalctl -o short-iso prints it"},
  };
  return choices;
}

const std::vector<NamedChoice>& log_frameworks() {
  static const std::vector<NamedChoice> choices = [] {
    std::vector<NamedChoice> out;
    for (const auto all : {frameworks_megatron(), frameworks_trainers(), frameworks_others()})
      for (const FrameworkLines& lines : all) out.push_back({lines.name, lines.help});
    return out;
  }();
  return choices;
}

Status simulate_logs(const LogJobOptions& options, const std::string& out) {
  if (Status status = check(options); !status) return status;
  if (Status status = check_empty(out); !status) return status;
  const Site site = make_site(options);
  const Tables tables = compile_tables(site);
  for (uint32_t index = 0; index <= options.healthy; ++index) {
    const FaultKind* fault = index == 0 && options.fault != "none" ? find_fault(options.fault) : nullptr;
    Run run = make_run(site, options.seed, index);
    if (fault) run.exit_code = fault->exit_code;
    const std::string folder = index == 0 ? out + "/job" : fmt::format("{}/healthy/{}", out, index);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail(ErrorCode::kIo, folder + ": " + error.message());
    Sink sink(site, run, folder);
    JobWriter writer(site, tables, run, sink);
    const uint64_t bytes = index == 0 ? options.bytes : std::min(options.bytes, kHealthyBytes);
    Result<FaultOutcome> outcome = writer.write(fault, bytes);
    if (!outcome) return tl::unexpected(outcome.error());
    if (Status status = sink.finish(); !status) return status;
    if (index > 0) continue;
    if (Status status =
            write_text(out + "/truth.json", truth_json(options, fault, *outcome, sink, site, run));
        !status)
      return status;
  }
  return {};
}

}  // namespace culprit::sim
