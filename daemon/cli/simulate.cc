#include "cli/simulate.h"

#include <fmt/format.h>

#include "app/program.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kSimulatorExamples = R"(
Examples:
  culprit simulate logs /tmp/demo
  culprit help simulate logs)";

}  // namespace

bool is_for_simulator(const std::vector<std::string>& words) {
  size_t at = 0;
  if (!words.empty() && words[0] == "complete") at = words.size() > 1 && words[1] == "--quoted" ? 2 : 1;
  return words.size() > at + (at > 0 ? 1 : 0) && words[at] == "simulate";
}

int start_simulator(const std::vector<std::string>& words) {
  const Error error = app::become_program("culprit-simulate", words);
  // An error would appear within the line that a person types.
  if (words.front() != "complete") report_error(fmt::format("simulate: {}", error.text));
  return kUnable;
}

// Adds the verb to the list of verbs.
void add_simulate(Command& app, Run& run) {
  auto words = std::make_shared<std::vector<std::string>>();  // start_simulator() handles the words earlier
  Command* verb = app.add_subcommand("simulate", "Make a job with a known fault, for trying and testing");
  verb->footer(kSimulatorExamples);
  verb->add_option("WORD", *words, "Its verb and options, as culprit-simulate takes them");
  verb->callback([words, &run] { run = [words] { return kUnable; }; });
}

}  // namespace culprit::cli
