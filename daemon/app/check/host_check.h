// One check of this host: the vendor's commands, and the program culprit-node-check for memory, disk and
// devices. Each runs in a process of its own, which is killed at the end of the time: a process that waits in
// the kernel for ever is left behind, and its part has no answer.
//
// Blocking for the time limit and some seconds; any thread but the loop's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "app/jobs/process_view.h"
#include "base/time.h"
#include "check/part.h"

namespace culprit::app {

struct HostCheckOptions {
  std::vector<std::string> commands;  // words separated by blanks; the first is an absolute path
  uint64_t memory = 0, disk = 0;      // bytes; 0: this part is left out
  std::string folder;                 // of the disk's test
  TimeNs within_ns = 120 * kNsPerSecond;
  std::string program;                      // empty: culprit-node-check as installed
  std::function<size_t()> accelerators;     // of this host
  const std::atomic<bool>* stop = nullptr;  // ends the check early; borrowed
  std::function<bool()> ends_early = {};    // as io::ProgramRun's: a job needs the host
};
HostCheckOptions host_check_options(const Config& config);

struct HostCheck {
  std::vector<check::Part> parts;
  check::Outcome outcome;
};
// Why a check may not run next to these processes: a job of another ordinary user. Nothing: it may. `own`:
// the user who checks.
std::optional<std::string> job_in_the_way(const ProcessView& view, uint32_t own);

// The words of a configured command, and what it finds in its environment.
std::vector<std::string> words_of(std::string_view command);
std::vector<std::string> check_environment();

// A failed part leaves out the commands, which come last.
HostCheck check_host(const HostCheckOptions& options);

}  // namespace culprit::app
