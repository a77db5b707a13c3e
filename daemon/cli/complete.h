// What a shell's completion asks for: jobs, diagnoses, hosts, sources, rules, faults. Quick and quiet: a
// daemon that does not answer at once gives nothing, and there are no error messages.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace culprit::cli {

// What the last word of the command line is.
enum class Wanted : unsigned char { kNothing, kJob, kDiagnosis, kHost, kSource, kRule, kFault, kKind };
struct Completing {
  Wanted wanted = Wanted::kNothing;
  std::string verb;    // "evidence cat"
  std::string prefix;  // what is typed of it
  std::string job;     // the job that an earlier word names; empty: none
  std::string server, token_file, ca_file;
};

// `words`: those behind the program's name; the last one is being typed.
Completing completing(const Command& app, const std::vector<std::string>& words);

// A word as it is typed in bash, without its quotes and backslashes. Nothing is expanded.
std::string without_quotes(std::string_view word);

// All that the word may be; those with its prefix are shown.
using Candidates = std::function<std::vector<std::string>(const Completing& at)>;

// `culprit complete [--quoted] WORD...`: a candidate a line. `--quoted`: the words are as typed in bash.
int complete(const Command& app, std::vector<std::string> words, const Candidates& candidates);

}  // namespace culprit::cli
