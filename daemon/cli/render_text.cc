#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/narrative.h"
#include "cli/render.h"
#include "cli/text_steps.h"
#include "model/restart.h"

namespace culprit::cli {
namespace {

constexpr size_t kWidthMin = 40, kWidthMax = 160;  // longer lines are hard to read
constexpr size_t kTextColumnsMin = 20;             // narrower columns of text are hard to read
constexpr size_t kTextRecordLines = 6;             // lines shown of a traceback
constexpr size_t kQuoteRows = 2;                   // rows of one log line
constexpr size_t kOtherDiagnoses = 4, kFewLines = 5;

// The output from top to bottom. All texts pass through to_terminal here, so no caller can forget it.
class Page {
 public:
  explicit Page(const RenderOptions& options)
      : color_(options.color), width_(std::clamp(options.width, kWidthMin, kWidthMax)) {}

  size_t width() const { return width_; }
  std::string finish() { return std::move(out_); }

  void section(std::string_view title) {
    out_ += '\n';
    out_ += inked(title, Ink::kBold, color_) + "\n";
  }

  // Wraps; further lines are indented to the text after `mark`.
  void item(std::string_view mark, std::string_view text, Ink ink = Ink::kPlain) {
    const size_t indent = columns_of(mark);
    const std::vector<std::string> lines = wrap(safe(text), room(indent));
    for (size_t i = 0; i < lines.size(); ++i) {
      out_ += i ? std::string(indent, ' ') : std::string(mark);
      out_ += inked(lines[i], ink, color_) + "\n";
    }
  }

  // A log line, cut so that its indicating part is visible. Returns the number of rows.
  size_t quote(size_t indent, std::string_view line, std::span<const Indicating> indicating) {
    const std::string text = safe(line);
    const size_t columns = room(indent);
    // Reserve: breaks at spaces leave part of each row empty.
    const std::string fitted =
        shorten_around(text, focus_of(text, indicating), kQuoteRows * columns - columns / 5);
    const std::vector<std::string> rows = wrap_hard(fitted, columns);
    for (const std::string& row : rows) out_ += std::string(indent, ' ') + row + "\n";
    return rows.size();
  }

  // One row, cut to fit; `head` is plain and not cut. If the text does not fit, it goes on the next row.
  void row(std::string_view head, std::string_view text, Ink ink = Ink::kPlain) {
    std::string safe_head = safe(head);
    const size_t used = columns_of(safe_head);
    const bool below = used + kTextColumnsMin > width_;
    if (below || text.empty()) safe_head.erase(safe_head.find_last_not_of(' ') + 1);
    out_ += safe_head;
    if (!below) out_ += inked(shorten_around(safe(text), 0, width_ - used), ink, color_);
    out_ += '\n';
    if (below && !text.empty()) item("        ", text, ink);
  }

  // One row of any length, so that a command can be copied.
  void whole(std::string_view mark, std::string_view text) {
    out_ += inked(mark, Ink::kDim, color_) + safe(text) + "\n";
  }

  void note(std::string_view text) { item("  ", text, Ink::kDim); }

 private:
  static std::string safe(std::string_view text) {
    std::string out = to_terminal(text);
    std::replace(out.begin(), out.end(), '\t', ' ');  // a tab's width depends on its column
    return out;
  }
  size_t room(size_t indent) const { return std::max(width_, indent + kTextColumnsMin) - indent; }

  bool color_;
  size_t width_;
  std::string out_;
};

class TextReport {
 public:
  TextReport(const Report& report, const RenderOptions& options) : r_(report), o_(options), page_(options) {}

  std::string run() {
    const Outcome result = outcome(r_);
    page_.item("", headline(r_, o_),
               result == Outcome::kVerdict                                  ? Ink::kAlarm
               : result == Outcome::kHealthy || result == Outcome::kNoticed ? Ink::kPlain
                                                                            : Ink::kCaution);
    if (!o_.origin.empty()) page_.item("  ", o_.origin, Ink::kCaution);
    if (!o_.scheduler.empty()) page_.item("  ", o_.scheduler, Ink::kPlain);
    if (r_.interrupted) page_.item("  ", interruption(r_), Ink::kCaution);
    if (o_.settling) page_.item("  ", kSettling, Ink::kCaution);
    notes();
    if (result == Outcome::kHealthy || result == Outcome::kEmpty || result == Outcome::kUnknown) {
      missing("What would tell more");
      problems();
      if (result == Outcome::kUnknown) footer();
      return page_.finish();
    }
    if (const Diagnosis* d = leading(r_)) lead(*d);
    if (result == Outcome::kInconclusive) missing("What would tell more");
    suspects();
    other_diagnoses();
    live_findings();
    indicating();
    iterations();
    if (result != Outcome::kInconclusive) missing("What is missing");
    problems();
    footer();
    return page_.finish();
  }

 private:
  void lead(const Diagnosis& d) {
    const std::string by = reported_by(d);
    const std::string what = classified(d, o_);
    if (!what.empty()) page_.item("  ", what);
    if (!by.empty()) page_.note(by);
    const NumericFault* fault = fault_of(r_, d);
    if (fault) page_.item("  ", sentence(*fault));
    // Precedes the reasons: the first ten lines must contain the action.
    what_to_do(d);
    if (!d.why.empty()) {
      page_.section("Why");
      for (const std::string& why : d.why) page_.item("  - ", why);
    }
    evidence(d);
  }

  void what_to_do(const Diagnosis& d) {
    const auto [action, remedy] = advice(d);
    const bool states_restart = !d.restart.why.empty();
    if (action.empty() && remedy.empty() && !states_restart) return;
    page_.section("What to do");
    if (!action.empty()) page_.item("  ", action, Ink::kBold);
    if (!remedy.empty()) page_.item("  ", remedy);
    if (states_restart) page_.item("  ", "Run again: " + sentence(d.restart));
  }

  void evidence(const Diagnosis& d) {
    if (d.evidence.empty()) return;
    page_.section("Evidence");
    const std::vector<EvidenceGroup> groups = group_evidence(d.evidence);
    size_t rows = 0, shown = 0;
    for (const EvidenceGroup& group : groups) {
      if (shown > 0 && rows >= o_.lines_max) break;
      rows += evidence_group(group);
      ++shown;
    }
    more(groups.size() - shown, "line");
    if (const std::string look = look_command(d, o_); !look.empty()) page_.whole("  Read on: ", look);
  }

  size_t evidence_group(const EvidenceGroup& group) {
    const Evidence& e = *group.first;
    std::string head = address(e);
    if (const std::string time = clock_time(e.time_ns, r_.job.last_ns, o_); !time.empty())
      head += "  " + time;
    if (e.host) head += "  " + *e.host;
    if (e.rank) head += fmt::format("  rank {}", *e.rank);
    if (e.uid) head += "  " + to_string(*e.uid);
    page_.item("  ", head, Ink::kAccent);
    size_t rows = 0;
    for (const std::string_view line : record_lines(e.text, kTextRecordLines))
      rows += page_.quote(4, line, r_.indicating);
    if (!group.others.empty()) {
      page_.item("    ",
                 fmt::format("the same at {}{}", address(*group.others[0]),
                             group.others.size() == 1
                                 ? ""
                                 : fmt::format(" and {}", counted(group.others.size() - 1, "more place"))),
                 Ink::kDim);
    }
    return rows;
  }

  void suspects() {
    if (r_.suspects.empty()) return;
    page_.section("Suspects");
    const size_t shown = std::min(r_.suspects.size(), o_.lines_max);
    size_t widest = 0;
    for (size_t i = 0; i < shown; ++i) widest = std::max(widest, columns_of(place(r_.suspects[i])));
    widest = std::min(widest, page_.width() / 2);
    for (size_t i = 0; i < shown; ++i) {
      const Suspect& s = r_.suspects[i];
      const std::string reason = s.why.empty() ? "" : s.why[0];
      page_.row(fmt::format("  {:.2f}  {}  ", s.score, padded(place(s), widest)), reason, Ink::kDim);
    }
    more(r_.suspects.size() - shown, "suspect");
  }

  void other_diagnoses() {
    const Diagnosis* best = leading(r_);
    if (r_.diagnoses.size() < 2) return;
    page_.section("Other diagnoses");
    size_t shown = 0;
    for (const Diagnosis& d : r_.diagnoses) {
      if (&d == best || shown >= kOtherDiagnoses) continue;
      ++shown;
      std::string line = title_of(d);
      if (!d.hosts.empty() && d.title.find(d.hosts[0].host.value_or("\n")) == std::string::npos)
        line += " on " + places(d.hosts, 3);
      if (const std::string time = clock_time(d.time_ns, r_.job.last_ns, o_); !time.empty())
        line += ", " + time;
      if (!d.id.empty()) line += fmt::format(" ({})", d.id);
      page_.item(fmt::format("  {:>4}  ", percent(d.confidence)), line);
      std::string basis = d.why.empty() ? "" : d.why[0];
      if (!d.evidence.empty())
        basis += fmt::format("{}{}", basis.empty() ? "" : "; ", address(d.evidence[0]));
      if (!basis.empty()) page_.item("        ", basis, Ink::kDim);
    }
    more(r_.diagnoses.size() - 1 - shown, "diagnosis");
  }

  // Periods of slow steps, numeric faults and hangs: one sentence each, and the first suspect's behaviour.
  void live_findings() {
    if (r_.hang) {
      page_.section("Hang");
      page_.item("  ", sentence(*r_.hang, o_));
      hang_suspects();
      for (size_t i = 0; i < std::min(r_.hang->clusters.size(), kFewLines); ++i) {
        const StackCluster& c = r_.hang->clusters[i];
        page_.item("  - ",
                   fmt::format("{}{}: {}", c.ranks.empty() ? "process" : ranks(c.ranks),
                               c.healthy ? "" : " (differs)", c.frames.empty() ? "no frames" : c.frames[0]));
      }
      more(r_.hang->clusters.size() - std::min(r_.hang->clusters.size(), kFewLines), "stack");
    }
    if (!r_.numerics.empty()) {
      page_.section("Wrong numbers");
      for (size_t i = 0; i < std::min(r_.numerics.size(), kFewLines); ++i) {
        page_.item("  - ", sentence(r_.numerics[i]));
        // Skips the fault that the first lines already report.
        const bool reported = leading(r_) && fault_of(r_, *leading(r_)) == &r_.numerics[i];
        if (!reported && !r_.numerics[i].mitigation.empty())
          page_.item("    ", r_.numerics[i].mitigation, Ink::kDim);
      }
      more(r_.numerics.size() - std::min(r_.numerics.size(), kFewLines), "fault");
    }
    const std::vector<TextRow> rows = step_rows(r_, page_.width());
    if (rows.empty()) return;
    page_.section(r_.irregularities.empty() ? "Steps" : "Slow steps");
    for (const TextRow& row : rows) page_.row("", row.text, row.ink);
    hidden_ = hidden_ || r_.comm.steps.size() > 1;
  }

  // Only without a diagnosis: its reasons already list the suspects.
  void hang_suspects() {
    if (leading(r_)) return;
    const std::vector<Suspect>& all = r_.hang->suspects;
    for (size_t i = 0; i < std::min(all.size(), kFewLines); ++i)
      if (!all[i].why.empty()) page_.item("  - ", all[i].why[0]);
    more(all.size() - std::min(all.size(), kFewLines), "suspect");
  }

  void indicating() {
    if (r_.indicating.empty()) return;
    page_.section("Messages that indicate the failure");
    const size_t shown = std::min(r_.indicating.size(), o_.lines_max);
    for (size_t i = 0; i < shown; ++i) {
      const Indicating& x = r_.indicating[i];
      page_.row(fmt::format("  {:.2f}  ", x.score), x.template_text);
      page_.item("        ", where_sentence(x), Ink::kDim);
    }
    more(r_.indicating.size() - shown, "template");
  }

  // "37 lines on 20 hosts, first runs/a.log:12; cross-job, spatial".
  static std::string where_sentence(const Indicating& x) {
    std::string out = grouped(x.count) + (x.count == 1 ? " line" : " lines");
    std::set<std::string_view> hosts;
    for (const LinePlace& p : x.where)
      if (p.host) hosts.insert(*p.host);
    if (hosts.size() == 1)
      out += fmt::format(" on {}", *hosts.begin());
    else if (hosts.size() > 1)
      out += fmt::format(" on {} hosts", hosts.size());
    if (!x.where.empty()) {
      out += fmt::format(", {}{}:{}", x.count == 1 ? "" : "one at ", x.where[0].file, x.where[0].line);
    }
    return x.why.empty() ? out : out + fmt::format("; {}", fmt::join(x.why, ", "));
  }

  void iterations() {
    if (r_.iterations.empty()) return;
    page_.section("Unusual steps");
    std::string line;
    const auto worst = most_irregular(r_, 2 * o_.lines_max);
    for (const IterationScore* x : worst)
      line += fmt::format("{}{} ({:.2f})", line.empty() ? "" : ", ", x->iteration, x->score);
    page_.item("  ", line);
    more(r_.iterations.size() - worst.size(), "iteration");
  }

  void notes() {
    for (const std::string& sentence : r_.notes) page_.item("Note: ", sentence);
  }

  void missing(std::string_view title) {
    if (r_.missing.empty()) return;
    page_.section(title);
    for (const std::string& sentence : r_.missing) page_.item("  - ", sentence);
  }

  void problems() {
    const std::vector<const Problem*> problems = unread(r_);
    if (problems.empty()) return;
    page_.section("Not read in full");
    const size_t shown = std::min(problems.size(), kFewLines);
    for (size_t i = 0; i < shown; ++i) {
      const Problem& p = *problems[i];
      const std::string at = p.offset ? fmt::format(" (byte {})", *p.offset) : "";
      page_.item("  - ", p.file.empty() ? p.what : fmt::format("{}{}: {}", p.file, at, p.what));
    }
    more(problems.size() - shown, "file");
  }

  void footer() {
    page_.section("Read");
    std::string line = job_size(r_.job);
    if (const std::string range = job_range(r_.job, o_); !range.empty()) line += "; " + range;
    page_.note(line);
    if (r_.job.unplaced_lines)
      page_.note(fmt::format("{} of these lines belong to no known host", grouped(r_.job.unplaced_lines)));
    std::vector<std::string> cut;
    for (const auto& [list, left_out] : r_.cut) cut.push_back(fmt::format("{} of {}", left_out, list));
    if (!cut.empty()) page_.note(fmt::format("left out: {}", fmt::join(cut, ", ")));
    if (hidden_) page_.note("all of it: --format json or --format html");
  }

  void more(size_t left_out, std::string_view noun) {
    if (!left_out) return;
    hidden_ = true;
    page_.note(fmt::format("and {} more {}", left_out, plural(noun, left_out)));
  }

  static std::string plural(std::string_view noun, size_t n) {
    if (n == 1) return std::string(noun);
    return noun == "diagnosis" ? "diagnoses" : std::string(noun) + "s";
  }

  const Report& r_;
  const RenderOptions& o_;
  Page page_;
  bool hidden_ = false;
};

}  // namespace

std::string render_text(const Report& report, const RenderOptions& options) {
  return TextReport(report, options).run();
}

}  // namespace culprit::cli
