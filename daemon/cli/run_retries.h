// `culprit run --retries N`: attempts of one command, each a `culprit run` of its own in a folder below that
// of the run, until one ends well or the decision table says stop (core/recover). Blocks; one thread: forks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/run/folder.h"
#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::cli {

struct RetryOptions {
  std::optional<uint32_t> retries;  // attempts without progress after the first; nothing: one run as it is
  std::string checkpoints;          // folder; empty: nothing is resumed
  std::string min_time = "10m";     // of the allocation, that an attempt is worth starting
  std::string end_hang = "10m";     // a hang is ended after so long
  std::vector<std::string> no_retry_on;  // rules
  bool verdict_exit = false;
  bool used() const { return retries.has_value() || verdict_exit; }
};

// The descriptor on which an attempt's own `culprit run` hands its report over; -1: this is no attempt. Its
// command does not get it. Call once.
int take_report_descriptor();

// Why the options cannot be used.
Status check_retry_options(const RetryOptions& options);

// A checkpoint to resume from.
struct ResumeFrom {
  std::string path;
  std::optional<int64_t> step;
};

struct RunAgain {
  const RetryOptions& options;
  const app::Launch& launch;
  app::RunFolder& folder;
  std::vector<std::string> passed_on;  // options of each attempt's own `culprit run`
  std::vector<std::string> command;
  bool keep = false;
  // The newest whole checkpoint of the folder, of a step before `before` if given; nothing: there is none.
  std::function<std::optional<ResumeFrom>(std::optional<int64_t> before)> newest;
};

// Returns the exit status: the last attempt's, or with --verdict-exit the code for a scheduler.
int run_with_retries(const RunAgain& again);

}  // namespace culprit::cli
