// The report of a `culprit run --retries`: report.html and report.json in the run's folder, of all attempts
// and with the report of one of them. Blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/run/attempt_history.h"
#include "app/run/folder.h"
#include "base/status.h"
#include "base/time.h"
#include "model/report.h"

namespace culprit::cli {

// `report`: of attempt number `of`. Leaves out the history's pages that are not in the folder.
Status write_attempt_report(const app::RunFolder& folder, app::AttemptHistory history, const Report& report,
                            uint32_t of, const Zone& zone);

// Replaces attempts.jsonl at once, so that it is complete even if this process is killed. `synced`: after its
// text is on the disk. Prints an error.
void write_ledger(const app::RunFolder& folder, const std::vector<app::Attempt>& attempts, bool synced);

// Prints why no attempt follows, and of several attempts totals and the table. `page`: the run's folder has a
// page of them.
void print_attempts(const app::AttemptHistory& history, const std::string& folder, bool page,
                    const Zone& zone);

}  // namespace culprit::cli
