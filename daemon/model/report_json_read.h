// Reads the JSON form of a report (formats.md section 7) back: what `culprit diagnose --format json` or a
// daemon wrote, maybe of a later version. Fields that are not known are passed over; what is of another type
// than it must be is an error that names it. Of what a report has beside formats.md, for showing, there is
// what was written as "charts". Pure; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "model/report.h"

namespace culprit {
Result<Report> report_from_json(std::string_view text);
}
