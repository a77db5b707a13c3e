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

constexpr std::string_view kCounters[] = {"iteration", "step"};  // used in titles
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr size_t kHostsInHeadline = 3;
constexpr size_t kTitleBytes = 240;   // titles may contain an exception's message of any length
constexpr size_t kDate = 10;          // of a written time
constexpr size_t kRunsOfNumbers = 6;  // longer lists are counted instead

std::string spaced(std::string_view word) {
  std::string out(word);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// Whether the title already names its host ("node-3 fell silent").
bool names_host(const Diagnosis& d) {
  return std::any_of(d.hosts.begin(), d.hosts.end(), [&](const Suspect& s) {
    return s.host && !s.host->empty() && d.title.find(*s.host) != std::string::npos;
  });
}

bool names_iteration(std::string_view title, int64_t iteration) {
  return std::any_of(std::begin(kCounters), std::end(kCounters), [&](std::string_view word) {
    const std::string text = fmt::format("{} {}", word, iteration);
    const size_t at = title.find(text);
    return at != title.npos && (at + text.size() == title.size() || !is_digit(title[at + text.size()]));
  });
}

// ", at iteration 1120" or ", during init".
std::string when_in_job(const Diagnosis& d) {
  if (d.iteration) {
    return fmt::format(", at iteration {}{}", *d.iteration,
                       d.stage == Stage::kCheckpoint ? " (checkpoint)" : "");
  }
  if (!d.stage || *d.stage == Stage::kIterative) return "";
  return fmt::format(", during {}", to_string(*d.stage));
}

bool names_rank(std::string_view title) { return title.find("ank") != title.npos; }  // "rank", "Ranks"

// The writer of the quoted lines, if the lines name one host or rank of several and the title does not: ",
// logged by rank 3 on node-7". This is the place of the lines, not an accusation.
std::string logged_by(const Diagnosis& d, const JobSummary& job) {
  std::set<uint32_t> ranks;
  std::set<std::string> hosts;
  for (const Evidence& e : d.evidence) {
    if (e.rank) ranks.insert(*e.rank);
    if (e.host) hosts.insert(*e.host);
  }
  std::string out;
  if (job.ranks > 1 && ranks.size() == 1 && !names_rank(d.title))
    out += fmt::format(" by rank {}", *ranks.begin());
  if (job.hosts > 1 && hosts.size() == 1 && d.title.find(*hosts.begin()) == d.title.npos)
    out += " on " + *hosts.begin();
  return out.empty() ? "" : ", logged" + out;
}

// "Rank 11 (node-7, device 3) is in the data loader": the place stands with the rank that the title begins
// with. Empty: the title begins with something else.
std::string with_place_of_rank(std::string_view title, const std::vector<Suspect>& hosts) {
  if (hosts.size() != 1 || hosts[0].ranks.size() != 1 || !hosts[0].host) return {};
  const std::string rank = fmt::format("Rank {} ", hosts[0].ranks[0]);
  if (!title.starts_with(rank)) return {};
  std::string at = *hosts[0].host;
  if (hosts[0].devices.size() == 1) at += fmt::format(", device {}", hosts[0].devices[0]);
  return fmt::format("{}({}) {}", rank, at, title.substr(rank.size()));
}

std::string as_sentence(const Diagnosis& d, const JobSummary& job) {
  std::string out = title_of(d);
  if (std::string with_place = with_place_of_rank(out, d.hosts); !with_place.empty() && !names_host(d)) {
    out = std::move(with_place);
  } else if (d.hosts.empty()) {
    out += logged_by(d, job);
  } else {
    const bool named = names_host(d);
    const bool placed = std::any_of(d.hosts.begin(), d.hosts.end(), [](const Suspect& s) { return s.host; });
    if (!named && !placed && names_rank(d.title)) {
      // Ranks without a known host are already named.
    } else if (!named) {
      out += " on " + places(d.hosts, kHostsInHeadline);
    } else if (d.hosts.size() == 1 && !d.hosts[0].ranks.empty()) {
      out += fmt::format(" ({})", ranks(d.hosts[0].ranks));
    }
  }
  if (!d.iteration || !names_iteration(d.title, *d.iteration)) out += when_in_job(d);
  return out + fmt::format(" ({} confidence)", percent(d.confidence));
}

// A suspect from other findings, if the diagnosis itself names no host.
std::string strongest_suspect(const Report& report, const Diagnosis* reported) {
  if (report.suspects.empty() || (reported && !reported->hosts.empty())) return "";
  return fmt::format("; strongest suspect: {}, score {:.2f}", place(report.suspects[0]),
                     report.suspects[0].score);
}

std::string inconclusive(const Report& report) {
  std::string out = "No conclusive cause found";
  const Diagnosis* best = leading(report);
  if (best) return out + "; most likely: " + as_sentence(*best, report.job) + strongest_suspect(report, best);
  if (!report.indicating.empty()) {
    out += fmt::format("; {} out of the ordinary",
                       report.indicating.size() == 1
                           ? "one kind of message is"
                           : fmt::format("{} kinds of message are", report.indicating.size()));
  }
  return out;
}

std::string noticed(const Report& report, const RenderOptions& options) {
  std::vector<std::string> parts;
  if (report.hang) parts.push_back(sentence(*report.hang, options));
  if (!report.numerics.empty()) parts.push_back(counted(report.numerics.size(), "numeric fault"));
  if (!report.irregularities.empty()) {
    parts.push_back(counted(report.irregularities.size(), "spell") + " of slow steps");
    for (std::string& one : watch_sentences(report)) parts.push_back(std::move(one));
  }
  if (parts.empty()) parts.push_back(counted(report.iterations.size(), "unusual step"));
  return fmt::format("No cause of a failure found, but: {}", fmt::join(parts, "; "));
}

std::string healthy(const Report& report, const RenderOptions& options) {
  std::string out = fmt::format("Nothing wrong found in {}", job_size(report.job));
  if (const std::string range = job_range(report.job, options); !range.empty()) out += ", " + range;
  // Logs alone cannot show steps that are slow from the start.
  const bool speed_unknown = !report.activity.progress.empty() && report.comm.steps.empty();
  return speed_unknown ? out + "; whether its speed is normal, logs alone do not show" : out;
}

bool is_suspicious(const Report& r) {
  const bool noticed = r.hang || !r.numerics.empty();
  return !r.diagnoses.empty() || !r.suspects.empty() || !r.indicating.empty() ||
         (noticed && !r.missing.empty());
}

// Whether part of a log is missing, which may contain the fault. Skipped inputs that are no logs do not
// count.
bool is_partly_read(const Report& report) {
  return std::any_of(report.problems.begin(), report.problems.end(), [](const Problem& p) {
    return p.about == About::kJob && !p.what.starts_with("passed over: ");
  });
}

std::string unknown(const Report& report, const RenderOptions& options) {
  std::string out = fmt::format("No fault found in {}", job_size(report.job));
  if (const std::string range = job_range(report.job, options); !range.empty()) out += ", " + range;
  return out + (is_partly_read(report) ? "; not all could be read, so whether the job is well is unknown"
                                       : "; whether the job is well is unknown");
}

// A summary of unreadable files: "2 files, a core dump, no text".
std::string nothing_read(const Report& report) {
  constexpr size_t kReasons = 3;
  std::vector<std::string> reasons;
  size_t files = 0;
  for (const Problem& p : report.problems) {
    if (p.file.empty() || p.about != About::kJob) continue;
    ++files;
    constexpr std::string_view kPassed = "passed over: ";
    const std::string what = p.what.starts_with(kPassed) ? p.what.substr(kPassed.size()) : p.what;
    if (std::ranges::find(reasons, what) == reasons.end()) reasons.push_back(what);
  }
  if (files == 0) return "Nothing was read: there was no log, trace, metric or dump";
  if (reasons.size() > kReasons) {
    reasons.resize(kReasons);
    reasons.emplace_back("…");
  }
  return fmt::format("Nothing was read: {} could not be understood ({})", counted(files, "file"),
                     fmt::join(reasons, ", "));
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

Outcome outcome(const Report& r) {
  if (r.verdict && *r.verdict < r.diagnoses.size()) return Outcome::kVerdict;
  if (is_suspicious(r)) return Outcome::kInconclusive;
  if (r.hang || !r.numerics.empty() || !r.irregularities.empty() || !r.iterations.empty()) {
    return Outcome::kNoticed;
  }
  if (r.job.lines == 0 && r.job.bytes == 0 && r.job.ranks == 0) return Outcome::kEmpty;
  return r.missing.empty() && !is_partly_read(r) ? Outcome::kHealthy : Outcome::kUnknown;
}

const Diagnosis* leading(const Report& r) {
  if (r.diagnoses.empty()) return nullptr;
  return &r.diagnoses[r.verdict && *r.verdict < r.diagnoses.size() ? *r.verdict : 0];
}

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

std::string title_of(const Diagnosis& d) {
  std::string_view title = trim(d.title);
  while (!title.empty() && (title.back() == '.' || title.back() == ':')) title.remove_suffix(1);
  std::string out = shorten(title, kTitleBytes);
  for (char& c : out)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return out;
}

std::string headline(const Report& report, const RenderOptions& options) {
  switch (outcome(report)) {
    case Outcome::kVerdict:
      return as_sentence(*leading(report), report.job) + strongest_suspect(report, leading(report));
    case Outcome::kInconclusive:
      return inconclusive(report);
    case Outcome::kNoticed:
      return noticed(report, options);
    case Outcome::kUnknown:
      return unknown(report, options);
    case Outcome::kHealthy:
      return healthy(report, options);
    case Outcome::kEmpty:
      break;
  }
  return nothing_read(report);
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
  // Its own time has neither date nor zone.
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

std::string place(const Suspect& s) {
  std::vector<std::string> parts;
  if (s.rank)
    parts.push_back(fmt::format("rank {}", *s.rank));
  else if (!s.ranks.empty())
    parts.push_back(ranks(s.ranks));
  if (s.device)
    parts.push_back(fmt::format("device {}", *s.device));
  else if (!s.devices.empty()) {
    parts.push_back(fmt::format("device{} {}", s.devices.size() == 1 ? "" : "s", numbers(s.devices)));
  }
  if (!s.host) return parts.empty() ? "unknown host" : fmt::format("{}", fmt::join(parts, ", "));
  return parts.empty() ? *s.host : fmt::format("{} ({})", *s.host, fmt::join(parts, ", "));
}

std::string places(std::span<const Suspect> suspects, size_t max) {
  if (suspects.size() == 1) return place(suspects[0]);
  std::string out;
  for (size_t i = 0; i < std::min(suspects.size(), max); ++i) {
    if (i) out += ", ";
    out += suspects[i].host && !suspects[i].rank ? *suspects[i].host : place(suspects[i]);
  }
  return suspects.size() > max ? fmt::format("{} and {} more", out, suspects.size() - max) : out;
}

std::string numbers(std::span<const uint32_t> values) {
  std::vector<uint32_t> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::string out;
  size_t runs = 0, i = 0;
  while (i < sorted.size() && runs < kRunsOfNumbers) {
    size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (runs++) out += ", ";
    out += end - i > 1 ? fmt::format("{}-{}", sorted[i], sorted[end - 1]) : fmt::format("{}", sorted[i]);
    i = end;
  }
  return i < sorted.size() ? fmt::format("{} and {} more", out, sorted.size() - i) : out;
}

std::string ranks(std::span<const uint32_t> values) {
  return fmt::format("rank{} {}", values.size() == 1 ? "" : "s", numbers(values));
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

// Never 100 %: a diagnosis is no proof.
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
  std::sort(list.begin(), list.end());  // by address: all are in one array
  return list;
}

size_t focus_of(std::string_view line, std::span<const Indicating> indicating) {
  constexpr size_t kTelling = 8;  // shorter words occur in any line
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
