#include <fmt/format.h>

#include "cli/verbs.h"
#include "model/json_writer.h"
#include "sim/replay/replay_study.h"
#include "simulate/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kStudyExamples = R"(
Examples:
  culprit simulate replay                      # 16 to 1,024 hosts, one and two at fault
  culprit simulate replay --hosts 64 --faults 1 --shows 0.3 --trials 1000
  culprit simulate replay --assumed 0.95 --format json

What `culprit replay judge` finds, next to the intersection of failing groups (ByteRobust): once, and with both
phases repeated until a fault was seen with 95 %. docs/replay.md has results.)";

struct StudyOptions {
  sim::ReplayStudy study;
  sim::ReplayCase one;
  std::optional<uint32_t> hosts;
  std::string format = "text";
};

double per_trial(uint64_t sum, uint32_t trials) { return static_cast<double>(sum) / trials; }

std::string method_row(const std::string& name, const sim::ReplayOutcome& o, uint32_t trials) {
  return fmt::format("  {:<26}{:>7}{:>9}{:>8}{:>7}{:>8.1f}{:>6}{:>8.1f}{:>11.2f}{:>9.2f}\n", name, o.found,
                     o.held_all, o.missed, o.wrong, per_trial(o.rounds, trials), o.rounds_p90,
                     per_trial(o.runs, trials), per_trial(o.innocent_first, trials),
                     per_trial(o.innocent, trials));
}

std::string study_text(const sim::ReplayStudy& study, const std::vector<sim::ReplayRow>& rows) {
  std::string out = fmt::format(
      "{} trials each, seed {}, {:g} % of runs fail by chance\n\n  {:<26}{:>7}{:>9}{:>8}{:>7}"
      "{:>8}{:>6}{:>8}{:>11}{:>9}\n",
      study.trials, study.seed, 100 * study.stray, "", "found", "+others", "missed", "wrong", "rounds", "p90",
      "runs", "held at 2", "held");
  for (const sim::ReplayRow& row : rows) {
    out += fmt::format("{} hosts, groups of {}, {} at fault, shown in {:g} % of runs\n", row.of.hosts,
                       row.size, row.of.faults, 100 * row.of.shows);
    out += method_row("intersection", row.intersection, study.trials);
    if (row.of.shows < 0.95) out += method_row("intersection, repeated", row.repeated, study.trials);
    out += method_row("posterior", row.posterior, study.trials);
    out += fmt::format("    first host named after {:.1f} rounds, wrongly {} times\n",
                       per_trial(row.posterior.rounds_first, study.trials), row.posterior.first_wrong);
  }
  return out +
         "\nfound: exactly the hosts at fault are held. +others: innocent ones too. missed: not all, and no "
         "innocent\n"
         "one. wrong: not all, and innocent ones. rounds: runs at the same time are one; a search ends at 95 "
         "%.\n"
         "held: innocent hosts, after two rounds and at the end.\n";
}

void write_method(JsonWriter& w, const char* name, const sim::ReplayOutcome& o) {
  w.member(name, [&] {
    w.object([&] {
      w.field("found", o.found);
      w.field("with_innocent", o.held_all);
      w.field("missed", o.missed);
      w.field("wrong", o.wrong);
      w.field("rounds", o.rounds);
      w.field("rounds_p90", o.rounds_p90);
      w.field("rounds_max", o.rounds_max);
      w.field("rounds_first", o.rounds_first);
      w.field("first_wrong", o.first_wrong);
      w.field("runs", o.runs);
      w.field("innocent_first", o.innocent_first);
      w.field("innocent", o.innocent);
    });
  });
}

std::string study_json(const sim::ReplayStudy& study, const std::vector<sim::ReplayRow>& rows) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.simulate.replay/1");
    w.field("seed", study.seed);
    w.field("trials", study.trials);
    w.field("stray", study.stray);
    w.list("rows", rows, [&](const sim::ReplayRow& row) {
      w.object([&] {
        w.field("hosts", row.of.hosts);
        w.field("size", row.size);
        w.field("faults", row.of.faults);
        w.field("shows", row.of.shows);
        write_method(w, "intersection", row.intersection);
        write_method(w, "repeated", row.repeated);
        write_method(w, "posterior", row.posterior);
      });
    });
  });
  return w.finish() + "\n";
}

int replay_study(StudyOptions& o) {
  o.study.cases = sim::replay_cases();
  if (o.hosts) {
    o.one.hosts = *o.hosts;
    o.study.cases = {o.one};
  }
  const auto rows = sim::run_replay_study(o.study);
  if (!rows) return report_error("simulate replay: " + rows.error().text), kUnable;
  return print(o.format == "json" ? study_json(o.study, *rows) : study_text(o.study, *rows)) ? kDone
                                                                                             : kUnable;
}

}  // namespace

void add_simulate_replay(Command& simulate, Run& run) {
  auto o = std::make_shared<StudyOptions>();
  Command* verb =
      simulate.add_subcommand("replay", "Replays with known hosts at fault: what their judge finds");
  verb->footer(kStudyExamples);
  verb->add_option("--hosts", o->hosts, "One case of so many hosts; default: a table of 16")
      ->between(2u, 2048u);
  verb->add_option("--size", o->one.size, "With --hosts: hosts of a group")->between(1u, 2048u);
  verb->add_option("--faults", o->one.faults, "With --hosts: hosts at fault")
      ->between(0u, 16u)
      ->show_default();
  verb->add_option("--shows", o->one.shows, "With --hosts: probability that a run shows a fault")
      ->between(0.01, 1.0)
      ->show_default();
  verb->add_option("--assumed", o->study.assumed, "What the judge takes --shows for; default: the truth")
      ->between(0.01, 1.0);
  verb->add_option("--stray", o->study.stray, "Probability that a run fails by chance")
      ->between(0.0001, 0.5)
      ->show_default();
  verb->add_option("--trials", o->study.trials, "Of each case")->between(1u, 100'000u)->show_default();
  verb->add_option("--seed", o->study.seed, "The same seed gives the same results")->show_default();
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->callback([o, &run] { run = [o] { return replay_study(*o); }; });
}

}  // namespace culprit::cli
