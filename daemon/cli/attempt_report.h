// The report of a `culprit run --retries`: report.html and report.json in the run's folder, of all attempts
// and with the report of one of them. Blocks.
#pragma once

#include <cstdint>

#include "app/run/attempt_history.h"
#include "app/run/folder.h"
#include "base/status.h"
#include "base/time.h"
#include "model/report.h"

namespace culprit::cli {

// `report`: of attempt number `of`. Leaves out the history's pages that are not in the folder.
Status write_attempt_report(const app::RunFolder& folder, app::AttemptHistory history, const Report& report,
                            uint32_t of, const Zone& zone);

}  // namespace culprit::cli
