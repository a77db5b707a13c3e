// One attempt of `culprit run --retries`: its command and environment, what its report says of its failure,
// and its line in attempts.jsonl (daemon/docs/formats.md). Pure; any thread.
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
  int status = 0;                   // as a shell has it
  std::string headline;             // of its report; empty: it says nothing
  std::string resume;               // checkpoint that it was given; empty: none
  std::optional<int64_t> from, to;  // iterations: the best of earlier attempts, and its own last one
  recover::Failure failure;
  recover::Decision decision;
};

// What the command's words may hold, as {attempt}. Empty: there is none, and the word stays as it is.
struct Placeholders {
  uint32_t attempt = 1;
  std::string resume;
  uint16_t port = 0;  // a free one; asked for only where a word holds {port}
};
bool wants_port(const std::vector<std::string>& words);
std::vector<std::string> filled(const std::vector<std::string>& words, const Placeholders& values);

// NAME=VALUE for the attempt. `last`: why the one before failed.
std::vector<std::string> attempt_variables(uint32_t number, uint32_t left, const std::string& resume,
                                           const std::string& last);

// What the report of a failed attempt comes to. `best`: the highest iteration of earlier attempts.
recover::Failure failure_of(const std::optional<Report>& report, const std::string& host,
                            std::optional<int64_t> best);

// One line of JSON with its newline.
std::string ledger_line(const Attempt& attempt);

// The exit code for a scheduler that only counts; 0: the command's own says enough.
int verdict_code(const recover::Failure& failure, const recover::Decision& decision);

// A table of all attempts, a line each.
std::string attempt_table(const std::vector<Attempt>& attempts);

// When the allocation ends, by Slurm's variable; kNoTime: not known.
TimeNs allocation_end(const Lookup& variable);

}  // namespace culprit::app
