#include "cli/program.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "cli/spelling.h"

namespace culprit::cli {
namespace {

int usage_error(const Parsed& parsed) {
  std::string text = parsed.text;
  for (char& c : text)
    if (c == '\n') c = ' ';
  const std::string meant = did_you_mean(parsed.unknown, parsed.options);
  report_error(text + meant + (meant.empty() ? "; see `" : " see `") + parsed.verb + " --help`");
  return kUnable;
}

// The error for a misspelt verb, which the parser only reports as missing. Empty: no misspelt verb.
std::string unknown_verb(const Command& app, const std::vector<std::string>& words) {
  const Command* last = &app;
  for (const std::string& word : words) {
    if (word.starts_with('-')) return "";
    std::vector<std::string> names;
    const Command* next = nullptr;
    for (const Command& verb : last->subcommands()) {
      if (!verb.hidden()) names.push_back(verb.name());
      if (verb.name() == word) next = &verb;
    }
    if (names.empty()) return "";
    if (next) {
      last = next;
      continue;
    }
    return "no verb '" + word + "'" + did_you_mean(word, names, "'");
  }
  return "";
}

}  // namespace

std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool help = !words.empty() && words[0] == "help" && !(words.size() > 1 && words[1].starts_with('-'));
  if (!help) return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

int run_program(Command& app, Run& verb, const std::vector<std::string>& words,
                const Candidates& candidates) {
  if (!words.empty() && words[0] == "complete")
    return complete(app, {words.begin() + 1, words.end()}, candidates);
  const std::string unknown = unknown_verb(app, words);
  const Parsed parsed = app.parse(words);
  if (parsed.kind == Parsed::Kind::kHelp && unknown.empty()) return print(parsed.text) ? kDone : kUnable;
  if (parsed.kind == Parsed::Kind::kHelp) return report_error(unknown), kUnable;
  if (parsed.kind == Parsed::Kind::kWrong) return usage_error(parsed);
  if (parsed.kind == Parsed::Kind::kMissing) {
    if (unknown.empty()) return usage_error(parsed);
    return report_error(unknown), kUnable;
  }
  try {
    return verb ? verb() : kUnable;
  } catch (const std::bad_alloc&) {
    report_error("out of memory");
    return kUnable;
  }
}

void fill_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) < 0)
      std::abort();
}

}  // namespace culprit::cli
