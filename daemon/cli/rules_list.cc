#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  culprit rules list
  culprit rules list --format json | jq -r 'select(.severity == "fatal") | .id')";

std::string place(const rules::RulePlace& p) { return fmt::format("{}:{}", p.file, p.line); }

std::string json_row(const rules::Rule& rule) {
  JsonWriter w;
  w.object([&] {
    w.field("id", rule.id);
    w.field("title", rule.title);
    w.field("severity", to_string(rule.severity));
    w.field("category", to_string(rule.category));
    w.field("component", to_string(rule.component));
    w.field("symptom", to_string(rule.symptom));
    w.field("role", rules::to_string(rule.role));
    w.field("action", to_string(rule.action));
    w.field("general", rule.general);
    w.field("enabled", rule.enabled);
    w.field("file", rule.place.file);
    w.field("line", rule.place.line);
  });
  return w.finish() + "\n";
}

int list(RuleChoice& o) {
  app::LoadedRules loaded;
  if (!load_rules(o, loaded)) return kUnable;
  size_t widest = 0;
  for (const rules::Rule& rule : loaded.set->rules()) widest = std::max(widest, rule.id.size());
  std::string out;
  for (const rules::Rule& rule : loaded.set->rules()) {
    if (o.format == "json")
      out += json_row(rule);
    else
      out += fmt::format(
          "{:<{}}  {:<8} {:<10} {}{}{}\n", rule.id, widest, to_string(rule.severity),
          to_string(rule.category), to_terminal(rule.title), rule.enabled ? "" : " (switched off)",
          rule.overridden.empty() ? "" : " (changed at " + place(rule.overridden.back().place) + ")");
  }
  return print(out) ? kDone : kUnable;
}

}  // namespace

void add_rules_list(Command& rules, Run& run) {
  auto o = std::make_shared<RuleChoice>();
  Command* verb = rules.add_subcommand("list", "List all rules");
  verb->footer(kExamples);
  add_rule_options(*verb, o->rules);
  add_rule_format(*verb, *o);
  verb->callback([o, &run] { run = [o] { return list(*o); }; });
}

}  // namespace culprit::cli
