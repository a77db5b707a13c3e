#include "cli/html_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/html_plot.h"
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
    h_.element("td", "", to_string(x.kind)).open("td");
    for (size_t i = 0; i < std::min(x.suspects.size(), kSuspects); ++i) {
      const Suspect& s = x.suspects[i];
      h_.open("div").text(fmt::format("{} ({:.2f})", rank_place(s), s.score));
      for (const std::string& why : s.why) h_.element("div", "soft", why);
      h_.close("div");
    }
    for (size_t i = 0; i < std::min(x.links.size(), kSuspects); ++i)
      h_.element("div", "",
                 fmt::format("link {} - {} ({:.2f})", x.links[i].a, x.links[i].b, x.links[i].score));
    if (x.suspects.empty() && x.links.empty()) h_.element("div", "soft", "no single rank or link");
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
    std::vector<int64_t> begins;
    for (const StepBin& b : bins_) begins.push_back(r_.comm.steps[b.first]);
    draw_step_axis(h_, begins, r_.comm.steps.back());
  }

  void curve() {
    double most = 0;
    for (const StepBin& b : bins_) most = std::max(most, b.step_ms);
    if (most <= 0) return;
    Plot plot{
        fmt::format("0 to {}", milliseconds(most)), "Step times", bins_.size(), {}, {{"usual", {}}, {}}};
    for (size_t i = 0; i < bins_.size(); ++i) {
      plot.lines[0].heights.push_back(bins_[i].without_ms / most);
      plot.lines[1].heights.push_back(bins_[i].step_ms / most);
      if (bins_[i].slow)
        plot.marks.push_back(
            {"slow", i,
             fmt::format("step {}: {}, {} without the excess", steps_of(r_.comm, bins_[i]),
                         milliseconds(bins_[i].step_ms), milliseconds(bins_[i].without_ms))});
    }
    h_.open("section").element("h2", "", "Step times").open("div", "chart");
    draw_plot(h_, plot);
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
    Heat heat{{}, most, [this](size_t column, double ms) {
                return fmt::format("step {}: {}", steps_of(r_.comm, bins_[column]), milliseconds(ms));
              }};
    for (const HeatRow& row : rows) heat.rows.push_back(named(row));
    h_.open("section").element("h2", "", "Time of ranks beyond that of their peers").open("div", "chart");
    draw_heat(h_, heat);
    axis();
    h_.close("div");
    std::vector<std::string> from;
    for (const double share : kShadeShares) from.push_back(milliseconds(share * most));
    draw_heat_key(h_, "like its peers", from);
    if (r_.comm.ranks > rows.size())
      h_.element("p", "soft",
                 fmt::format("{} of {}: those with most", rows.size(), counted(r_.comm.ranks, "rank")));
    h_.close("section");
  }

  static HeatLine named(const HeatRow& row) {
    HeatLine out{fmt::format("rank {}", row.row->rank), "", row.suspect, row.excess_ms};
    out.full = out.name;
    if (row.row->host) out.full += " on " + *row.row->host;
    if (row.row->device) out.full += fmt::format(", device {}", *row.row->device);
    if (row.row->host) out.name += " " + *row.row->host;
    return out;
  }

  Html& h_;
  const Report& r_;
  std::vector<StepBin> bins_;
};

}  // namespace

void draw_steps(Html& html, const Report& report) { StepPage(html, report).run(); }

}  // namespace culprit::cli
