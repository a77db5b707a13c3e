// The two charts of the HTML report, inline SVG with a common time axis: progress of iterations, and lines by
// host. Pure; no script.
#pragma once

#include "cli/html.h"
#include "cli/render.h"
#include "model/report.h"

namespace culprit::cli {

// Appends nothing if the report has no times.
void draw_charts(Html& html, const Report& report, const RenderOptions& options);

}  // namespace culprit::cli
