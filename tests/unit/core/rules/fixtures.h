// Common helpers of the tests of rules: short rules, and the errors of loading them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::rules {

// A whole rule that fires on "fault <n>"; `more` has further keys, or other values of these (the last one
// counts).
inline std::string rule_text(std::string_view id, std::string_view more = "") {
  return fmt::format(
      "rule {{ id = \"{}\", engine = 1, title = \"t\", category = \"hardware\", component = \"gpu\",\n"
      "  severity = \"error\", match = {{ template = \"fault <n>\" }}, remedy = \"r\",\n"
      "  examples = {{ hit = {{ \"fault 1\" }}, miss = {{ \"fine\" }} }},\n"
      "  {} }}\n",
      id, more);
}

inline std::shared_ptr<Ruleset> load_all(const std::vector<RuleText>& files, std::string* errors = nullptr) {
  auto loaded = Ruleset::load(files);
  if (loaded) return *loaded;
  for (const RuleError& e : loaded.error())
    if (errors) *errors += format_error(e);
  return nullptr;
}

// All errors of the loader for one file "a.lua"; empty: none.
inline std::string errors_of(const std::string& text) {
  std::string errors;
  load_all({{"a.lua", text}}, &errors);
  return errors;
}

}  // namespace culprit::rules
