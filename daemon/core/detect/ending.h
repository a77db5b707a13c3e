// Whether a job's logs state that it ended as planned, and whether anything contradicts that. A statement
// that the run itself succeeded (its exit code is 0, "run_stop … status: success", "job 17 completed") closes
// the case: what is written after it is teardown. A weaker one ("training finished") holds only where no
// exception follows it. Neither counts before the last progress. Pure.
#pragma once

#include <string_view>

#include "core/logs/job_log.h"

namespace culprit::detect {

// Whether a line states that the job as a whole succeeded, by its own words.
bool states_success(std::string_view text);

// Whether a line names work outside the iterations: evaluation, validation, compilation.
bool names_phase(std::string_view text);

bool ended_well(const logs::JobLog& log);

// Whether a planned end is stated after the last progress, even if an exception follows. `before`: not after
// this place; null: anywhere.
bool states_end(const logs::JobLog& log, const logs::LogPlace* before = nullptr);

}  // namespace culprit::detect
