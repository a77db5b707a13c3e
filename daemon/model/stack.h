// The stacks of one process at one time, as a debugger or the process itself wrote them (formats.md section
// 5). A plain value that owns all its data; any thread. Untrusted: ranks, names and numbers are the file's
// claims. Times are nanoseconds since the epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace culprit {

enum class StackTool : uint8_t { kUnknown, kPySpy, kFaultHandler, kGdb, kEuStack };
// State of a thread; only py-spy reports it. kGil: active and holding Python's global interpreter lock.
enum class ThreadState : uint8_t { kUnknown, kIdle, kActive, kGil };

// Texts are indices into StackDump::words; 0 is the empty text.
struct StackFrame {
  uint32_t function = 0;
  uint32_t file = 0;  // source file, else the library that contains the function
  uint32_t line = 0;  // 0: unknown
  bool native = false;
};

struct StackThread {
  uint32_t name = 0;  // index into StackDump::words
  uint64_t id = 0;    // the tool's number, equal in all dumps of one process
  uint32_t pid = 0;   // its process, as a dump may include worker processes; 0: the dump's
  bool main = false;  // the tool marks it as the process's first thread
  ThreadState state = ThreadState::kUnknown;
  std::vector<StackFrame> frames;  // innermost first
};

struct StackDump {
  std::optional<uint32_t> rank;
  std::optional<std::string> host;
  std::string file;   // name of the file in reports
  uint64_t line = 0;  // first line of the dump, from 1; 0: not text
  StackTool tool = StackTool::kUnknown;
  uint32_t pid = 0;  // 0: unknown
  TimeNs time_ns = kNoTime;
  // Number of the capture, if a line names it; otherwise number of the process's dump within the file.
  uint32_t sample = 0;
  std::string process_state;  // the kernel's state letter, if given: "D", "T", "Z"; else empty
  std::string waits_in;       // kernel function in which it sleeps (wchan), if given
  std::vector<std::string> words;
  std::vector<StackThread> threads;
};

// A rank that did not return its stacks.
struct StackRefusal {
  uint32_t rank = 0;
  std::string reason;  // "Error: 503", "its process is gone"
};

}  // namespace culprit
