#include <fmt/format.h>

#include "cli/verbs.h"
#include "model/json_writer.h"
#include "sim/sweep/sweep_study.h"
#include "simulate/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kSweepStudyExamples = R"(
Examples:
  culprit simulate sweep                       # 3 to 1,024 hosts, each kind of fault
  culprit simulate sweep --hosts 64 --trials 2000 --format json

What `culprit sweep` names in a simulated network with one known fault or none. docs/checks.md has results.)";

struct SweepStudyOptions {
  sim::SweepStudy study;
  std::optional<uint32_t> hosts;
  std::string format = "text";
};

std::string sweep_study_text(const sim::SweepStudy& study, const std::vector<sim::SweepRow>& rows) {
  std::string out =
      fmt::format("{} trials each, seed {}\n\n  {:>6}  {:<10}{:>8}{:>7}{:>7}{:>7}{:>7}{:>10}{:>8}{:>8}\n",
                  study.trials, study.seed, "hosts", "fault", "factor", "busy", "found", "partly", "missed",
                  "innocent", "rounds", "pairs");
  for (const sim::SweepRow& row : rows)
    out += fmt::format("  {:>6}  {:<10}{:>8.2g}{:>7.2g}{:>7}{:>7}{:>7}{:>10}{:>8.1f}{:>8.0f}\n", row.of.hosts,
                       name_of(row.of.fault), row.of.factor, row.of.busy, row.found, row.partly, row.missed,
                       row.innocent, static_cast<double>(row.rounds) / study.trials,
                       static_cast<double>(row.pairs) / study.trials);
  return out +
         "\nfound: the fault is named, and nothing else. partly: as a link of its host, or a part of the\n"
         "network. missed: nothing is named. innocent: a host or link without fault is named.\n";
}

std::string sweep_study_json(const sim::SweepStudy& study, const std::vector<sim::SweepRow>& rows) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.simulate.sweep/1");
    w.field("seed", study.seed);
    w.field("trials", study.trials);
    w.list("rows", rows, [&](const sim::SweepRow& row) {
      w.object([&] {
        w.field("hosts", row.of.hosts);
        w.field("fault", name_of(row.of.fault));
        w.field("factor", row.of.factor);
        w.field("busy", row.of.busy);
        w.field("found", row.found);
        w.field("partly", row.partly);
        w.field("missed", row.missed);
        w.field("innocent", row.innocent);
        w.field("rounds", row.rounds);
        w.field("pairs", row.pairs);
      });
    });
  });
  return w.finish() + "\n";
}

}  // namespace

void add_simulate_sweep(Command& simulate, Run& run) {
  auto o = std::make_shared<SweepStudyOptions>();
  Command* verb = simulate.add_subcommand("sweep", "Sweeps of a network with a known fault: what is named");
  verb->footer(kSweepStudyExamples);
  verb->add_option("--hosts", o->hosts, "Only the cases of so many hosts: 3, 4, 8, 16, 64, 256 or 1024");
  verb->add_option("--trials", o->study.trials, "Of each case")->between(1u, 100'000u)->show_default();
  verb->add_option("--seed", o->study.seed, "The same seed gives the same results")->show_default();
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->callback([o, &run] {
    run = [o] {
      o->study.cases = sim::sweep_cases();
      if (o->hosts)
        std::erase_if(o->study.cases, [&](const sim::SweepCase& one) { return one.hosts != *o->hosts; });
      const auto rows = sim::run_sweep_study(o->study);
      return print(o->format == "json" ? sweep_study_json(o->study, rows) : sweep_study_text(o->study, rows))
                 ? kDone
                 : kUnable;
    };
  });
}

}  // namespace culprit::cli
