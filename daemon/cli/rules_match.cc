#include <fmt/format.h>

#include <algorithm>

#include "app/offline/diagnose.h"
#include "base/text.h"
#include "cli/layout.h"
#include "cli/reading.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesMatchExamples = R"(
Examples:
  culprit rules match runs/failed
  culprit rules match node-3.log --rules site.lua --no-library
  culprit rules match --format json runs/failed | jq -r .rule | sort | uniq -c)";

constexpr size_t kFlushBytes = 1 << 20;

struct RulesMatchOptions {
  ReadingOptions reading;
  RuleChoice choice;
};

Ink ink_of(Severity severity) {
  switch (severity) {
    case Severity::kFatal:
    case Severity::kError:
      return Ink::kAlarm;
    case Severity::kWarning:
      return Ink::kCaution;
    default:
      return Ink::kDim;
  }
}

std::string text_row(const core::RuleFired& fired, const rules::Rule& rule, const std::string& file) {
  const bool color = wants_color();
  return fmt::format("{}:{}: {} {}{}  {}\n", inked(to_terminal(file), Ink::kBold, color), fired.place.line,
                     inked(to_string(rule.severity), ink_of(rule.severity), color), rule.id,
                     fired.mentioned                      ? " (only mentioned)"
                     : rule.role == rules::Role::kCascade ? " (cascade)"
                                                          : "",
                     one_line(fired.hit.text));
}

std::string json_row(const core::RuleFired& fired, const rules::Rule& rule, const std::string& file) {
  const rules::RuleHit& hit = fired.hit;
  JsonWriter w;
  const auto write_holes = [&] {
    w.object([&] {
      for (size_t i = 0; i < rule.holes.size() && i < hit.holes.size(); ++i)
        if (!hit.holes[i].empty()) w.field(rule.holes[i], hit.holes[i]);
    });
  };
  w.object([&] {
    w.field("file", file);
    w.field("line", fired.place.line);
    w.field("rule", rule.id);
    w.field("severity", to_string(rule.severity));
    w.field("role", rules::to_string(rule.role));
    w.field("category", to_string(rule.category));
    w.field("component", to_string(rule.component));
    w.time("time_ns", hit.time_ns);
    w.text_or_null("host", hit.host);
    w.field("rank", hit.rank);
    w.member("holes", write_holes);
    w.field("count", fired.firing.count);
    w.field("mentioned", fired.mentioned);
    w.field("text", hit.text);
  });
  return w.finish() + "\n";
}

bool print_rows(const app::RuleMatches& matches, const rules::Ruleset& set, const app::JobFiles& files,
                bool json) {
  std::string out;
  for (const core::RuleFired& fired : matches.fired) {
    const rules::Rule& rule = set.rules()[fired.hit.rule];
    const std::string& file = files.logs[fired.place.source].info.file;
    out += json ? json_row(fired, rule, file) : text_row(fired, rule, file);
    if (out.size() < kFlushBytes) continue;
    if (!print(out)) return false;
    out.clear();
  }
  return print(out);
}

// Reading problems go to standard error and do not change the exit status.
void print_matches(const app::RuleMatches& matches, const app::JobFiles& files) {
  for (const auto* problems : {&files.problems, &matches.problems})
    for (const Problem& p : *problems)
      report_error(p.file.empty() || p.what.starts_with(p.file) ? p.what : p.file + ": " + p.what);
}

int match(RulesMatchOptions& o) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), kUnable;
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  app::ReadProgress progress;
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return report_error(files.error().text), kUnable;
  for (const Error& error : files->errors) report_error(error.text);
  progress.bytes_total = files->bytes;
  const app::RuleMatches matches = [&] {
    Watch watch(progress, !o.reading.quiet);
    return app::match_rules(*files, {o.reading.diagnose.parse, o.reading.diagnose.threads}, loaded.set,
                            progress);
  }();
  const bool printed = print_rows(matches, *loaded.set, *files, o.choice.format == "json");
  print_matches(matches, *files);
  if (!printed) return kUnable;
  return files->errors.empty() ? kDone : kUnable;
}

}  // namespace

void add_rules_match(Command& rules, Run& run) {
  auto o = std::make_shared<RulesMatchOptions>();
  Command* verb = rules.add_subcommand("match", "Show which rules fire where in logs");
  verb->footer(kRulesMatchExamples);
  add_reading_options(*verb, o->reading);
  add_rule_options(*verb, o->choice.rules);
  add_rule_format(*verb, o->choice);
  verb->callback([o, &run] { run = [o] { return match(*o); }; });
}

}  // namespace culprit::cli
