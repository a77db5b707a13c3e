// What `culprit run --retries` tells a culpritd of its attempts: the well-known event "attempt" on its trace
// socket (docs/formats.md section 4). The daemon knows the sender's user from the kernel. Blocks for at most
// a second; a daemon that is not there is no error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run/launch.h"

namespace culprit::app {

struct AttemptEvent {
  std::string job;
  uint32_t attempt = 1, of = 1;
  std::string state;  // "begin", "again", "stop", "well"
  std::string why;    // the decision; empty: none
  std::vector<std::string> excluded;
  // Of a chain of jobs: the first one, this one, and the one that was submitted to go on. Empty: none.
  std::string first = {}, member = {}, successor = {};
};
// One line of JSON with its newline.
std::string to_line(const AttemptEvent& event);

// The begin of the attempt that the environment of `culprit run --retries` names; nothing: none.
constexpr const char* kExcludedVariable = "CULPRIT_EXCLUDED";  // names, joined by commas
std::optional<AttemptEvent> begun_attempt(const std::string& job, const Lookup& variable);

// Sends a line to a trace socket; false: it was not taken.
bool send_to_trace(const std::string& socket, const std::string& line);

// The daemon of this host that follows the job: its trace socket and its name of the job. Nothing: no name is
// known, since neither CULPRIT_JOB nor Slurm names the job.
struct HostDaemon {
  std::string socket, job;
};
std::optional<HostDaemon> host_daemon(const Lookup& variable);

}  // namespace culprit::app
