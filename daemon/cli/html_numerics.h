// Charts of reported metrics in the HTML report: the median over ranks, the rank farthest from it, and faulty
// steps. A heat map shows how far each rank deviates. Pure; no script.
#pragma once

#include "cli/html.h"
#include "model/report.h"

namespace culprit::cli {

// Appends nothing with fewer than two steps.
void draw_numerics(Html& html, const Report& report);

}  // namespace culprit::cli
