#include <csignal>

#include "cli/candidates.h"
#include "cli/program.h"
#include "cli/simulate.h"

namespace culprit::cli {
namespace {

int run(int argc, char** argv) {
  Command app(kAboutCulprit, "culprit");
  Run verb;
  add_verbs(app, verb);
  const std::vector<std::string> words = words_of(argc, argv);
  if (is_for_simulator(words)) return start_simulator(words);
  return run_program(app, verb, words, candidates);
}

}  // namespace
}  // namespace culprit::cli

int main(int argc, char** argv) {
  culprit::cli::fill_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  return culprit::cli::run(argc, argv);
}
