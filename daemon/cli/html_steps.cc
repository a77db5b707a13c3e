#include "cli/html_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "cli/narrative.h"
#include "cli/step_view.h"

namespace culprit::cli {
namespace {

constexpr size_t kSpells = 100, kSuspects = 8, kColumns = 240, kRanks = 48;

class StepPage {
 public:
  StepPage(Html& html, const Report& report) : h_(html), r_(report) {}

  void run() {
    if (!r_.irregularities.empty()) spells();
    bins_ = bin_steps(r_, kColumns);
    if (bins_.size() < 2) return;
    curve();
    heat();
  }

 private:
  void number(std::string_view is, std::string_view value) {
    h_.raw("<td class=\"n\" data-is=\"").text(is).raw("\">").text(value).raw("</td>");
  }

  void spells() {
    h_.open("section").element("h2", "", "Slow steps");
    h_.raw("<table><thead><tr>");
    for (const char* name : {"Steps", "Slower", "Cost a step", "Kind", "Suspects"})
      h_.element("th", "", name);
    h_.raw("</tr></thead><tbody>\n");
    const size_t shown = std::min(r_.irregularities.size(), kSpells);
    for (size_t i = 0; i < shown; ++i) spell(r_.irregularities[i]);
    h_.raw("</tbody></table>\n");
    if (r_.irregularities.size() > shown)
      h_.element("p", "soft",
                 fmt::format("and {} more (--format json)", grouped(r_.irregularities.size() - shown)));
    h_.close("section");
  }

  void spell(const Irregularity& x) {
    h_.raw("<tr>");
    number("when", x.first_step == x.last_step ? fmt::format("step {}", x.first_step)
                                               : fmt::format("steps {}-{}", x.first_step, x.last_step));
    number("slower", fmt::format("{:.2f}×", x.slowdown));
    number("cost", milliseconds(x.cost_ms));
    h_.element("td", "", x.kind).open("td");
    for (size_t i = 0; i < std::min(x.suspects.size(), kSuspects); ++i) {
      const Suspect& s = x.suspects[i];
      h_.open("div").text(fmt::format("{} ({:.2f})", rank_place(s), s.score));
      for (const std::string& why : s.why) h_.element("div", "soft", why);
      h_.close("div");
    }
    for (size_t i = 0; i < std::min(x.links.size(), kSuspects); ++i)
      h_.element("div", "",
                 fmt::format("link {} - {} ({:.2f})", x.links[i].a, x.links[i].b, x.links[i].score));
    if (x.suspects.empty() && x.links.empty()) h_.element("div", "soft", "nobody in particular");
    chain(x);
    h_.raw("</td></tr>\n");
  }

  void chain(const Irregularity& x) {
    const std::vector<std::string> links = chain_sentences(x);
    if (links.empty()) return;
    h_.open("details").element("summary", "soft", "who waited for whom").raw("<ol>");
    for (const std::string& link : links) h_.element("li", "", link);
    h_.raw("</ol>").close("details");
  }

  void axis() {
    h_.element("div", "side", "step").raw("<svg class=\"axis\" aria-hidden=\"true\">");
    for (const size_t quarter : {0, 1, 2, 3, 4}) {
      const size_t at = std::min(quarter * bins_.size() / 4, bins_.size() - 1);
      const int64_t step = quarter == 4 ? r_.comm.steps.back() : r_.comm.steps[bins_[at].first];
      h_.raw(fmt::format("<text{} x=\"{}%\" y=\"14\" text-anchor=\"{}\">{}</text>",
                         quarter % 2 ? " class=\"half\"" : "", quarter * 25,
                         quarter == 0   ? "start"
                         : quarter == 4 ? "end"
                                        : "middle",
                         step));
    }
    h_.raw("</svg>\n");
  }

  void line(const char* kind, double StepBin::*value, double most) {
    h_.raw("<polyline class=\"").raw(kind).raw("\" points=\"");
    for (size_t i = 0; i < bins_.size(); ++i)
      h_.raw(fmt::format("{:.1f},{:.1f} ",
                         1000 * (static_cast<double>(i) + 0.5) / static_cast<double>(bins_.size()),
                         98 - 94 * bins_[i].*value / most));
    h_.raw("\"/>");
  }

  void curve() {
    double most = 0;
    for (const StepBin& b : bins_) most = std::max(most, b.step_ms);
    if (most <= 0) return;
    h_.open("section").element("h2", "", "Step times").open("div", "chart");
    h_.element("div", "side", fmt::format("0 to {}", milliseconds(most)));
    h_.raw("<svg class=\"plot\" role=\"img\"><title>Step times</title>");
    h_.raw(
        "<rect width=\"100%\" height=\"100%\"/><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" ");
    h_.raw("width=\"100%\" height=\"100%\">");
    const double width = 1000 / static_cast<double>(bins_.size());
    for (size_t i = 0; i < bins_.size(); ++i) {
      if (!bins_[i].slow) continue;
      h_.raw(fmt::format("<path class=\"slow\" d=\"M{:.2f} 0h{:.2f}v100h-{:.2f}z\"><title>",
                         static_cast<double>(i) * width, width, width));
      h_.text(fmt::format("step {}: {}, {} without the excess", steps_of(r_.comm, bins_[i]),
                          milliseconds(bins_[i].step_ms), milliseconds(bins_[i].without_ms)));
      h_.raw("</title></path>");
    }
    line("usual", &StepBin::without_ms, most);
    line("progress", &StepBin::step_ms, most);
    h_.raw("</svg></svg>\n");
    axis();
    h_.close("div");
    h_.raw(
        "<div class=\"key\"><span>full line: how long a step took; dashed: without what was in "
        "excess</span>");
    h_.raw("<span><svg><rect class=\"slow\" width=\"14\" height=\"12\"/></svg>slow steps</span></div>\n");
    h_.close("section");
  }

  void heat() {
    const std::vector<HeatRow> rows = heat_rows(r_, bins_, kRanks);
    const double most = most_excess(rows);
    if (most <= 0) return;
    h_.open("section").element("h2", "", "Time of ranks beyond that of their peers").open("div", "chart");
    for (const HeatRow& row : rows) heat_row(row, most);
    axis();
    h_.close("div");
    h_.raw(
        "<div class=\"key\"><span><svg><rect class=\"l0\" width=\"14\" height=\"12\"/></svg>like its "
        "peers</span>");
    constexpr std::array<double, 4> kShares{0.05, 0.25, 0.5, 0.75};
    for (size_t i = 0; i < kShares.size(); ++i) {
      h_.raw(fmt::format("<span><svg><rect class=\"l{}\" width=\"14\" height=\"12\"/></svg>", i + 2));
      h_.text("from " + milliseconds(kShares[i] * most)).raw("</span>");
    }
    h_.raw("</div>\n");
    if (r_.comm.ranks > rows.size())
      h_.element("p", "soft",
                 fmt::format("{} of {}: those with most", rows.size(), counted(r_.comm.ranks, "rank")));
    h_.close("section");
  }

  void heat_row(const HeatRow& row, double most) {
    std::string name = fmt::format("rank {}", row.row->rank);
    std::string full = name;
    if (row.row->host) full += " on " + *row.row->host;
    if (row.row->device) full += fmt::format(", device {}", *row.row->device);
    if (row.row->host) name += " " + *row.row->host;
    h_.raw(row.suspect ? "<div class=\"name hot\" title=\"" : "<div class=\"name\" title=\"");
    h_.text(full).raw("\">").text(name).close("div");
    h_.raw(fmt::format("<svg class=\"row\" viewBox=\"0 0 {} 1\" preserveAspectRatio=\"none\" role=\"img\">",
                       bins_.size()));
    h_.raw("<title>").text(full).raw("</title>");
    for (size_t i = 0; i < row.excess_ms.size();) {
      const int level = level_of(row.excess_ms[i], most);
      size_t end = i + 1;
      // What is dark tells its value; what is not, in one stroke.
      while (level == 0 && end < row.excess_ms.size() && level_of(row.excess_ms[end], most) == 0) ++end;
      if (level >= 0)
        h_.raw(fmt::format("<path class=\"l{}\" d=\"M{} 0h{}v1h-{}z\"", level ? level + 1 : 0, i, end - i,
                           end - i));
      if (level == 0) h_.raw("/>");
      if (level > 0) {
        h_.raw("><title>");
        h_.text(fmt::format("{}, step {}: {}", full, steps_of(r_.comm, bins_[i]),
                            milliseconds(row.excess_ms[i])));
        h_.raw("</title></path>");
      }
      i = end;
    }
    h_.raw("</svg>\n");
  }

  // -1: not seen.
  static int level_of(double ms, double most) { return std::isnan(ms) ? -1 : shade(ms, most); }

  Html& h_;
  const Report& r_;
  std::vector<StepBin> bins_;
};

}  // namespace

void draw_steps(Html& html, const Report& report) { StepPage(html, report).run(); }

}  // namespace culprit::cli
