#include "cli/html_numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"
#include "cli/html_plot.h"
#include "cli/step_view.h"

namespace culprit::cli {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// Ratio of largest to smallest value beyond which the axis is logarithmic: a linear one would hide small
// values.
constexpr double kLinearMost = 50;
constexpr size_t kFaultsMarked = 50;

// The value range of a curve; `powers`: logarithmic.
struct Range {
  double least = INFINITY, most = -INFINITY;
  bool powers = false;

  void add(const std::vector<double>& values) {
    for (const double v : values)
      if (std::isfinite(v)) least = std::min(least, v), most = std::max(most, v);
  }
  double height(double value) const {
    if (!std::isfinite(value)) return kNaN;
    if (most <= least) return 0.5;
    if (powers) return std::log(value / least) / std::log(most / least);
    return (value - least) / (most - least);
  }
};

class NumericPage {
 public:
  NumericPage(Html& html, const Report& report) : h_(html), r_(report), c_(report.curves) {}

  void run() {
    if (c_.steps.size() < 2) return;
    for (const NumericCurves::Curve& curve : c_.curves) draw(curve);
    heat();
  }

 private:
  // The last column that starts at or before the step.
  std::optional<size_t> column_of(int64_t step) const {
    const auto behind = std::upper_bound(c_.steps.begin(), c_.steps.end(), step);
    if (behind == c_.steps.begin()) return std::nullopt;
    return static_cast<size_t>(behind - c_.steps.begin()) - 1;
  }

  std::vector<PlotMark> marks(const NumericCurves::Curve& curve) const {
    std::vector<PlotMark> out;
    for (size_t i = 0; i < std::min(r_.numerics.size(), kFaultsMarked); ++i) {
      const NumericFault& fault = r_.numerics[i];
      if (const auto at = column_of(fault.detected_at); at && fault.detected_at != fault.step)
        out.push_back({"usual", *at, fmt::format("noticed at step {}", fault.detected_at)});
      if (const auto at = column_of(fault.step))
        out.push_back({"now", *at, fmt::format("step {}: {}", fault.step, to_string(fault.kind))});
    }
    // Of consecutive columns only the first is marked.
    const std::vector<uint32_t>& bad = curve.not_finite;
    for (size_t i = 0, next = 0; i < bad.size(); i = next) {
      for (next = i + 1; next < bad.size() && bad[next] == bad[next - 1] + 1;) ++next;
      std::string steps = fmt::format("step {}", c_.steps[bad[i]]);
      if (next > i + 1) steps += fmt::format(" to {}", c_.steps[bad[next - 1]]);
      out.push_back({"slow", bad[i], steps + ": not finite on some ranks or all"});
    }
    return out;
  }

  void draw(const NumericCurves::Curve& curve) {
    Range range;
    range.add(curve.median);
    range.add(curve.worst);
    if (!(range.least <= range.most)) return;
    range.powers = range.least > 0 && range.most > kLinearMost * range.least;
    Plot plot{fmt::format("{:.4g} to {:.4g}{}", range.least, range.most, range.powers ? ", powers" : ""),
              curve.metric,
              c_.steps.size(),
              marks(curve),
              {{"usual", {}}, {}}};
    for (const double v : curve.worst) plot.lines[0].heights.push_back(range.height(v));
    for (const double v : curve.median) plot.lines[1].heights.push_back(range.height(v));
    h_.open("section").element("h2", "", curve.metric).open("div", "chart");
    draw_plot(h_, plot);
    draw_step_axis(h_, c_.steps, c_.steps.back());
    h_.close("div");
    h_.raw(
        "<div class=\"key\"><span>full line: the median of the ranks; dashed: the one that is farthest "
        "from ");
    h_.raw(r_.numerics.empty() ? "it</span></div>\n"
                               : "it</span><span>upright: where the numbers went wrong; dashed: where it was "
                                 "noticed</span></div>\n");
    h_.close("section");
  }

  void heat() {
    Heat heat{{}, 1, [this](size_t column, double odd) {
                return fmt::format("step {}: {:.2f}", c_.steps[column], odd);
              }};
    for (const NumericCurves::Row& row : c_.rows) {
      HeatLine line{fmt::format("rank {}", row.rank), "", is_named(row.rank), {}};
      line.full = row.host ? fmt::format("{} on {}", line.name, *row.host) : line.name;
      if (row.host) line.name += " " + *row.host;
      line.values.assign(row.odd.begin(), row.odd.end());
      line.values.resize(c_.steps.size(), kNaN);
      heat.rows.push_back(std::move(line));
    }
    if (heat.rows.empty()) return;
    h_.open("section").element("h2", "", "How odd the numbers of ranks were").open("div", "chart");
    draw_heat(h_, heat);
    draw_step_axis(h_, c_.steps, c_.steps.back());
    h_.close("div");
    std::vector<std::string> from;
    for (const double share : kShadeShares) from.push_back(fmt::format("{:.2f}", share));
    draw_heat_key(h_, "like its peers", from);
    if (c_.ranks > c_.rows.size())
      h_.element("p", "soft", fmt::format("{} of {}: the oddest", c_.rows.size(), counted(c_.ranks, "rank")));
    h_.close("section");
  }

  bool is_named(uint32_t rank) const {
    return std::any_of(r_.numerics.begin(), r_.numerics.end(), [rank](const NumericFault& fault) {
      return std::find(fault.ranks.begin(), fault.ranks.end(), rank) != fault.ranks.end();
    });
  }

  Html& h_;
  const Report& r_;
  const NumericCurves& c_;
};

}  // namespace

void draw_numerics(Html& html, const Report& report) { NumericPage(html, report).run(); }

}  // namespace culprit::cli
