// Parses py-spy's JSON (`dump --json`) and lines of kind "stack". Pure; any thread. The text is untrusted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/stack.h"

namespace culprit::ingest {

struct StackJson {
  std::vector<StackDump> dumps;
  std::vector<StackRefusal> refusals;  // refusals from lines whose process is gone
  std::string problem;                 // reason why the rest could not be parsed; empty: all parsed
  uint64_t offset = 0;                 // of the problem
  uint64_t dropped = 0;                // dumps, threads and frames beyond the limits
  uint64_t others = 0;                 // values other than stacks
};

// One or more JSON values, one after another: an array of threads from py-spy, or objects of kind "stack".
StackJson parse_stack_json(std::string_view text);

}  // namespace culprit::ingest
