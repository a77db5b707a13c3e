#include "cli/rules.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/layout.h"
#include "core/rules/keys.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesExamples = R"(
Examples:
  culprit rules new site.fabric.flap --from node-3.log:120 > site.lua
  culprit rules match node-3.log --rules site.lua
  culprit rules explain nvidia.xid.79

rules/README.md tells how to write one.)";

constexpr size_t kQuotedBytes = 160;

}  // namespace

void add_rule_format(Command& verb, RuleChoice& choice) {
  verb.add_option("--format,-f", choice.format, "text or json")->one_of({"text", "json"})->show_default();
}

void add_rule_options(Command& verb, app::RuleOptions& rules) {
  verb.add_option(
          "--rules", rules.paths,
          fmt::format("A rule file, or a folder of them, in addition to the shipped ones and {}; repeat",
                      app::kSiteRules))
      ->one_value();
  verb.add_flag("!--no-library", rules.library, "Without the shipped rules");
}

bool load_rules(RuleChoice& choice, app::LoadedRules& out) {
  out = app::load_rules(choice.rules);
  for (const Error& error : out.files.errors) report_error(error.text);
  if (!out.errors.empty()) {
    const rules::RuleError& e = out.errors[0];
    const std::string more =
        out.errors.size() > 1 ? fmt::format(" (and {} more)", counted(out.errors.size() - 1, "error")) : "";
    report_error(fmt::format("{}:{}: error[{}]: {}{}; `culprit rules check` shows all", e.file, e.line,
                             e.code, e.what, more));
  }
  if (!out.set) return false;
  for (const app::OpenRule& open : app::open_rules(*out.set)) report_error(open.file + ": " + open.what);
  return true;
}

std::string suggestion(std::string_view id, const rules::Ruleset& set) {
  std::vector<std::string_view> ids;
  for (const rules::Rule& rule : set.rules()) ids.push_back(rule.id);
  std::string_view best = rules::nearest(id, ids);
  // Also suggests a long id by its start or end.
  for (size_t i = 0; best.empty() && id.size() >= 3 && i < ids.size(); ++i)
    if (ids[i].find(id) != std::string_view::npos) best = ids[i];
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

void report_unknown(std::string_view id, const rules::Ruleset& set) {
  const std::string near = suggestion(id, set);
  report_error(
      fmt::format("{}: no such rule{}", id, near.empty() ? "; `culprit rules list` shows all" : near));
}

// no-color.org: NO_COLOR counts with any non-empty value.
bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(1) && (!no_color || *no_color == '\0');
}

std::string show_error(const rules::RuleError& error, bool color) {
  const std::string text = rules::format_error(error);
  const std::string kind = fmt::format("error[{}]:", error.code);
  std::string out;
  bool first = true;
  for (std::string_view line : split(std::string_view(text).substr(0, text.size() - 1), '\n')) {
    const size_t at = first ? line.find(kind) : line.npos;
    if (at != line.npos) {
      out += inked(to_terminal(line.substr(0, at)), Ink::kBold, color) + inked(kind, Ink::kAlarm, color) +
             to_terminal(line.substr(at + kind.size()));
    } else {
      const bool caret = line.starts_with("       | ");
      out += caret ? inked(line, Ink::kAccent, color) : to_terminal(line);
    }
    out += '\n';
    first = false;
  }
  return out;
}

std::string place(const rules::RulePlace& p) { return fmt::format("{}:{}", p.file, p.line); }

std::string one_line(std::string_view text) { return to_terminal(shorten(trim(text), kQuotedBytes)); }

void add_rules(Command& app, Run& run) {
  Command* rules = app.add_subcommand("rules", "Write, prove, try and look up fault patterns");
  rules->require_subcommand();
  rules->footer(kRulesExamples);
  add_rules_check(*rules, run);
  add_rules_test(*rules, run);
  add_rules_match(*rules, run);
  add_rules_list(*rules, run);
  add_rules_explain(*rules, run);
  add_rules_why(*rules, run);
  add_rules_new(*rules, run);
  add_rules_review(*rules, run);
  add_rules_replay(*rules, run);
  add_rules_keys(*rules, run);
}

void write_errors(JsonWriter& w, const std::vector<rules::RuleError>& errors) {
  w.list("errors", errors, [&](const rules::RuleError& e) {
    w.object([&] {
      w.field("file", e.file);
      w.field("line", e.line);
      w.field("column", e.column);
      w.field("code", e.code);
      w.field("what", e.what);
    });
  });
}

}  // namespace culprit::cli
