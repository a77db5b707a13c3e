// What a process announced that it answers: the signal on which Python's faulthandler writes its stacks
// (sdk/python/culprit/_stacks.py), and the pipe on which PyTorch's Flight Recorder writes its dump. No
// signal goes to a process that did not announce it: the signal would end it. Blocking; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "capture/process.h"

namespace culprit::capture {

// The first line of a file PID-START.stacks.
struct StackFileHead {
  uint32_t pid = 0;  // in the process's own namespace
  int signal = 0;
  std::optional<uint32_t> rank;
};
std::optional<StackFileHead> parse_stack_file_head(std::string_view line);

// Whether the process has a handler for the signal, and the signal is one of those that a package may use.
bool may_signal(const ProcStatus& status, int signal);

// The file of this process in the folder of rings. Nothing: the process announced none.
struct StackFile {
  std::string path;
  StackFileHead head;
};
std::optional<StackFile> find_stack_file(const std::string& rings, uint32_t pid, const ProcStatus& status);
// Sends the signal and returns what the process appended to its file.
Result<std::string> ask_for_stacks(const StackFile& file, uint32_t pid, const ProcStat& stat,
                                   TimeNs within_ns);

// Asks the Flight Recorder for a dump: one byte into `PREFIX<rank>.pipe`, seen from the process's root.
Status ask_recorder(uint32_t pid, const ProcStatus& status, const RankEnvironment& environment);

}  // namespace culprit::capture
