#include "cli/html_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "cli/narrative.h"

namespace culprit::cli {
namespace {

// Rows of the heat map; more would make the page long without more information. Suspects come
// first.
constexpr size_t kChartRows = 48;
constexpr size_t kSuspectRowsMax = 24;
constexpr size_t kMarksMax = 8;  // labels of more diagnoses would cover each other
constexpr size_t kRugMax = 200;

class Charts {
 public:
  Charts(Html& html, const Report& report, const RenderOptions& options)
      : html_(html), r_(report), a_(report.activity), o_(options) {}

  void run() {
    if (!find_range()) return;
    if (a_.progress.size() > 1) timeline();
    if (!a_.hosts.empty() && bins_ > 0) heat_map();
  }

 private:
  bool find_range() {
    for (const HostActivity& h : a_.hosts) bins_ = std::max(bins_, h.lines.size());
    if (a_.first_ns != kNoTime && bins_ > 0 && a_.bin_ns > 0) {
      first_ns_ = a_.first_ns;
      span_ns_ = static_cast<double>(a_.bin_ns) * static_cast<double>(bins_);
      return true;
    }
    if (a_.progress.size() < 2) return false;
    const auto [least, most] = std::minmax_element(a_.progress.begin(), a_.progress.end());
    first_ns_ = least->first;
    span_ns_ = static_cast<double>(most->first) - static_cast<double>(first_ns_);
    return span_ns_ > 0;
  }

  // Position in the time range, limited to 0..1.
  double along(TimeNs time) const {
    return std::clamp((static_cast<double>(time) - static_cast<double>(first_ns_)) / span_ns_, 0.0, 1.0);
  }

  std::string tick(double share) const {
    const std::string full =
        format_time(first_ns_ + static_cast<TimeNs>(share * span_ns_), o_.zone).substr(0, 19);
    constexpr double kDay = 86400e9;
    if (span_ns_ > 2 * kDay) return full.substr(5, 11);
    return span_ns_ > 1200e9 ? full.substr(11, 5) : full.substr(11);
  }

  void axis() {
    html_.element("div", "side", o_.zone_name).raw("<svg class=\"axis\" aria-hidden=\"true\">");
    for (const int quarter : {0, 1, 2, 3, 4}) {
      const char* anchor = quarter == 0 ? "start" : quarter == 4 ? "end" : "middle";
      html_.raw(fmt::format("<text{} x=\"{}%\" y=\"14\" text-anchor=\"{}\">",
                            quarter % 2 ? " class=\"half\"" : "", quarter * 25, anchor));
      html_.text(tick(quarter / 4.0)).raw("</text>");
    }
    html_.raw("</svg>\n");
  }

  void timeline() {
    html_.open("section").element("h2", "", "Progress");
    const auto by_iteration = [](const auto& x, const auto& y) { return x.second < y.second; };
    const auto [least, most] = std::minmax_element(a_.progress.begin(), a_.progress.end(), by_iteration);
    html_.open("div", "chart");
    html_.open("div", "side")
        .text(fmt::format("iteration {} to {}", least->second, most->second))
        .close("div");
    html_.raw("<svg class=\"plot\" role=\"img\"><title>Iterations over time</title>");
    html_.raw(
        "<rect width=\"100%\" height=\"100%\"/><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\" ");
    html_.raw("y=\"18\" width=\"100%\" height=\"118\"><polyline class=\"progress\" points=\"");
    const double low = static_cast<double>(least->second);
    const double range = std::max(1.0, static_cast<double>(most->second) - low);
    for (const auto& [time, iteration] : a_.progress)
      html_.raw(fmt::format("{:.1f},{:.1f} ", 1000 * along(time),
                            98 - 96 * (static_cast<double>(iteration) - low) / range));
    html_.raw("\"/></svg>\n");
    rug();
    marks();
    html_.raw("</svg>\n");
    axis();
    html_.close("div");
    html_.raw("<div class=\"key\"><span>dashed and full lines: diagnoses (full: the verdict)</span><span>");
    html_.raw(
        "<svg><rect class=\"x1\" width=\"3\" height=\"12\"/></svg>indicating messages begin</span></div>\n");
    html_.close("section");
  }

  // Marks the start of indicating messages and the quoted evidence.
  void rug() {
    size_t drawn = 0;
    const auto draw = [&](TimeNs time) {
      if (time == kNoTime || drawn++ >= kRugMax) return;
      html_.raw(fmt::format("<line class=\"rug\" x1=\"{0:.2f}%\" x2=\"{0:.2f}%\" y1=\"140\" y2=\"150\"/>",
                            100 * along(time)));
    };
    for (const Diagnosis& d : r_.diagnoses)
      for (const Evidence& e : d.evidence) draw(e.time_ns);
    for (const Indicating& x : r_.indicating) draw(x.first_ns);
  }

  void marks() {
    const Diagnosis* best = leading(r_);
    size_t drawn = 0;
    for (const Diagnosis& d : r_.diagnoses) {
      if (d.time_ns == kNoTime || drawn >= kMarksMax) continue;
      const char* kind = &d == best && r_.verdict ? " alarm" : "";
      const double x = 100 * along(d.time_ns);
      html_.raw(fmt::format(
          "<line class=\"when{0}\" x1=\"{1:.2f}%\" x2=\"{1:.2f}%\" y1=\"0\" y2=\"150\"><title>", kind, x));
      html_.text(title_of(d)).raw("</title></line>");
      // Labels of diagnoses that are close in time are stacked.
      html_.raw(fmt::format("<text class=\"{}\" x=\"{:.2f}%\" y=\"{}\" dx=\"{}\" text-anchor=\"{}\">",
                            *kind ? "alarm" : "", x, 13 + 13 * drawn, x > 85 ? -5 : 5,
                            x > 85 ? "end" : "start"));
      html_.text(d.id).raw("</text>\n");
      ++drawn;
    }
  }

  struct Row {
    const HostActivity* host = nullptr;
    double suspicion = -1;  // below 0: no suspect
  };

  // Chooses suspects, then hosts with the most indicating lines, then an even sample by name.
  std::vector<Row> choose_rows(size_t& suspects) const {
    std::unordered_map<std::string_view, size_t> by_name;
    for (size_t i = 0; i < a_.hosts.size(); ++i) by_name.emplace(a_.hosts[i].host, i);
    std::vector<Row> rows;
    std::vector<bool> taken(a_.hosts.size(), false);
    const auto take = [&](const std::vector<Suspect>& list) {
      for (const Suspect& s : list) {
        const auto at = s.host ? by_name.find(*s.host) : by_name.end();
        if (at == by_name.end() || taken[at->second] || rows.size() >= kSuspectRowsMax) continue;
        taken[at->second] = true;
        rows.push_back({&a_.hosts[at->second], s.score});
      }
    };
    if (const Diagnosis* best = leading(r_)) take(best->hosts);
    take(r_.suspects);
    for (const Diagnosis& d : r_.diagnoses) take(d.hosts);
    suspects = rows.size();
    for (const size_t i : choose_others(taken, kChartRows - rows.size())) rows.push_back({&a_.hosts[i], -1});
    return rows;
  }

  std::vector<size_t> choose_others(const std::vector<bool>& taken, size_t room) const {
    std::vector<size_t> rest;
    for (size_t i = 0; i < taken.size(); ++i)
      if (!taken[i]) rest.push_back(i);
    if (rest.size() <= room) return rest;
    const auto marked = [&](size_t i) {
      uint64_t sum = 0;
      for (const uint32_t n : a_.hosts[i].indicating) sum += n;
      return sum;
    };
    std::vector<std::pair<uint64_t, size_t>> most;
    for (const size_t i : rest) most.emplace_back(marked(i), i);
    std::stable_sort(most.begin(), most.end(),
                     [](const auto& x, const auto& y) { return x.first > y.first; });
    std::vector<size_t> chosen;
    for (size_t k = 0; k < room / 2; ++k)
      if (most[k].first > 0) chosen.push_back(most[k].second);
    std::sort(chosen.begin(), chosen.end());
    std::erase_if(rest, [&](size_t i) { return std::binary_search(chosen.begin(), chosen.end(), i); });
    const size_t sample = room - chosen.size();
    for (size_t k = 0; k < sample; ++k) chosen.push_back(rest[k * rest.size() / sample]);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  void heat_map() {
    size_t suspects = 0;
    const std::vector<Row> rows = choose_rows(suspects);
    html_.open("section").element("h2", "", "What each host wrote");
    html_.open("div", "chart");
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i == suspects && suspects > 0) html_.raw("<div class=\"rest\"></div>");
      heat_row(rows[i]);
    }
    axis();
    html_.close("div");
    key();
    if (rows.size() < a_.hosts.size()) {
      const size_t left_out = a_.hosts.size() - rows.size();
      html_.element(
          "p", "soft",
          fmt::format("{} of {} left out; shown are the suspects, hosts with the most indicating lines "
                      "and a sample of the others.",
                      left_out, counted(a_.hosts.size(), "host")));
    }
    html_.close("section");
  }

  // Median number of lines in the host's non-empty bins, so that a storm does not become the norm.
  static double usual(const HostActivity& h) {
    std::vector<uint32_t> some;
    for (const uint32_t n : h.lines)
      if (n) some.push_back(n);
    if (some.empty()) return 1;
    const auto middle = some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2);
    std::nth_element(some.begin(), middle, some.end());
    return *middle;
  }

  static size_t level(double lines, double usual) {
    constexpr std::array<double, 4> kSteps{0.25, 0.75, 1.5, 4};
    if (lines <= 0) return 0;
    const double share = lines / usual;
    return 1 + static_cast<size_t>(std::upper_bound(kSteps.begin(), kSteps.end(), share) - kSteps.begin());
  }

  void heat_row(const Row& row) {
    const HostActivity& h = *row.host;
    html_.raw(row.suspicion < 0 ? "<div class=\"name\" title=\"" : "<div class=\"name hot\" title=\"");
    html_.text(h.host).raw("\">").text(h.host).close("div");
    html_.raw(fmt::format(
        "<svg class=\"row\" viewBox=\"0 0 {} 1\" preserveAspectRatio=\"none\" role=\"img\"><title>", bins_));
    html_.text(row_title(h, row.suspicion)).raw("</title>");
    // Levels 1 to 5, then few and many indicating lines; one path each keeps the file small.
    std::array<std::string, 8> paths;
    const double own = usual(h);
    size_t start = 0, kind = kind_of(h, 0, own);
    for (size_t i = 1; i <= bins_; ++i) {
      const size_t next = i < bins_ ? kind_of(h, i, own) : paths.size();
      if (next == kind) continue;
      if (kind > 0) paths[kind] += fmt::format("M{} 0h{}v1h-{}z", start, i - start, i - start);
      start = i;
      kind = next;
    }
    html_.raw(fmt::format("<path class=\"l0\" d=\"M0 0h{0}v1h-{0}z\"/>", bins_));
    for (size_t k = 1; k < paths.size(); ++k) {
      if (paths[k].empty()) continue;
      html_.raw(
          fmt::format("<path class=\"{}{}\" d=\"{}\"/>", k < 6 ? 'l' : 'x', k < 6 ? k : k - 5, paths[k]));
    }
    if (const Diagnosis* best = leading(r_); best && r_.verdict && best->time_ns != kNoTime) {
      html_.raw(fmt::format("<path class=\"now\" d=\"M{:.2f} 0v1\"/>",
                            along(best->time_ns) * static_cast<double>(bins_)));
    }
    html_.raw("</svg>\n");
  }

  static size_t kind_of(const HostActivity& h, size_t bin, double own) {
    const uint32_t lines = bin < h.lines.size() ? h.lines[bin] : 0;
    const uint32_t indicating = bin < h.indicating.size() ? h.indicating[bin] : 0;
    if (indicating == 0) return level(lines, own);
    return indicating * 10.0 >= lines ? 7 : 6;  // a tenth of the host's lines in a bin counts as many
  }

  std::string row_title(const HostActivity& h, double suspicion) const {
    std::string out =
        fmt::format("{}: usually {:.0f} lines in {}", h.host, usual(h), format_duration(a_.bin_ns));
    uint64_t indicating = 0;
    for (const uint32_t n : h.indicating) indicating += n;
    if (indicating) out += fmt::format(", {} indicating", counted(indicating, "line"));
    return suspicion < 0 ? out : out + fmt::format(", suspected with {:.2f}", suspicion);
  }

  void key() {
    constexpr std::array<std::pair<const char*, const char*>, 6> kKey{{{"l0", "silent"},
                                                                       {"l1", "far below its usual"},
                                                                       {"l3", "its usual"},
                                                                       {"l5", "far above"},
                                                                       {"x1", "some indicating lines"},
                                                                       {"x2", "many"}}};
    html_.raw("<div class=\"key\">");
    for (const auto& [kind, meaning] : kKey) {
      html_.raw(fmt::format("<span><svg><rect class=\"{}\" width=\"14\" height=\"12\"/></svg>", kind));
      html_.text(meaning).raw("</span>");
    }
    html_.raw("</div>\n");
  }

  Html& html_;
  const Report& r_;
  const Activity& a_;
  const RenderOptions& o_;
  TimeNs first_ns_ = 0;
  double span_ns_ = 0;
  size_t bins_ = 0;
};

}  // namespace

void draw_charts(Html& html, const Report& report, const RenderOptions& options) {
  Charts(html, report, options).run();
}

}  // namespace culprit::cli
