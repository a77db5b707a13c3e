// The attempts of a `culprit run --retries` as text: the line before an attempt, and the table at the end.
// Text from logs is made safe for a terminal. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/checkpoint/look.h"
#include "app/run/attempt_history.h"
#include "base/time.h"

namespace culprit::cli {

// "attempt 2 of 4: without node-3 (GPU 5 fell off the bus, 92 %), from iteration 12000; 3m 10s lost".
// `step`: of the checkpoint that `next` resumes, if known.
std::string announcement(const app::Attempt& last, const app::Attempt& next, uint32_t of,
                         std::optional<int64_t> step);

// "iteration 12000 is torn (model.pt is short): resumes from iteration 11000". `left_out`: newest first;
// empty: the sentence is empty. `resume`: the checkpoint that is resumed instead; empty: none.
std::string left_out_sentence(const std::vector<app::LeftOutCheckpoint>& left_out, const std::string& resume,
                              std::optional<int64_t> step);

// Why the job is not started again, with the cause; empty: it is, or there is nothing to say.
std::string stop_sentence(const app::Attempt& last);

struct AttemptTextOptions {
  size_t width = 100;  // columns
  Zone zone;
  bool decisions =
      false;  // a second line for each attempt: what was decided, and from which checkpoint it ran
};
// A line for each attempt under a heading.
std::string attempt_table(const app::AttemptHistory& history, const AttemptTextOptions& options);

// "3 attempts, 14m 02s lost, run without node-3".
std::string attempt_totals(const app::AttemptHistory& history);

}  // namespace culprit::cli
