#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "cli/verbs.h"
#include "simulate/cluster_report.h"
#include "simulate/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kClusterExamples = R"(
Examples:
  culprit simulate cluster --runs 5 --ablation --sweep --plot cluster.svg
  culprit simulate cluster --hosts 12500 --incidents 80 --days 30
  culprit simulate cluster --set checkpoint_every_s=1800 --set policy.cause_hosts=9

Months of a cluster on virtual time, twice with the same incidents: with the controller that the collector
has, and with the same hosts again after each time-out until a person drains the bad one. --list has all
parameters with their sources; docs/simulated-cluster.md has results.)";

struct ClusterOptions {
  sim::ClusterStudy study;
  std::vector<std::string> set;
  std::string format = "text", plot;
  bool json = false, list = false, quiet = false;
};

// A parameter of the world, or a threshold of the controller.
Status set_one(sim::ClusterStudy& study, const std::string& text) {
  const size_t equals = std::min(text.find('='), text.size());
  const std::string name = text.substr(0, equals);
  for (const sim::Threshold& one : sim::cluster_thresholds()) {
    if (name != one.name) continue;
    double value = 0;
    const char* end = text.data() + text.size();
    const char* begin = text.data() + std::min(equals + 1, text.size());
    const auto [at, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || at != end || !(value >= 0 && value <= 1e9))
      return fail(ErrorCode::kInvalid, fmt::format("{}: '{}' is not a number from 0 to 1e9", name, begin));
    one.set(study.control, value);
    return {};
  }
  return sim::set_cluster_param(study.params, text);
}

int cluster(ClusterOptions& o) {
  for (const std::string& text : o.set)
    if (const Status status = set_one(o.study, text); !status)
      return report_error("simulate cluster: " + status.error().text), kUnable;
  if (o.study.params.jobs > o.study.params.hosts)
    return report_error("simulate cluster: more jobs than hosts"), kUnable;
  if (o.list) return print(list_of(o.study)) ? kDone : kUnable;
  const bool shown = !o.quiet && isatty(2);
  if (shown)
    o.study.proceed = [](const std::string& name) {
      fmt::print(stderr, "\r\x1b[K{}", name);
      return true;
    };
  const sim::StudyResult result = run_study(o.study);
  if (shown) fmt::print(stderr, "\r\x1b[K");
  if (!o.plot.empty())
    if (const Status status = write_file(o.plot, plot_of(o.study, result)); !status)
      return report_error("simulate cluster: " + status.error().text), kUnable;
  const bool json = o.json || o.format == "json";
  return print(json ? json_of(o.study, result) : text_of(o.study, result)) ? kDone : kUnable;
}

}  // namespace

void add_simulate_cluster(Command& simulate, Run& run) {
  auto o = std::make_shared<ClusterOptions>();
  sim::ClusterParams& params = o->study.params;
  Command* verb = simulate.add_subcommand(
      "cluster", "Months of a cluster: what the controller is worth against the wait for time-outs");
  verb->footer(kClusterExamples);
  verb->add_option("--hosts", params.hosts, "Hosts of 8 GPUs, of all jobs together")
      ->between(1u, 100'000u)
      ->show_default();
  verb->add_option("--jobs", params.jobs, "Jobs of equal size")->between(1u, 1000u)->show_default();
  verb->add_option("--days", params.days, "Simulated days")->between(1u, 3650u)->show_default();
  verb->add_option("--incidents", params.incidents_per_day, "Incidents a day, of the whole cluster")
      ->between(0u, 100'000u)
      ->show_default();
  verb->add_option("--seed", o->study.seed, "The same seed gives the same results")->show_default();
  verb->add_option("--runs", o->study.runs, "Runs with the next seeds, added up")
      ->between(1u, 1000u)
      ->show_default();
  verb->add_option("--set", o->set, "NAME=VALUE of another parameter or threshold; may be repeated")
      ->one_value();
  verb->add_flag("--ablation", o->study.ablation, "Also with each rule of policy and guard left out");
  verb->add_flag("--sweep", o->study.sweep, "Also with each parameter and threshold halved and doubled");
  verb->add_option("--plot", o->plot, "Also write a picture to this file, as SVG");
  verb->add_flag("--list", o->list, "Print parameters, incidents, rules and thresholds");
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->add_flag("--json", o->json, "As --format json");
  verb->add_flag("--quiet,-q", o->quiet, "No progress");
  verb->callback([o, &run] { run = [o] { return cluster(*o); }; });
}

}  // namespace culprit::cli
