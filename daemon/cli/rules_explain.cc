#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesExplainExamples = R"(
Examples:
  culprit rules explain nvidia.xid.79
  culprit rules explain site.fabric.flap --rules site.lua)";

struct RulesExplainOptions {
  RuleChoice choice;
  std::string id;
};

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
  using S = rules::TextSource;
  std::vector<std::string> out;
  for (S s : {S::kLog, S::kKernel, S::kFinding, S::kEvent, S::kMetric, S::kFatal})
    if (rule.sources & rules::bit(s)) out.emplace_back(rules::to_string(s));
  return out;
}

std::vector<std::string> literals(const rules::Rule& rule) {
  std::vector<std::string> out;
  for (const rules::Pattern& p : rule.any) out.insert(out.end(), p.literals.begin(), p.literals.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void write_window(JsonWriter& w, const rules::Window& window) {
  w.object([&] {
    w.field("by", rules::to_string(window.by));
    w.field("span_ns", window.span_ns);
    w.field("at_least", window.at_least);
    w.text_or_null("same", window.same);
    w.text_or_null("distinct", window.distinct);
    w.text_or_null("after", window.after);
    w.text_or_null("unless", window.unless);
    w.text_or_null("with", window.with);
  });
}

void write_match(JsonWriter& w, const rules::Rule& rule) {
  std::vector<std::string_view> templates, regexes, except;
  for (const rules::Pattern& p : rule.any) (p.is_template ? templates : regexes).push_back(p.text);
  for (const rules::Pattern& p : rule.except) except.push_back(p.text);
  w.object([&] {
    w.values("template", templates);
    w.values("regex", regexes);
    w.values("except", except);
  });
}

void write_overridden(JsonWriter& w, const rules::Overridden& o) {
  w.object([&] {
    w.field("file", o.place.file);
    w.field("line", o.place.line);
    w.field("severity_before", to_string(o.severity));
    w.field("action_before", to_string(o.action));
    w.field("enabled_before", o.enabled);
  });
}

void write_examples(JsonWriter& w, const rules::Rule& rule) {
  w.object([&] {
    w.values("hit", rule.hit);
    w.values("miss", rule.miss);
  });
}

std::string to_json(const rules::Rule& rule) {
  JsonWriter w;
  w.object([&] {
    w.field("id", rule.id);
    w.field("title", rule.title);
    w.field("file", rule.place.file);
    w.field("line", rule.place.line);
    w.field("enabled", rule.enabled);
    w.field("category", to_string(rule.category));
    w.field("component", to_string(rule.component));
    w.field("severity", to_string(rule.severity));
    w.field("symptom", to_string(rule.symptom));
    w.values("source", sources(rule));
    w.member("match", [&] { write_match(w, rule); });
    w.values("holes", rule.holes);
    w.values("literals", literals(rule));
    w.field("scan_all", rule.scan_all);
    w.field("role", rules::to_string(rule.role));
    w.field("general", rule.general());
    w.field("says", rules::to_string(rule.says));
    w.field("blames", blame(rule.blame));
    if (rule.window)
      w.member("window", [&] { write_window(w, *rule.window); });
    else
      w.null("window");
    if (const auto& recovery = rule.recovery)
      w.member("recovery", [&] {
        w.object([&] {
          w.field("rule", recovery->rule);
          w.text_or_null("same", recovery->same);
          if (recovery->within_ns >= 0) w.field("within_ns", recovery->within_ns);
        });
      });
    else
      w.null("recovery");
    w.field("when", rule.when != 0);
    w.field("remedy", rule.remedy);
    w.field("action", to_string(rule.action));
    w.member("examples", [&] { write_examples(w, rule); });
    w.list("overridden", rule.overridden, [&](const rules::Overridden& o) { write_overridden(w, o); });
  });
  return w.finish();
}

class RulePage {
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
  std::string finish() { return std::move(out_); }

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
                                format_duration(w.span_ns), rules::to_string(w.by));
  if (!w.same.empty()) out += fmt::format(" with the same <{}>", w.same);
  if (!w.after.empty()) out += fmt::format(", after {}", w.after);
  if (!w.with.empty()) out += fmt::format(", with {}", w.with);
  if (!w.unless.empty()) out += fmt::format(", unless {} fired before", w.unless);
  return out;
}

std::string recovery_sentence(const rules::Recovery& r) {
  std::string out = fmt::format("over after {} on the same host", r.rule);
  if (!r.same.empty()) out += fmt::format(" with the same <{}>", r.same);
  return r.within_ns < 0 ? out : out + fmt::format("; no cause if within {}", format_duration(r.within_ns));
}

// Only fields that the override changes are shown.
std::string change(const rules::Rule& rule, size_t i) {
  const rules::Overridden& before = rule.overridden[i];
  const bool last = i + 1 == rule.overridden.size();
  const Severity severity = last ? rule.severity : rule.overridden[i + 1].severity;
  const ActionKind action = last ? rule.action : rule.overridden[i + 1].action;
  const bool enabled = last ? rule.enabled : rule.overridden[i + 1].enabled;
  std::vector<std::string> out;
  if (severity != before.severity)
    out.push_back(fmt::format("severity {} instead of {}", to_string(severity), to_string(before.severity)));
  if (action != before.action)
    out.push_back(fmt::format("action {} instead of {}", to_string(action), to_string(before.action)));
  if (enabled != before.enabled) out.emplace_back("switched off");
  return fmt::format("{}: {}", place(before.place), out.empty() ? "nothing" : joined(out));
}

std::string to_text(const rules::Rule& rule) {
  RulePage page;
  page.head(fmt::format("{}: {}{}", rule.id, rule.title, rule.enabled ? "" : " (switched off)"));
  page.row("defined", place(rule.place));
  for (size_t i = 0; i < rule.overridden.size(); ++i) page.row("changed", change(rule, i));
  page.row("says", fmt::format("{}, {}, {}, {}", to_string(rule.category), to_string(rule.component),
                               to_string(rule.severity), to_string(rule.symptom)));
  page.row("role", fmt::format("{}{}", rules::to_string(rule.role),
                               rule.says == rules::Says::kNotice
                                   ? "; a notice: a diagnosis below a verdict, where nothing else is found"
                               : rule.says < rules::Says::kCause
                                   ? ", gives way to rules that say more of the same line"
                                   : ""));
  page.row("blames", blame(rule.blame));
  page.row("source", joined(sources(rule)));
  for (const rules::Pattern& p : rule.any) page.row(p.is_template ? "template" : "regex", p.text);
  for (const rules::Pattern& p : rule.except) page.row("except", p.text);
  if (!rule.holes.empty()) page.row("holes", joined(rule.holes));
  page.row("looked for", rule.scan_all ? "every line is tried (scan = \"all\")" : joined(literals(rule)));
  if (rule.window) page.row("window", window_sentence(rule));
  if (rule.recovery) page.row("recovery", recovery_sentence(*rule.recovery));
  if (rule.when) page.row("when", "a function has to agree");
  page.row("remedy", rule.remedy);
  page.row("action", to_string(rule.action));
  page.rows("hit", rule.hit);
  page.rows("miss", rule.miss);
  return page.finish();
}

int explain(RulesExplainOptions& o) {
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  const auto index = loaded.set->find(o.id);
  if (!index) return complain_unknown(o.id, *loaded.set), kUnable;
  const rules::Rule& rule = loaded.set->rules()[*index];
  const bool printed = print(o.choice.format == "json" ? to_json(rule) + "\n" : to_text(rule));
  return printed ? kDone : kUnable;
}

}  // namespace

void add_rules_explain(Command& rules, Run& run) {
  auto o = std::make_shared<RulesExplainOptions>();
  Command* verb = rules.add_subcommand("explain", "Tell all of one rule");
  verb->footer(kRulesExplainExamples);
  verb->add_option("ID", o->id, "The rule")->required();
  add_rule_options(*verb, o->choice.rules);
  add_rule_format(*verb, o->choice);
  verb->callback([o, &run] { run = [o] { return explain(*o); }; });
}

}  // namespace culprit::cli
