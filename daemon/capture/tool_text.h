// Parses the stacks that py-spy, gdb, eu-stack and faulthandler print, into frames of a {"kind":"stack"}
// line (formats.md section 5). Pure functions, any thread. The texts are untrusted: all limits hold for any
// text, and the excess is counted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::capture {

constexpr size_t kToolThreads = 256, kToolFrames = 128, kFrameBytes = 256;

struct StackedThread {
  std::string name;
  uint64_t tid = 0;                 // of the kernel; 0: the tool does not say
  bool holds_gil = false;           // py-spy alone says it
  std::vector<std::string> frames;  // "train.py:forward:120", innermost first
};
struct Stacks {
  std::vector<StackedThread> threads;
  uint64_t dropped = 0;  // threads and frames beyond the limits
};

// An error says what the text lacks. A text without a thread is an error.
Result<Stacks> read_py_spy(std::string_view json);
Result<Stacks> read_gdb(std::string_view text);
Result<Stacks> read_eu_stack(std::string_view text);
// `text`: what was appended for one signal.
Result<Stacks> read_faulthandler(std::string_view text);

}  // namespace culprit::capture
