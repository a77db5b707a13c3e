#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "cli/verbs.h"
#include "core/rules/keys.h"

namespace culprit::cli {
namespace {

constexpr const char* kAbout =
    "Tells why a large training job failed, hangs, slowed down or went numerically wrong,\n"
    "and which host, device or link to take out.";

constexpr const char* kMainExamples = R"(
Examples:
  culprit diagnose runs/failed --healthy runs/ok1 --healthy runs/ok2
  culprit diagnose --format html job.log.zst > report.html
  srun ... 2>&1 | culprit diagnose -
  culprit templates --format json runs/failed
  culprit stacks runs/failed/stacks
  culprit rules match runs/failed
  culprit jobs
  culprit report JOB
  culprit watch

`culprit VERB --help` tells more of each verb.)";

int usage_error(const Parsed& parsed) {
  std::string text = parsed.text;
  for (char& c : text)
    if (c == '\n') c = ' ';
  complain(text + "; see `" + parsed.verb + " --help`");
  return kUnable;
}

// The error for a misspelt verb, for which the parser only reports a missing verb. Empty: no misspelt verb.
std::string unknown_verb(const Command& app, int argc, char** argv) {
  const Command* last = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with('-')) return "";
    std::vector<std::string> names;
    const Command* next = nullptr;
    for (const Command& verb : last->subcommands()) {
      names.push_back(verb.name());
      if (names.back() == word) next = &verb;
    }
    if (names.empty()) return "";
    if (next) {
      last = next;
      continue;
    }
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string_view best = rules::nearest(word, candidates);
    return "no verb '" + std::string(word) + "'" +
           (best.empty() ? "" : "; did you mean '" + std::string(best) + "'?");
  }
  return "";
}

int run(int argc, char** argv) {
  Command app(kAbout, "culprit");
  app.set_version(std::string("culprit ") + CULPRIT_VERSION);
  app.footer(kMainExamples);
  app.require_subcommand();
  Run verb;
  add_diagnose(app, verb);
  add_templates(app, verb);
  add_stacks(app, verb);
  add_pool(app, verb);
  add_simulate(app, verb);
  add_rules(app, verb);
  add_plugin(app, verb);
  add_bench(app, verb);
  add_doctor(app, verb);
  add_status(app, verb);
  add_jobs(app, verb);
  add_report(app, verb);
  add_watch(app, verb);
  add_hosts(app, verb);
  add_confirm(app, verb);
  add_clear(app, verb);
  add_evidence(app, verb);
  add_bundle(app, verb);
  const Parsed parsed = app.parse(argc, argv);
  if (parsed.kind == Parsed::Kind::kHelp) return print(parsed.text) ? kDone : kUnable;
  if (parsed.kind == Parsed::Kind::kWrong) return usage_error(parsed);
  if (parsed.kind == Parsed::Kind::kMissing) {
    const std::string unknown = unknown_verb(app, argc, argv);
    if (unknown.empty()) return usage_error(parsed);
    complain(unknown);
    return kUnable;
  }
  try {
    return verb ? verb() : kUnable;
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return kUnable;
  }
}

// Opens each closed standard descriptor so that its use fails. Otherwise a file opened later would get the
// number.
void fill_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) < 0)
      std::abort();
}

}  // namespace

}  // namespace culprit::cli

int main(int argc, char** argv) {
  culprit::cli::fill_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  return culprit::cli::run(argc, argv);
}
