#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "cli/html.h"
#include "cli/html_charts.h"
#include "cli/html_numerics.h"
#include "cli/html_steps.h"
#include "cli/html_style.h"
#include "cli/narrative.h"
#include "cli/render.h"
#include "cli/stack_view.h"

namespace culprit::cli {
namespace {

// Limits that keep the page fast in a browser; the JSON form has everything.
constexpr size_t kDiagnosesMax = 20, kSuspectsMax = 50, kTemplatesMax = 100, kPlacesMax = 20, kRowsMax = 100;
constexpr size_t kEvidenceMax = 20, kWhyMax = 8, kRecordLines = 12;

class HtmlReport {
 public:
  HtmlReport(const Report& report, const RenderOptions& options) : r_(report), o_(options) {}

  std::string run() {
    head();
    verdict();
    if (outcome(r_) == Outcome::kInconclusive) missing("What would tell more");
    if (const Diagnosis* d = leading(r_)) {
      h_.open("section").element("h2", "", "Evidence");
      evidence(*d);
      h_.close("section");
    }
    hang();
    draw_charts(h_, r_, o_);
    suspects();
    other_diagnoses();
    numerics();
    draw_numerics(h_, r_);
    draw_steps(h_, r_);
    indicating();
    iterations();
    if (outcome(r_) != Outcome::kInconclusive) missing("What is missing");
    problems();
    footer();
    h_.raw("</main></body></html>\n");
    return h_.finish();
  }

 private:
  void head() {
    h_.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=");
    h_.raw("\"Content-Security-Policy\" content=\"default-src 'none'; style-src '").raw(kStyleHash);
    h_.raw("'; base-uri 'none'; form-action 'none'\">\n");
    h_.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    h_.raw("<meta name=\"referrer\" content=\"no-referrer\">\n");
    h_.element("title", "", "Culprit: " + headline(r_, o_));
    h_.raw("<style>").raw(kStyle).raw("</style></head>\n<body><main>\n");
  }

  void verdict() {
    const Outcome result = outcome(r_);
    h_.open("header", result == Outcome::kVerdict ? "alarm" : result == Outcome::kHealthy ? "" : "caution");
    h_.element("h1", "", headline(r_, o_));
    if (r_.interrupted) h_.element("p", "stopped", interruption(r_));
    if (o_.settling) h_.element("p", "stopped", kSettling);
    if (const Diagnosis* d = leading(r_)) {
      h_.element("p", "", classified(*d, o_));
      h_.element("p", "soft", reported_by(*d));
      if (const NumericFault* fault = fault_of(r_, *d)) h_.element("p", "", sentence(*fault));
      reasons(d->why);
      to_do(*d);
    }
    h_.close("header");
  }

  void reasons(const std::vector<std::string>& why) {
    if (why.empty()) return;
    h_.raw("<ul>");
    for (size_t i = 0; i < std::min(why.size(), kWhyMax); ++i) h_.element("li", "", why[i]);
    h_.raw("</ul>\n");
    more(why.size(), kWhyMax);
  }

  void to_do(const Diagnosis& d) {
    const auto [action, remedy] = advice(d);
    if (!action.empty()) h_.element("p", "do", action);
    if (!remedy.empty()) h_.element("p", "", remedy);
  }

  void evidence(const Diagnosis& d) {
    if (d.evidence.empty()) h_.element("p", "soft", "No log line: this comes from timing or numbers.");
    const std::vector<EvidenceGroup> groups = group_evidence(d.evidence);
    for (size_t i = 0; i < std::min(groups.size(), kEvidenceMax); ++i) {
      const Evidence& e = *groups[i].first;
      h_.open("div", "at").text(address(e));
      h_.raw(" <span class=\"soft\">").text(origin(e)).raw("</span>").close("div");
      h_.open("pre");
      bool first = true;
      for (const std::string_view line : record_lines(e.text, kRecordLines)) {
        if (!std::exchange(first, false)) h_.raw("\n");
        h_.text(line);
      }
      h_.close("pre");
      also_at(groups[i].others);
    }
    more(groups.size(), kEvidenceMax);
    if (const std::string look = look_command(d, o_); !look.empty())
      h_.open("p", "soft").text("Read on: ").element("code", "", look).close("p");
  }

  std::string origin(const Evidence& e) const {
    std::vector<std::string> parts;
    if (e.time_ns != kNoTime) parts.push_back(clock_time(e.time_ns, r_.job.last_ns, o_));
    if (e.host) parts.push_back(*e.host);
    if (e.rank) parts.push_back(fmt::format("rank {}", *e.rank));
    if (e.uid) parts.push_back(fmt::format("uid {}", *e.uid));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void also_at(const std::vector<const Evidence*>& others) {
    if (others.empty()) return;
    h_.open("details").open("summary", "soft");
    h_.text(fmt::format("the same in {}", counted(others.size(), "more place"))).close("summary");
    h_.raw("<ul class=\"mono\">");
    for (const Evidence* e : others) h_.element("li", "", address(*e));
    h_.raw("</ul>").close("details");
  }

  void table(std::initializer_list<const char*> columns) {
    h_.raw("<table><thead><tr>");
    for (const char* name : columns) h_.element("th", "", name);
    h_.raw("</tr></thead><tbody>\n");
  }
  void end_table() { h_.raw("</tbody></table>\n"); }

  // `is` labels the value if a narrow screen hides the table's head.
  void number(std::string_view is, std::string_view value) {
    h_.raw("<td class=\"n\" data-is=\"").text(is).raw("\">").text(value).raw("</td>");
  }

  void suspects() {
    if (r_.suspects.empty()) return;
    h_.open("section").element("h2", "", "Suspects");
    table({"Score", "Where", "Why"});
    for (size_t i = 0; i < std::min(r_.suspects.size(), kSuspectsMax); ++i) {
      const Suspect& s = r_.suspects[i];
      h_.raw("<tr>");
      number("score", fmt::format("{:.2f}", s.score));
      h_.element("td", "", place(s)).open("td");
      for (size_t k = 0; k < std::min(s.why.size(), kWhyMax); ++k) h_.element("div", "", s.why[k]);
      h_.raw("</td></tr>\n");
    }
    end_table();
    more(r_.suspects.size(), kSuspectsMax);
    h_.close("section");
  }

  void other_diagnoses() {
    if (r_.diagnoses.size() < 2) return;
    const Diagnosis* best = leading(r_);
    h_.open("section").element("h2", "", "Other diagnoses");
    size_t shown = 0;
    for (const Diagnosis& d : r_.diagnoses) {
      if (&d == best || shown >= kDiagnosesMax) continue;
      ++shown;
      h_.open("details").open("summary");
      h_.text(fmt::format("{}  {} ({})", d.id, title_of(d), percent(d.confidence))).close("summary");
      h_.element("p", "soft", classified(d, o_));
      if (!d.hosts.empty()) h_.element("p", "", places(d.hosts, kWhyMax));
      reasons(d.why);
      to_do(d);
      evidence(d);
      h_.close("details");
    }
    more(r_.diagnoses.size() - 1, kDiagnosesMax);
    h_.close("section");
  }

  void hang() {
    if (!r_.hang) return;
    h_.open("section").element("h2", "", "Hang").element("p", "", sentence(*r_.hang, o_));
    scene(r_.hang->scene);
    if (r_.hang->clusters.empty()) {
      h_.close("section");
      return;
    }
    draw_stacks(h_, r_.hang->clusters);
    table({"Ranks", "Innermost frames", ""});
    for (size_t i = 0; i < std::min(r_.hang->clusters.size(), kRowsMax); ++i) {
      const StackCluster& c = r_.hang->clusters[i];
      h_.raw("<tr>").element("td", "", ranks(c.ranks)).raw("<td class=\"mono\">");
      for (size_t k = 0; k < std::min(c.frames.size(), kWhyMax); ++k) h_.element("div", "", c.frames[k]);
      h_.raw("</td>").element("td", "", c.healthy ? "like its peers" : "differs").raw("</tr>\n");
    }
    end_table();
    more(r_.hang->clusters.size(), kRowsMax);
    h_.close("section");
  }

  // The last operation of each rank: a row for all ranks at one place.
  void scene(const std::vector<SceneRow>& rows) {
    if (rows.empty()) return;
    table({"Ranks", "Group", "Last operation", ""});
    for (size_t i = 0; i < std::min(rows.size(), kRowsMax); ++i) {
      const SceneRow& row = rows[i];
      std::string op = row.op;
      if (row.seq >= 0) op += fmt::format("{}#{}", op.empty() ? "" : " ", row.seq);
      std::string place(to_string(row.place));
      if (!row.doing.empty()) place += ": " + row.doing;
      h_.raw("<tr>").element("td", "", ranks(row.ranks)).element("td", "", row.group);
      h_.element("td", "mono", op).element("td", "", place).raw("</tr>\n");
    }
    end_table();
    more(rows.size(), kRowsMax);
  }

  void numerics() {
    if (r_.numerics.empty()) return;
    h_.open("section").element("h2", "", "Wrong numbers").raw("<ul>");
    for (size_t i = 0; i < std::min(r_.numerics.size(), kRowsMax); ++i) {
      h_.open("li").text(sentence(r_.numerics[i]));
      h_.element("div", "soft", r_.numerics[i].mitigation).close("li");
    }
    h_.raw("</ul>");
    more(r_.numerics.size(), kRowsMax);
    h_.close("section");
  }

  void indicating() {
    if (r_.indicating.empty()) return;
    h_.open("section").element("h2", "", "Messages that indicate the failure");
    table({"Score", "Template", "Lines", "Hosts", "First"});
    for (size_t i = 0; i < std::min(r_.indicating.size(), kTemplatesMax); ++i) template_row(r_.indicating[i]);
    end_table();
    more(r_.indicating.size(), kTemplatesMax);
    h_.close("section");
  }

  void template_row(const Indicating& x) {
    std::set<std::string_view> hosts;
    for (const LinePlace& p : x.where)
      if (p.host) hosts.insert(*p.host);
    h_.raw("<tr>");
    number("score", fmt::format("{:.2f}", x.score));
    h_.open("td").element("code", "", x.template_text).open("div");
    for (const std::string& why : x.why) h_.element("span", "chip", why);
    h_.close("div");
    template_places(x);
    h_.raw("</td>");
    number("lines", grouped(x.count));
    number("hosts", hosts.empty() ? "-" : grouped(hosts.size()));
    const std::string first = clock_time(x.first_ns, r_.job.last_ns, o_);
    number("first", first.empty() ? "-" : first);
    h_.raw("</tr>\n");
  }

  void template_places(const Indicating& x) {
    if (x.where.empty() && x.sample.empty()) return;
    h_.open("details").element("summary", "soft", "example and places");
    if (!x.sample.empty()) {
      h_.open("pre");
      for (const std::string_view line : record_lines(x.sample, kRecordLines)) h_.text(line).raw("\n");
      h_.close("pre");
    }
    h_.raw("<ul class=\"mono\">");
    for (size_t i = 0; i < std::min(x.where.size(), kPlacesMax); ++i) {
      const LinePlace& p = x.where[i];
      h_.element("li", "", fmt::format("{}:{}{}{}", p.file, p.line, p.host ? "  " : "", p.host.value_or("")));
    }
    h_.raw("</ul>");
    more(std::max<uint64_t>(x.count, x.where.size()), kPlacesMax);
    h_.close("details");
  }

  void iterations() {
    if (r_.iterations.empty()) return;
    h_.open("section").element("h2", "", "Unusual steps");
    table({"Iteration", "Score", "Hosts"});
    for (const IterationScore* at : most_irregular(r_, kRowsMax)) {
      const IterationScore& x = *at;
      h_.raw("<tr>");
      number("iteration", fmt::format("{}", x.iteration));
      number("score", fmt::format("{:.2f}", x.score));
      const std::span<const std::string> hosts(x.hosts.data(), std::min(x.hosts.size(), kWhyMax));
      std::string named = fmt::format("{}", fmt::join(hosts, ", "));
      if (x.hosts.size() > kWhyMax) named += fmt::format(" and {} more", x.hosts.size() - kWhyMax);
      h_.element("td", "", named).raw("</tr>\n");
    }
    end_table();
    more(r_.iterations.size(), kRowsMax);
    h_.close("section");
  }

  void missing(std::string_view title) {
    if (r_.missing.empty()) return;
    h_.open("section").element("h2", "", title).raw("<ul>");
    for (const std::string& sentence : r_.missing) h_.element("li", "", sentence);
    h_.raw("</ul>").close("section");
  }

  void problems() {
    const std::vector<const Problem*> problems = unread(r_);
    if (problems.empty()) return;
    h_.open("section").element("h2", "", "Not read in full");
    table({"File", "Byte", "What"});
    for (size_t i = 0; i < std::min(problems.size(), kRowsMax); ++i) {
      const Problem& p = *problems[i];
      h_.raw("<tr>").element("td", "mono", p.file);
      number("byte", p.offset ? grouped(*p.offset) : "-");
      h_.element("td", "", p.what).raw("</tr>\n");
    }
    end_table();
    more(problems.size(), kRowsMax);
    h_.close("section");
  }

  void footer() {
    h_.element("p", "soft", job_size(r_.job));
    h_.element("p", "soft", job_range(r_.job, o_));
    if (r_.job.unplaced_lines)
      h_.element("p", "soft", grouped(r_.job.unplaced_lines) + " of these lines belong to no known host");
    for (const auto& [list, left_out] : r_.cut)
      h_.element("p", "soft", fmt::format("{} of {} left out", left_out, list));
  }

  void more(uint64_t all, uint64_t shown) {
    if (all > shown)
      h_.element("p", "soft", fmt::format("and {} more (--format json)", grouped(all - shown)));
  }

  const Report& r_;
  const RenderOptions& o_;
  Html h_;
};

}  // namespace

std::string render_html(const Report& report, const RenderOptions& options) {
  return HtmlReport(report, options).run();
}

}  // namespace culprit::cli
