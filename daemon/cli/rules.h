// Common parts of the verbs of `culprit rules`. Each verb has a separate file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/config/rule_files.h"
#include "cli/command.h"
#include "cli/verbs.h"
#include "model/json_writer.h"

namespace culprit::cli {

// --rules, --no-library, --format.
struct RuleChoice {
  app::RuleOptions rules;
  std::string format = "text";
};
void add_rule_options(Command& verb, app::RuleOptions& rules);
void add_rule_format(Command& verb, RuleChoice& choice);

// Loads the chosen rules; on failure prints the reason on standard error and returns false.
bool load_rules(RuleChoice& choice, app::LoadedRules& out);

// Prints that the rule does not exist, with the closest existing id.
void report_unknown(std::string_view id, const rules::Ruleset& set);
// "; did you mean 'nvidia.xid.79'?", empty if no id is similar.
std::string suggestion(std::string_view id, const rules::Ruleset& set);

// An error in the format of compilers, safe for a terminal.
std::string show_error(const rules::RuleError& error, bool color);
// The member "errors" of JSON output.
void write_errors(JsonWriter& w, const std::vector<rules::RuleError>& errors);
// Whether standard output supports colour.
bool wants_color();

// "FILE:LINE".
std::string place(const rules::RulePlace& p);

// rules::RuleHit's text on one line of limited length.
std::string one_line(std::string_view text);

void add_rules_check(Command& rules, Run& run);
void add_rules_test(Command& rules, Run& run);
void add_rules_match(Command& rules, Run& run);
void add_rules_list(Command& rules, Run& run);
void add_rules_explain(Command& rules, Run& run);
void add_rules_why(Command& rules, Run& run);
void add_rules_new(Command& rules, Run& run);
void add_rules_review(Command& rules, Run& run);
void add_rules_replay(Command& rules, Run& run);
void add_rules_keys(Command& rules, Run& run);

// The reference of all keys: as markdown, and as annotations for the Lua language server.
std::string keys_markdown();
std::string keys_lua();

}  // namespace culprit::cli
