// `culprit bench`: parts of the pipeline alone, for tests/bench. Not shown in the help: it tells users
// nothing.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/reading.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

struct Options {
  ReadingOptions reading;
};

int read_alone(Options& o) {
  if (Status status = resolve(o.reading); !status) return complain(status.error().text), kUnable;
  app::ReadProgress progress;
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return complain(files.error().text), kUnable;
  const app::TextSize text = app::read_text(files->logs);
  return print(fmt::format("{} bytes, {} lines\n", text.bytes, text.lines)) ? kDone : kUnable;
}

// Reading, parsing, masking and the templates, without the detectors and the report.
int mine_alone(Options& o) {
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

void add_bench(CLI::App& app, Run& run) {
  CLI::App* bench = app.add_subcommand("bench", "")->group("");
  bench->require_subcommand(1);
  for (const bool mine : {false, true}) {
    auto o = std::make_shared<Options>();
    CLI::App* verb = bench->add_subcommand(mine ? "mine" : "read", "");
    add_reading_options(*verb, o->reading);
    verb->callback([o, mine, &run] { run = [o, mine] { return mine ? mine_alone(*o) : read_alone(*o); }; });
  }
}

}  // namespace culprit::cli
