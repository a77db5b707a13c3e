// Common parts of charts over steps, as inline SVG: a step axis, lines and marks, and a heat map of ranks. A
// chart is a <div class="chart">; all charts have the same columns, one per step or group of steps. Pure; no
// script.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/html.h"

namespace culprit::cli {

// The first steps of the columns, and the last step.
void draw_step_axis(Html& html, std::span<const int64_t> begins, int64_t last);

// A line through the centres of the columns, 0 at the bottom to 1 at the top; NaN: a gap.
struct PlotLine {
  const char* kind = "progress";  // CSS class
  std::vector<double> heights;
};
// A highlighted column.
struct PlotMark {
  const char* kind = "slow";  // CSS class: "slow" fills it; "now" and "usual" draw a line in its centre
  size_t column = 0;
  std::string title;
};
struct Plot {
  std::string side;  // label of the value range
  std::string title;
  size_t columns = 0;
  std::vector<PlotMark> marks;
  std::vector<PlotLine> lines;
};
void draw_plot(Html& html, const Plot& plot);

struct HeatLine {
  std::string name, full;
  bool hot = false;            // a suspect
  std::vector<double> values;  // by column; NaN: no data
};
struct Heat {
  std::vector<HeatLine> rows;
  double most = 0;  // maximum of all values
  std::function<std::string(size_t column, double value)> tell;
};
void draw_heat(Html& html, const Heat& heat);
// The legend of the shades; `usual`: label of the lightest one.
void draw_heat_key(Html& html, std::string_view usual, std::span<const std::string> from);

}  // namespace culprit::cli
