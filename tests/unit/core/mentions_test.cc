// Lines that only mention a fault accuse no one. The corpus is made of the shipped rules: the wording of each
// one's example in eight forms of mention, in a job that trains on, and before a failure of another kind.
#include <fmt/format.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "core/engine.h"
#include "core/logs/header.h"

using namespace culprit;
using namespace culprit::core;

namespace {

constexpr size_t kForms = 8, kJobs = 3;
constexpr std::array<const char*, kForms> kFormNames = {
    "negation", "retry list", "sample of data", "past date", "grep", "diff", "source line", "comment"};
constexpr std::array<const char*, kJobs> kJobNames = {"that trains on", "that ends with it",
                                                      "that fails of another cause"};

std::string time_of(int s) { return fmt::format("2026-11-21 02:{:02}:{:02},250", s / 60, s % 60); }

std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string mention(size_t form, std::string_view words, int s) {
  const std::string info = time_of(s) + " INFO trainer: ";
  switch (form) {
    case 0:
      return fmt::format("{}no {} since boot\n", info, words);
    case 1:
      return fmt::format("{}retry policy: max_restarts=3, retry_on=[\"{}\", \"exit code 75\"]\n", info,
                         quoted(words));
    case 2:
      return fmt::format("{}sample 1731: {{\"text\": \"What does it mean? {}\", \"label\": 3}}\n", info,
                         quoted(words));
    case 3:
      return fmt::format("{}last failure of this node (2026-10-01): {}\n", info, words);
    case 4:
      return fmt::format("+ grep -q '{}' /var/log/messages\n", words);
    case 5:
      return fmt::format("+    \"{}\",\n", quoted(words));
    case 6:
      return fmt::format(
          "  File \"/app/check.py\", line 12\n    if \"{}\" in line and\n                         ^\n"
          "SyntaxError: invalid syntax\n",
          quoted(words));
    default:
      return fmt::format("# {}: take the node out\n", words);
  }
}

std::string steps(int from, int to) {
  std::string out;
  for (int s = from; s < to; ++s) out += fmt::format("{} INFO step={} loss=2.1\n", time_of(s), s);
  return out;
}

constexpr std::string_view kFailure =
    "Traceback (most recent call last):\n  File \"/app/run.py\", line 5, in <module>\n    main()\n"
    "  File \"/app/run.py\", line 3, in main\n    rate = config[\"rate\"]\nKeyError: 'rate'\n";

std::string job_with(size_t job, const std::string& mention) {
  if (job == 0) return steps(0, 20) + mention + steps(30, 60);
  if (job == 1) return steps(0, 30) + mention;
  return steps(0, 30) + mention + std::string(kFailure);
}

// Of one log a host: node-7, node-8, ...
Report report_of(const std::vector<std::string>& texts, const std::shared_ptr<rules::Ruleset>& set) {
  EngineOptions options;
  options.rules = set;
  Engine engine(std::move(options));
  for (uint32_t i = 0; i < texts.size(); ++i) {
    logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
    logs::LogBatch batch;
    SourceInfo info;
    info.host = fmt::format("node-{}", 7 + i);
    info.file = *info.host + ".log";
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    parser.parse({i, 0, 0, texts[i], texts[i].size(), true}, info, batch);
    Input lines = LogInput{&batch};
    engine.step({&lines, 1}, kNoTime);
  }
  return engine.report();
}

Report report_of(const std::string& text, const std::shared_ptr<rules::Ruleset>& set) {
  return report_of(std::vector{text}, set);
}

// Why the report believes what was only mentioned; empty: it does not. A job that ends with a mention of an
// unknown exception may have an open question, and no verdict that names a host.
std::string belief(const Report& r, size_t job) {
  if (job == 2) {
    if (!r.verdict) return "no verdict";
    const Diagnosis& d = r.diagnoses[*r.verdict];
    // A SyntaxError is reported, whatever source it shows.
    const bool other =
        d.title.find("rate") != d.title.npos || d.title.find("not valid Python") != d.title.npos;
    return other ? "" : d.title;
  }
  if (!r.verdict) return "";
  const Diagnosis& d = r.diagnoses[*r.verdict];
  return d.confidence >= 0.5 && (!d.hosts.empty() || !d.action.targets.empty()) ? d.title : "";
}

// The words of an example of one line, without its header. Empty: the rule has none.
std::string words_of(const rules::Rule& rule) {
  logs::HeaderParser headers({});
  for (const std::string& hit : rule.hit) {
    if (hit.find('\n') != hit.npos) continue;
    const logs::Header header = headers.parse(hit);
    std::string words = hit.substr(header.message);
    if (words.starts_with("kernel: ")) words.erase(0, 8);
    if (words.size() > 20) return words;
  }
  return "";
}

struct Mentioned {
  const rules::Rule* rule;
  std::string words;
};

std::vector<Mentioned> corpus(const rules::Ruleset& set) {
  constexpr rules::SourceSet kLines = bit(rules::TextSource::kLog);
  std::vector<Mentioned> out;
  for (const rules::Rule& rule : set.rules()) {
    if (!(rule.sources & kLines) || rule.severity < Severity::kError || !rule.enabled) continue;
    if (std::string words = words_of(rule); !words.empty()) out.push_back({&rule, std::move(words)});
  }
  return out;
}

}  // namespace

// With CULPRIT_MENTIONS=each one job for each form, and a table of them: a measurement, of a minute or two.
// Else each form alone only where its line is the last one: there no other line stands behind it.
BOOST_AUTO_TEST_CASE(a_fault_that_is_only_mentioned_accuses_nobody) {
  const auto set = rules::Ruleset::shipped();
  const std::vector<Mentioned> all = corpus(*set);
  BOOST_TEST(all.size() > 1000u);
  const char* const how = std::getenv("CULPRIT_MENTIONS");
  const bool each = how != nullptr && std::string_view(how) == "each";
  size_t believed[kJobs][kForms] = {};
  for (const Mentioned& one : all)
    for (size_t job = 0; job < kJobs; ++job) {
      const bool alone = each || job == 1;
      std::string together;
      for (size_t form = 0; form < kForms; ++form) {
        const std::string line = mention(form, one.words, static_cast<int>(20 + form % 8) + (job ? 12 : 0));
        together += line;
        if (!alone) continue;
        const std::string why = belief(report_of(job_with(job, line), set), job);
        believed[job][form] += !why.empty();
        if (!each)
          BOOST_TEST(why.empty(), one.rule->id << ", at the end: " << why << "\n" << line);
        else if (!why.empty())
          fmt::print("{} | {} | {} | {} | {}", one.rule->id, kJobNames[job], kFormNames[form], why, line);
      }
      if (alone) continue;
      const std::string why = belief(report_of(job_with(job, together), set), job);
      BOOST_TEST(why.empty(), one.rule->id << ", in a job " << kJobNames[job] << ": " << why << "\n"
                                           << one.words);
    }
  for (size_t job = 0; job < kJobs && each; ++job)
    for (size_t form = 0; form < kForms; ++form)
      fmt::print("TABLE | {} | {} | {} of {}\n", kJobNames[job], kFormNames[form], believed[job][form],
                 all.size());
}

// A rank whose device or host is lost makes no further step.
BOOST_AUTO_TEST_CASE(a_fault_after_which_its_rank_makes_steps_is_no_cause_of_a_later_mistake) {
  const auto set = rules::Ruleset::shipped();
  for (const Mentioned& one : corpus(*set)) {
    const bool hardware = one.rule->category == Category::kHardware && one.rule->severity == Severity::kFatal;
    if (!hardware || one.rule->symptom == Symptom::kNumeric) continue;
    const std::string line = fmt::format("{} WARNING trainer: sample 12: {}\n", time_of(29), one.words);
    const Report r =
        report_of({steps(0, 30) + line + steps(30, 32), steps(0, 32) + std::string(kFailure)}, set);
    const std::string why = belief(r, 2);
    BOOST_TEST(why.empty(), one.rule->id << ": " << why << "\n" << line);
  }
}

BOOST_AUTO_TEST_CASE(a_kernel_line_of_months_ago_is_no_cause) {
  const auto set = rules::Ruleset::shipped();
  const std::string lost = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n";
  const auto job = [&](std::string_view date) {
    return steps(0, 30) + std::string(date) + lost + std::string(kFailure);
  };
  for (const char* past : {"[Thu Oct  1 02:10:11 2026] ", "2026-10-01T02:10:11 node-7 kernel: "})
    BOOST_TEST(belief(report_of(job(past), set), 2) == "", past);
  const Report now = report_of(job("[Sat Nov 21 02:00:29 2026] "), set);
  BOOST_REQUIRE(now.verdict.has_value());
  BOOST_TEST(now.diagnoses[*now.verdict].rule.value_or("") == "nvidia.xid.79");
}

BOOST_AUTO_TEST_CASE(a_wrong_first_date_makes_no_fault_of_the_log_a_mention) {
  const auto set = rules::Ruleset::shipped();
  const std::string log = "2031-01-01 00:00:00,000 INFO boot: clock is not set\n" + steps(0, 120) +
                          "[Sat Nov 21 02:02:01 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has "
                          "fallen off the bus.\n";
  const Report report = report_of(log, set);
  BOOST_REQUIRE(report.verdict.has_value());
  BOOST_TEST(report.diagnoses[*report.verdict].rule.value_or("") == "nvidia.xid.79");
}
