#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/simulate_options.h"
#include "cli/verbs.h"
#include "sim/log_job.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  culprit simulate logs /tmp/demo --hosts 16 --fault gpu-lost
  culprit diagnose /tmp/demo/job --healthy /tmp/demo/healthy/1
  culprit simulate logs --list)";

// "-1" is read as the largest of all numbers; nobody wants a log of that size.
constexpr uint64_t kBytesMax = 10'000'000'000'000;

struct Options {
  sim::LogJobOptions job;
  std::string out, format = "text";
  bool list = false;
};

nlohmann::ordered_json choices(const std::vector<sim::NamedChoice>& list) {
  auto rows = nlohmann::ordered_json::array();
  for (const sim::NamedChoice& c : list) rows.push_back({{"name", c.name}, {"help", c.help}});
  return rows;
}

int list(const Options& o) {
  if (o.format == "json") {
    const nlohmann::ordered_json all = {{"faults", choices(sim::log_faults())},
                                        {"layouts", choices(sim::log_layouts())},
                                        {"frameworks", choices(sim::log_frameworks())}};
    return print(all.dump() + "\n") ? kDone : kUnable;
  }
  std::string text;
  const auto add = [&text](const char* title, const std::vector<sim::NamedChoice>& rows) {
    text += fmt::format("{}\n", title);
    for (const sim::NamedChoice& c : rows) text += fmt::format("  {:<28} {}\n", c.name, c.help);
  };
  add("faults", sim::log_faults());
  add("layouts", sim::log_layouts());
  add("frameworks", sim::log_frameworks());
  return print(text) ? kDone : kUnable;
}

int logs(const Options& o) {
  if (o.list) return list(o);
  if (o.out.empty()) return complain("simulate logs: OUT is missing"), kUnable;
  if (Status status = sim::simulate_logs(o.job, o.out); !status)
    return complain(status.error().text), kUnable;
  return kDone;
}

}  // namespace

std::vector<CLI::Option*> add_job_options(CLI::App& verb, sim::LogJobOptions& job) {
  return {
      verb.add_option("--hosts", job.hosts, "Hosts")->check(CLI::Range(1u, 65536u))->capture_default_str(),
      verb.add_option("--ranks-per-host", job.ranks_per_host, "Ranks on each host")
          ->check(CLI::Range(1u, 64u))
          ->capture_default_str(),
      verb.add_option("--fault", job.fault, "Kind of fault, `none` for a healthy job")->capture_default_str(),
      verb.add_option("--layout", job.layout, "How the lines are spread over files")->capture_default_str(),
      verb.add_option("--framework", job.framework, "Whose lines; default: by the seed"),
      verb.add_option("--seed", job.seed, "The same seed gives the same bytes")->capture_default_str(),
      verb.add_option("--iterations", job.iterations, "Iterations of a healthy run")->capture_default_str(),
      verb.add_option("--bytes", job.bytes, "Pad the job's log to about this size (1GB, 64MiB)")
          ->transform(CLI::AsSizeValue(true))
          ->check(CLI::Range(uint64_t{0}, kBytesMax)),
  };
}

void add_simulate(CLI::App& app, Run& run) {
  auto o = std::make_shared<Options>();
  CLI::App* simulate =
      app.add_subcommand("simulate", "Make a job with a known fault, for trying and testing");
  simulate->require_subcommand(1);
  CLI::App* verb =
      simulate->add_subcommand("logs", "Logs of a job: OUT/job, OUT/healthy/<n>, OUT/truth.json");
  verb->footer(kExamples);
  verb->add_option("OUT", o->out, "Folder to make; must be empty or absent");
  add_job_options(*verb, o->job);
  verb->add_option("--healthy", o->job.healthy, "Healthy jobs to write beside")->capture_default_str();
  verb->add_flag("--list", o->list, "Print the kinds of fault, layouts and frameworks");
  verb->add_option("--format,-f", o->format, "Of --list: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  verb->callback([o, &run] { run = [o] { return logs(*o); }; });
  add_simulate_play(*simulate, run);
}

}  // namespace culprit::cli
