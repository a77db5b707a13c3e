#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "cli/rules.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
The files are checked on top of the shipped rules, which an override, `after` or `unless` may name. To check a
changed copy of the shipped rules themselves, say --no-library.

Examples:
  culprit rules check /etc/culprit/rules.d
  culprit rules check --format json site.lua | jq '.errors[] | .code'
  culprit rules check --no-library rules)";

// A measurement of at least this long: shorter ones tell more of the clock than of the rule.
constexpr auto kMeasured = std::chrono::milliseconds(5);
constexpr size_t kMeasuredRules = 100;   // of all: the check ends soon, however many look at every line
constexpr size_t kMeasuredLines = 2000;  // of the examples

struct Cost {
  std::string id;
  double ns_per_line = 0;
};

// What a rule that looks at every line costs on each, measured on the examples of all rules.
Cost measure(const rules::Rule& rule, const std::vector<std::string>& lines) {
  Cost out{rule.id, 0};
  auto matcher = rules::Matcher::create({&rule, 1});
  if (!matcher || lines.empty()) return out;
  rules::Scanner scanner(*matcher);
  const auto begun = std::chrono::steady_clock::now();
  auto spent = begun - begun;
  uint64_t looked = 0;
  for (; spent < kMeasured; spent = std::chrono::steady_clock::now() - begun) {
    for (const std::string& line : lines) {
      scanner.begin(line);
      scanner.match(0, line.size(), line, rules::Source::kLog);
    }
    looked += lines.size();
  }
  out.ns_per_line =
      static_cast<double>(std::chrono::nanoseconds(spent).count()) / static_cast<double>(looked);
  return out;
}

struct Checked {
  size_t files = 0, rules = 0, overrides = 0;
  std::vector<Cost> costs;
};

Checked count(const app::LoadedRules& loaded) {
  Checked out;
  std::set<std::string_view> given;
  for (size_t i = loaded.files.given; i < loaded.files.texts.size(); ++i)
    given.insert(loaded.files.texts[i].file);
  out.files = given.size();
  if (!loaded.set) return out;
  std::vector<std::string> lines;
  for (const rules::Rule& rule : loaded.set->rules())
    for (const auto* texts : {&rule.hit, &rule.miss})
      for (const std::string& text : *texts)
        for (std::string_view line : split(text, '\n'))
          if (lines.size() < kMeasuredLines) lines.emplace_back(line);
  for (const rules::Rule& rule : loaded.set->rules()) {
    for (const rules::Overridden& o : rule.overridden) out.overrides += given.contains(o.place.file);
    if (!given.contains(rule.place.file)) continue;
    ++out.rules;
    if (rule.scan_all && out.costs.size() < kMeasuredRules) out.costs.push_back(measure(rule, lines));
  }
  return out;
}

std::string to_json(const app::LoadedRules& loaded, const Checked& checked) {
  auto errors = nlohmann::ordered_json::array();
  for (const rules::RuleError& e : loaded.errors)
    errors.push_back({{"file", to_utf8(e.file)},
                      {"line", e.line},
                      {"column", e.column},
                      {"code", e.code},
                      {"what", to_utf8(e.what)}});
  auto costs = nlohmann::ordered_json::array();
  for (const Cost& c : checked.costs) costs.push_back({{"id", c.id}, {"ns_per_line", c.ns_per_line}});
  const nlohmann::ordered_json out = {{"files", checked.files},
                                      {"rules", checked.rules},
                                      {"overrides", checked.overrides},
                                      {"errors", std::move(errors)},
                                      {"costs", std::move(costs)}};
  return out.dump() + "\n";
}

std::string to_text(const app::LoadedRules& loaded, const Checked& checked) {
  std::string out;
  for (const rules::RuleError& e : loaded.errors) out += show_error(e, wants_color());
  const bool twice = std::any_of(loaded.errors.begin(), loaded.errors.end(), [](const rules::RuleError& e) {
    return e.code == "duplicate-id" && e.what.find("library:") != e.what.npos;
  });
  if (twice) out += "note: a changed copy of shipped rules is checked with --no-library\n";
  if (!loaded.errors.empty()) return out + counted(loaded.errors.size(), "error") + "\n";
  if (!loaded.set) return out;
  out += counted(checked.rules, "rule");
  if (checked.overrides) out += " and " + counted(checked.overrides, "override");
  out += " in " + counted(checked.files, "file") + ", all proven\n";
  for (const Cost& c : checked.costs)
    out += fmt::format("{}: scan = \"all\" costs {:.0f} ns on every line, measured here on the examples\n",
                       c.id, c.ns_per_line);
  return out;
}

int check(RuleChoice& o) {
  o.rules.site = false;  // the answer is the same on every machine
  const app::LoadedRules loaded = app::load_rules(o.rules);
  for (const Error& error : loaded.files.errors) complain(error.text);
  const Checked checked = count(loaded);
  // Nothing is said of rules where no file of any could be read.
  if (checked.files > 0 || o.format == "json")
    if (!print(o.format == "json" ? to_json(loaded, checked) : to_text(loaded, checked))) return kUnable;
  if (!loaded.files.errors.empty()) return kUnable;
  return loaded.errors.empty() ? kDone : kFound;
}

}  // namespace

void add_rules_check(Command& rules, Run& run) {
  auto o = std::make_shared<RuleChoice>();
  Command* verb = rules.add_subcommand("check", "Load rule files and prove them with their examples");
  verb->footer(kExamples);
  verb->add_option("PATH", o->rules.paths, "Rule files, and folders whose *.lua are read")->required();
  verb->add_flag("!--no-library", o->rules.library, "Without the shipped rules");
  add_rule_format(*verb, *o);
  verb->callback([o, &run] { run = [o] { return check(*o); }; });
}

}  // namespace culprit::cli
