#include "cli/complete.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr size_t kCandidates = 500;

struct Argument {
  std::string_view verb, name;  // an option, or the number of an argument: "1", "2"
  Wanted wanted;
};
constexpr Argument kArguments[] = {
    {"report", "1", Wanted::kJob},
    {"watch", "1", Wanted::kJob},
    {"bundle", "1", Wanted::kJob},
    {"stacks", "1", Wanted::kJob},
    {"confirm", "1", Wanted::kJob},
    {"confirm", "2", Wanted::kDiagnosis},
    {"pool forget", "1", Wanted::kJob},
    {"diff", "1", Wanted::kJob},
    {"diff", "2", Wanted::kJob},
    {"clear", "1", Wanted::kHost},
    {"advise", "1", Wanted::kJob},
    {"evidence cat", "--job", Wanted::kJob},
    {"evidence ls", "--job", Wanted::kJob},
    {"evidence cat", "--host", Wanted::kHost},
    {"evidence cat", "--path", Wanted::kSource},
    {"rules explain", "1", Wanted::kRule},
    {"simulate logs", "--fault", Wanted::kFault},
    {"simulate comm", "--fault", Wanted::kFault},
    {"simulate mixed", "--fault", Wanted::kFault},
    {"simulate play", "--fault", Wanted::kFault},
    {"simulate hang", "--kind", Wanted::kKind},
};

Wanted wanted_at(std::string_view verb, std::string_view name) {
  for (const Argument& a : kArguments)
    if (a.verb == verb && a.name == name) return a.wanted;
  return Wanted::kNothing;
}

// Stores the value of an option in earlier words, for requests to the daemon.
void take_value(Completing& out, std::string_view option, const std::string& value) {
  if (option == "--server") out.server = value;
  if (option == "--token-file") out.token_file = value;
  if (option == "--ca-file") out.ca_file = value;
  if (option == "--job") out.job = value;
}

}  // namespace

Completing completing(const Command& app, const std::vector<std::string>& words) {
  Completing out;
  if (words.empty()) return out;
  const Command* verb = &app;
  std::string option;  // option whose value is the next word
  size_t arguments = 0;
  bool only_arguments = false;  // after --
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (!option.empty()) {
      take_value(out, option, word);
      option.clear();
      continue;
    }
    if (!only_arguments && word == "--") {
      only_arguments = true;
      continue;
    }
    if (!only_arguments && word.size() > 1 && word[0] == '-') {
      const size_t equals = word.find('=');
      if (equals != word.npos)
        take_value(out, word.substr(0, equals), word.substr(equals + 1));
      else if (verb->takes_value(word))
        option = word;
      continue;
    }
    const auto& below = verb->subcommands();
    const auto next = std::ranges::find_if(below, [&](const Command& one) { return one.name() == word; });
    if (next != below.end()) {
      verb = &*next;
      out.verb += (out.verb.empty() ? "" : " ") + word;
      continue;
    }
    if (++arguments == 1 && wanted_at(out.verb, "1") == Wanted::kJob) out.job = word;
  }
  out.prefix = words.back();
  if (!option.empty()) {
    out.wanted = wanted_at(out.verb, option);
  } else if (const size_t equals = out.prefix.find('=');
             out.prefix.starts_with("--") && equals != out.prefix.npos) {
    out.wanted = wanted_at(out.verb, out.prefix.substr(0, equals));
    out.prefix.erase(0, equals + 1);
  } else if (only_arguments || !out.prefix.starts_with('-')) {
    out.wanted = wanted_at(out.verb, std::to_string(arguments + 1));
  }
  return out;
}

std::string without_quotes(std::string_view word) {
  std::string out;
  char quote = 0;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (quote ? c == quote : c == '\'' || c == '"')
      quote = quote ? '\0' : c;
    else if (c == '\\' && quote != '\'' && i + 1 < word.size())
      out += word[++i];
    else
      out += c;
  }
  return out;
}

int complete(const Command& app, std::vector<std::string> words, const Candidates& candidates) {
  // An error message would appear within the line that a person types.
  if (!std::freopen("/dev/null", "w", stderr)) return kUnable;
  const bool quoted = !words.empty() && words[0] == "--quoted";
  if (quoted) words.erase(words.begin());
  if (quoted)
    for (std::string& word : words) word = without_quotes(word);
  const Completing at = completing(app, words);
  std::set<std::string> shown;
  for (const std::string& name : candidates(at)) {
    // Skips a name with control characters: it would break the list, and a person would not type it.
    const bool plain = to_terminal(name) == name && name.find('\t') == name.npos;
    if (plain && !name.empty() && name.starts_with(at.prefix) && shown.size() < kCandidates)
      shown.insert(name);
  }
  std::string out;
  for (const std::string& name : shown) out += name + "\n";
  return print(out) ? kDone : kUnable;
}

}  // namespace culprit::cli
