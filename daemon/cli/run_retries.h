// `culprit run --retries N`: runs one command in attempts, each a separate `culprit run` in a subfolder of
// the run's folder. Stops when one succeeds or the decision table says stop (core/recover). Blocks; one
// thread: forks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/checkpoint/look.h"
#include "app/run/attempt.h"
#include "app/run/chain.h"
#include "app/run/folder.h"
#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::cli {

struct RetryOptions {
  std::optional<uint32_t> retries;  // limit of consecutive attempts without progress; nothing: a single run
  std::string checkpoints;          // folder of checkpoints; empty: no resume
  std::string min_time = "10m";     // minimum time left in the allocation for another attempt
  std::string end_hang = "10m";     // time after which a hung command is ended
  std::vector<std::string> no_retry_on;  // rules
  std::optional<uint32_t> min_gpus;      // an attempt may leave GPUs out while so many remain; nothing: never
  std::string code;                      // job.toml with the program's revisions; empty: unknown
  std::string code_within = "24h";       // time after which a pending revision ends a running attempt
  uint32_t nodes = 0;                    // hosts of an attempt, a `culprit run` on each; 0: this host alone
  uint32_t spares = 0;                   // more hosts, which wait
  std::string end_others = "20s";        // time for the other hosts to end after one failed
  bool verdict_exit = false;
  bool successor = false;  // in Slurm, another job with the same script may go on
  bool used() const { return retries.has_value() || verdict_exit; }
};

// Checks the options' values; the error is the reason.
Status check_retry_options(const RetryOptions& options);

// Whether --no-retry-on names the rule.
bool forbids_retry(const RetryOptions& options, const std::string& rule);

// A checkpoint to resume from.
struct ResumeFrom {
  std::string path;
  std::optional<int64_t> step;
};

// Checkpoints that are not whole, newest first.
using LeftOut = std::vector<app::LeftOutCheckpoint>;

// Attempts of earlier jobs of Slurm, which this one succeeds.
struct EarlierAttempts {
  std::vector<app::Attempt> attempts;
  std::optional<app::Handover> handover;  // nothing: this job succeeds none
};

struct RunAgain {
  const RetryOptions& options;
  const app::Launch& launch;
  app::RunFolder& folder;
  std::vector<std::string> passed_on;  // options for the `culprit run` of each attempt
  std::vector<std::string> command;
  bool keep = false;
  Zone zone;
  // The folder's newest complete checkpoint, of a step before `before` if given; nothing: none. `left_out`
  // gets those that are not whole and newer, if any; may be null.
  std::function<std::optional<ResumeFrom>(std::optional<int64_t> before, LeftOut* left_out)> newest;
  // When the newest complete checkpoint, by its headers and sizes, was last changed; kNoTime: none. Empty
  // without a folder.
  std::function<TimeNs()> saved_ns;
  EarlierAttempts earlier = {};
};

// Returns the exit status: the last attempt's, or with --verdict-exit the code for a scheduler.
int run_with_retries(const RunAgain& again);

}  // namespace culprit::cli
