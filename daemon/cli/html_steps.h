// The section on slow steps of the HTML report: a table of spells with their chains of waiting, the curve of
// step times as inline SVG, and the ranks behind their peers. Pure; no script.
#pragma once

#include "cli/html.h"
#include "model/report.h"

namespace culprit::cli {

// Nothing where there is neither a slow step nor a curve.
void draw_steps(Html& html, const Report& report);

}  // namespace culprit::cli
