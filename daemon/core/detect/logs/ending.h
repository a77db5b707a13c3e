// Whether a job's logs state a planned end, and whether anything contradicts the statement. Some statements
// say that the run itself succeeded: exit code 0, "run_stop … status: success", "job 17 completed". Such a
// statement is final; later lines are teardown. A weaker statement ("training finished") holds only if no
// exception follows. Both count only after the last progress. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "core/logs/job_log.h"

namespace culprit::detect {

// An announced phase excuses silence for this long. The longest checkpoints, evaluations and compilations
// take about ten minutes. A process that died in a phase never reports its end.
constexpr TimeNs kPhaseLongest = 3600 * kNsPerSecond;

// Whether the text of a line states that the job as a whole succeeded.
bool states_success(std::string_view text);

// Whether a line names work outside the iterations: evaluation, validation, compilation.
bool names_phase(std::string_view text);

// Whether a line announces work that takes a while: it names a phase, or begins with what the program does
// now ("Computing FID on 50000 images", "starting eval"). "Waiting for" does not.
bool announces_work(std::string_view text);

bool ended_well(const logs::JobLog& log);

// Whether the program's parent saw it fail ("culprit run: python3 ended with exit code 1"). A later statement
// of the program does not contradict this.
bool exit_was_seen(const logs::JobLog& log);

// Whether a line from this writer's host states a good end.
bool states_end_on(const logs::JobLog& log, uint32_t writer);

// Whether a planned end is stated after the last progress, even if an exception follows. `before`: ignore
// statements after this place; null: use all.
bool states_end(const logs::JobLog& log, const logs::LogPlace* before = nullptr);

// "11 of 1000" if the last progress line with a total did not reach it; empty: no such line, or the total may
// be of one epoch among several.
std::string cut_short(const logs::JobLog& log);

}  // namespace culprit::detect
