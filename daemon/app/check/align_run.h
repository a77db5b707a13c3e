// One run of check.align: an equal step on each device of this host, and the rows that it prints. It runs in
// a process of its own, at the lowest priority, with limits of memory and CPU time, and is killed after its
// time. Without all of its rows there is no answer.
//
// Blocking for the time limit and some seconds; any thread but the loop's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "base/time.h"
#include "model/peer.h"

namespace culprit::app {

struct AlignRunOptions {
  std::string command;  // words separated by blanks; the first is an absolute path
  uint64_t memory = 0;  // bytes
  TimeNs within_ns = 120 * kNsPerSecond;
  std::string program;                      // empty: culprit-node-check as installed
  const std::atomic<bool>* stop = nullptr;  // ends it early; borrowed
  std::function<bool()> ends_early = {};    // as io::ProgramRun's: a job needs the host
};
AlignRunOptions align_run_options(const Config& config);

struct AlignRun {
  std::vector<peer::AlignRow> rows;  // empty: no answer
  std::string why;                   // of no answer: one sentence without a full stop
};
AlignRun run_align(const AlignRunOptions& options);

// The rows among lines of output. Other lines are passed over; at most peer::kAlignRows, the last one of a
// device counts.
std::vector<peer::AlignRow> align_rows(std::string_view output);

}  // namespace culprit::app
