// Candidates for a shell's completion: jobs, diagnoses, hosts, sources, rules, faults. A daemon that does not
// answer at once gives no candidates, and no error is printed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

// Kind of the command line's last word.
enum class Wanted : unsigned char { kNothing, kJob, kDiagnosis, kHost, kSource, kRule, kFault, kKind };
struct Completing {
  Wanted wanted = Wanted::kNothing;
  std::string verb;    // "evidence cat"
  std::string prefix;  // what is typed of it
  std::string job;     // the job named by an earlier word; empty: none
  std::string server, token_file, ca_file;
};

// `words`: those after the program's name; the last one is incomplete.
Completing completing(const Command& app, const std::vector<std::string>& words);

// A word typed in bash without its quotes and backslashes. Nothing is expanded.
std::string without_quotes(std::string_view word);

// All possible words; those with the typed prefix are shown.
using Candidates = std::function<std::vector<std::string>(const Completing& at)>;

// `culprit complete [--quoted] WORD...`: prints a candidate per line. `--quoted`: the words are as typed in
// bash.
int complete(const Command& app, std::vector<std::string> words, const Candidates& candidates);

}  // namespace culprit::cli
