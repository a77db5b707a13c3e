#include <fmt/format.h>

#include "app/confirm/rule.h"
#include "app/confirm/rule_text.h"
#include "base/text.h"
#include "cli/rules.h"
#include "core/logs/header.h"

namespace culprit::cli {
namespace {

constexpr const char* kRulesNewExamples = R"(
Examples:
  culprit rules new site.storage.slow > site.lua
  culprit rules new site.fabric.flap --from node-3.log:120 > site.lua)";

constexpr size_t kMatchedBytes = 2000;  // bytes of the example

struct RulesNewOptions {
  RuleChoice choice;
  std::string id, from;
};

std::string skeleton(const std::string& id, const std::string& pattern, std::string_view hit) {
  return fmt::format(R"(rule {{
  id = "{0}", engine = 1,
  title = "{1} a title: what happened, in a few words",
  category = "unknown",    -- hardware user framework platform unknown: who has to act
  component = "unknown",   -- what broke; `culprit rules keys` lists the words
  severity = "error",      -- info warning error fatal
  match = {{ template = {2} }},
  remedy = "{1} what to do, in a sentence.",
  action = "none",         -- isolate check restart rollback retry mitigate fix none
  restart = "unknown",     -- never elsewhere older later same unknown: what must differ for the next attempt
  examples = {{
    hit = {{ {3} }},
    miss = {{ "{1} a harmless line that looks like it" }},
  }},
}}
)",
                     id, app::kFillIn, app::lua_text(pattern), app::lua_text(hit));
}

int make(RulesNewOptions& o) {
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  if (const auto index = loaded.set->find(o.id)) {
    const rules::RulePlace& place = loaded.set->rules()[*index].place;
    report_error(fmt::format("{}: there is such a rule already, at {}:{}", o.id, place.file, place.line));
    return kUnable;
  }
  std::string pattern = "fabric port <port> went down", hit = "fabric port 7 went down";
  if (!o.from.empty()) {
    auto line = app::read_line(o.from);
    if (!line) return report_error(line.error().text), kUnable;
    logs::HeaderParser headers({});
    // Only the first part of a very long line is a useful example.
    hit = line->text.substr(0, kMatchedBytes);
    while (hit.ends_with('\r')) hit.pop_back();
    pattern = app::template_of(trim(std::string_view(hit).substr(headers.parse(hit).message)));
    if (pattern.empty())
      return report_error(
                 fmt::format("{}: nothing in the line is fixed: it has no three characters in a row that "
                             "every such line would have",
                             o.from)),
             kUnable;
  }
  const std::string text = skeleton(o.id, pattern, hit);
  // The printed rule must load: an invalid id is rejected here with the loader's message.
  const rules::RuleText file{o.id + ".lua", text};
  if (auto set = rules::Ruleset::load({&file, 1}); !set)
    return report_error(fmt::format("{}: {}", o.id, set.error()[0].what)), kUnable;
  return print(text) ? kDone : kUnable;
}

}  // namespace

void add_rules_new(Command& rules, Run& run) {
  auto o = std::make_shared<RulesNewOptions>();
  Command* verb =
      rules.add_subcommand("new", "Print a rule to begin with; `rules check` tells what is left to fill in");
  verb->footer(kRulesNewExamples);
  verb->add_option("ID", o->id, "Its name, such as site.fabric.flap")->required();
  verb->add_option("--from", o->from, "FILE:LINE: make its template of this line");
  add_rule_options(*verb, o->choice.rules);
  verb->callback([o, &run] { run = [o] { return make(*o); }; });
}

}  // namespace culprit::cli
