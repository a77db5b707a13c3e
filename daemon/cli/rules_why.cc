#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/reading.h"
#include "cli/rules.h"
#include "core/logs/header.h"
#include "core/rules/near.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

using Stop = rules::NearRule::Stop;

constexpr const char* kRulesWhyExamples = R"(
Examples:
  culprit rules why node-3.log:120
  culprit rules why node-3.log:120 --rules site.lua)";

struct RulesWhyOptions {
  ReadingOptions reading;
  RuleChoice choice;
  std::string place;
  size_t top = 5;
};

// Result of the line's rules after reading the whole file, including windows and functions.
struct OnLine {
  std::vector<uint32_t> fired, mentioned;
};

OnLine firing(const RulesWhyOptions& o, const app::LineOfFile& line, const app::LoadedRules& loaded) {
  OnLine out;
  app::ReadProgress progress;
  auto files = app::collect_files({line.file}, o.reading.diagnose, progress);
  if (!files) return out;
  const app::RuleMatches matches =
      app::match_rules(*files, {o.reading.diagnose.parse, o.reading.diagnose.threads}, loaded.set, progress);
  for (const core::RuleFired& f : matches.fired)
    if (f.place.line == line.line) (f.mentioned ? out.mentioned : out.fired).push_back(f.hit.rule);
  return out;
}

// The value in the JSON output.
std::string_view stop_word(const rules::NearRule& near, bool fires) {
  switch (near.stop) {
    case Stop::kFound:
      return fires ? "fires" : "window";
    case Stop::kGeneral:
      return "general";
    case Stop::kMentioned:
      return "mentioned";
    case Stop::kSource:
      return "source";
    case Stop::kExcept:
      return "except";
    case Stop::kHeader:
      return "header";
    case Stop::kWording:
      return near.missing.empty() ? "wording" : "literal";
  }
  return "";
}

std::string source_names(const rules::Rule& rule) {
  using S = rules::TextSource;
  std::string out;
  for (S s : {S::kLog, S::kKernel, S::kFinding, S::kEvent, S::kMetric, S::kFatal})
    if (rule.sources & rules::bit(s))
      out += fmt::format("{}{}", out.empty() ? "" : ", ", rules::to_string(s));
  return out;
}

// `header`: a sentence on the start of the message.
std::string sentence(const rules::NearRule& near, const rules::Rule& rule, bool fires,
                     const std::string& header) {
  switch (near.stop) {
    case Stop::kFound:
      if (fires) return "fires";
      return rule.window ? "its wording stands here, and its window or `when` does not hold on this line"
                         : "its wording stands here, and its `when` says no";
    case Stop::kGeneral:
      return fmt::format("its wording stands here; it gives way to {}, which says more", near.other);
    case Stop::kMentioned:
      return "its wording stands here; the line quotes it, denies it or looks for it, and does not report it";
    case Stop::kSource:
      return fmt::format("its wording stands here, but it looks at {} alone", source_names(rule));
    case Stop::kExcept:
      return fmt::format("its wording stands here, and so does its exception  {}", one_line(near.other));
    case Stop::kHeader:
      return fmt::format("its wording stands in the line, and rules see the message alone: {}",
                         to_terminal(header));
    case Stop::kWording:
      break;
  }
  std::string out;
  if (!near.missing.empty()) out = fmt::format("the text \"{}\" is missing; ", one_line(near.missing));
  return out + fmt::format("stopped after \"{}\", wants next  {}", to_terminal(shorten(near.matched, 120)),
                           to_terminal(shorten(near.wanted, 120)));
}

std::string to_text(const std::vector<rules::NearRule>& nearest, const std::vector<uint32_t>& fired,
                    const rules::Ruleset& set, const std::string& header) {
  std::string out = header.empty() ? "" : to_terminal(header) + "\n";
  if (nearest.empty()) return out + "no rule comes near to this line; `culprit rules new` makes one of it\n";
  const bool color = wants_color();
  for (const rules::NearRule& near : nearest) {
    const rules::Rule& rule = set.rules()[near.rule];
    const bool fires = std::find(fired.begin(), fired.end(), near.rule) != fired.end();
    out += fmt::format("{}: {}\n", inked(rule.id, Ink::kBold, color), sentence(near, rule, fires, header));
    out += fmt::format("    {}  ({}:{})\n", to_terminal(shorten(near.wording, 160)), rule.place.file,
                       rule.place.line);
  }
  return out;
}

std::string to_json(const std::vector<rules::NearRule>& nearest, const std::vector<uint32_t>& fired,
                    const rules::Ruleset& set, std::string_view header) {
  std::string out;
  for (const rules::NearRule& near : nearest) {
    const rules::Rule& rule = set.rules()[near.rule];
    const bool fires = std::find(fired.begin(), fired.end(), near.rule) != fired.end();
    JsonWriter w;
    w.object([&] {
      w.field("rule", rule.id);
      w.field("stop", stop_word(near, fires));
      w.field("wording", near.wording);
      w.field("matched", near.matched);
      w.field("wanted", near.wanted);
      w.field("missing", near.missing);
      w.field("other", near.other);
      w.field("file", rule.place.file);
      w.field("line", rule.place.line);
      w.field("header", header);
    });
    out += w.finish() + "\n";
  }
  return out;
}

int why(RulesWhyOptions& o) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), kUnable;
  auto line = app::read_line(o.place);
  if (!line) return report_error(line.error().text), kUnable;
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  logs::HeaderParser headers({});
  const logs::Header header = headers.parse(line->text);
  const auto source = header.kernel ? rules::TextSource::kKernel : rules::TextSource::kLog;
  const auto [fired, mentioned] = firing(o, *line, loaded);
  // Such a rule matches the line together with its header.
  const bool whole = std::ranges::any_of(fired, [&](uint32_t rule) {
    return loaded.set->rules()[rule].sources == rules::bit(rules::TextSource::kFatal);
  });
  const size_t message = whole ? 0 : header.message;
  auto nearest = rules::nearest_rules(*loaded.set, {line->text, message},
                                      whole ? rules::TextSource::kFatal : source, o.top);
  for (rules::NearRule& near : nearest)
    if (std::ranges::find(mentioned, near.rule) != mentioned.end()) near.stop = Stop::kMentioned;
  const bool json = o.choice.format == "json";
  const std::string read_as_header = line->text.substr(0, message);
  const std::string begins = whole ? "" : logs::begins_after(line->text);
  if (!print(json ? to_json(nearest, fired, *loaded.set, read_as_header)
                  : to_terminal(line->text) + "\n" + to_text(nearest, fired, *loaded.set, begins)))
    return kUnable;
  return kDone;
}

}  // namespace

void add_rules_why(Command& rules, Run& run) {
  auto o = std::make_shared<RulesWhyOptions>();
  Command* verb = rules.add_subcommand("why", "Tell why rules fire or not on one line of a log");
  verb->footer(kRulesWhyExamples);
  verb->add_option("FILE:LINE", o->place, "The line, from 1")->required();
  verb->add_option("--top", o->top, "How many rules to tell of")->between(1u, 1000u)->show_default();
  add_rule_options(*verb, o->choice.rules);
  add_rule_format(*verb, o->choice);
  verb->callback([o, &run] { run = [o] { return why(*o); }; });
}

}  // namespace culprit::cli
