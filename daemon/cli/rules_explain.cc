#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"

namespace culprit::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(
Examples:
  culprit rules explain nvidia.xid.79
  culprit rules explain site.fabric.flap --rules site.lua)";

struct Options {
  RuleChoice choice;
  std::string id;
};

std::string place(const rules::RulePlace& p) { return fmt::format("{}:{}", p.file, p.line); }

std::string_view blame(rules::Blame b) {
  switch (b) {
    case rules::Blame::kHost:
      return "host";
    case rules::Blame::kJob:
      return "job";
    case rules::Blame::kFew:
      return "the host, where few hosts tell of it";
  }
  return "";
}

std::vector<std::string> sources(const rules::Rule& rule) {
  using S = rules::Source;
  std::vector<std::string> out;
  for (S s : {S::kLog, S::kKernel, S::kFinding, S::kEvent, S::kMetric})
    if (rule.sources & rules::bit(s)) out.emplace_back(rules::word(s));
  return out;
}

std::vector<std::string> literals(const rules::Rule& rule) {
  std::vector<std::string> out;
  for (const rules::Pattern& p : rule.any) out.insert(out.end(), p.literals.begin(), p.literals.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::string> utf8(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& t : texts) out.push_back(to_utf8(t));
  return out;
}

Json window_json(const rules::Rule& rule) {
  if (!rule.window) return nullptr;
  const rules::Window& w = *rule.window;
  const auto named = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  return {{"by", rules::word(w.by)},       {"span_ns", w.span_ns},    {"at_least", w.at_least},
          {"distinct", named(w.distinct)}, {"after", named(w.after)}, {"unless", named(w.unless)}};
}

Json to_json(const rules::Rule& rule) {
  Json templates = Json::array(), regexes = Json::array(), except = Json::array(), changed = Json::array();
  for (const rules::Pattern& p : rule.any) (p.is_template ? templates : regexes).push_back(to_utf8(p.text));
  for (const rules::Pattern& p : rule.except) except.push_back(to_utf8(p.text));
  for (const rules::Overridden& o : rule.overridden)
    changed.push_back({{"file", to_utf8(o.place.file)},
                       {"line", o.place.line},
                       {"severity_before", word(o.severity)},
                       {"action_before", word(o.action)},
                       {"enabled_before", o.enabled}});
  return {{"id", rule.id},
          {"title", to_utf8(rule.title)},
          {"file", to_utf8(rule.place.file)},
          {"line", rule.place.line},
          {"enabled", rule.enabled},
          {"category", word(rule.category)},
          {"component", word(rule.component)},
          {"severity", word(rule.severity)},
          {"symptom", word(rule.symptom)},
          {"source", sources(rule)},
          {"match", {{"template", templates}, {"regex", regexes}, {"except", except}}},
          {"holes", rule.holes},
          {"literals", utf8(literals(rule))},
          {"scan_all", rule.scan_all},
          {"role", rules::word(rule.role)},
          {"general", rule.general},
          {"blames", blame(rule.blame)},
          {"window", window_json(rule)},
          {"when", rule.when != 0},
          {"remedy", to_utf8(rule.remedy)},
          {"action", word(rule.action)},
          {"examples", {{"hit", utf8(rule.hit)}, {"miss", utf8(rule.miss)}}},
          {"overridden", changed}};
}

class Page {
 public:
  void row(std::string_view name, std::string_view text) {
    for (std::string_view line : split(text, '\n')) {
      out_ +=
          fmt::format("{}  {}\n", inked(fmt::format("{:<10}", name), Ink::kDim, color_), to_terminal(line));
      name = {};
    }
  }
  void rows(std::string_view name, const std::vector<std::string>& texts) {
    for (const std::string& t : texts) row(std::exchange(name, {}), t);
  }
  void head(std::string_view text) { out_ += inked(to_terminal(text), Ink::kBold, color_) + "\n"; }
  std::string take() { return std::move(out_); }

 private:
  bool color_ = wants_color();
  std::string out_;
};

std::string joined(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string window_sentence(const rules::Rule& rule) {
  const rules::Window& w = *rule.window;
  std::string out = fmt::format("at least {} within {} of one {}",
                                w.distinct.empty() ? counted(w.at_least, "hit")
                                                   : fmt::format("{} values of <{}>", w.at_least, w.distinct),
                                format_duration(w.span_ns), rules::word(w.by));
  if (!w.after.empty()) out += fmt::format(", after {}", w.after);
  if (!w.unless.empty()) out += fmt::format(", unless {} fired before", w.unless);
  return out;
}

// What the override left as it was is not told.
std::string change(const rules::Rule& rule, size_t i) {
  const rules::Overridden& before = rule.overridden[i];
  const bool last = i + 1 == rule.overridden.size();
  const Severity severity = last ? rule.severity : rule.overridden[i + 1].severity;
  const ActionKind action = last ? rule.action : rule.overridden[i + 1].action;
  const bool enabled = last ? rule.enabled : rule.overridden[i + 1].enabled;
  std::vector<std::string> out;
  if (severity != before.severity)
    out.push_back(fmt::format("severity {} instead of {}", word(severity), word(before.severity)));
  if (action != before.action)
    out.push_back(fmt::format("action {} instead of {}", word(action), word(before.action)));
  if (enabled != before.enabled) out.emplace_back("switched off");
  return fmt::format("{}: {}", place(before.place), out.empty() ? "nothing" : joined(out));
}

std::string to_text(const rules::Rule& rule) {
  Page page;
  page.head(fmt::format("{}: {}{}", rule.id, rule.title, rule.enabled ? "" : " (switched off)"));
  page.row("defined", place(rule.place));
  for (size_t i = 0; i < rule.overridden.size(); ++i) page.row("changed", change(rule, i));
  page.row("says", fmt::format("{}, {}, {}, {}", word(rule.category), word(rule.component),
                               word(rule.severity), word(rule.symptom)));
  page.row("role", fmt::format("{}{}", rules::word(rule.role),
                               rule.general ? ", general: gives way to others on the same line" : ""));
  page.row("blames", blame(rule.blame));
  page.row("source", joined(sources(rule)));
  for (const rules::Pattern& p : rule.any) page.row(p.is_template ? "template" : "regex", p.text);
  for (const rules::Pattern& p : rule.except) page.row("except", p.text);
  if (!rule.holes.empty()) page.row("holes", joined(rule.holes));
  page.row("looked for", rule.scan_all ? "every line is tried (scan = \"all\")" : joined(literals(rule)));
  if (rule.window) page.row("window", window_sentence(rule));
  if (rule.when) page.row("when", "a function has to agree");
  page.row("remedy", rule.remedy);
  page.row("action", word(rule.action));
  page.rows("hit", rule.hit);
  page.rows("miss", rule.miss);
  return page.take();
}

int explain(Options& o) {
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  const auto index = loaded.set->find(o.id);
  if (!index) return complain_unknown(o.id, *loaded.set), kUnable;
  const rules::Rule& rule = loaded.set->rules()[*index];
  const bool printed = print(o.choice.format == "json" ? to_json(rule).dump() + "\n" : to_text(rule));
  return printed ? kDone : kUnable;
}

}  // namespace

void add_rules_explain(Command& rules, Run& run) {
  auto o = std::make_shared<Options>();
  Command* verb = rules.add_subcommand("explain", "Tell all of one rule");
  verb->footer(kExamples);
  verb->add_option("ID", o->id, "The rule")->required();
  add_rule_options(*verb, o->choice.rules);
  add_rule_format(*verb, o->choice);
  verb->callback([o, &run] { run = [o] { return explain(*o); }; });
}

}  // namespace culprit::cli
