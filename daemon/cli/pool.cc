#include <fmt/format.h>

#include "base/text.h"
#include "cli/reading.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

struct Options {
  ReadingOptions reading;
  std::string out;
};

int build(Options& o) {
  if (Status status = resolve(o.reading); !status) return complain(status.error().text), kUnable;
  app::ReadProgress progress;
  auto built = [&] {
    Watch watch(progress, !o.reading.quiet);
    return app::build_pool(o.reading.diagnose.paths, o.reading.diagnose, progress);
  }();
  if (!built) return complain(built.error().text), kUnable;
  for (const Problem& p : built->problems) complain(p.file + ": " + p.what);
  if (progress.stop) return complain("interrupted; nothing was written"), kUnable;
  const detect::Pool& pool = built->pool;
  if (pool.jobs == 0) return complain(o.out + ": not written: no job with a log could be read"), kUnable;
  const auto text = pool.save();
  if (!text) return complain(o.out + ": not written: " + text.error().text), kUnable;
  if (Status status = write_file(o.out, *text); !status) return complain(status.error().text), kUnable;
  const std::string said = fmt::format("{}: {}, {}\n", to_terminal(o.out), counted(pool.jobs, "job"),
                                       counted(pool.forms.size(), "form"));
  return print(said) && built->errors.empty() ? kDone : kUnable;
}

}  // namespace

void add_pool(Command& app, Run& run) {
  auto o = std::make_shared<Options>();
  Command* pool = app.add_subcommand("pool", "The normal pool: what successful jobs write");
  pool->require_subcommand();
  Command* verb = pool->add_subcommand("build", "Make a pool of successful jobs, a folder or file each");
  verb->footer("\nExample:\n  culprit pool build normal.pool runs/ok1 runs/ok2 runs/ok3");
  verb->add_option("OUT", o->out, "File to write")->required();
  add_rule_options(*verb, o->reading.diagnose.rules);
  add_reading_options(*verb, o->reading);
  verb->callback([o, &run] { run = [o] { return build(*o); }; });
}

}  // namespace culprit::cli
