#include "cli/narrative.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/time.h"
#include "cli/step_view.h"
#include "model/finding.h"

namespace culprit::cli {
namespace {

constexpr size_t kHostsInHeadline = 3;
constexpr size_t kDate = 10;  // bytes of the date in a written time

std::string spaced(std::string_view word) {
  std::string out(word);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// The longest text between holes of a template.
std::string_view longest_literal(std::string_view text) {
  std::string_view best;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const bool hole = i < text.size() && text[i] == '<';
    if (i < text.size() && !hole) continue;
    const std::string_view part = trim(text.substr(start, i - start));
    if (part.size() > best.size()) best = part;
    if (!hole) break;
    const size_t close = text.find('>', i);
    if (close == std::string_view::npos) break;
    start = close + 1;
    i = close;
  }
  return best;
}

}  // namespace

const NumericFault* fault_of(const Report& r, const Diagnosis& d) {
  if (d.detector != to_string(DetectorKind::kNumerics)) return nullptr;
  const auto fault = std::find_if(r.numerics.begin(), r.numerics.end(), [&](const NumericFault& f) {
    return f.step == d.iteration && f.mitigation == d.remedy;
  });
  return fault == r.numerics.end() ? nullptr : &*fault;
}

std::vector<const Problem*> unread(const Report& r) {
  std::vector<const Problem*> out;
  for (const Problem& p : r.problems) {
    const bool reported = std::any_of(r.missing.begin(), r.missing.end(), [&](const std::string& sentence) {
      return p.what.ends_with(sentence);
    });
    if (!reported) out.push_back(&p);
  }
  return out;
}

std::string headline(const Report& report, const RenderOptions& options) {
  std::string out = report.headline.empty() ? headline_of(report) : report.headline;
  const Outcome is = outcome(report);
  if (is == Outcome::kVerdict || (is == Outcome::kInconclusive && leading(report)))
    return out + fmt::format(" ({} confidence)", percent(leading(report)->confidence));
  if (is != Outcome::kHealthy) return out;
  out += " in " + job_size(report.job);
  if (const std::string range = job_range(report.job, options); !range.empty()) out += ", " + range;
  // Logs alone cannot show steps that are slow from the start.
  const bool speed_unknown = !report.activity.progress.empty() && report.comm.steps.empty();
  return speed_unknown ? out + "; whether its speed is normal, logs alone do not show" : out;
}

std::string classified(const Diagnosis& d, const RenderOptions& options) {
  std::vector<std::string> parts;
  if (d.about == About::kCulprit) parts.emplace_back("about culprit itself, not the job");
  if (d.category != Category::kUnknown) parts.push_back(spaced(to_string(d.category)));
  if (d.component != Component::kUnknown && to_string(d.component) != to_string(d.category)) {
    parts.push_back(spaced(to_string(d.component)));
  }
  if (d.symptom != Symptom::kOther) parts.push_back(spaced(to_string(d.symptom)));
  if (d.stage) parts.push_back(fmt::format("{} stage", to_string(*d.stage)));
  if (d.time_ns != kNoTime) {
    parts.push_back(format_time(d.time_ns, options.zone) + " " + options.zone_name);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string reported_by(const Diagnosis& d) {
  std::vector<std::string> parts;
  if (d.rule) parts.push_back("rule " + *d.rule);
  if (d.detector) parts.push_back("detector " + *d.detector);
  if (d.confirmed) {
    const Confirmation& c = *d.confirmed;
    parts.push_back(c.first_by.empty()
                        ? fmt::format("right {} of {}, last judged by {}", c.right, c.hits, c.by)
                        : fmt::format("confirmed by {} {}, right {} of {}", c.first_by,
                                      c.first_ns == kNoTime ? "" : format_time(c.first_ns).substr(0, kDate),
                                      c.right, c.hits));
  }
  if (!d.id.empty()) parts.push_back("diagnosis " + d.id);
  return fmt::format("{}", fmt::join(parts, ", "));
}

Advice advice(const Diagnosis& d) {
  constexpr size_t kTargets = 8;
  const std::vector<std::string>& targets = d.action.targets;
  if (d.action.kind == ActionKind::kNone) return {"", d.remedy};
  std::string verb(to_string(d.action.kind));
  verb[0] = static_cast<char>(verb[0] - 'a' + 'A');
  if (targets.empty() && d.remedy.empty()) return {verb, ""};
  if (targets.empty()) return {"", d.action.kind == ActionKind::kCheck ? d.remedy : verb + ": " + d.remedy};
  const std::span<const std::string> shown(targets.data(), std::min(targets.size(), kTargets));
  std::string action = fmt::format("{} {}", verb, fmt::join(shown, ", "));
  if (targets.size() > kTargets) action += fmt::format(" and {} more", targets.size() - kTargets);
  return {action, d.remedy};
}

std::string interruption(const Report& report) {
  if (!report.interrupted) return "";
  return fmt::format(
      "Reading was stopped after {} lines ({}): this is what was known then, not the whole answer.",
      grouped(report.job.lines), format_bytes(report.job.bytes));
}

std::string sentence(const Irregularity& x) {
  std::string out = x.first_step == x.last_step ? fmt::format("step {}", x.first_step)
                                                : fmt::format("steps {}-{}", x.first_step, x.last_step);
  out += fmt::format(": {:.2f} times as slow, {:.0f} ms a step, by {}", x.slowdown, x.cost_ms,
                     to_string(x.kind));
  if (!x.suspects.empty()) out += "; " + places(x.suspects, kHostsInHeadline);
  if (!x.links.empty()) out += fmt::format("; link {} - {}", x.links[0].a, x.links[0].b);
  return out;
}

std::string sentence(const NumericFault& x) {
  std::string out = fmt::format("step {}: {}", x.step, to_string(x.kind));
  if (!x.ranks.empty()) out += ", " + ranks(x.ranks);
  if (!x.metrics.empty()) out += fmt::format(", seen in {}", fmt::join(x.metrics, ", "));
  if (x.detected_at != x.step) out += fmt::format(", noticed at step {}", x.detected_at);
  return out + fmt::format(" ({} confidence)", percent(x.confidence));
}

std::string sentence(const Hang& hang, const RenderOptions& options) {
  std::string out = "the job hangs";
  if (hang.since_ns != kNoTime) {
    out += fmt::format(" since {} {}", format_time(hang.since_ns, options.zone), options.zone_name);
  }
  // The hang's own text has a time without date and zone.
  if (!hang.sentence.empty()) return out + ": " + hang.sentence.substr(0, hang.sentence.rfind(" since "));
  if (!hang.suspects.empty()) out += "; " + places(hang.suspects, kHostsInHeadline);
  return out;
}

std::string job_size(const JobSummary& job) {
  // Trace files have no lines.
  const bool traces = job.lines == 0 && job.bytes > 0;
  std::string out = traces ? format_bytes(job.bytes) + " of traces"
                           : fmt::format("{} {} ({})", grouped(job.lines), job.lines == 1 ? "line" : "lines",
                                         format_bytes(job.bytes));
  if (job.hosts) out += fmt::format(" of {}", counted(job.hosts, "host"));
  if (job.ranks) out += fmt::format("{}{}", job.hosts ? ", " : " of ", counted(job.ranks, "rank"));
  if (job.id) out += ", job " + *job.id;
  return out;
}

std::string job_range(const JobSummary& job, const RenderOptions& options) {
  if (job.first_ns == kNoTime || job.last_ns == kNoTime) return "";
  const std::string first = format_time(job.first_ns, options.zone).substr(0, 19);
  std::string last = format_time(job.last_ns, options.zone).substr(0, 19);
  if (first.substr(0, 10) == last.substr(0, 10)) last = last.substr(11);
  return fmt::format("{} to {} {}", first, last, options.zone_name);
}

std::string address(const Evidence& e) {
  if (e.line) return fmt::format("{}:{}", e.file, *e.line);
  if (e.offset) return fmt::format("{} +{}", e.file, *e.offset);
  return e.file;
}

std::string look_command(const Diagnosis& d, const RenderOptions& options) {
  if (!options.look) return "";
  for (const Evidence& e : d.evidence)
    if (std::string command = options.look(e); !command.empty()) return command;
  return "";
}

// At most 99 %: a diagnosis is no proof.
std::string percent(double share) {
  const double clamped = share > 0 ? std::min(share, 0.99) : 0.0;
  return fmt::format("{:.0f} %", std::round(clamped * 100));
}

std::string grouped(uint64_t n) {
  std::string digits = fmt::format("{}", n);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string clock_time(TimeNs time, TimeNs same_day, const RenderOptions& options) {
  if (time == kNoTime) return "";
  const std::string full = format_time(time, options.zone);
  const std::string other = format_time(same_day, options.zone);
  return other.substr(0, 10) == full.substr(0, 10) ? full.substr(11) : full;
}

std::vector<EvidenceGroup> group_evidence(std::span<const Evidence> evidence) {
  std::vector<EvidenceGroup> groups;
  for (const Evidence& e : evidence) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const EvidenceGroup& g) { return g.first->text == e.text; });
    if (same == groups.end())
      groups.push_back({&e, {}});
    else
      same->others.push_back(&e);
  }
  return groups;
}

std::vector<const IterationScore*> most_irregular(const Report& report, size_t max) {
  std::vector<const IterationScore*> list;
  for (const IterationScore& x : report.iterations) list.push_back(&x);
  if (list.size() <= max) return list;
  std::stable_sort(list.begin(), list.end(),
                   [](const auto* x, const auto* y) { return x->score > y->score; });
  list.resize(max);
  std::sort(list.begin(), list.end());  // sorted by address: all are in one array
  return list;
}

size_t focus_of(std::string_view line, std::span<const Indicating> indicating) {
  constexpr size_t kTelling = 8;  // minimum length: shorter words occur in any line
  for (const Indicating& x : indicating) {
    const std::string_view literal = longest_literal(x.template_text);
    if (literal.size() < kTelling) continue;
    if (const size_t at = line.find(literal); at != std::string_view::npos) return at;
  }
  return 0;
}

std::vector<std::string_view> record_lines(std::string_view text, size_t max) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  std::vector<std::string_view> lines = split(text, '\n');
  for (std::string_view& line : lines)
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (lines.size() <= max) return lines;
  const size_t head = std::min<size_t>(2, max / 2);
  std::vector<std::string_view> shown(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(head));
  shown.emplace_back("…");
  shown.insert(shown.end(), lines.end() - static_cast<std::ptrdiff_t>(max - head - 1), lines.end());
  return shown;
}

}  // namespace culprit::cli
