// `culprit bench`: runs parts of the pipeline separately, for tests/bench. Hidden in the help, since users do
// not need it.
#include <fmt/format.h>

#include <optional>

#include "app/offline/stages.h"
#include "base/text.h"
#include "cli/reading.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

struct BenchOptions {
  ReadingOptions reading;
  RuleChoice choice;
  unsigned repetitions = 5;
};

// Nothing: the error is already on standard error.
std::optional<app::JobFiles> files_of(BenchOptions& o, app::ReadProgress& progress) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), std::nullopt;
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return report_error(files.error().text), std::nullopt;
  for (const Error& error : files->errors) report_error(error.text);
  if (!files->errors.empty()) return std::nullopt;
  return std::move(*files);
}

int read_alone(BenchOptions& o) {
  app::ReadProgress progress;
  const auto files = files_of(o, progress);
  if (!files) return kUnable;
  const app::TextSize text = app::read_text(files->logs);
  return print(fmt::format("{} bytes, {} lines\n", text.bytes, text.lines)) ? kDone : kUnable;
}

// Matches rules only.
int match_alone(BenchOptions& o) {
  app::ReadProgress progress;
  const auto files = files_of(o, progress);
  app::LoadedRules loaded;
  if (!files || !load_rules(o.choice, loaded)) return kUnable;
  const app::RuleScan scan = app::scan_rules(files->logs, *loaded.set);
  const bool reported =
      print(fmt::format("{} rules, {} bytes, {} lines looked at, {} matches\n", loaded.set->rules().size(),
                        scan.bytes, scan.looked_at, scan.matches));
  return reported ? kDone : kUnable;
}

// Reads, parses, masks and mines templates, without detectors and report.
int mine_alone(BenchOptions& o) {
  app::ReadProgress progress;
  const auto files = files_of(o, progress);
  if (!files) return kUnable;
  core::Engine engine({files->job, {}, {}});
  app::read_logs(files->logs, {o.reading.diagnose.parse, o.reading.diagnose.threads}, engine, progress);
  const logs::JobLog& log = engine.settled_log();
  return print(fmt::format("{} lines, {} templates\n", log.lines(), log.clusters().size())) ? kDone : kUnable;
}

std::string stages_text(const app::StageCosts& costs) {
  std::string out =
      fmt::format("{}, {}; CPU as a multiple of the split's\n{:<18}{:>8}{:>8}{:>8}{:>12}{:>8}\n",
                  format_bytes(costs.bytes), counted(costs.lines, "line"), "", "median", "least", "most",
                  "ns a line", "MB/cs");
  for (const app::StageCost& stage : costs.stages)
    out += fmt::format("{:<18}{:>8.2f}{:>8.2f}{:>8.2f}{:>12.1f}{:>8.0f}  {}\n", stage.name, stage.ratio,
                       stage.least, stage.most, stage.ns_per_line, stage.mb_per_cpu_s, stage.what);
  return out;
}

std::string stages_json(const app::StageCosts& costs) {
  JsonWriter w;
  w.object([&] {
    w.field("bytes", costs.bytes);
    w.field("lines", costs.lines);
    w.list("stages", costs.stages, [&](const app::StageCost& stage) {
      w.object([&] {
        w.field("name", stage.name);
        w.field("ratio", stage.ratio);
        w.field("least", stage.least);
        w.field("most", stage.most);
        w.field("ns_per_line", stage.ns_per_line);
        w.field("mb_per_cpu_s", stage.mb_per_cpu_s);
      });
    });
  });
  return w.finish() + "\n";
}

// Runs each stage for a line separately, compared with memchr.
int stages(BenchOptions& o) {
  app::ReadProgress progress;
  const auto files = files_of(o, progress);
  app::LoadedRules loaded;
  if (!files || !load_rules(o.choice, loaded)) return kUnable;
  const app::StageCosts costs =
      app::measure_stages(*files, o.reading.diagnose.parse, loaded.set, o.repetitions);
  return print(o.choice.format == "json" ? stages_json(costs) : stages_text(costs)) ? kDone : kUnable;
}

}  // namespace

void add_bench(Command& app, Run& run) {
  Command* bench = app.add_subcommand("bench", "");
  bench->hide();
  bench->require_subcommand();
  const std::pair<const char*, int (*)(BenchOptions&)> parts[] = {
      {"read", read_alone}, {"mine", mine_alone}, {"rules", match_alone}, {"stages", stages}};
  for (const auto& [name, part] : parts) {
    auto o = std::make_shared<BenchOptions>();
    Command* verb = bench->add_subcommand(name, "");
    add_reading_options(*verb, o->reading);
    add_rule_options(*verb, o->choice.rules);
    if (part == stages) {
      add_rule_format(*verb, o->choice);
      verb->add_option("--repetitions", o->repetitions, "The median of so many counts")
          ->between(1u, 1000u)
          ->show_default();
    }
    verb->callback([o, part = part, &run] { run = [o, part] { return part(*o); }; });
  }
}

}  // namespace culprit::cli
