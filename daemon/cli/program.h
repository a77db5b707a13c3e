// Common parts of our programs' main functions: words to verb, usage errors, completion. Needs only the
// command line.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/complete.h"
#include "cli/verbs.h"

namespace culprit::cli {

// The arguments without the program; `help VERB` becomes `VERB --help`.
std::vector<std::string> words_of(int argc, char** argv);
// Parses the words, runs the verb, and returns the exit status. `complete WORD...` prints candidates.
int run_program(Command& app, Run& verb, const std::vector<std::string>& words, const Candidates& candidates);
// Opens each closed standard descriptor in a way that makes its use fail. Otherwise a file opened later would
// get its number.
void fill_standard_streams();

}  // namespace culprit::cli
