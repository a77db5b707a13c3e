#include <fmt/format.h>

#include "app/config/rule_json.h"
#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"

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
  const Restart restart = last ? rule.restart : rule.overridden[i + 1].restart;
  if (restart != before.restart)
    out.push_back(fmt::format("restart {} instead of {}", to_string(restart), to_string(before.restart)));
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
  if (rule.ends != ProcessEnd::kUnknown) page.row("ends", to_string(rule.ends));
  if (rule.observes != Observes::kNothing) page.row("observes", to_string(rule.observes));
  page.row("blames", app::blame_of(rule));
  page.row("source", joined(app::sources_of(rule)));
  for (const rules::Pattern& p : rule.any) page.row(p.is_template ? "template" : "regex", p.text);
  for (const rules::Pattern& p : rule.except) page.row("except", p.text);
  for (const rules::Pattern& p : rule.reads) page.row("reads", p.text);
  if (!rule.holes.empty()) page.row("holes", joined(rule.holes));
  page.row("looked for",
           rule.scan_all ? "every line is tried (scan = \"all\")" : joined(app::literals_of(rule)));
  if (rule.window) page.row("window", window_sentence(rule));
  if (rule.recovery) page.row("recovery", recovery_sentence(*rule.recovery));
  if (rule.when) page.row("when", "a function has to agree");
  page.row("remedy", rule.remedy);
  page.row("action", to_string(rule.action));
  page.row("restart", app::restart_of(rule));
  page.rows("hit", rule.hit);
  page.rows("miss", rule.miss);
  return page.finish();
}

int explain(RulesExplainOptions& o) {
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  const auto index = loaded.set->find(o.id);
  if (!index) return report_unknown(o.id, *loaded.set), kUnable;
  const rules::Rule& rule = loaded.set->rules()[*index];
  const bool printed = print(o.choice.format == "json" ? app::explained_json(rule) + "\n" : to_text(rule));
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
