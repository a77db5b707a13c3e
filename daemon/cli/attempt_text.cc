#include "cli/attempt_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/remote.h"

namespace culprit::cli {
namespace {

using app::Attempt;

constexpr const char* kNoCause = "nothing in its output says why";
constexpr size_t kWithoutColumns = 24, kDecisionColumns = 90, kIndent = 9;
constexpr size_t kReasonBytes = 300;

// "GPU 5 fell off the bus, 92 %"; empty: no cause is known.
std::string cause_of(const Attempt& a) {
  if (a.headline.empty()) return "";
  return a.headline + (a.confidence ? fmt::format(", {:.0f} %", 100 * *a.confidence) : std::string());
}

std::string shown(std::optional<int64_t> iteration) { return iteration ? std::to_string(*iteration) : "-"; }

std::string outcome(const Attempt& a) {
  if (a.status == 0) return "ended well";
  const std::string cause = cause_of(a);
  return cause.empty() ? kNoCause : cause;
}

// A time of the day; with the date if `dated`.
std::string moment(TimeNs time, const Zone& zone, bool dated) {
  const std::string whole = format_time(time, zone);  // "2026-11-21 02:12:09.123"
  return whole.size() < 19 ? whole : dated ? whole.substr(5, 14) : whole.substr(11, 8);
}

bool several_days(const app::AttemptHistory& history, const Zone& zone) {
  return std::ranges::any_of(history.attempts, [&](const Attempt& a) {
    return format_time(a.begin_ns, zone).substr(0, 10) !=
           format_time(history.attempts[0].begin_ns, zone).substr(0, 10);
  });
}

std::string decision_of(const Attempt& a) {
  std::string out = a.resume.empty() ? "" : fmt::format("resumed {}; ", a.resume);
  if (a.status != 0 && !a.decision.why.empty())
    out += a.decision.again ? "run again " + a.decision.why : a.decision.why;
  return out.ends_with("; ") ? out.substr(0, out.size() - 2) : out;
}

}  // namespace

std::string announcement(const Attempt& last, const Attempt& next, uint32_t of, std::optional<int64_t> step) {
  std::string line = fmt::format("attempt {} of {}: {}", next.number, of, last.decision.why);
  if (const std::string cause = cause_of(last); !cause.empty()) line += fmt::format(" ({})", cause);
  if (!next.resume.empty())
    line += step ? fmt::format(", from iteration {}", *step) : ", from " + next.resume;
  return line + fmt::format("; {} lost", format_duration(last.lost_ns));
}

std::string left_out_sentence(const std::vector<app::LeftOutCheckpoint>& left_out, const std::string& resume,
                              std::optional<int64_t> step) {
  if (left_out.empty()) return "";
  const app::LeftOutCheckpoint& newest = left_out.front();
  const auto named = [](const std::string& path, std::optional<int64_t> n) {
    return n ? fmt::format("iteration {}", *n) : path;
  };
  std::string line = fmt::format("{} is {} ({})", named(newest.path, newest.step),
                                 checkpoint::to_string(newest.state), shorten(newest.reason, kReasonBytes));
  if (left_out.size() > 1)
    line += fmt::format(", and so {} older",
                        left_out.size() == 2 ? "is 1" : fmt::format("are {}", left_out.size() - 1));
  return line + (resume.empty() ? ": no whole checkpoint is there to begin from"
                                : ": resumes from " + named(resume, step));
}

std::string stop_sentence(const Attempt& last) {
  if (last.decision.again || last.decision.why.empty()) return "";
  const std::string cause = cause_of(last);
  return cause.empty() ? last.decision.why : fmt::format("{}; cause: {}", last.decision.why, cause);
}

std::string attempt_table(const app::AttemptHistory& history, const AttemptTextOptions& options) {
  const bool dated = several_days(history, options.zone);
  const bool without = !app::excluded(history, history.attempts.size()).empty();
  std::vector<std::vector<std::string>> rows = {{"attempt", "began", "lasted", "lost", "exit", "steps"}};
  if (without) rows[0].emplace_back("without");
  rows[0].emplace_back("cause");
  for (size_t i = 0; i < history.attempts.size(); ++i) {
    const Attempt& a = history.attempts[i];
    std::vector<std::string>& row = rows.emplace_back(
        std::vector{std::to_string(a.number), moment(a.begin_ns, options.zone, dated),
                    format_duration(a.end_ns - a.begin_ns), a.status == 0 ? "-" : format_duration(a.lost_ns),
                    std::to_string(a.status), fmt::format("{} to {}", shown(a.from), shown(a.to))});
    const std::string names = to_terminal(fmt::format("{}", fmt::join(app::excluded(history, i), ", ")));
    if (without) row.push_back(names.empty() ? "-" : shorten_around(names, 0, kWithoutColumns));
    row.push_back(to_terminal(outcome(a)));
  }
  const size_t cut = rows[0].size() - 1;
  const std::string text = table(std::move(rows), false, cut, options.width);
  if (!options.decisions) return text;
  const std::vector<std::string_view> lines = split(text, '\n');
  std::string out;
  for (size_t i = 0; i < lines.size() && !lines[i].empty(); ++i) {
    out.append(lines[i]).append("\n");
    if (i == 0) continue;
    for (const std::string& line : wrap(to_terminal(decision_of(history.attempts[i - 1])), kDecisionColumns))
      if (!line.empty()) out += std::string(kIndent, ' ') + line + "\n";
  }
  return out;
}

std::string attempt_totals(const app::AttemptHistory& history) {
  std::string out = fmt::format("{}, {} lost", counted(history.attempts.size(), "attempt"),
                                format_duration(app::lost_ns(history)));
  const auto names = app::excluded(history, history.attempts.size());
  return names.empty() ? out : out + fmt::format(", run without {}", fmt::join(names, ", "));
}

}  // namespace culprit::cli
