// The HTML report's section on slow steps: a table of spells with their chains of waiting, the curve of step
// times as inline SVG, and slow ranks. Pure; no script.
#pragma once

#include "cli/html.h"
#include "model/report.h"

namespace culprit::cli {

// Appends nothing without a slow step and without a curve.
void draw_steps(Html& html, const Report& report);

}  // namespace culprit::cli
