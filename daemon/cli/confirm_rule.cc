#include "cli/confirm_rule.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "cli/rule_text.h"
#include "core/logs/header.h"
#include "core/logs/mask.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"
#include "core/rules/ruleset.h"

namespace culprit::cli {
namespace {

// A diagnosis quotes the same few lines of many hosts; further templates add nothing.
constexpr size_t kWordings = 5;
constexpr size_t kExampleBytes = 1000;

struct Wording {
  std::string pattern, example;
};

bool fires(const std::string& pattern, std::string_view message) {
  const auto regex = rules::template_to_regex(pattern);
  return regex && re2::RE2::PartialMatch(re2::StringPiece(message.data(), message.size()),
                                         re2::RE2(*regex, rules::regex_options()));
}

// Digits and punctuation alone are too general for a rule.
bool has_words(const std::string& pattern) {
  return std::count_if(pattern.begin(), pattern.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }) >= 3;
}

// The line of a record that a rule matches: for a traceback its exception, the last line.
std::string message_of(const std::string& record) {
  std::string_view line;
  for (std::string_view one : split(record, '\n'))
    if (!trim(one).empty()) line = one;
  line = line.substr(0, kExampleBytes);
  logs::HeaderParser headers({});
  return std::string(trim(line.substr(headers.parse(line).message)));
}

// Converts a mined template: each "<*>" becomes a hole for any text.
Wording of_template(std::string_view text) {
  Wording out;
  for (size_t at = 0;;) {
    const size_t hole = text.find(kMask, at);
    const std::string_view fixed = text.substr(at, hole == text.npos ? hole : hole - at);
    for (const char c : fixed) out.pattern.append(c == '<' ? 2 : 1, c);
    out.example += fixed;
    if (hole == text.npos) return out;
    out.pattern += "<_>";
    out.example += "0";
    at = hole + kMask.size();
  }
}

std::vector<Wording> wordings_of(const Report& report, const Diagnosis& diagnosis) {
  std::vector<Wording> out;
  const auto add = [&](Wording w) {
    const bool known = std::any_of(out.begin(), out.end(), [&](const Wording& o) {
      return o.pattern == w.pattern || fires(o.pattern, w.example);
    });
    if (!w.pattern.empty() && !known && out.size() < kWordings && has_words(w.pattern) &&
        fires(w.pattern, w.example))
      out.push_back(std::move(w));
  };
  for (const Evidence& e : diagnosis.evidence) {
    const std::string message = message_of(e.text);
    add({template_of(message), message});
  }
  // A detector may have quoted no line.
  if (out.empty())
    for (const Indicating& i : report.indicating)
      if (i.score >= 0.5) add(of_template(i.template_text));
  return out;
}

bool stands_in(const detect::Pool& pool, const Wording& wording) {
  const std::string form = logs::form_text(wording.example);
  return std::any_of(pool.forms.begin(), pool.forms.end(), [&](const detect::PoolForm& f) {
    return f.text == form || fires(wording.pattern, f.text);
  });
}

std::string listed(const std::vector<Wording>& wordings, std::string Wording::*what, const char* indent) {
  std::string out;
  for (const Wording& w : wordings) out += fmt::format("{}{},\n", indent, lua_text(w.*what));
  return out;
}

std::string harmless(const std::vector<Wording>& wordings) {
  for (const char* line : {"all is well", "step 120 of 5000 is done", "-"})
    if (std::none_of(wordings.begin(), wordings.end(),
                     [&](const Wording& w) { return fires(w.pattern, line); }))
      return line;
  return "";
}

std::string comment(const Diagnosis& d) {
  std::string out = "-- Confirmed from a diagnosis";
  if (!d.hosts.empty() && d.hosts[0].host) {
    out += " on " + *d.hosts[0].host;
    if (!d.hosts[0].ranks.empty()) out += fmt::format(" (rank {})", d.hosts[0].ranks[0]);
  }
  if (d.stage) out += fmt::format(", {} stage", to_string(*d.stage));
  std::string safe;
  for (const char c : to_terminal(out)) safe += c == '\n' || c == '\r' ? ' ' : c;
  return safe + "\n";
}

std::string rule_text(const Diagnosis& d, const std::string& id, const std::vector<Wording>& wordings) {
  const std::string title = d.title.empty() ? "A confirmed fault" : d.title;
  const std::string remedy = d.remedy.empty() ? "Look at the lines that are quoted." : d.remedy;
  std::string plain_title;  // without "<name>", which would be a hole
  for (const char c : title)
    if (c != '<' && c != '>') plain_title += c;
  return fmt::format(R"({}rule {{
  id = {}, engine = 1,
  title = {},
  category = "{}", component = "{}", severity = "error", symptom = "{}",
  blames = "{}",
  match = {{
    template = {{
{}    }},
  }},
  remedy = {},
  action = "{}",
  examples = {{
    hit = {{
{}    }},
    miss = {{ {} }},
  }},
}}
)",
                     comment(d), lua_text(id), lua_text(plain_title), to_string(d.category),
                     to_string(d.component), to_string(d.symptom), d.hosts.empty() ? "job" : "host",
                     listed(wordings, &Wording::pattern, "      "), lua_text(remedy),
                     to_string(d.action.kind), listed(wordings, &Wording::example, "      "),
                     lua_text(harmless(wordings)));
}

}  // namespace

Result<ConfirmedRule> rule_of(const Report& report, const Diagnosis& diagnosis, const std::string& id,
                              const detect::Pool* pool) {
  if (diagnosis.rule)
    return fail(ErrorCode::kInvalid, fmt::format("{}: the rule {} knows it already; no new one is needed",
                                                 diagnosis.id, *diagnosis.rule));
  std::vector<Wording> wordings = wordings_of(report, diagnosis);
  if (wordings.empty())
    return fail(ErrorCode::kInvalid, fmt::format("{}: no line of it is fit for a rule", diagnosis.id));
  ConfirmedRule out;
  if (pool) {
    std::erase_if(wordings, [&](const Wording& w) {
      const bool normal = stands_in(*pool, w);
      if (normal)
        out.notes.push_back(fmt::format("left out: successful jobs write '{}' too", shorten(w.pattern, 120)));
      return normal;
    });
    if (wordings.empty())
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: refused: it would fire in successful jobs, which write "
                              "all of its lines too",
                              diagnosis.id));
  }
  uint64_t hash = 0;
  for (const Wording& w : wordings) hash = hash64(w.pattern, hash);
  out.id =
      id.empty() ? fmt::format("site.{}.{}", to_string(diagnosis.component), hex64(hash).substr(0, 8)) : id;
  out.text = rule_text(diagnosis, out.id, wordings);
  const rules::RuleText file{out.id + ".lua", out.text};
  if (const auto set = rules::Ruleset::load({&file, 1}); !set)
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", out.id, set.error()[0].what));
  return out;
}

}  // namespace culprit::cli
