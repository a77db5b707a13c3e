#include <fmt/format.h>

#include "base/text.h"
#include "cli/rules.h"
#include "core/rules/keys.h"
#include "core/rules/observed_holes.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesKeysExamples = R"(
Examples:
  culprit rules keys
  culprit rules keys --format lua > culprit.lua)";

using rules::Key;
using rules::KeyType;

void keys_table(std::string& out, std::span<const Key> keys) {
  out += "| key | is | absent | what it says |\n| --- | --- | --- | --- |\n";
  for (const Key& key : keys) {
    std::string type(rules::type_name(key.type));
    if (!key.words.empty()) {
      type += ":";
      for (std::string_view w : split(key.words, ' ')) type += fmt::format(" `{}`", w);
    }
    const std::string absent = key.required ? "**needed**" : std::string(key.fallback);
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.path, type, absent, key.doc);
  }
}

void holes_table(std::string& out) {
  out += "| hole | is | what it says |\n| --- | --- | --- |\n";
  for (const rules::HoleKey& key : rules::observed_holes())
    out += fmt::format("| `{}` | {} | {} |\n", key.name, rules::type_name(key.type), key.doc);
}

std::string lua_type(const Key& key, const std::string& owner) {
  std::string words;
  for (std::string_view w : key.words.empty() ? std::vector<std::string_view>{} : split(key.words, ' '))
    words += fmt::format("{}\"{}\"", words.empty() ? "" : "|", w);
  switch (key.type) {
    case KeyType::kText:
    case KeyType::kDuration:
      return "string";
    case KeyType::kTexts:
      return "string|string[]";
    case KeyType::kWord:
      return words;
    case KeyType::kWords:
      return fmt::format("{}|({})[]", words, words);
    case KeyType::kCount:
      return "integer";
    case KeyType::kFlag:
      return "boolean";
    case KeyType::kFunction:
      return "fun(event: culprit.event, window: culprit.window): boolean";
    case KeyType::kTable:
      return owner + "." + std::string(key.path);
  }
  return "any";
}

// The class of a table, after the classes of its inner tables.
void lua_class(std::string& out, std::span<const Key> keys, const std::string& name,
               std::string_view prefix) {
  for (const Key& key : keys)
    if (key.type == KeyType::kTable && prefix.empty())
      lua_class(out, keys, fmt::format("{}.{}", name, key.path), std::string(key.path) + ".");
  out += fmt::format("---@class {}\n", name);
  for (const Key& key : keys) {
    if (!key.path.starts_with(prefix) || key.path.find('.', prefix.size()) != key.path.npos) continue;
    out += fmt::format("---@field {}{} {} {}\n", key.path.substr(prefix.size()), key.required ? "" : "?",
                       lua_type(key, name), key.doc);
  }
  out += "\n";
}

// Other names in a rule's environment, in addition to the two verbs; see rules/README.md.
constexpr std::string_view kLuaRest = R"(---@class culprit.event
---@field text string the message
---@field source "log"|"kernel"|"finding"|"event"|"metric"
---@field host? string
---@field rank? integer
---@field device? integer
---@field step? integer
---@field time_ns? integer
---@field [string] string|integer|nil every named hole

---@class culprit.window
---@field count integer hits in the window
---@field distinct integer values of the hole that `distinct` names
---@field hosts integer
---@field ranks integer
---@field first_ns? integer
---@field last_ns? integer
---@field down_ns integer how long the states of the hits lasted together, by `recovery`

---@param fields culprit.rule
function rule(fields) end

---@param fields culprit.override
function override(fields) end

text = {}

---Whether the regex (RE2) stands in s.
---@param s string
---@param regex string
---@return boolean
function text.has(s, regex) end

---The regex's groups, or the whole match where it has none; nil where it does not match.
---@param s string
---@param regex string
---@return string? ...
function text.match(s, regex) end

---The first number in s, or nil.
---@param s string
---@return number?
function text.number(s) end
)";

}  // namespace

std::string keys_markdown() {
  std::string out = "Of `rule { … }`:\n\n";
  keys_table(out, rules::rule_keys());
  out += "\nOf `override { … }`:\n\n";
  keys_table(out, rules::override_keys());
  out += "\n### Holes of ranks that wait\n\nRead from lines of rules with `observes`:\n\n";
  holes_table(out);
  return out;
}

std::string keys_lua() {
  std::string out =
      "---@meta culprit\n-- Printed by `culprit rules keys --format lua`, for the Lua language server; no "
      "rule file.\n\n";
  lua_class(out, rules::rule_keys(), "culprit.rule", "");
  lua_class(out, rules::override_keys(), "culprit.override", "");
  return out + std::string(kLuaRest);
}

void add_rules_keys(Command& rules, Run& run) {
  auto format = std::make_shared<std::string>("markdown");
  Command* verb = rules.add_subcommand("keys", "Print the reference of all keys of a rule");
  verb->footer(kRulesKeysExamples);
  verb->add_option("--format,-f", *format, "markdown, or lua: annotations for the Lua language server")
      ->one_of({"markdown", "lua"})
      ->show_default();
  verb->callback([format, &run] {
    run = [format] {
      const bool printed = print(*format == "lua" ? keys_lua() : keys_markdown());
      return printed ? kDone : kUnable;
    };
  });
}

}  // namespace culprit::cli
