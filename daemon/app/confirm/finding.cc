#include "app/confirm/finding.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "app/confirm/pattern.h"
#include "app/confirm/rule_text.h"
#include "app/confirm/scope.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kNearNs = 600 * kNsPerSecond;  // plugins sample every few seconds to minutes
// Detectors that evaluate lines; their findings occur with every fault.
constexpr std::array<std::string_view, 5> kOfLines = {
    "spatial: ", "temporal: ", "cross-job: ", "silence: ", "traceback: "};
constexpr std::array<std::string_view, 9> kDetectors = {
    "spatial: ", "temporal: ", "cross-job: ", "silence: ", "traceback: ",
    "comm: ",    "flight: ",   "numerics: ",  "stacks: "};

bool starts_with_any(std::string_view text, const auto& all) {
  return std::ranges::any_of(all, [&](std::string_view begin) { return text.starts_with(begin); });
}
bool of_plugin(std::string_view text) { return !starts_with_any(text, kDetectors); }

// A plugin's name of the fault, such as "gpu_health gpu.thermal_throttle:", without the varying values.
std::string pattern_of_finding(const std::string& text, const std::set<std::string>& names) {
  if (of_plugin(text)) return text.substr(0, std::min(text.size(), text.find(": ") + 1));
  const std::string lines[] = {text};
  return pattern_of(lines, names);
}

// A function of a program: "dataloader.py:_next:12", "ncclTransport()", "at::native".
bool names_place(std::string_view pattern) {
  static const re2::RE2 kPlace(R"(::|\(\)|:[A-Za-z_]\w*:)");
  return re2::RE2::PartialMatch(re2::StringPiece(pattern.data(), pattern.size()), kPlace);
}

bool near(TimeNs first, TimeNs last, const SeenFinding& f) {
  if (first == kNoTime || f.first_ns == kNoTime) return true;
  const TimeNs f_last = std::max(f.first_ns, f.last_ns);
  return f.first_ns <= std::max(first, last) + kNearNs && f_last >= first - kNearNs;
}

TimeNs gap(TimeNs first, TimeNs last, const SeenFinding& f) {
  if (first == kNoTime || f.first_ns == kNoTime) return 0;
  return std::max<TimeNs>({0, f.first_ns - std::max(first, last), first - std::max(f.first_ns, f.last_ns)});
}

const SeenFinding* lead_of(const Report& report, const Diagnosis& d) {
  const std::string by = d.detector.value_or("");
  const std::string begin = by.starts_with("plugin:") ? by.substr(7) + " " : by + ": ";
  const auto accused = [&](const SeenFinding& f) {
    return d.hosts.empty() ||
           std::ranges::any_of(d.hosts, [&](const Suspect& s) { return s.host == f.host; });
  };
  const SeenFinding* out = nullptr;
  for (const SeenFinding& f : report.findings) {
    if (!f.text.starts_with(begin)) continue;
    if (f.text == begin + d.title && accused(f)) return &f;
    if (!out && accused(f)) out = &f;
  }
  return out;
}

struct Company {
  FindingMark mark;
  std::string by;
  TimeNs gap_ns = 0;
};

std::optional<Company> company_of(const Report& report, const SeenFinding& lead,
                                  const ConfirmContext& context, const std::set<std::string>& names) {
  const auto detector = [](std::string_view text) { return text.substr(0, text.find(' ')); };
  for (const bool plugins : {true, false})
    for (const SeenFinding& f : report.findings) {
      const bool same = &f == &lead || detector(f.text) == detector(lead.text);
      if (same || of_plugin(f.text) != plugins || starts_with_any(f.text, kOfLines)) continue;
      if (!f.host || f.host != lead.host || !near(lead.first_ns, lead.last_ns, f)) continue;
      const std::string by = f.device && f.device == lead.device ? "device"
                             : f.rank && f.rank == lead.rank     ? "rank"
                                                                 : "host";
      return Company{{pattern_of_finding(f.text, names), f.text}, by, gap(lead.first_ns, lead.last_ns, f)};
    }
  // A line close to a finding about lines may be a coincidence: the company must be of another kind.
  if (starts_with_any(lead.text, kOfLines)) return std::nullopt;
  for (const FiredRule& fired : context.fired) {
    const SeenFinding as{"", fired.host, {}, {}, fired.time_ns, fired.time_ns};
    if (!lead.host || fired.host != *lead.host || !near(lead.first_ns, lead.last_ns, as)) continue;
    return Company{{"", fired.line, fired.rule}, "host", gap(lead.first_ns, lead.last_ns, as)};
  }
  return std::nullopt;
}

}  // namespace

Result<FindingCause> finding_of(const Report& report, const Diagnosis& d, const ConfirmContext& context,
                                const std::set<std::string>& names) {
  const SeenFinding* lead = lead_of(report, d);
  if (!lead)
    return fail(ErrorCode::kNotFound, fmt::format("{}: the report has no finding of its detector", d.id));
  FindingCause out;
  out.found = {pattern_of_finding(lead->text, names), lead->text};
  if (out.found.pattern.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: nothing in its finding is fixed", d.id));
  if (const auto company = company_of(report, *lead, context, names)) {
    out.company = company->mark;
    out.by = company->by;
    out.span_ns = written_span(std::max(kNearNs, 2 * company->gap_ns));
  } else if (!of_plugin(lead->text) && !names_place(out.found.pattern)) {
    return fail(
        ErrorCode::kInvalid,
        fmt::format("{}: refused: '{}' is found for many faults, and nothing else was seen of {} at that "
                    "time",
                    d.id, shorten(out.found.pattern, 90), lead->host.value_or("the job")));
  }
  for (const TriedJob& job : context.others)
    if (job.healthy && has_cause(job.findings, out))
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: refused: the successful job {} has the finding too", d.id, job.name));
  return out;
}

bool has_cause(const std::vector<SeenFinding>& findings, const FindingCause& cause) {
  const Fires found(cause.found.pattern);
  const bool by_line = cause.company && !cause.company->rule.empty();
  const Fires other(cause.company ? cause.company->pattern : "");
  for (const SeenFinding& f : findings) {
    if (!found.in(f.text)) continue;
    if (!cause.company || by_line) return true;
    for (const SeenFinding& g : findings)
      if (g.host == f.host && other.in(g.text) && near(f.first_ns, f.last_ns, g)) return true;
  }
  return false;
}

std::string lua_of(const FindingCause& cause, const FindingRuleText& text) {
  std::string out, window, hit = cause.found.sample, miss = "\"-\"";
  if (cause.company) {
    const FindingMark& other = *cause.company;
    const std::string helper = other.rule.empty() ? text.id + ".seen" : other.rule;
    if (other.rule.empty())
      out += fmt::format(R"(-- What was seen with it; it makes no diagnosis by itself.
rule {{
  id = {}, engine = 1,
  title = {},
  category = "unknown", component = "unknown", severity = "info", source = "finding",
  match = {{ template = {} }},
  remedy = "See {}.",
  examples = {{ hit = {{ {} }}, miss = {{ "-" }} }},
}}
)",
                         lua_text(helper), lua_text(spoken(other.pattern)), lua_text(other.pattern), text.id,
                         lua_text(other.sample));
    RuleWindow w;
    w.by = cause.by;
    w.span_ns = cause.span_ns;
    window = lua_window(w);
    window.insert(window.size() - 2, fmt::format(", with = {}", lua_text(helper)));
    window = "  window = " + window + ",\n";
    hit = other.sample + "\n" + cause.found.sample;
    miss = fmt::format("{}, {}", lua_text(cause.found.sample), lua_text(other.sample));
  }
  return out + fmt::format(R"(rule {{
  id = {}, engine = 1,
{}  source = "finding",
  match = {{ template = {} }},
{}{}  examples = {{
    hit = {{ {} }},
    miss = {{ {} }},
  }},
}}
)",
                           lua_text(text.id), text.head, lua_text(cause.found.pattern), window, text.tail,
                           lua_text(hit), miss);
}

}  // namespace culprit::app
