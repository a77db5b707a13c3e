// The daemon's request to culprit-capture, one line of JSON, and the answer: one {"kind":"stack"} line
// (formats.md section 5) per process, or the lines of capture/pod_ras.h. Values and pure functions, any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "capture/process.h"
#include "capture/tool_text.h"

namespace culprit::capture {

// A process; the start time distinguishes it from a later process with the same pid.
struct Target {
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  bool operator==(const Target&) const = default;
};

struct Request {
  std::string job, host;
  uint32_t sample = 0;  // from 1
  std::string rings;    // folder of files PID-START.stacks; empty: none
  std::vector<std::string> tools = {"py-spy", "eu-stack", "gdb"};  // names or absolute paths, best first
  TimeNs budget_ns = 15 * kNsPerSecond;                            // of the whole request
  uint32_t at_once = 4;                                            // processes
  bool all = false;  // also launchers and workers, which are not ranks
  // If not 0: queries NCCL's RAS service at this loopback port, in the network namespace of each process,
  // instead of capturing stacks.
  uint16_t ras_port = 0;
  std::vector<Target> targets;
  // Not transmitted. True if no process has a rank: programs without a rank are captured too.
  bool programs = false;
  bool operator==(const Request&) const = default;
};
constexpr size_t kTargets = 1024;   // several times the ranks of a host and their workers
constexpr size_t kRasTargets = 16;  // with a port of RAS
constexpr size_t kRequestBytes = 1 << 20;
constexpr size_t kAnswerBytes = 60 << 10;  // of a line; the trace socket takes 64 KiB

std::string request_line(const Request& request);
Result<Request> parse_request(std::string_view line);

// What was found of one process.
struct Answer {
  bool is_rank = true;  // false: a launcher, or a worker that is listed with its parent; not reported
  Target target;
  std::optional<uint32_t> rank;
  TimeNs time_ns = kNoTime;
  std::optional<ProcessLook> look;  // nothing: it is gone
  std::string tool;                 // that gave the stacks; empty: none did
  std::string why;                  // there are no stacks; a sentence
  Stacks stacks;
  bool recorder_asked = false;  // for a dump of the Flight Recorder
};
// The answer as a line without newline. Threads and frames beyond the size limit are dropped and counted.
std::string answer_line(const Request& request, const Answer& answer);

}  // namespace culprit::capture
