#include "cli/verbs.h"

#include <boost/test/unit_test.hpp>

#include "cli/spelling.h"

using namespace culprit;
using namespace culprit::cli;

namespace {

constexpr size_t kExamplesMost = 3;

std::vector<std::string> examples_of(const std::string& footer) {
  std::vector<std::string> out;
  for (size_t at = 0; at < footer.size();) {
    const size_t end = std::min(footer.find('\n', at), footer.size());
    if (const std::string line = footer.substr(at, end - at); line.starts_with("  ")) out.push_back(line);
    at = end + 1;
  }
  return out;
}

// The words of the commands of a line of shell: quotes as in a shell, comments left out.
std::vector<std::vector<std::string>> commands_of(const std::string& line) {
  std::vector<std::vector<std::string>> out(1);
  std::string word;
  bool open = false;
  char quote = 0;
  const auto finish = [&] {
    if (open) out.back().push_back(word);
    word.clear();
    open = false;
  };
  for (const char c : line + " ") {
    if (quote ? c == quote : c == '\'' || c == '"') {
      quote = quote ? '\0' : c;
      open = true;
    } else if (!quote && c == ' ') {
      finish();
    } else if (!quote && c == '#' && !open) {
      break;
    } else if (!quote && (c == '|' || c == '>' || c == '&' || c == ';')) {
      finish();
      out.emplace_back();
      if (c == '>') out.back().emplace_back("(file)");
    } else {
      word += c;
      open = true;
    }
  }
  return out;
}

// The verbs below and their paths, "rules check".
void add_all(const Command& verb, const std::string& path,
             std::vector<std::pair<std::string, const Command*>>& out) {
  for (const Command& below : verb.subcommands()) {
    const std::string name = path + (path.empty() ? "" : " ") + below.name();
    if (!below.hidden()) out.emplace_back(name, &below);
    add_all(below, name, out);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(verbs)

BOOST_AUTO_TEST_CASE(each_verb_has_its_own_examples_and_the_parser_takes_them) {
  Command app(kAboutCulprit, "culprit");
  Run run;
  add_verbs(app, run);
  std::vector<std::pair<std::string, const Command*>> all;
  add_all(app, "", all);
  BOOST_TEST(all.size() > 30u);
  for (const auto& [path, verb] : all) {
    BOOST_TEST_CONTEXT(path) {
      const std::vector<std::string> examples = examples_of(verb->footer_text());
      BOOST_TEST((!examples.empty() && examples.size() <= kExamplesMost), examples.size());
      size_t own = 0;
      for (const std::string& line : examples)
        for (std::vector<std::string> words : commands_of(line)) {
          if (!words.empty() && words[0] == "sudo") words.erase(words.begin());
          if (words.empty() || words[0] != "culprit") continue;
          words.erase(words.begin());
          std::string begin;
          for (const std::string& word : words) begin += word + " ";
          own += begin.starts_with(path + " ");
          Command fresh(kAboutCulprit, "culprit");
          Run chosen;
          add_verbs(fresh, chosen);
          if (words[0] == "help") continue;
          const Parsed parsed = fresh.parse(words);
          BOOST_TEST((parsed.kind == Parsed::Kind::kRun && chosen), line << ": " << parsed.text);
        }
      BOOST_TEST(own > 0u, "no example of its own");
    }
  }
}

BOOST_AUTO_TEST_CASE(the_option_that_was_meant_is_named) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"diagnose", "--formt", "json", "x"}, "; did you mean --format?"},
      {{"diagnose", "--formt=json", "x"}, "; did you mean --format?"},
      {{"evidence", "cat", "--jb", "j"}, "; did you mean --job?"},
      {{"rules", "match", "x", "--no-libary"}, "; did you mean --no-library?"},
      {{"--versoin"}, "; did you mean --version?"},
      {{"jobs", "--entirely-unknown"}, ""},
  };
  for (const auto& [words, meant] : cases) {
    Command app(kAboutCulprit, "culprit");
    Run run;
    add_verbs(app, run);
    const Parsed parsed = app.parse(words);
    BOOST_TEST((parsed.kind == Parsed::Kind::kWrong), words.back());
    BOOST_TEST(did_you_mean(parsed.unknown, parsed.options) == meant);
    BOOST_TEST(parsed.text.starts_with("--"), parsed.text);
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_value_of_an_option_says_what_is_expected) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"run", "--retries", "x", "true"}, "--retries: must be a number, not 'x'"},
      {{"run", "--retries", "-1", "true"}, "--retries: must be a whole number, 0 or more, not '-1'"},
      {{"run", "--retries", "1.5", "true"}, "--retries: must be a whole number in its range, not '1.5'"},
      {{"run", "--retries"}, "--retries: needs a value, N"},
      {{"--retries", "3"}, "--retries: no such option or argument; it is an option of `culprit run`"},
  };
  for (const auto& [words, wanted] : cases) {
    Command app(kAboutCulprit, "culprit");
    Run run;
    add_verbs(app, run);
    const Parsed parsed = app.parse(words);
    BOOST_TEST((parsed.kind == Parsed::Kind::kWrong));
    BOOST_TEST(parsed.text == wanted);
  }
}

BOOST_AUTO_TEST_CASE(a_missing_argument_is_no_misspelt_option) {
  Command app(kAboutCulprit, "culprit");
  Run run;
  add_verbs(app, run);
  const Parsed parsed = app.parse({"evidence", "cat", "--job", "j"});
  BOOST_TEST((parsed.kind == Parsed::Kind::kMissing));
  BOOST_TEST(parsed.unknown == "");
  BOOST_TEST(parsed.verb == "culprit evidence cat");
}

BOOST_AUTO_TEST_CASE(nothing_is_suggested_for_the_same_or_a_far_name) {
  BOOST_TEST(did_you_mean("llama-70b-0413", {"llama-70b-0412", "bert"}, "'") ==
             "; did you mean 'llama-70b-0412'?");
  BOOST_TEST(did_you_mean("bert", {"bert"}) == "");
  BOOST_TEST(did_you_mean("bert", {"llama-70b-0412"}) == "");
  BOOST_TEST(did_you_mean("", {"llama"}) == "");
}

BOOST_AUTO_TEST_SUITE_END()
