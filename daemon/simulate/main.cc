#include <csignal>

#include "cli/program.h"
#include "sim/comm_job.h"
#include "sim/hang_job.h"
#include "sim/log_job.h"
#include "sim/mixed_job.h"
#include "simulate/verbs.h"

namespace culprit::cli {
namespace {

std::vector<std::string> names_of(const std::vector<sim::NamedChoice>& choices) {
  std::vector<std::string> out;
  for (const sim::NamedChoice& choice : choices) out.emplace_back(choice.name);
  return out;
}

std::vector<std::string> kinds(const Completing& at) {
  if (at.wanted == Wanted::kKind) return names_of(sim::hang_kinds());
  if (at.wanted != Wanted::kFault) return {};
  return names_of(at.verb == "simulate comm"    ? sim::comm_faults()
                  : at.verb == "simulate mixed" ? sim::mixed_faults()
                                                : sim::log_faults());
}

// Started by `culprit simulate`, with its words.
int run(int argc, char** argv) {
  Command app(kAboutCulprit, "culprit");
  app.set_version(std::string("culprit ") + CULPRIT_VERSION);
  app.require_subcommand();
  Run verb;
  add_simulations(app, verb);
  return run_program(app, verb, words_of(argc, argv), kinds);
}

}  // namespace
}  // namespace culprit::cli

int main(int argc, char** argv) {
  culprit::cli::fill_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  return culprit::cli::run(argc, argv);
}
