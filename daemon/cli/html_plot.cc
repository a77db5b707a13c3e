#include "cli/html_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/step_view.h"

namespace culprit::cli {
namespace {

// -1: no data.
int level_of(double value, double most) { return std::isnan(value) ? -1 : shade(value, most); }

double middle(size_t column, size_t columns) {
  return 1000 * (static_cast<double>(column) + 0.5) / static_cast<double>(columns);
}

void draw_line(Html& html, const PlotLine& line, size_t columns) {
  bool open = false;
  for (size_t i = 0; i < line.heights.size(); ++i) {
    const bool there = std::isfinite(line.heights[i]);
    if (!there && open) html.raw("\"/>");
    if (there && !open) html.raw("<polyline class=\"").raw(line.kind).raw("\" points=\"");
    if (there) html.raw(fmt::format("{:.1f},{:.1f} ", middle(i, columns), 98 - 94 * line.heights[i]));
    open = there;
  }
  if (open) html.raw("\"/>");
}

void draw_mark(Html& html, const PlotMark& mark, size_t columns) {
  const double width = 1000 / static_cast<double>(columns);
  if (std::string_view(mark.kind) == "slow")
    html.raw(fmt::format("<path class=\"slow\" d=\"M{:.2f} 0h{:.2f}v100h-{:.2f}z\"><title>",
                         static_cast<double>(mark.column) * width, width, width));
  else
    html.raw(fmt::format("<path class=\"{}\" d=\"M{:.2f} 0v100\"><title>", mark.kind,
                         middle(mark.column, columns)));
  html.text(mark.title).raw("</title></path>");
}

void draw_row(Html& html, const Heat& heat, const HeatLine& row) {
  html.raw(row.hot ? "<div class=\"name hot\" title=\"" : "<div class=\"name\" title=\"");
  html.text(row.full).raw("\">").text(row.name).close("div");
  html.raw(fmt::format("<svg class=\"row\" viewBox=\"0 0 {} 1\" preserveAspectRatio=\"none\" role=\"img\">",
                       row.values.size()));
  html.raw("<title>").text(row.full).raw("</title>");
  for (size_t i = 0; i < row.values.size();) {
    const int level = level_of(row.values[i], heat.most);
    size_t end = i + 1;
    // A dark cell has its value as a title; light cells are merged into one shape.
    while (level == 0 && end < row.values.size() && level_of(row.values[end], heat.most) == 0) ++end;
    if (level >= 0)
      html.raw(fmt::format("<path class=\"l{}\" d=\"M{} 0h{}v1h-{}z\"", level ? level + 1 : 0, i, end - i,
                           end - i));
    if (level == 0) html.raw("/>");
    if (level > 0)
      html.raw("><title>").text(row.full + ", " + heat.tell(i, row.values[i])).raw("</title></path>");
    i = end;
  }
  html.raw("</svg>\n");
}

}  // namespace

void draw_step_axis(Html& html, std::span<const int64_t> begins, int64_t last) {
  html.element("div", "side", "step").raw("<svg class=\"axis\" aria-hidden=\"true\">");
  for (const size_t quarter : {0, 1, 2, 3, 4}) {
    const size_t at = std::min(quarter * begins.size() / 4, begins.size() - 1);
    html.raw(fmt::format("<text{} x=\"{}%\" y=\"14\" text-anchor=\"{}\">{}</text>",
                         quarter % 2 ? " class=\"half\"" : "", quarter * 25,
                         quarter == 0   ? "start"
                         : quarter == 4 ? "end"
                                        : "middle",
                         quarter == 4 ? last : begins[at]));
  }
  html.raw("</svg>\n");
}

void draw_plot(Html& html, const Plot& plot) {
  html.element("div", "side", plot.side);
  html.raw("<svg class=\"plot\" role=\"img\"><title>").text(plot.title).raw("</title>");
  html.raw(
      "<rect width=\"100%\" height=\"100%\"/><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" ");
  html.raw("width=\"100%\" height=\"100%\">");
  for (const PlotMark& mark : plot.marks) draw_mark(html, mark, plot.columns);
  for (const PlotLine& line : plot.lines) draw_line(html, line, plot.columns);
  html.raw("</svg></svg>\n");
}

void draw_heat(Html& html, const Heat& heat) {
  for (const HeatLine& row : heat.rows) draw_row(html, heat, row);
}

void draw_heat_key(Html& html, std::string_view usual, std::span<const std::string> from) {
  html.raw("<div class=\"key\"><span><svg><rect class=\"l0\" width=\"14\" height=\"12\"/></svg>");
  html.text(usual).raw("</span>");
  for (size_t i = 0; i < from.size(); ++i) {
    html.raw(fmt::format("<span><svg><rect class=\"l{}\" width=\"14\" height=\"12\"/></svg>", i + 2));
    html.text("from " + from[i]).raw("</span>");
  }
  html.raw("</div>\n");
}

}  // namespace culprit::cli
