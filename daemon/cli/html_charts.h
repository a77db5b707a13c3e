// The two charts of the HTML report, as inline SVG over one range of time: how the iterations went, and what
// each host wrote. Pure; no script.
#pragma once

#include "cli/html.h"
#include "cli/render.h"
#include "model/report.h"

namespace culprit::cli {

// Nothing where the report has no times.
void draw_charts(Html& html, const Report& report, const RenderOptions& options);

}  // namespace culprit::cli
