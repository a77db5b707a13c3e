// What the verbs of `culprit rules` share. Each verb has a file of its own.
#pragma once

#include <string>
#include <string_view>

#include "app/rules.h"
#include "cli/command.h"
#include "cli/verbs.h"

namespace culprit::cli {

// --rules, --no-library, --format.
struct RuleChoice {
  app::RuleOptions rules;
  std::string format = "text";
};
void add_rule_options(Command& verb, app::RuleOptions& rules);
void add_rule_format(Command& verb, RuleChoice& choice);

// Loads what was chosen; where that fails, says why on standard error and gives false.
bool load_rules(RuleChoice& choice, app::LoadedRules& out);

// Complains that there is no such rule, with the nearest one there is.
void complain_unknown(std::string_view id, const rules::Ruleset& set);
// "; did you mean 'nvidia.xid.79'?", empty where nothing is near.
std::string suggestion(std::string_view id, const rules::Ruleset& set);

// An error as compilers print it, safe for a terminal.
std::string show_error(const rules::RuleError& error, bool color);
// Whether standard output wants colour.
bool wants_color();

// rules::RuleHit's text on one line, not endless.
std::string one_line(std::string_view text);

void add_rules_check(Command& rules, Run& run);
void add_rules_test(Command& rules, Run& run);
void add_rules_match(Command& rules, Run& run);
void add_rules_list(Command& rules, Run& run);
void add_rules_explain(Command& rules, Run& run);
void add_rules_why(Command& rules, Run& run);
void add_rules_new(Command& rules, Run& run);
void add_rules_keys(Command& rules, Run& run);

// The reference of all keys: markdown, and annotations for the Lua language server.
std::string keys_markdown();
std::string keys_lua();

}  // namespace culprit::cli
