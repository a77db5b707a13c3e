// One attempt of `culprit run --retries` as a process: a `culprit run` that hands over its report. Signals to
// this process alone are passed on. While an object exists, the signals are blocked, and processes that an
// attempt leaves become children of this one. Blocks; one thread: forks.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/run/leftovers.h"
#include "base/time.h"

namespace culprit::cli {

// Codes as in a shell.
constexpr int kCommandNotFound = 127, kCommandNotStarted = 126;

// The descriptor for the report of an attempt's `culprit run`; -1: not an attempt. The command does not
// inherit it. Call once.
int take_report_descriptor();

// In an attempt of several hosts: this member's number and their count, as "1/4". Call once.
struct AttemptMember {
  uint32_t number = 0, count = 1;
};
std::optional<AttemptMember> take_attempt_member();
std::string attempt_member_variable(const AttemptMember& member);  // NAME=VALUE

class AttemptProcess {
 public:
  explicit AttemptProcess(std::string mark);
  ~AttemptProcess();
  AttemptProcess(const AttemptProcess&) = delete;

  // Runs `culprit` with these words and variables NAME=VALUE. False: no process; the error is printed.
  bool start(const std::vector<std::string>& words, std::vector<std::string> environment);
  // Exit status as in a shell; nothing: still running after `within`. kNoTime: no limit.
  std::optional<int> wait(TimeNs within = kNoTime);
  // Ends the command with SIGTERM, then SIGKILL, and at last the `culprit run` that writes down how it ended.
  // `wait`: as wait(); it may do something else meanwhile. Nothing: it still runs.
  std::optional<int> end(const std::function<std::optional<int>(TimeNs within)>& wait);
  // What the attempt handed over as JSON; empty: nothing.
  std::string report_text() const;

  // Waits for this time; false: a signal ended the wait, or was sent before.
  bool pause(TimeNs wait_ns) { return !stopped_ && rest(wait_ns); }
  // The same, also after a first signal.
  bool rest(TimeNs wait_ns);
  // Whether a signal to end was sent to this process.
  bool stopped() const { return stopped_; }

 private:
  // Waits for a signal, at most until `until`; 0: none.
  int next_signal(TimeNs until, siginfo_t& info);

  const std::string mark_;
  const app::RunGroup group_;
  pid_t child_ = -1;
  int report_ = -1;
  sigset_t received_{}, old_mask_{};
  bool stopped_ = false;
};

// A currently free port; 0: none.
uint16_t unused_port();

// Ends all processes with the mark; prints their number. `left`: a process that cannot be ended.
bool end_leftovers(const std::string& mark, TimeNs since, std::string& left);

}  // namespace culprit::cli
