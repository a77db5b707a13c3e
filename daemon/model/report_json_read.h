// Reads the JSON form of a report (formats.md section 7), written by `culprit diagnose --format json` or a
// daemon, perhaps of a later version. Unknown fields are ignored; a wrong type is an error that names the
// field. Data for display comes from "charts". Pure; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "model/report.h"

namespace culprit {
Result<Report> report_from_json(std::string_view text);
}
