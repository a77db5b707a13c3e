#include "model/headline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "model/rank_place.h"
#include "model/restart.h"

namespace culprit {
namespace {

constexpr std::string_view kCounters[] = {"iteration", "step"};  // used in titles
bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr size_t kHostsInHeadline = 3;
constexpr size_t kTitleBytes = 240;   // titles may contain an exception's message of any length
constexpr size_t kRunsOfNumbers = 6;  // longer lists are counted instead
constexpr size_t kSentences = 3;

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
  if (ranks.size() == 1 && (job.ranks > 1 || *ranks.begin() > 0) && !names_rank(d.title))
    out += fmt::format(" by rank {}", *ranks.begin());
  if (job.hosts > 1 && hosts.size() == 1 && d.title.find(*hosts.begin()) == d.title.npos)
    out += " on " + *hosts.begin();
  return out.empty() ? "" : ", logged" + out;
}

// "Rank 11 (node-7, GPU 3) is in the data loader": inserts the place after the rank that begins the title.
// Empty if the title begins otherwise.
std::string with_place_of_rank(std::string_view title, const std::vector<Suspect>& hosts) {
  if (hosts.size() != 1 || hosts[0].ranks.size() != 1 || !hosts[0].host) return {};
  const std::string rank = fmt::format("Rank {} ", hosts[0].ranks[0]);
  if (!title.starts_with(rank)) return {};
  RankPlace at{hosts[0].host, {}};
  if (hosts[0].devices.size() == 1) at.device = hosts[0].devices[0];
  return fmt::format("{} {}", describe_rank_first(hosts[0].ranks[0], at), title.substr(rank.size()));
}

bool is_suspicious(const Report& r) {
  const bool noticed = r.hang || !r.numerics.empty();
  return leading(r) || !r.suspects.empty() || !r.indicating.empty() || (noticed && !r.missing.empty());
}

std::string inconclusive(const Report& report) {
  std::string out = "No conclusive cause found";
  if (const Diagnosis* best = leading(report))
    return out + "; most likely: " + sentence_of(*best, report.job);
  if (report.indicating.empty()) return out;
  return out + (report.indicating.size() == 1
                    ? "; one kind of message is out of the ordinary"
                    : fmt::format("; {} kinds of message are out of the ordinary", report.indicating.size()));
}

// Omits the time, as its text depends on the reader's time zone.
std::string words_of(const Hang& hang) {
  const std::string out = "the job hangs";
  if (!hang.sentence.empty()) return out + ": " + hang.sentence.substr(0, hang.sentence.rfind(" since "));
  return hang.suspects.empty() ? out : out + "; " + places(hang.suspects, kHostsInHeadline);
}

std::string noticed(const Report& report) {
  std::vector<std::string> parts;
  if (report.hang) parts.push_back(words_of(*report.hang));
  if (!report.numerics.empty()) parts.push_back(counted(report.numerics.size(), "numeric fault"));
  if (!report.irregularities.empty()) {
    parts.push_back(counted(report.irregularities.size(), "spell") + " of slow steps");
    for (std::string& one : watch_sentences(report)) parts.push_back(std::move(one));
  }
  if (parts.empty()) parts.push_back(counted(report.iterations.size(), "unusual step"));
  return fmt::format("No cause of a failure found, but: {}", fmt::join(parts, "; "));
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

}  // namespace

// Whether part of a log is missing that may contain the fault. Skipped inputs other than logs do not count.
bool is_partly_read(const Report& report) {
  return std::any_of(report.problems.begin(), report.problems.end(), [](const Problem& p) {
    return p.about == About::kJob && !p.what.starts_with("passed over: ");
  });
}

Outcome outcome(const Report& r) {
  if (r.verdict && *r.verdict < r.diagnoses.size()) return Outcome::kVerdict;
  if (is_suspicious(r)) return Outcome::kInconclusive;
  if (r.hang || !r.numerics.empty() || !r.irregularities.empty() || !r.iterations.empty()) {
    return Outcome::kNoticed;
  }
  if (r.job.lines == 0 && r.job.bytes == 0 && r.job.ranks == 0) return Outcome::kEmpty;
  return r.missing.empty() && !is_partly_read(r) ? Outcome::kHealthy : Outcome::kUnknown;
}

Conclusion conclusion_of(const Report& r) {
  switch (outcome(r)) {
    case Outcome::kVerdict:
      return Conclusion::kFault;
    case Outcome::kNoticed:
      return r.hang || !r.numerics.empty() ? Conclusion::kFault : Conclusion::kCannotTell;
    case Outcome::kHealthy:
      return Conclusion::kNoFault;
    case Outcome::kInconclusive:
    case Outcome::kUnknown:
    case Outcome::kEmpty:
      break;
  }
  return Conclusion::kCannotTell;
}

const Diagnosis* leading(const Report& r) {
  if (r.verdict && *r.verdict < r.diagnoses.size()) return &r.diagnoses[*r.verdict];
  const auto best = std::ranges::find(r.diagnoses, false, &Diagnosis::is_refuted);
  return best == r.diagnoses.end() ? nullptr : &*best;
}

std::string title_of(const Diagnosis& d) {
  std::string_view title = trim(d.title);
  while (!title.empty() && (title.back() == '.' || title.back() == ':')) title.remove_suffix(1);
  std::string out = shorten(title, kTitleBytes);
  for (char& c : out)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  return out;
}

std::string sentence_of(const Diagnosis& d, const JobSummary& job) {
  std::string out = title_of(d);
  if (d.code) out += " in " + to_string(*d.code);
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
  return out;
}

std::string headline_of(const Report& report) {
  switch (outcome(report)) {
    case Outcome::kVerdict:
      return sentence_of(*leading(report), report.job);
    case Outcome::kInconclusive:
      return inconclusive(report);
    case Outcome::kNoticed:
      return noticed(report);
    case Outcome::kUnknown:
      return is_partly_read(report)
                 ? "No fault found, but not all could be read: whether the job is well is unknown"
                 : "No fault found, but whether the job is well is unknown";
    case Outcome::kHealthy:
      return "Nothing wrong found";
    case Outcome::kEmpty:
      break;
  }
  return nothing_read(report);
}

void conclude(Report& report) {
  for (Diagnosis& d : report.diagnoses) d.headline = sentence_of(d, report.job);
  report.conclusion = conclusion_of(report);
  report.headline = headline_of(report);
  report.restart = restart_of(report);
}

std::vector<std::string> watch_sentences(const Report& report) {
  std::vector<std::string> out;
  for (const Irregularity& x : report.irregularities)
    if (!x.sentence.empty() && std::ranges::find(out, x.sentence) == out.end() && out.size() < kSentences)
      out.push_back(x.sentence);
  return out;
}

std::string place(const Suspect& s) {
  std::vector<std::string> parts;
  if (s.rank)
    parts.push_back(fmt::format("rank {}", *s.rank));
  else if (!s.ranks.empty())
    parts.push_back(ranks(s.ranks));
  if (s.device)
    parts.push_back(describe_devices({&*s.device, 1}));
  else if (!s.devices.empty())
    parts.push_back(describe_devices(s.devices));
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

std::string to_string(const CodePlace& at) {
  const std::string place = fmt::format("{}:{}", at.file.substr(at.file.rfind('/') + 1), at.line);
  return at.function.empty() ? place : fmt::format("{} ({})", at.function, place);
}

}  // namespace culprit
