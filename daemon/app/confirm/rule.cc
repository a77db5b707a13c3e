#include "app/confirm/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "app/confirm/cause.h"
#include "app/confirm/finding.h"
#include "app/confirm/pattern.h"
#include "app/confirm/rule_text.h"
#include "app/confirm/scope.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/logs/header.h"
#include "core/rules/library.h"

namespace culprit::app {
namespace {

constexpr size_t kHits = 3;
constexpr size_t kMisses = 3;
constexpr double kSame = 0.75;  // share of common words that makes a line a wording of the same message

// The hit without its rarest words: text that a careless pattern would still match.
std::string near_miss(const std::string& pattern, const Fires& fires) {
  const std::string words = spoken(pattern);
  for (size_t cut = words.rfind(' '); cut != words.npos && cut > 0; cut = words.rfind(' ', cut - 1))
    if (const std::string line = words.substr(0, cut); !fires.in(line)) return line;
  for (const char* line : {"all is well", "step 120 of 5000 is done", "-"})
    if (!fires.in(line)) return line;
  return "";
}

std::vector<std::string> hits_of(const Cause& cause, const Fires& fires) {
  std::vector<std::string> out;
  std::set<std::string> wordings;
  for (const Occurrence& o : cause.seen.lines)
    if (out.size() < kHits && fires.in(o.message) && wordings.insert(o.message).second)
      out.push_back(o.message);
  return out;
}

// The lines most similar to the hits that must not fire: the cascade of the same failure, and normal lines of
// the pool and the job.
std::vector<std::string> misses_of(const Cause& cause, const ConfirmContext& context, const Fires& fires) {
  std::vector<std::pair<double, std::string>> near;
  const std::set<std::string> own = words_of_text(cause.pattern);
  const auto offer = [&](const std::string& line, double more) {
    if (line.empty() || fires.in(line)) return;
    near.emplace_back(alike(own, words_of_text(line)) + more, line);
  };
  for (const std::string& line : cause.left_out)
    if (alike(own, words_of_text(line)) < kSame) offer(line, 0.2);
  if (context.pool)
    for (const detect::PoolForm& form : context.pool->forms) offer(sample_line(form.text), 0);
  for (const std::string& text : context.job_templates)
    if (alike(own, words_of_text(text)) < kSame) offer(sample_line(text), 0);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> out;
  for (const auto& [score, line] : near)
    if (out.size() < kMisses && std::find(out.begin(), out.end(), line) == out.end()) out.push_back(line);
  if (out.empty()) out.push_back(near_miss(cause.pattern, fires));
  return out;
}

std::string lua_list(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("      {},\n", lua_text(line));
  return out;
}

std::string comment(const Diagnosis& d, const RuleWords& words) {
  std::string out = "-- Confirmed";
  if (!words.by.empty()) out += " by " + words.by;
  out += " from a diagnosis";
  if (!d.hosts.empty() && d.hosts[0].host) {
    out += " on " + *d.hosts[0].host;
    if (!d.hosts[0].ranks.empty()) out += fmt::format(" (rank {})", d.hosts[0].ranks[0]);
  }
  if (d.stage) out += fmt::format(", {} stage", to_string(*d.stage));
  std::string safe;
  for (const char c : to_terminal(out)) safe += c == '\n' || c == '\r' ? ' ' : c;
  return safe + "\n";
}

struct Texts {
  std::string title, remedy, category, component, action, restart;
  bool open = false;
};

// Removes "<name>" from a title, where it would be a hole.
std::string plain(std::string text) {
  std::erase_if(text, [](char c) { return c == '<' || c == '>'; });
  return text;
}

std::string sentence_of(std::string text) {
  text = trim(text);
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

Texts texts_of(const Diagnosis& d, const RuleWords& words, const std::string& proposal) {
  Texts out;
  std::vector<std::string> missing;
  out.title = words.title.empty() ? fmt::format("{} a title: {}", kFillIn, proposal) : plain(words.title);
  if (words.title.empty()) missing.emplace_back("the title");
  if (words.category.empty()) missing.emplace_back("category");
  if (words.component.empty()) missing.emplace_back("component");
  out.category = words.category.empty() ? "unknown" : words.category;
  out.component = words.component.empty() ? "unknown" : words.component;
  // A controller acts on the rule only if the operator says so.
  const bool mild = d.action.kind == ActionKind::kCheck && !d.hosts.empty();
  out.action = !words.action.empty() ? words.action : mild ? "check" : "none";
  // A later job is judged by its own progress, so this job's value fits both.
  out.restart = to_string(d.restart.kind);
  std::string open;
  if (words.category.empty() || words.component.empty())
    open += fmt::format("{} who has to act (category) and what broke (component). ", kFillIn);
  if (words.cause.empty()) open += fmt::format("{} the cause. ", kFillIn);
  if (words.remedy.empty()) open += fmt::format("{} what to do. ", kFillIn);
  if (!words.cause.empty()) out.remedy = sentence_of("Cause: " + words.cause) + " ";
  if (!words.remedy.empty()) out.remedy += sentence_of(words.remedy) + " ";
  out.remedy += open;
  out.remedy = trim(out.remedy);
  out.open = !open.empty() || words.title.empty();
  return out;
}

struct Parts {
  std::string id, pattern;
  Texts texts;
  std::optional<RuleWindow> window;
  std::vector<std::string> hits, misses;
};

// A window requires several lines, so its example has several lines, and its miss has too few.
void put_in_window(Parts& parts) {
  const RuleWindow& w = *parts.window;
  const std::vector<std::string> lines = parts.hits;
  parts.hits = {example_of(w, lines, w.at_least, false)};
  parts.misses.insert(parts.misses.begin(), w.hosts ? example_of(w, lines, w.at_least, true)
                                                    : example_of(w, lines, w.at_least - 1, true));
}

std::string window_text(const std::optional<RuleWindow>& window) {
  if (!window) return "";
  std::string out = "  window = " + lua_window(*window) + ",\n";
  if (window->hosts)
    out += fmt::format("  when = function(_, window) return window.hosts >= {} end,\n", window->hosts);
  return out;
}

std::string rule_text(const Diagnosis& d, const RuleWords& words, const Cause& cause, const Parts& parts) {
  const bool several = parts.window && parts.window->hosts;
  const bool of_host = !several && !d.hosts.empty() && !cause.hosts.empty() &&
                       cause.hosts.size() <= std::max<size_t>(1, d.hosts.size());
  return fmt::format(R"({}rule {{
  id = {}, engine = 1,
  title = {},
  category = "{}", component = "{}", severity = "error", symptom = "{}",
  blames = "{}",
  match = {{ template = {} }},
{}  remedy = {},
  action = "{}", restart = "{}",
  examples = {{
    hit = {{
{}    }},
    miss = {{
{}    }},
  }},
}}
)",
                     comment(d, words), lua_text(parts.id), lua_text(parts.texts.title), parts.texts.category,
                     parts.texts.component, to_string(d.symptom), of_host ? "host" : "job",
                     lua_text(parts.pattern), window_text(parts.window), lua_text(parts.texts.remedy),
                     parts.texts.action, parts.texts.restart, lua_list(parts.hits), lua_list(parts.misses));
}

std::string shown_hosts(const std::set<std::string>& hosts) {
  return hosts.empty() ? "" : " on " + shown_list(std::vector<std::string>(hosts.begin(), hosts.end()));
}

// Adds what the finished pattern matches in each job.
void prove_on(const Cause& cause, const ConfirmContext& context, ConfirmedRule& out) {
  out.proof.push_back(
      fmt::format("of this job it hits {}{}", counted(cause.seen.count, "line"), shown_hosts(cause.hosts)));
  if (context.pool)
    out.proof.push_back(fmt::format("it fires in none of {} ({} tried)",
                                    counted(context.pool->jobs, "successful job"),
                                    counted(cause.pool_forms, "form")));
  if (context.known)
    out.proof.push_back(
        fmt::format("it fires on none of {} of the rules in use", counted(cause.examples, "example")));
  size_t healthy = 0;
  for (const TriedJob& job : context.others) {
    healthy += job.healthy;
    if (job.healthy) continue;
    const std::vector<Occurrences> found = job.search({cause.pattern});
    const uint64_t n = found.empty() ? 0 : found[0].count;
    out.proof.push_back(fmt::format("of the failed job {} it hits {}{}", job.name,
                                    n ? counted(n, "line") : "nothing",
                                    job.verdict.empty() ? "" : "; its verdict was: " + job.verdict));
  }
  if (healthy > 0)
    out.proof.push_back(
        fmt::format("it fires in none of the kept logs of {}", counted(healthy, "successful job")));
}

void set_id(const RuleWords& words, const Texts& texts, const std::string& pattern, ConfirmedRule& out) {
  out.pattern = pattern;
  out.id = words.id.empty()
               ? fmt::format("site.{}.{}", texts.component, hex64(hash64(pattern, 0)).substr(0, 8))
               : words.id;
}

Status loads(const ConfirmedRule& rule, const rules::Ruleset* known) {
  // The new rule may refer to rules of the library, which are already proven.
  std::vector<rules::RuleText> files;
  for (const rules::LibraryFile& f : rules::library())
    if (known) files.push_back({fmt::format("library:{}", f.name), std::string(f.text)});
  files.push_back({rule.id + ".lua", rule.text});
  const auto set = rules::Ruleset::load(files, {.proven_files = files.size() - 1});
  return set ? Status() : fail(ErrorCode::kInvalid, fmt::format("{}: {}", rule.id, set.error()[0].what));
}

Result<ConfirmedRule> line_rule(const Diagnosis& d, const RuleWords& words, const Cause& cause,
                                const ConfirmContext& context) {
  ConfirmedRule out;
  const Fires fires(cause.pattern);
  Parts parts;
  out.title = spoken(cause.pattern);
  parts.texts = texts_of(d, words, out.title);
  parts.hits = hits_of(cause, fires);
  parts.misses = misses_of(cause, context, fires);
  set_id(words, parts.texts, cause.pattern, out);
  parts.id = out.id;
  out.notes = cause.notes;
  out.open = parts.texts.open;
  parts.pattern = with_subjects(cause.pattern, d, cause);
  const Parts plain = parts;
  parts.window = window_of(cause, context.job_hosts.size());
  if (parts.window) put_in_window(parts);
  const auto proven = [&](const Parts& of) {
    out.text = rule_text(d, words, cause, of);
    return loads(out, nullptr);
  };
  Status proof = proven(parts);
  if (!proof && parts.window) proof = proven(plain);  // a header may hide a part of the line
  if (!proof) return tl::unexpected(proof.error());
  if (const std::string begins = logs::begins_after(words.line); !begins.empty())
    out.notes.push_back(std::string(kMessageAlone) + begins);
  prove_on(cause, context, out);
  return out;
}

std::set<std::string> names_of(const Report& report, const ConfirmContext& context) {
  std::set<std::string> out(context.job_hosts.begin(), context.job_hosts.end());
  for (const SeenFinding& f : report.findings)
    if (f.host) out.insert(*f.host);
  return out;
}

Result<ConfirmedRule> finding_rule(const Report& report, const Diagnosis& d, const RuleWords& words,
                                   const ConfirmContext& context) {
  const auto cause = finding_of(report, d, context, names_of(report, context));
  if (!cause) return tl::unexpected(cause.error());
  ConfirmedRule out;
  out.title = spoken(cause->found.pattern);
  const Texts texts = texts_of(d, words, out.title);
  set_id(words, texts,
         cause->found.pattern + (cause->company ? cause->company->pattern + cause->company->rule : ""), out);
  out.open = texts.open;
  const FindingRuleText parts{
      out.id,
      fmt::format("  title = {},\n  category = \"{}\", component = \"{}\", severity = \"error\", symptom = "
                  "\"{}\",\n  blames = \"{}\",\n",
                  lua_text(texts.title), texts.category, texts.component, to_string(d.symptom),
                  d.hosts.empty() ? "job" : "host"),
      fmt::format("  remedy = {},\n  action = \"{}\", restart = \"{}\",\n", lua_text(texts.remedy),
                  texts.action, texts.restart)};
  out.text = comment(d, words) + lua_of(*cause, parts);
  if (Status proof = loads(out, context.known); !proof) return tl::unexpected(proof.error());
  out.notes.push_back("no line of it is the mark of one fault, so the rule is one on findings");
  out.proof.push_back(
      fmt::format("of this job it hits the finding '{}'{}", shorten(cause->found.sample, 90),
                  !cause->company ? "" : fmt::format(" with '{}'", shorten(cause->company->sample, 90))));
  for (const TriedJob& job : context.others)
    if (!job.healthy)
      out.proof.push_back(fmt::format("of the failed job {} it hits {}{}", job.name,
                                      has_cause(job.findings, *cause) ? "a finding" : "nothing",
                                      job.verdict.empty() ? "" : "; its verdict was: " + job.verdict));
  return out;
}

}  // namespace

Result<ConfirmedRule> rule_of(const Report& report, const Diagnosis& diagnosis, const RuleWords& words,
                              const ConfirmContext& context) {
  if (diagnosis.rule && words.line.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: the rule {} knows it already; no new one is needed",
                                                 diagnosis.id, *diagnosis.rule));
  const auto cause = cause_of(report, diagnosis, context, words.line);
  if (cause) return line_rule(diagnosis, words, *cause, context);
  if (!words.line.empty()) return tl::unexpected(cause.error());
  auto of_findings = finding_rule(report, diagnosis, words, context);
  if (of_findings) return of_findings;
  if (of_findings.error().code == ErrorCode::kNotFound) return fail(ErrorCode::kNotFound, cause.error().text);
  return fail(ErrorCode::kNotFound, cause.error().text + "; " + of_findings.error().text);
}

}  // namespace culprit::app
