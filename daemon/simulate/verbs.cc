#include <fmt/format.h>

#include "cli/verbs.h"
#include "model/json_writer.h"
#include "sim/comm_job.h"
#include "sim/hang_job.h"
#include "sim/log_job.h"
#include "sim/mixed_job.h"
#include "simulate/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kSimulateExamples = R"(
Examples:
  culprit simulate logs /tmp/demo --hosts 16 --fault gpu-lost
  culprit diagnose /tmp/demo/job --healthy /tmp/demo/healthy/1
  culprit simulate logs --list)";

constexpr const char* kCommExamples = R"(
Examples:
  culprit simulate comm /tmp/demo --world 128 --tp 8 --pp 4 --fault nic
  culprit diagnose /tmp/demo/job
  culprit simulate comm --list)";

constexpr const char* kHangExamples = R"(
Examples:
  culprit simulate hang /tmp/demo --ranks 256 --kind loader
  culprit simulate hang /tmp/part --kind killed --sources watchdog,stacks --capture 0.9
  culprit simulate hang --list)";

constexpr const char* kMixedExamples = R"(
Examples:
  culprit simulate mixed /tmp/demo --fault thermal --seed 7
  culprit simulate mixed /tmp/part --fault memory --without counters,comm
  culprit simulate mixed --list)";

// Rejects "-1", which is parsed as the largest number.
constexpr uint64_t kBytesMax = 10'000'000'000'000;

struct SimulateOptions {
  sim::LogJobOptions job;
  std::string out, format = "text";
  bool list = false;
};

struct CommOptions {
  sim::CommJobOptions job;
  std::string out;
  bool list = false;
};

struct HangOptions {
  sim::HangJobOptions job;
  std::string out, sources;
  bool list = false;
};

struct MixedOptions {
  sim::MixedJobOptions job;
  std::string out, without;
  bool list = false;
};

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

int print_two_lists(const char* first, const std::vector<sim::NamedChoice>& kinds, const char* second,
                    const std::vector<sim::NamedChoice>& others) {
  std::string text;
  const auto add = [&](const char* title, const std::vector<sim::NamedChoice>& list) {
    text += fmt::format("{}\n", title);
    for (const sim::NamedChoice& c : list) text += fmt::format("  {:<28} {}\n", c.name, c.help);
  };
  add(first, kinds);
  add(second, others);
  return print(text) ? kDone : kUnable;
}

void write_choices(JsonWriter& w, const char* name, const std::vector<sim::NamedChoice>& list) {
  w.list(name, list, [&](const sim::NamedChoice& c) {
    w.object([&] {
      w.field("name", c.name);
      w.field("help", c.help);
    });
  });
}

int list(const SimulateOptions& o) {
  if (o.format == "json") {
    JsonWriter w;
    w.object([&] {
      write_choices(w, "faults", sim::log_faults());
      write_choices(w, "layouts", sim::log_layouts());
      write_choices(w, "frameworks", sim::log_frameworks());
    });
    return print(w.finish() + "\n") ? kDone : kUnable;
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

int logs(const SimulateOptions& o) {
  if (o.list) return list(o);
  if (o.out.empty()) return report_error("simulate logs: OUT is missing"), kUnable;
  if (Status status = sim::simulate_logs(o.job, o.out); !status)
    return report_error(status.error().text), kUnable;
  return kDone;
}

int comm(const CommOptions& o) {
  if (o.list) {
    std::string text = "faults\n";
    for (const sim::NamedChoice& c : sim::comm_faults()) text += fmt::format("  {:<28} {}\n", c.name, c.help);
    return print(text) ? kDone : kUnable;
  }
  if (o.out.empty()) return report_error("simulate comm: OUT is missing"), kUnable;
  if (Status status = sim::simulate_comm(o.job, o.out); !status)
    return report_error(status.error().text), kUnable;
  return kDone;
}

int hang(HangOptions& o) {
  if (o.list) return print_two_lists("kinds", sim::hang_kinds(), "sources", sim::hang_sources());
  if (o.out.empty()) return report_error("simulate hang: OUT is missing"), kUnable;
  o.job.sources = split_list(o.sources);
  if (Status status = sim::simulate_hang(o.job, o.out); !status)
    return report_error(status.error().text), kUnable;
  return kDone;
}

int mixed(MixedOptions& o) {
  if (o.list) return print_two_lists("faults", sim::mixed_faults(), "inputs", sim::mixed_inputs());
  if (o.out.empty()) return report_error("simulate mixed: OUT is missing"), kUnable;
  o.job.without = split_list(o.without);
  if (Status status = sim::simulate_mixed(o.job, o.out); !status)
    return report_error(status.error().text), kUnable;
  return kDone;
}

void add_comm_parallel(Command& verb, sim::CommJobOptions& job) {
  verb.add_option("--world", job.world, "Ranks")->show_default();
  verb.add_option("--tp", job.tp, "Tensor parallel; default: by the seed");
  verb.add_option("--pp", job.pp, "Pipeline stages; default: by the seed");
  verb.add_option("--dp", job.dp, "Data parallel; default: what is left of the world");
  verb.add_option("--ep", job.ep, "Expert parallel; divides dp x cp")->show_default();
  verb.add_option("--cp", job.cp, "Context parallel")->show_default();
  verb.add_option("--virtual-stages", job.virtual_stages,
                  "Chunks of a stage, interleaved when 2 or more; default: by the seed");
  verb.add_option("--layers", job.layers, "Layers of a chunk with names of their own; default: by the seed");
  verb.add_option("--micro-batches", job.micro_batches, "Micro-batches of a step; default: by the seed");
  verb.add_option("--ranks-per-host", job.ranks_per_host, "Ranks on each host")->show_default();
  verb.add_option("--hosts-per-switch", job.hosts_per_switch, "Hosts below a leaf switch")->show_default();
}

void add_comm(Command& simulate, Run& run) {
  auto o = std::make_shared<CommOptions>();
  Command* verb = simulate.add_subcommand(
      "comm", "Communication traces of a job: OUT/job/*.comm, OUT/job/job.toml, OUT/truth.json");
  verb->footer(kCommExamples);
  verb->add_option("OUT", o->out, "Folder to make; must be empty or absent");
  add_comm_parallel(*verb, o->job);
  verb->add_option("--steps", o->job.steps, "Steps of a run that does not hang")->show_default();
  verb->add_option("--fault", o->job.faults, "Kind of fault; may be repeated; none: a healthy job");
  verb->add_option("--onset", o->job.onset, "start, intermittent or a step from 0; default: by the seed");
  verb->add_option("--severity", o->job.severity, "How much slower (2: twice); default: so that it shows");
  verb->add_option("--seed", o->job.seed, "The same seed gives the same bytes")->show_default();
  verb->add_option("--missing-hosts", o->job.missing_hosts, "Hosts without a file, none of them at fault");
  verb->add_flag("--unknown-steps", o->job.unknown_steps, "Records do not tell their step");
  verb->add_flag("--unknown-groups", o->job.unknown_groups, "Records do not tell the kind of group");
  verb->add_flag("--unknown-bytes", o->job.unknown_bytes, "Records do not tell their bytes");
  verb->add_flag("--no-joins", o->job.no_joins, "Communicators do not tell their members");
  verb->add_flag("--plain", o->job.plain, "No pauses, checkpoints, skew of clocks, lost records");
  verb->add_flag("--list", o->list, "Print the kinds of fault");
  verb->callback([o, &run] { run = [o] { return comm(*o); }; });
}

void add_hang(Command& simulate, Run& run) {
  auto o = std::make_shared<HangOptions>();
  Command* verb = simulate.add_subcommand(
      "hang", "A job that hangs: OUT/job with logs, dumps, RAS answers, stacks; OUT/truth.json");
  verb->footer(kHangExamples);
  verb->add_option("OUT", o->out, "Folder to make; must be empty or absent");
  verb->add_option("--ranks", o->job.ranks, "Ranks")->between(8u, 65536u)->show_default();
  verb->add_option("--tp", o->job.tp, "Tensor parallel; default: by the seed");
  verb->add_option("--pp", o->job.pp, "Pipeline stages; default: by the seed");
  verb->add_option("--ranks-per-host", o->job.ranks_per_host, "Ranks on each host")
      ->between(1u, 64u)
      ->show_default();
  verb->add_option("--kind", o->job.kind, "Kind of hang")->show_default();
  verb->add_option("--sources", o->sources, "Sources, separated by commas; default: all");
  verb->add_option("--capture", o->job.capture,
                   "Share of ranks with a dump, a stack and the end of their log")
      ->between(0.0, 1.0)
      ->show_default();
  verb->add_option("--seed", o->job.seed, "The same seed gives the same bytes")->show_default();
  verb->add_flag("--list", o->list, "Print the kinds and sources");
  verb->callback([o, &run] { run = [o] { return hang(*o); }; });
}

void add_mixed(Command& simulate, Run& run) {
  auto o = std::make_shared<MixedOptions>();
  Command* verb = simulate.add_subcommand(
      "mixed",
      "A job with every input at once: OUT/job with logs, traces, numbers, counters; OUT/truth.json");
  verb->footer(kMixedExamples);
  verb->add_option("OUT", o->out, "Folder to make; must be empty or absent");
  verb->add_option("--fault", o->job.fault, "Kind of fault")->show_default();
  verb->add_option("--ranks", o->job.ranks, "Ranks")->between(16u, 4096u)->show_default();
  verb->add_option("--ranks-per-host", o->job.ranks_per_host, "Ranks on each host")
      ->between(1u, 64u)
      ->show_default();
  verb->add_option("--without", o->without, "Inputs that are not there, separated by commas");
  verb->add_option("--seed", o->job.seed, "The same seed gives the same bytes")->show_default();
  verb->add_flag("--list", o->list, "Print the kinds of fault and the inputs");
  verb->callback([o, &run] { run = [o] { return mixed(*o); }; });
}

}  // namespace

std::vector<Option*> add_job_options(Command& verb, sim::LogJobOptions& job) {
  return {
      verb.add_option("--hosts", job.hosts, "Hosts")->between(1u, 65536u)->show_default(),
      verb.add_option("--ranks-per-host", job.ranks_per_host, "Ranks on each host")
          ->between(1u, 64u)
          ->show_default(),
      verb.add_option("--fault", job.fault, "Kind of fault, `none` for a healthy job")->show_default(),
      verb.add_option("--layout", job.layout, "How the lines are spread over files")->show_default(),
      verb.add_option("--framework", job.framework, "Whose lines; default: by the seed"),
      verb.add_option("--seed", job.seed, "The same seed gives the same bytes")->show_default(),
      verb.add_option("--iterations", job.iterations, "Iterations of a healthy run")->show_default(),
      verb.add_option("--bytes", job.bytes, "Pad the job's log to about this size (1GB, 64MiB)")
          ->as_size()
          ->between(uint64_t{0}, kBytesMax),
  };
}

void add_simulations(Command& app, Run& run) {
  auto o = std::make_shared<SimulateOptions>();
  Command* simulate = app.add_subcommand("simulate", "Make a job with a known fault, for trying and testing");
  simulate->require_subcommand();
  simulate->footer(kSimulateExamples);
  add_comm(*simulate, run);
  add_hang(*simulate, run);
  add_mixed(*simulate, run);
  Command* verb = simulate->add_subcommand("logs", "Logs of a job: OUT/job, OUT/healthy/<n>, OUT/truth.json");
  verb->footer(kSimulateExamples);
  verb->add_option("OUT", o->out, "Folder to make; must be empty or absent");
  add_job_options(*verb, o->job);
  verb->add_option("--healthy", o->job.healthy, "Healthy jobs to write as well")->show_default();
  verb->add_flag("--list", o->list, "Print the kinds of fault, layouts and frameworks");
  verb->add_option("--format,-f", o->format, "Of --list: text or json")->one_of({"text", "json"});
  verb->callback([o, &run] { run = [o] { return logs(*o); }; });
  add_simulate_play(*simulate, run);
  add_simulate_cluster(*simulate, run);
  add_simulate_replay(*simulate, run);
  add_simulate_sweep(*simulate, run);
}

}  // namespace culprit::cli
