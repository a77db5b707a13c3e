#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "cli/complete.h"
#include "cli/near.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

int usage_error(const Parsed& parsed) {
  std::string text = parsed.text;
  for (char& c : text)
    if (c == '\n') c = ' ';
  const std::string meant = did_you_mean(parsed.unknown, parsed.options);
  complain(text + meant + (meant.empty() ? "; see `" : " see `") + parsed.verb + " --help`");
  return kUnable;
}

// The error for a misspelt verb, for which the parser only reports a missing verb. Empty: no misspelt verb.
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

// The arguments without the program; `help VERB` becomes `VERB --help`.
std::vector<std::string> words_of(int argc, char** argv, bool& help) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  help = words.size() > 0 && words[0] == "help" && !(words.size() > 1 && words[1].starts_with('-'));
  if (!help) return words;
  words.erase(words.begin());
  words.emplace_back("--help");
  return words;
}

int run(int argc, char** argv) {
  Command app(kAboutCulprit, "culprit");
  Run verb;
  add_verbs(app, verb);
  bool help = false;
  const std::vector<std::string> words = words_of(argc, argv, help);
  if (!words.empty() && words[0] == "complete") return complete(app, {words.begin() + 1, words.end()});
  const std::string unknown = unknown_verb(app, words);
  if (help && !unknown.empty()) return complain(unknown), kUnable;
  const Parsed parsed = app.parse(words);
  if (parsed.kind == Parsed::Kind::kHelp) return print(parsed.text) ? kDone : kUnable;
  if (parsed.kind == Parsed::Kind::kWrong) return usage_error(parsed);
  if (parsed.kind == Parsed::Kind::kMissing) {
    if (unknown.empty()) return usage_error(parsed);
    return complain(unknown), kUnable;
  }
  try {
    return verb ? verb() : kUnable;
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return kUnable;
  }
}

// Opens each closed standard descriptor so that its use fails. Otherwise a file opened later would get the
// number.
void fill_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor)
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) < 0)
      std::abort();
}

}  // namespace

}  // namespace culprit::cli

int main(int argc, char** argv) {
  culprit::cli::fill_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);
  return culprit::cli::run(argc, argv);
}
