#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesCheckExamples = R"(
The files are checked on top of the shipped rules, which an override, `after` or `unless` may name. To check a
changed copy of the shipped rules themselves, say --no-library.

Examples:
  culprit rules check /etc/culprit/rules.d
  culprit rules check --format json site.lua | jq '.errors[] | .code'
  culprit rules check --no-library rules)";

// Minimum duration of a measurement: shorter ones depend on the clock's resolution.
constexpr auto kMeasured = std::chrono::milliseconds(5);
constexpr size_t kMeasuredRules = 100;   // limit of measured rules, so that the check ends soon even if many
                                         // rules match every line
constexpr size_t kMeasuredLines = 2000;  // lines of the examples

struct Cost {
  std::string id;
  double ns_per_line = 0;
};

// Cost per line of a rule that sees every line, measured on the examples of all rules.
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
      scanner.match(0, line.size(), line, rules::TextSource::kLog);
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
  JsonWriter w;
  w.object([&] {
    w.field("files", checked.files);
    w.field("rules", checked.rules);
    w.field("overrides", checked.overrides);
    write_errors(w, loaded.errors);
    w.list("costs", checked.costs, [&](const Cost& c) {
      w.object([&] {
        w.field("id", c.id);
        w.field("ns_per_line", c.ns_per_line);
      });
    });
  });
  return w.finish() + "\n";
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

// Adds marked texts in the given files that are still to be written.
void add_open(app::LoadedRules& loaded) {
  if (!loaded.set) return;
  std::set<std::string_view> given;
  for (size_t i = loaded.files.given; i < loaded.files.texts.size(); ++i)
    given.insert(loaded.files.texts[i].file);
  for (const rules::OpenText& open : loaded.set->left_open())
    if (given.contains(open.error.file)) loaded.errors.push_back(open.error);
}

// A file with a library rule is a copy of the library's file: each of its rules must state the same fields.
void add_unstated(app::LoadedRules& loaded) {
  if (!loaded.set) return;
  const auto shipped = rules::Ruleset::shipped();
  if (!shipped) return;
  const auto is_shipped = [&](const rules::Rule& rule) { return shipped->find(rule.id).has_value(); };
  if (std::ranges::none_of(loaded.set->rules(), is_shipped)) return;
  for (rules::RuleError& error : rules::unstated(*loaded.set, loaded.files.texts))
    loaded.errors.push_back(std::move(error));
}

int check(RuleChoice& o) {
  o.rules.site = false;  // the result must be the same on every machine
  app::LoadedRules loaded = app::load_rules(o.rules);
  add_open(loaded);
  if (!o.rules.library) add_unstated(loaded);
  for (const Error& error : loaded.files.errors) report_error(error.text);
  const Checked checked = count(loaded);
  // No output if none of the rule files could be read.
  if (checked.files > 0 || o.format == "json")
    if (!print(o.format == "json" ? to_json(loaded, checked) : to_text(loaded, checked))) return kUnable;
  if (!loaded.files.errors.empty()) return kUnable;
  return loaded.errors.empty() ? kDone : kFound;
}

}  // namespace

void add_rules_check(Command& rules, Run& run) {
  auto o = std::make_shared<RuleChoice>();
  Command* verb = rules.add_subcommand("check", "Load rule files and prove them with their examples");
  verb->footer(kRulesCheckExamples);
  verb->add_option("PATH", o->rules.paths, "Rule files, and folders whose *.lua are read")->required();
  verb->add_flag("!--no-library", o->rules.library, "Without the shipped rules");
  add_rule_format(*verb, *o);
  verb->callback([o, &run] { run = [o] { return check(*o); }; });
}

}  // namespace culprit::cli
