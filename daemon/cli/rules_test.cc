#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/text.h"
#include "cli/reading.h"
#include "cli/rules.h"
#include "core/rules/near.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRulesTestExamples = R"(
Checks the examples of the rules, then the logs in testdata/ next to the rule files, with the times in these
logs. The file testdata/NAME.expect lists the rules that must fire in testdata/NAME.log: one `rule-id` a line,
followed by `x3` if the number of firings counts, or the word `none`. Shipped rules count only if listed.

Examples:
  culprit rules test /etc/culprit/rules.d
  culprit rules test --format json site.lua)";

constexpr size_t kExpectBytes = 1 << 20;
constexpr size_t kHeadersTried = 10'000;  // tried lines of a log in which a rule did not fire
constexpr size_t kShown = 3;              // shown places of unexpected matches

struct Expected {
  std::map<std::string, uint64_t> rules;  // 0: any number above 0
  std::vector<std::string> faults;
};

struct TestOutcome {
  std::string log;
  std::vector<std::string> differences;  // "- a.b x2: fired 1 time"; empty if it passed
};

bool read_count(std::string_view text, uint64_t& out) {
  if (!text.starts_with('x') || text.size() < 2) return false;
  const auto [stop, error] = std::from_chars(text.data() + 1, text.data() + text.size(), out);
  return error == std::errc() && stop == text.data() + text.size() && out > 0;
}

Expected read_expected(const std::string& path, const rules::Ruleset& set) {
  Expected out;
  std::ifstream file(path);
  if (!file) {
    out.faults.push_back(
        fmt::format("{} cannot be read: it has to name the rules that fire, or say `none`", path));
    return out;
  }
  size_t number = 0, bytes = 0;
  bool printed = false;
  for (std::string line; std::getline(file, line) && (bytes += line.size()) <= kExpectBytes;) {
    ++number;
    const std::string_view text = trim(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    printed = true;
    if (text == "none") continue;
    const size_t blank = text.find(' ');
    const std::string_view id = text.substr(0, blank);
    uint64_t count = 0;
    if (blank != text.npos && !read_count(trim(text.substr(blank)), count))
      out.faults.push_back(fmt::format("{}:{}: '{}' is not of the form `rule-id` or `rule-id x3`", path,
                                       number, shorten(text, 100)));
    else if (!set.find(id))
      out.faults.push_back(fmt::format("{}:{}: '{}' is no rule{}", path, number, id, suggestion(id, set)));
    else
      out.rules[std::string(id)] += count;
  }
  if (!printed) out.faults.push_back(path + " is empty: say `none` where no rule has to fire");
  return out;
}

// Logs in testdata/ next to the given rule files.
std::vector<std::string> testdata_logs(const app::RuleFiles& files, std::vector<std::string>& stray) {
  std::set<std::string> folders, logs;
  for (size_t i = files.given; i < files.texts.size(); ++i)
    folders.insert((fs::path(files.texts[i].file).parent_path() / "testdata").string());
  for (const std::string& folder : folders) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      fs::path path = it->path();
      if (path.extension() == ".log") logs.insert(path.string());
      if (path.extension() == ".expect" && !fs::exists(path.replace_extension(".log"), error))
        stray.push_back(it->path().string());
    }
  }
  return {logs.begin(), logs.end()};
}

// The first log line that matches the rule's wording only together with its header, as a sentence.
std::string hidden_in(const std::string& log, const rules::Rule& rule) {
  std::ifstream file(log);
  size_t number = 0;
  for (std::string line; number < kHeadersTried && std::getline(file, line);) {
    ++number;
    if (const std::string begins = rules::hidden_by_header(rule, line); !begins.empty())
      return fmt::format("; line {} has its wording, and rules see the message alone: {}", number, begins);
  }
  return "";
}

class Tester {
 public:
  Tester(const app::LoadedRules& loaded, const ReadingOptions& reading)
      : set_(loaded.set), reading_(reading) {
    for (size_t i = loaded.files.given; i < loaded.files.texts.size(); ++i)
      given_.insert(loaded.files.texts[i].file);
  }

  TestOutcome test(const std::string& log) {
    TestOutcome out{log, {}};
    const Expected expected = read_expected(fs::path(log).replace_extension(".expect").string(), *set_);
    out.differences = expected.faults;
    app::ReadProgress progress;
    auto files = app::collect_files({log}, reading_.diagnose, progress);
    if (!files) return out.differences.push_back(files.error().text), out;
    for (const Error& error : files->errors) out.differences.push_back(error.text);
    for (const Problem& problem : files->problems) out.differences.push_back(problem.what);
    const app::RuleMatches matches = app::match_rules(*files, {reading_.diagnose.parse, 1}, set_, progress);
    for (const Problem& p : matches.problems) out.differences.push_back(p.what);
    compare(expected, matches, out);
    return out;
  }

 private:
  void compare(const Expected& expected, const app::RuleMatches& matches, TestOutcome& out) const {
    std::map<std::string, std::vector<const core::RuleFired*>> fired;
    for (const core::RuleFired& f : matches.fired) fired[set_->rules()[f.hit.rule].id].push_back(&f);
    for (const auto& [id, count] : expected.rules) {
      const uint64_t times = fired.contains(id) ? fired[id].size() : 0;
      if (times == 0 || (count && count != times))
        out.differences.push_back(
            fmt::format("- {}{}: fired {}{}", id, count ? fmt::format(" x{}", count) : "",
                        times ? counted(times, "time") : "never",
                        times ? "" : hidden_in(out.log, set_->rules()[*set_->find(id)])));
    }
    for (const auto& [id, places] : fired) {
      const rules::Rule& rule = set_->rules()[*set_->find(id)];
      if (expected.rules.contains(id) || !given_.contains(rule.place.file)) continue;
      out.differences.push_back(fmt::format("+ {} x{}: is not expected", id, places.size()));
      for (size_t i = 0; i < std::min(kShown, places.size()); ++i)
        out.differences.push_back(
            fmt::format("    line {}: {}", places[i]->place.line, one_line(places[i]->hit.text)));
    }
  }

  std::shared_ptr<rules::Ruleset> set_;
  const ReadingOptions& reading_;
  std::set<std::string, std::less<>> given_;  // given files
};

std::string to_json(const app::LoadedRules& loaded, const std::vector<TestOutcome>& outcomes) {
  JsonWriter w;
  w.object([&] {
    write_errors(w, loaded.errors);
    w.list("logs", outcomes, [&](const TestOutcome& o) {
      w.object([&] {
        w.field("log", o.log);
        w.field("passed", o.differences.empty());
        w.values("differences", o.differences);
      });
    });
  });
  return w.finish() + "\n";
}

std::string to_text(const app::LoadedRules& loaded, const std::vector<TestOutcome>& outcomes) {
  std::string out;
  for (const rules::RuleError& e : loaded.errors) out += show_error(e, wants_color());
  if (!loaded.set) return out + counted(loaded.errors.size(), "error") + "; no log was tried\n";
  size_t examples = 0, rules = 0, failed = 0;
  std::set<std::string_view> given;
  for (size_t i = loaded.files.given; i < loaded.files.texts.size(); ++i)
    given.insert(loaded.files.texts[i].file);
  for (const rules::Rule& rule : loaded.set->rules()) {
    if (!given.contains(rule.place.file)) continue;
    ++rules;
    examples += rule.hit.size() + rule.miss.size();
  }
  for (const TestOutcome& o : outcomes) {
    out += fmt::format("{:<4} {}\n", o.differences.empty() ? "ok" : "FAIL", to_terminal(o.log));
    failed += !o.differences.empty();
    for (const std::string& d : o.differences) out += "     " + to_terminal(d) + "\n";
  }
  return out + fmt::format("{} of {} hold; {} passed, {} failed\n", counted(examples, "example"),
                           counted(rules, "rule"), counted(outcomes.size() - failed, "log"), failed);
}

int test(RuleChoice& o) {
  o.rules.site = false;  // the result must be the same on every machine
  const app::LoadedRules loaded = app::load_rules(o.rules);
  for (const Error& error : loaded.files.errors) report_error(error.text);
  if (!loaded.files.errors.empty()) return kUnable;
  std::vector<TestOutcome> outcomes;
  if (loaded.set) {
    ReadingOptions reading;
    Tester tester(loaded, reading);
    std::vector<std::string> stray;
    for (const std::string& log : testdata_logs(loaded.files, stray)) outcomes.push_back(tester.test(log));
    for (const std::string& path : stray) outcomes.push_back({path, {"there is no log of this name"}});
  }
  if (!print(o.format == "json" ? to_json(loaded, outcomes) : to_text(loaded, outcomes))) return kUnable;
  const bool good = std::all_of(outcomes.begin(), outcomes.end(),
                                [](const TestOutcome& one) { return one.differences.empty(); });
  return loaded.set && good ? kDone : kFound;
}

}  // namespace

void add_rules_test(Command& rules, Run& run) {
  auto o = std::make_shared<RuleChoice>();
  Command* verb =
      rules.add_subcommand("test", "Try rules with their examples and with the logs next to them");
  verb->footer(kRulesTestExamples);
  verb->add_option("PATH", o->rules.paths, "Rule files, and folders whose *.lua are read")->required();
  verb->add_flag("!--no-library", o->rules.library, "Without the shipped rules");
  add_rule_format(*verb, *o);
  verb->callback([o, &run] { run = [o] { return test(*o); }; });
}

}  // namespace culprit::cli
