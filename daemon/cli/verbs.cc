#include "cli/verbs.h"

#include "cli/replay.h"
#include "cli/standby.h"
#include "cli/sweep.h"

namespace culprit::cli {
namespace {

constexpr const char* kMainExamples = R"(
Examples:
  culprit run -- torchrun --nproc-per-node 8 train.py
  culprit diagnose runs/failed --healthy runs/ok1     # why a job failed, from its folder
  culprit watch                                       # what happens now, where culpritd runs
  culprit report llama-70b-0412                       # what it says of one job

`culprit help VERB` tells more of each verb.)";

constexpr const char* kHelpExamples = R"(
Examples:
  culprit help diagnose
  culprit help rules check)";

// Lists the verb; main handles it.
void add_help(Command& app, Run& run) {
  auto words = std::make_shared<std::vector<std::string>>();
  Command* verb = app.add_subcommand("help", "What a verb does, its options and examples");
  verb->footer(kHelpExamples);
  verb->add_option("VERB", *words, "The verb, with its own verb where it has some");
  verb->callback([words, &run] { run = [words] { return kDone; }; });
}

}  // namespace

void add_verbs(Command& app, Run& run) {
  app.set_version(std::string("culprit ") + CULPRIT_VERSION);
  app.footer(kMainExamples);
  app.require_subcommand();
  app.begin_verbs("Verbs that diagnose");
  add_run_command(app, run);
  add_diagnose(app, run);
  add_report(app, run);
  add_diff(app, run);
  add_stacks(app, run);
  add_replay(app, run);
  add_templates(app, run);
  app.begin_verbs("Verbs that watch");
  add_status(app, run);
  add_jobs(app, run);
  add_watch(app, run);
  add_page(app, run);
  add_hosts(app, run);
  add_cluster(app, run);
  app.begin_verbs("Verbs that act");
  add_confirm(app, run);
  add_clear(app, run);
  add_alert(app, run);
  add_maintenance(app, run);
  add_recover(app, run);
  add_advise(app, run);
  add_standby(app, run);
  app.begin_verbs("Verbs for rules, plugins and what is normal");
  add_rules(app, run);
  add_plugin(app, run);
  add_pool(app, run);
  app.begin_verbs("Verbs for the data that is kept");
  add_checkpoint(app, run);
  add_evidence(app, run);
  add_bundle(app, run);
  add_mcp(app, run);
  app.begin_verbs("Verbs to set up and try");
  add_node_check(app, run);
  add_sweep(app, run);
  add_doctor(app, run);
  add_simulate(app, run);
  add_bench(app, run);
  add_help(app, run);
}

}  // namespace culprit::cli
