// One attempt of `culprit run --retries`: its command and environment, and the failure according to its
// report. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run/launch.h"
#include "base/time.h"
#include "core/recover/decide.h"
#include "core/recover/ledger.h"
#include "model/report.h"

namespace culprit::app {

struct Attempt {
  uint32_t number = 1;
  TimeNs begin_ns = kNoTime, end_ns = kNoTime;
  int status = 0;                    // exit status as in a shell
  std::string headline;              // headline of the attempt's report; empty: none
  std::optional<double> confidence;  // 0 to 1, of the report's verdict; empty: no verdict
  std::string resume;                // checkpoint that the attempt resumed; empty: none
  std::string revision;              // of the program, with --code; empty: unknown
  std::vector<std::string> without;  // UUIDs of devices that it ran without
  std::optional<int64_t> from, to;   // iterations: the best of earlier attempts, and this attempt's last one
  recover::Failure failure;
  recover::Decision decision;
  // Time that a failure cost: from the attempt's begin, or from its last whole checkpoint if that is known,
  // to the begin of the next attempt; of the last attempt, to its end.
  TimeNs lost_ns = 0;
  std::vector<std::string> leaves_out;  // nodes that the decision adds to those left out
  std::string job;                      // number of the attempt's job in Slurm; empty: none
  std::string successor;                // number of the job that goes on; empty: none
};

// Values for placeholders in the command's words, such as {attempt}. Empty: no value, and the word remains
// unchanged.
struct Placeholders {
  uint32_t attempt = 1;
  std::string resume;
  uint16_t port = 0;                    // a free port; requested only if a word contains {port}
  std::vector<std::string> gpus = {};   // UUIDs for {gpus} and {ngpus}
  std::vector<std::string> hosts = {};  // that run the attempt, by node rank; the first is the {master}
  uint32_t node_rank = 0;               // of this host
  std::string revision = {};            // of the program
};
bool wants_port(const std::vector<std::string>& words);
std::vector<std::string> filled(const std::vector<std::string>& words, const Placeholders& values);

// NAME=VALUE for the attempt. `last`: why the previous attempt failed. Uses attempt, resume and revision of
// `values`.
std::vector<std::string> attempt_variables(const Placeholders& values, uint32_t left,
                                           const std::string& last);

// The failure according to a failed attempt's report. `best`: the highest iteration of earlier attempts.
recover::Failure failure_of(const std::optional<Report>& report, const std::string& host,
                            std::optional<int64_t> best);

// Sets what the report of a failed attempt says: its failure, headline, confidence and last iteration. The
// attempt's times must be set.
void judge(Attempt& attempt, const std::optional<Report>& report, const std::string& host,
           std::optional<int64_t> best);

// Sets the progress by checkpoints, where iterations say nothing. `saved`: step of the newest whole one;
// -1: there is none, or its step is unknown. `resumed`: of the checkpoint that the attempt resumed.
void add_progress(recover::Failure& failure, int64_t saved, std::optional<int64_t> resumed);

// The step that an older checkpoint lies before: the one that was used, and the fault's; nothing: any.
std::optional<int64_t> older_than(std::optional<int64_t> resumed, std::optional<int64_t> fault_at);

// The exit code for a scheduler that only counts failures; 0: use the command's own code.
int verdict_code(const recover::Failure& failure, const recover::Decision& decision);

// End of the allocation according to Slurm's variable; kNoTime: unknown.
TimeNs allocation_end(const Lookup& variable);

}  // namespace culprit::app
