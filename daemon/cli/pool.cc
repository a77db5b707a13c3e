#include <fmt/format.h>

#include "base/text.h"
#include "cli/reading.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

struct PoolOptions {
  ReadingOptions reading;
  std::string out;
};

int build(PoolOptions& o) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), kUnable;
  app::ReadProgress progress;
  auto built = [&] {
    Watch watch(progress, !o.reading.quiet);
    return app::build_pool(o.reading.diagnose.paths, o.reading.diagnose, progress);
  }();
  if (!built) return report_error(built.error().text), kUnable;
  for (const Problem& p : built->problems) report_error(p.file + ": " + p.what);
  if (progress.stop) return report_error("interrupted; nothing was written"), kUnable;
  const detect::Pool& pool = built->pool;
  if (pool.jobs == 0) return report_error(o.out + ": not written: no job with a log could be read"), kUnable;
  const auto text = pool.save();
  if (!text) return report_error(o.out + ": not written: " + text.error().text), kUnable;
  if (Status status = write_file(o.out, *text); !status) return report_error(status.error().text), kUnable;
  const std::string reported = fmt::format("{}: {}, {}\n", to_terminal(o.out), counted(pool.jobs, "job"),
                                           counted(pool.forms.size(), "form"));
  return print(reported) && built->errors.empty() ? kDone : kUnable;
}

constexpr const char* kPoolExamples = R"(
Examples:
  culprit pool build normal.pool runs/ok1 runs/ok2 runs/ok3
  culprit pool log
  culprit pool forget llama-70b-0411)";
constexpr const char* kLogExamples = R"(
Example:
  culprit pool log                    # which jobs the daemon took for healthy, whose, and why)";
constexpr const char* kForgetExamples = R"(
Example:
  culprit pool forget llama-70b-0411  # it was not healthy: what it wrote is no longer normal)";

int pool_log(RemoteOptions& o) {
  return print_answer(o, "/v1/pool/log", [&](const Json& json) {
    std::vector<std::vector<std::string>> rows{
        {"TIME", "WHAT", "JOB", "RUN", "OWNER", "FORMS", "COUNTS", "WHY", "BY"}};
    if (const auto items = json.find("items"); items != json.end())
      for (const Json& of : *items)
        if (of.is_object())
          rows.push_back({time_field(of, "time_ns", o.zone), text_field(of, "what"), text_field(of, "job"),
                          text_field(of, "run"), text_field(of, "owner"), text_field(of, "forms"),
                          text_field(of, "counts"), text_field(of, "why"), text_field(of, "by")});
    return rows.size() > 1 ? table(rows, wants_color()) : std::string("no job has taught the pool yet\n");
  });
}

struct ForgetOptions {
  RemoteOptions remote;
  std::string job;
};

int forget(ForgetOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto done = client->post("/v1/pool/" + app::url_escaped(o.job) + "/forget", by_whom());
  if (!done) return report_error(done.error().text), kUnable;
  const std::string reported =
      o.remote.format == "json" ? *done : fmt::format("{}: forgotten\n", to_terminal(o.job));
  return print(reported) ? kDone : kUnable;
}

void add_log(Command& pool, Run& run) {
  auto o = std::make_shared<RemoteOptions>();
  Command* verb = pool.add_subcommand("log", "Which jobs taught the daemon what is normal, newest first");
  verb->footer(kLogExamples);
  add_server_options(*verb, *o);
  add_format(*verb, *o, {"text", "json"});
  add_timezone(*verb, *o);
  verb->callback([o, &run] { run = [o] { return pool_log(*o); }; });
}

void add_forget(Command& pool, Run& run) {
  auto o = std::make_shared<ForgetOptions>();
  Command* verb = pool.add_subcommand("forget", "Take back what a job taught the daemon");
  verb->footer(kForgetExamples);
  verb->add_option("JOB", o->job, "As `culprit pool log` lists it: all its runs")->required();
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return forget(*o); }; });
}

}  // namespace

void add_pool(Command& app, Run& run) {
  auto o = std::make_shared<PoolOptions>();
  Command* pool = app.add_subcommand("pool", "The normal pool: what successful jobs write");
  pool->require_subcommand();
  pool->footer(kPoolExamples);
  Command* verb = pool->add_subcommand("build", "Make a pool of successful jobs, a folder or file each");
  verb->footer("\nExample:\n  culprit pool build normal.pool runs/ok1 runs/ok2 runs/ok3");
  verb->add_option("OUT", o->out, "File to write")->required();
  add_rule_options(*verb, o->reading.diagnose.rules);
  add_reading_options(*verb, o->reading);
  verb->callback([o, &run] { run = [o] { return build(*o); }; });
  add_log(*pool, run);
  add_forget(*pool, run);
}

}  // namespace culprit::cli
