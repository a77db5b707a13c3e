// What a loop told of its numbers, as charts of the HTML report: curves of well-known metrics, the median of
// the ranks and the one that is farthest from it, with the steps that went wrong; and how odd each rank was.
// Pure; no script.
#pragma once

#include "cli/html.h"
#include "model/report.h"

namespace culprit::cli {

// Nothing where fewer than two steps were told.
void draw_numerics(Html& html, const Report& report);

}  // namespace culprit::cli
