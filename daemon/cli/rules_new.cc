#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/text.h"
#include "cli/rules.h"
#include "core/logs/header.h"
#include "core/logs/mask.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"

namespace culprit::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  culprit rules new site.storage.slow > site.lua
  culprit rules new site.fabric.flap --from node-3.log:120 > site.lua)";

constexpr size_t kTemplateBytes = 400;  // what tells messages apart stands at their beginning
constexpr size_t kLineBytes = 2000;     // of the example
constexpr std::string_view kHole = "<_>";

struct Options {
  RuleChoice choice;
  std::string id, from;
};

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) out.append(c == '<' ? 2 : 1, c);
  return out;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::string_view word : split(text, ' '))
    if (!word.empty()) out.push_back(word);
  return out;
}

// The word with holes where its masked form has some; as it is where the two do not fit.
std::string with_holes(std::string_view word, std::string_view form) {
  constexpr std::string_view kMask = "<*>";
  std::string out, regex;
  for (size_t at = 0;;) {
    const size_t hole = form.find(kMask, at);
    const std::string_view literal = form.substr(at, hole == form.npos ? form.npos : hole - at);
    out += escaped(literal);
    regex += re2::RE2::QuoteMeta(re2::StringPiece(literal.data(), literal.size()));
    if (hole == form.npos) break;
    if (!out.ends_with(kHole)) out += kHole;
    regex += ".+";
    at = hole + kMask.size();
  }
  return re2::RE2::FullMatch(re2::StringPiece(word.data(), word.size()),
                             re2::RE2(regex, rules::regex_options()))
             ? out
             : escaped(word);
}

bool supports(const std::string& pattern, std::string_view message) {
  const auto regex = rules::template_to_regex(pattern);
  return regex && !rules::analyse(*regex)->literals.empty() &&
         re2::RE2::PartialMatch(re2::StringPiece(message.data(), message.size()),
                                re2::RE2(*regex, rules::regex_options()));
}

// A template of the message, with a hole for each part that differs from line to line; empty where the
// message has nothing fixed.
std::string template_of(std::string_view message) {
  if (message.size() > kTemplateBytes)
    message = message.substr(0, std::min(message.rfind(' ', kTemplateBytes), kTemplateBytes));
  const std::string form = logs::form_text(message);
  const std::vector<std::string_view> parts = words(message), forms = words(form);
  std::string out;
  const char* end = message.data();
  for (size_t i = 0; i < parts.size(); ++i) {
    out.append(end, parts[i].data());  // blanks as they are
    end = parts[i].data() + parts[i].size();
    const bool number = parts[i].find_first_of("0123456789") != parts[i].npos;
    out += parts.size() == forms.size() ? with_holes(parts[i], forms[i])
           : number                     ? std::string(kHole)
                                        : escaped(parts[i]);
  }
  if (supports(out, message)) return out;
  out = escaped(message);
  return supports(out, message) ? out : "";
}

std::string lua_text(std::string_view text) {
  const bool utf8 = to_utf8(text) == text;  // else its bytes are named one by one
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < ' ' || byte == 0x7f || (byte >= 0x80 && !utf8))
      out += fmt::format("\\{:03}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string skeleton(const std::string& id, const std::string& pattern, std::string_view hit) {
  return fmt::format(R"(rule {{
  id = "{}", engine = 1,
  title = "What happened, in a few words",
  category = "unknown",    -- hardware user framework platform unknown: who has to act
  component = "unknown",   -- what broke; `culprit rules keys` lists the words
  severity = "error",      -- info warning error fatal
  match = {{ template = {} }},
  remedy = "What to do, in a sentence.",
  action = "none",         -- isolate check restart rollback retry mitigate fix none
  examples = {{
    hit = {{ {} }},
    miss = {{ "A harmless line that looks like it" }},
  }},
}}
)",
                     id, lua_text(pattern), lua_text(hit));
}

int make(Options& o) {
  app::LoadedRules loaded;
  if (!load_rules(o.choice, loaded)) return kUnable;
  if (const auto index = loaded.set->find(o.id)) {
    const rules::RulePlace& place = loaded.set->rules()[*index].place;
    complain(fmt::format("{}: there is such a rule already, at {}:{}", o.id, place.file, place.line));
    return kUnable;
  }
  std::string pattern = "fabric port <port> went down", hit = "fabric port 7 went down";
  if (!o.from.empty()) {
    auto line = app::read_line(o.from);
    if (!line) return complain(line.error().text), kUnable;
    logs::HeaderParser headers({});
    // A later part of an endless line is no example worth keeping.
    hit = line->text.substr(0, kLineBytes);
    while (hit.ends_with('\r')) hit.pop_back();
    pattern = template_of(trim(std::string_view(hit).substr(headers.parse(hit).message)));
    if (pattern.empty())
      return complain(
                 fmt::format("{}: nothing in the line is fixed: it has no three characters in a row that "
                             "every such line would have",
                             o.from)),
             kUnable;
  }
  const std::string text = skeleton(o.id, pattern, hit);
  // What is printed loads: an id that is none is refused here with the loader's words.
  const rules::RuleText file{o.id + ".lua", text};
  if (auto set = rules::Ruleset::load({&file, 1}); !set)
    return complain(fmt::format("{}: {}", o.id, set.error()[0].what)), kUnable;
  return print(text) ? kDone : kUnable;
}

}  // namespace

void add_rules_new(CLI::App& rules, Run& run) {
  auto o = std::make_shared<Options>();
  CLI::App* verb = rules.add_subcommand("new", "Print a rule to begin with, which loads as it is");
  verb->footer(kExamples);
  verb->add_option("ID", o->id, "Its name, such as site.fabric.flap")->required();
  verb->add_option("--from", o->from, "FILE:LINE: make its template of this line");
  add_rule_options(*verb, o->choice.rules);
  verb->callback([o, &run] { run = [o] { return make(*o); }; });
}

}  // namespace culprit::cli
