// What a process has announced to answer: the signal on which Python's faulthandler writes its stacks
// (sdk/python/culprit/_stacks.py), and the pipe on which PyTorch's Flight Recorder writes its dump. A
// process without an announcement gets no signal, because the signal would end it. Blocking; one thread.
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

// Whether the process has a handler for `signal`, and `signal` is one of those that a package may use.
bool may_signal(const ProcStatus& status, int signal);

// The stack file of this process in the folder of rings. Nothing: the process announced none.
struct StackFile {
  std::string path;
  StackFileHead head;
};
std::optional<StackFile> find_stack_file(const std::string& rings, uint32_t pid, const ProcStatus& status);
// Sends the signal, and returns the text that the process appended to its file.
Result<std::string> ask_for_stacks(const StackFile& file, uint32_t pid, const ProcStat& stat,
                                   TimeNs within_ns);

// Requests a Flight Recorder dump: writes one byte to `PREFIX<rank>.pipe`, relative to the process's root.
Status ask_recorder(uint32_t pid, const ProcStatus& status, const RankEnvironment& environment);

}  // namespace culprit::capture
