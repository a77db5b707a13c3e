#include "app/confirm/scope.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/confirm/line.h"
#include "base/text.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"

namespace culprit::app {
namespace {

constexpr size_t kHosts = 3;  // more than two neighbours by chance, yet few enough for a smaller job
constexpr TimeNs kAtOnceNs = 600 * kNsPerSecond;
constexpr size_t kRepeated = 6;  // minimum lines of one host that count as a repetition
constexpr size_t kShare = 3;     // a third of these lines is enough the next time
constexpr uint64_t kLinesMin = 2, kLinesMax = 5;
constexpr TimeNs kSpanMinNs = 10 * kNsPerSecond, kSpanMaxNs = 86'400 * kNsPerSecond;
constexpr std::string_view kOpenHole = "<_>";
constexpr size_t kOpenHoles = 12;  // tried in a pattern

std::map<std::string, std::vector<TimeNs>> times_by_host(const Cause& cause) {
  std::map<std::string, std::vector<TimeNs>> out;
  for (const Occurrence& o : cause.seen.lines)
    if (o.time_ns != kNoTime && !o.host.empty()) out[o.host].push_back(o.time_ns);
  for (auto& [host, times] : out) std::sort(times.begin(), times.end());
  return out;
}

std::optional<RuleWindow> window_of_hosts(const std::map<std::string, std::vector<TimeNs>>& times) {
  std::vector<TimeNs> first;
  for (const auto& [host, of] : times) first.push_back(of.front());
  std::sort(first.begin(), first.end());
  const TimeNs spread = first.back() - first.front();
  if (spread > kAtOnceNs) return std::nullopt;
  return RuleWindow{"job", std::clamp(written_span(2 * spread), 60 * kNsPerSecond, kSpanMaxNs), kHosts,
                    kHosts};
}

// Window from the host with the most lines: the usual distance of its lines.
std::optional<RuleWindow> window_of_repetition(const std::map<std::string, std::vector<TimeNs>>& times) {
  const std::vector<TimeNs>* most = nullptr;
  for (const auto& [host, of] : times)
    if (!most || of.size() > most->size()) most = &of;
  if (!most || most->size() < kRepeated) return std::nullopt;
  RuleWindow out;
  out.at_least = std::clamp<uint64_t>(most->size() / kShare, kLinesMin, kLinesMax);
  std::vector<TimeNs> spans;
  for (size_t i = 0; i + out.at_least <= most->size(); ++i)
    spans.push_back((*most)[i + out.at_least - 1] - (*most)[i]);
  std::sort(spans.begin(), spans.end());
  out.span_ns = std::clamp(written_span(2 * spans[spans.size() / 2]), kSpanMinNs, kSpanMaxNs);
  return out;
}

// Whether, in every line that the template matches, the text of the only named hole is one of `wanted`.
bool names(const std::string& pattern, const Cause& cause, const std::set<std::string>& wanted,
           bool of_others) {
  const auto regex = rules::template_to_regex(pattern);
  if (!regex) return false;
  const re2::RE2 compiled(*regex, rules::regex_options());
  size_t seen = 0;
  for (const Occurrence& o : cause.seen.lines) {
    std::string value;
    if (!compiled.ok() || compiled.NumberOfCapturingGroups() != 1) return false;
    if (!re2::RE2::PartialMatch(o.message, compiled, &value)) continue;
    if (!wanted.contains(value) || (of_others && value == o.host)) return false;
    ++seen;
  }
  return seen > 0;
}

bool ends_with_rank(std::string_view text) {
  while (!text.empty() &&
         (text.back() == ' ' || text.back() == '=' || text.back() == ':' || text.back() == '#'))
    text.remove_suffix(1);
  constexpr std::string_view kRank = "rank";
  if (text.size() < kRank.size()) return false;
  std::string low(kRank.size(), '\0');
  lower_ascii(text.substr(text.size() - kRank.size()), low.data());
  return low == kRank;
}

}  // namespace

TimeNs written_span(TimeNs span) {
  for (const TimeNs s : {10, 30, 60, 300, 600, 1800, 3600, 10'800, 43'200})
    if (span <= s * kNsPerSecond) return s * kNsPerSecond;
  return kSpanMaxNs;
}

std::optional<RuleWindow> window_of(const Cause& cause, size_t job_hosts) {
  if (cause.seen.lines.empty()) return std::nullopt;
  const auto times = times_by_host(cause);
  if (times.size() >= kHosts && times.size() < job_hosts) return window_of_hosts(times);
  if (speaks_of_failure(cause.seen.lines[0].message)) return std::nullopt;
  return window_of_repetition(times);
}

std::string lua_window(const RuleWindow& w) {
  std::string span = fmt::format("{}s", w.span_ns / kNsPerSecond);
  for (const auto& [unit, seconds] : {std::pair('h', 3600), std::pair('m', 60)})
    if (const TimeNs ns = seconds * kNsPerSecond; w.span_ns % ns == 0) {
      span = fmt::format("{}{}", w.span_ns / ns, unit);
      break;
    }
  std::string out = fmt::format("{{ by = \"{}\", span = \"{}\"", w.by, span);
  if (w.at_least > 1) out += fmt::format(", at_least = {}", w.at_least);
  return out + " }";
}

std::string example_of(const RuleWindow& w, const std::vector<std::string>& lines, size_t count,
                       bool one_host) {
  std::string out;
  for (size_t i = 0; i < count && !lines.empty(); ++i) {
    if (i > 0) out += '\n';
    if (w.hosts > 0) out += fmt::format("Nov 21 02:12:{:02} node-{} ", i, one_host ? 0 : i);
    out += lines[i % lines.size()];
  }
  return out;
}

std::string with_subjects(const std::string& pattern, const Diagnosis& d, const Cause& cause) {
  std::set<std::string> ranks, hosts;
  for (const Suspect& s : d.hosts) {
    if (s.host) hosts.insert(*s.host);
    for (const uint32_t rank : s.ranks) ranks.insert(std::to_string(rank));
  }
  std::string out = pattern;
  size_t at = 0;
  for (size_t i = 0; i < kOpenHoles && (at = pattern.find(kOpenHole, at)) != pattern.npos;
       ++i, at += kOpenHole.size()) {
    const auto with = [&](std::string_view name) {
      return std::string(pattern).replace(at, kOpenHole.size(), name);
    };
    if (ends_with_rank(std::string_view(pattern).substr(0, at)) && names(with("<rank>"), cause, ranks, false))
      return with("<rank>");
    if (out == pattern && names(with("<host>"), cause, hosts, true)) out = with("<host>");
  }
  return out;
}

}  // namespace culprit::app
