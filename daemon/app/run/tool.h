// Runs a program of the system to its end, as scontrol: without a shell and a terminal, with a time limit and
// a limit of its output. Its output is untrusted. Blocking; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

struct Tool {
  std::vector<std::string> words;             // the program's name or path first
  std::vector<std::string> environment = {};  // NAME=VALUE, added to ours or in place of ours
  std::vector<std::string> unset = {};        // names of variables that it does not get
  TimeNs within_ns = 20 * kNsPerSecond;
  size_t output_max = 1 << 20;  // bytes of its standard output; more is an error
};

// Its standard output. The error names the program and says why: absent, its exit code and the first line
// that it wrote to standard error, its time or its output over the limit.
Result<std::string> output_of(const Tool& tool);

// Path of a program in the absolute folders of PATH; empty: none.
std::string program_path(std::string_view name, const Lookup& variable);

}  // namespace culprit::app
