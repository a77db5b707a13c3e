// One run of a helper program to its end, with limits of time and output: scontrol, an operator's launcher.
// Blocking; any thread. No shell: the words are the program's arguments as they are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"

namespace culprit::io {

struct ProgramRun {
  std::string path;                         // absolute
  std::vector<std::string> words;           // the first is the name that the program sees
  std::vector<std::string> environment{};   // "NAME=value"
  std::string input{};                      // standard input; a program need not read it
  TimeNs within_ns = 10 * kNsPerSecond;     // then the program's process group is killed
  size_t output_max = 1 << 20;              // bytes of standard output; more kills the program
  const std::atomic<bool>* stop = nullptr;  // kills the program early; borrowed
  std::function<bool()> ends_early = {};    // asked each kAskEvery; true kills the program early
  bool last_error = false;                  // the last line of standard error is the reason, as of Python

  static constexpr TimeNs kAskEvery = 2 * kNsPerSecond;
};

struct ProgramEnd {
  enum class Kind : uint8_t {
    kExited,      // `code` is its status
    kSignalled,   // `code` is the signal
    kNotStarted,  // no such program, or no process could be made
    kTimeout,     // killed: it did not end in time
    kStopped,     // killed: the caller wants it to end early
    kTooLong,     // killed: it wrote more than `output_max`
  } kind = Kind::kNotStarted;
  int code = 0;
  std::string output;  // standard output
  std::string errors;  // beginning of standard error, at most kErrorBytes
  std::string reason;  // one sentence without the program's name; empty: it exited with status 0

  static constexpr size_t kErrorBytes = 4096;
  bool is_success() const { return kind == Kind::kExited && code == 0; }
  // Whether the program may have done its work or part of it.
  bool is_unknown() const { return kind != Kind::kExited && kind != Kind::kNotStarted; }
};

ProgramEnd run_program(const ProgramRun& run);

}  // namespace culprit::io
