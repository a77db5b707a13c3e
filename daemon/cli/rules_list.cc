#include <fmt/format.h>

#include <algorithm>

#include "app/config/rule_json.h"
#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesListExamples = R"(
Examples:
  culprit rules list
  culprit rules list --format json | jq -r 'select(.severity == "fatal") | .id')";

int list(RuleChoice& o) {
  app::LoadedRules loaded;
  if (!load_rules(o, loaded)) return kUnable;
  size_t widest = 0;
  for (const rules::Rule& rule : loaded.set->rules()) widest = std::max(widest, rule.id.size());
  std::string out;
  for (const rules::Rule& rule : loaded.set->rules()) {
    if (o.format == "json")
      out += app::to_json(rule) + "\n";
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
  verb->footer(kRulesListExamples);
  add_rule_options(*verb, o->rules);
  add_rule_format(*verb, *o);
  verb->callback([o, &run] { run = [o] { return list(*o); }; });
}

}  // namespace culprit::cli
