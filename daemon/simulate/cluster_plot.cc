#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "simulate/cluster_report.h"

namespace culprit::cli {
namespace {

using sim::ClusterOutcome;
using sim::Phase;

constexpr double kLeft = 260, kWidth = 560, kRow = 20;
// Okabe and Ito's colours, which people with colour blindness can tell apart; useful time is grey.
constexpr const char* kColours[sim::kPhases] = {"#c8c8c8", "#999999", "#f0e442", "#e69f00", "#d55e00",
                                                "#56b4e9", "#0072b2", "#009e73", "#cc79a7", "#000000"};

class Plot {
 public:
  void text(double x, double y, const std::string& words, const char* anchor = "start") {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                         to_html(words));
  }
  void box(double x, double width, const char* colour, const std::string& title) {
    if (width <= 0) return;
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
        "fill=\"{}\"><title>{}</title></rect>\n",
        x, y_ + 3, width, kRow - 6, colour, to_html(title));
  }
  void title(const std::string& words) {
    y_ += kRow;
    text(10, y_ + 14, words);
    y_ += kRow;
  }
  void label(const std::string& words) { text(kLeft - 8, y_ + 14, words, "end"); }
  double y() const { return y_; }
  void next() { y_ += kRow; }

  std::string finish() const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"920\" height=\"{0:.0f}\" viewBox=\"0 0 920 "
               "{0:.0f}\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
               "fill=\"white\"/>\n",
               y_ + kRow) +
           body_ + "</svg>\n";
  }

 private:
  std::string body_;
  double y_ = 0;
};

double percent(TimeNs ns, const ClusterOutcome& o) {
  return o.wall_ns == 0 ? 0 : 100 * static_cast<double>(ns) / static_cast<double>(o.wall_ns);
}

void phases(Plot& plot, const std::string& name, const ClusterOutcome& o) {
  plot.label(fmt::format("{}: {:.1f} %", name, 100 * o.ettr()));
  double x = kLeft;
  for (size_t i = 0; i < sim::kPhases; ++i) {
    const double part = percent(o.time.of(static_cast<Phase>(i)), o);
    plot.box(x, part / 100 * kWidth, kColours[i],
             fmt::format("{} {:.2f} %", to_string(static_cast<Phase>(i)), part));
    x += part / 100 * kWidth;
  }
  plot.next();
}

void legend(Plot& plot) {
  double x = 10;
  for (size_t i = 0; i < sim::kPhases; ++i) {
    plot.box(x, 12, kColours[i], "");
    plot.text(x + 16, plot.y() + 14, to_string(static_cast<Phase>(i)));
    x += 88;
  }
  plot.next();
}

// Bars of lost time, so that small differences are visible.
void losses(Plot& plot, const std::string& title, const std::vector<sim::StudyRow>& rows, double base) {
  if (rows.empty()) return;
  plot.title(title);
  double most = 1 - base;
  for (const sim::StudyRow& row : rows) most = std::max(most, 1 - row.controlled.ettr());
  const auto bar = [&](const std::string& name, double lost, const char* colour) {
    plot.label(name);
    plot.box(kLeft, most <= 0 ? 0 : lost / most * kWidth, colour, fmt::format("{:.2f} %", 100 * lost));
    plot.text(kLeft + kWidth + 8, plot.y() + 14, fmt::format("{:.2f}", 100 * lost));
    plot.next();
  };
  bar("as it is", 1 - base, "#0072b2");
  for (const sim::StudyRow& row : rows) {
    const std::string value = row.value == 0 ? "" : fmt::format(" = {:g}", row.value);
    bar(row.name + value, 1 - row.controlled.ettr(), "#56b4e9");
  }
}

}  // namespace

std::string plot_of(const sim::ClusterStudy& study, const sim::StudyResult& r) {
  Plot plot;
  const sim::ClusterParams& p = study.params;
  plot.title(fmt::format("Time of {} GPUs over {}, {} a day: ETTR", p.hosts * p.gpus_per_host,
                         counted(static_cast<uint64_t>(p.days), "day"),
                         counted(static_cast<uint64_t>(p.incidents_per_day), "incident")));
  phases(plot, "requeue and wait", r.base.waiting);
  phases(plot, "culprit", r.base.controlled);
  legend(plot);
  const double base = r.base.controlled.ettr();
  losses(plot, "% of the time lost with a rule left out", r.ablation, base);
  losses(plot, "% of the time lost with a parameter halved or doubled", r.parameters, base);
  losses(plot, "% of the time lost with a threshold halved or doubled", r.thresholds, base);
  return plot.finish();
}

}  // namespace culprit::cli
