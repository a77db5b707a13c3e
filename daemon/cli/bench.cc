// `culprit bench`: runs parts of the pipeline alone, for tests/bench. Hidden in the help, since it is of no
// use to users.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/reading.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

struct BenchOptions {
  ReadingOptions reading;
  RuleChoice choice;
};

int read_alone(BenchOptions& o) {
  if (Status status = resolve(o.reading); !status) return complain(status.error().text), kUnable;
  app::ReadProgress progress;
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return complain(files.error().text), kUnable;
  const app::TextSize text = app::read_text(files->logs);
  return print(fmt::format("{} bytes, {} lines\n", text.bytes, text.lines)) ? kDone : kUnable;
}

// Matches rules only.
int match_alone(BenchOptions& o) {
  if (Status status = resolve(o.reading); !status) return complain(status.error().text), kUnable;
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  app::ReadProgress progress;
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return complain(files.error().text), kUnable;
  const app::RuleScan scan = app::scan_rules(files->logs, *loaded.set);
  const bool reported =
      print(fmt::format("{} rules, {} bytes, {} lines looked at, {} matches\n", loaded.set->rules().size(),
                        scan.bytes, scan.looked_at, scan.matches));
  return reported ? kDone : kUnable;
}

// Reads, parses, masks and mines templates, without detectors and report.
int mine_alone(BenchOptions& o) {
  if (Status status = resolve(o.reading); !status) return complain(status.error().text), kUnable;
  app::ReadProgress progress;
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return complain(files.error().text), kUnable;
  core::Engine engine({files->job, {}, {}});
  app::read_logs(files->logs, {o.reading.diagnose.parse, o.reading.diagnose.threads}, engine, progress);
  const logs::JobLog& log = engine.settled_log();
  return print(fmt::format("{} lines, {} templates\n", log.lines(), log.clusters().size())) ? kDone : kUnable;
}

}  // namespace

void add_bench(Command& app, Run& run) {
  Command* bench = app.add_subcommand("bench", "");
  bench->hide();
  bench->require_subcommand();
  const std::pair<const char*, int (*)(BenchOptions&)> parts[] = {
      {"read", read_alone}, {"mine", mine_alone}, {"rules", match_alone}};
  for (const auto& [name, part] : parts) {
    auto o = std::make_shared<BenchOptions>();
    Command* verb = bench->add_subcommand(name, "");
    add_reading_options(*verb, o->reading);
    add_rule_options(*verb, o->choice.rules);
    verb->callback([o, part = part, &run] { run = [o, part] { return part(*o); }; });
  }
}

}  // namespace culprit::cli
