// What charts over steps have in common, as inline SVG: an axis of steps, lines and marks, and a heat
// map of ranks. A chart stands in a <div class="chart">; all have as many columns as there are steps or
// spells of steps to show. Pure; no script.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/html.h"

namespace culprit::cli {

// The steps with which columns begin, and the last one of all.
void draw_step_axis(Html& html, std::span<const int64_t> begins, int64_t last);

// Through the middles of the columns, 0 at the bottom to 1 at the top; NaN: a gap.
struct PlotLine {
  const char* kind = "progress";  // class
  std::vector<double> heights;
};
// A column that stands out.
struct PlotMark {
  const char* kind = "slow";  // class: "slow" fills it, "now" and "usual" are a line in its middle
  size_t column = 0;
  std::string title;
};
struct Plot {
  std::string side;  // what it ranges over
  std::string title;
  size_t columns = 0;
  std::vector<PlotMark> marks;
  std::vector<PlotLine> lines;
};
void draw_plot(Html& html, const Plot& plot);

struct HeatLine {
  std::string name, full;
  bool hot = false;            // suspected
  std::vector<double> values;  // by column; NaN: not seen
};
struct Heat {
  std::vector<HeatLine> rows;
  double most = 0;  // of all values
  std::function<std::string(size_t column, double value)> tell;
};
void draw_heat(Html& html, const Heat& heat);
// What the shades mean; `usual`: the lightest.
void draw_heat_key(Html& html, std::string_view usual, std::span<const std::string> from);

}  // namespace culprit::cli
