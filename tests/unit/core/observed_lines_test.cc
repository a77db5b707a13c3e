// A site's rules give the judge of a hang what lines of another library show: for each word of `observes`, in
// a wording that the library of rules does not know.
#include <fmt/format.h>

#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <map>
#include <ostream>

#include "core/engine.h"
#include "core/fuse/merge_findings.h"
#include "core/rules/library.h"

using namespace culprit;
using namespace culprit::core;
namespace data = boost::unit_test::data;

namespace {

constexpr uint32_t kHosts = 4, kPerHost = 2;

// A rule of a site: `observes`, the regexes of its match and its `reads`, an example.
std::string site_rule(std::string_view observes, std::string_view regex, std::string_view reads,
                      std::string_view hit, std::string_view more = "severity = 'error'") {
  return fmt::format(
      "rule {{ id = 'site.ring.{0}', engine = 1, title = 'Ring: {0}', category = 'unknown', "
      "component = 'nccl_comm', symptom = 'hang', role = 'cascade', remedy = 'Look.', observes = '{0}', {4}, "
      "match = {{ regex = [=[{1}]=] }}, {2} "
      "examples = {{ hit = {{ [=[{3}]=] }}, miss = {{ 'ring is up' }} }} }}\n",
      observes, regex, reads, hit, more);
}

// The library, with rules for a communication library that no shipped rule knows.
const std::shared_ptr<rules::Ruleset>& rules_of_site() {
  static const std::shared_ptr<rules::Ruleset> set = [] {
    std::vector<rules::RuleText> files;
    for (const rules::LibraryFile& file : rules::library())
      files.push_back({std::string(file.name), std::string(file.text)});
    const size_t proven = files.size();
    const std::string text =
        site_rule(
            "collective",
            R"(ringcomm: r(?P<own_rank>\d+) (?P<timed_out>gave up) on (?P<op>\w+) no\. (?P<seq>\d+) of )"
            R"(ring (?P<group>\w+))",
            "reads = [[after (?P<waited_s>\\d+) s]],",
            "ringcomm: r3 gave up on reduce_all no. 451 of ring 0 after 600 s") +
        site_rule("operations",
                  R"(ringcomm: r(?P<own_rank>\d+) of ring (?P<group>\w+) called (?P<enqueued>\d+))",
                  "reads = [[, ended (?P<completed>\\d+)]],", "ringcomm: r3 of ring 0 called 451, ended 450",
                  "severity = 'info'") +
        site_rule("absent", R"(ringcomm: (?P<absent>[\d ]+) did not come to (?P<op>\w+))", "",
                  "ringcomm: 3 5 did not come to reduce_all") +
        site_rule("frames", R"(ringcomm: watchdog ended at \S+)", "", "ringcomm: watchdog ended at 0x55ab",
                  "severity = 'fatal', general = true") +
        site_rule("meeting", R"(ringcomm: (?P<came>\d+) of (?P<all>\d+) in (?P<meeting>\w+))", "",
                  "ringcomm: 6 of 8 in ring_init") +
        site_rule("members", R"(ringcomm: not yet there: (?P<absent>[\d, ]+))", "",
                  "ringcomm: not yet there: 3, 5", "severity = 'info'") +
        site_rule("peer", R"(ringcomm: (?P<closed>lost the link) to (?P<closed_by>[^: ]+))", "",
                  "ringcomm: lost the link to node-2:4500") +
        site_rule("sizes", R"(ringcomm: \d+ bytes against \d+)", "", "ringcomm: 8192 bytes against 4096") +
        site_rule("refusal", R"(ringcomm: (?P<peer>\S+) refused the link)", "",
                  "ringcomm: node-2:4500 refused the link", "severity = 'error', role = 'root'") +
        site_rule("loopback", R"(ringcomm: offers 127\.0\.0\.1)", "", "ringcomm: offers 127.0.0.1",
                  "severity = 'info'");
    files.push_back({"site.lua", text});
    auto loaded = rules::Ruleset::load(files, {.proven_files = proven});
    if (!loaded)
      for (const rules::RuleError& error : loaded.error()) BOOST_TEST_MESSAGE(format_error(error));
    BOOST_REQUIRE(loaded);
    return *loaded;
  }();
  return set;
}

std::string at(uint32_t second) {
  return fmt::format("2026-11-21 {:02}:{:02}:{:02},000", 2 + second / 3600, second / 60 % 60, second % 60);
}

// What each of eight ranks writes last, each in its own file; by rank, without those that write nothing.
Report judge(const std::function<std::string(uint32_t rank)>& last, bool steps = true) {
  JobFile job;
  for (uint32_t h = 0; h < kHosts; ++h) job.hosts.push_back(fmt::format("node-{}", h));
  job.ranks_per_host = kPerHost;
  EngineOptions options{job};
  options.rules = rules_of_site();
  Engine engine(std::move(options));
  SourceId source = 0;
  for (uint32_t rank = 0; rank < kHosts * kPerHost; ++rank) {
    const std::string lines = last(rank);
    std::string text;
    for (uint32_t s = 0; steps && s < 300 && rank == 0; s += 2)
      text += at(s) + fmt::format(" INFO step={} loss=2.5\n", s / 2);
    if (!lines.empty() && text.empty()) text += at(0) + " INFO ready\n";
    uint32_t second = 900;
    for (size_t from = 0; from < lines.size();) {
      const size_t end = std::min(lines.find('\n', from), lines.size());
      text += at(second++) + " ERROR " + lines.substr(from, end - from) + "\n";
      from = end + 1;
    }
    if (text.empty()) continue;
    SourceInfo info;
    info.host = job.hosts[rank / kPerHost];
    info.rank = rank;
    info.file = fmt::format("node-{}/rank_{}.log", rank / kPerHost, rank);
    logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
    logs::LogBatch batch;
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    parser.parse({source++, 0, 0, text, text.size(), true}, info, batch);
    Input input = LogInput{&batch};
    engine.step({&input, 1}, kNoTime);
  }
  return engine.report();
}

std::string gave_up(uint32_t rank) {
  return fmt::format("ringcomm: r{} gave up on reduce_all no. 451 of ring 0 after 600 s", rank);
}

using Ranks = std::vector<uint32_t>;

struct Case {
  const char* observes;
  std::function<std::string(uint32_t rank)> lines;
  HangAnswer answer;
  Ranks waited_for;
  const char* title;  // a part
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.observes; }

const Case kCases[] = {
    {"collective",
     [](uint32_t r) { return r == 5 ? std::string() : gave_up(r); },
     HangAnswer::kMissing,
     {5},
     "Rank 5"},
    {"operations",
     [](uint32_t r) {
       return r == 5 ? std::string("ringcomm: r5 of ring 0 called 450, ended 450")
                     : gave_up(r) + fmt::format("\nringcomm: r{} of ring 0 called 451, ended 450", r);
     },
     HangAnswer::kMissing,
     {5},
     "Rank 5"},
    {"absent",
     [](uint32_t r) {
       return r == 0 ? std::string("ringcomm: 3 5 did not come to reduce_all") : std::string("x");
     },
     HangAnswer::kMissing,
     {3, 5},
     "never joined reduce_all"},
    {"meeting",
     [](uint32_t r) { return r == 0 ? std::string("ringcomm: 6 of 8 in ring_init") : std::string("x"); },
     HangAnswer::kMissing,
     {},
     "6 of 8 ranks came to ring_init"},
    {"members",
     [](uint32_t r) {
       return r == 0 ? std::string("ringcomm: 6 of 8 in ring_init\nringcomm: not yet there: 3, 5")
                     : std::string("x");
     },
     HangAnswer::kMissing,
     {3, 5},
     "6 of 8 ranks came to ring_init; ranks 3, 5 never did"},
    {"peer",
     [](uint32_t r) {
       return r == 5 ? std::string() : std::string("ringcomm: lost the link to node-2:4500");
     },
     HangAnswer::kUnknown,
     {},
     "Rank 5"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(observed_lines)

BOOST_DATA_TEST_CASE(a_sites_rule_gives_the_judge_what_its_lines_show, data::make(kCases), c) {
  const Report report = judge(c.lines);
  BOOST_REQUIRE(report.verdict);
  const Diagnosis& d = report.diagnoses[*report.verdict];
  BOOST_TEST(d.title.find(c.title) != d.title.npos, d.title);
  if (c.answer == HangAnswer::kUnknown) return;
  BOOST_REQUIRE(report.hang);
  BOOST_TEST((report.hang->answer == c.answer));
  BOOST_TEST(report.hang->waited_for == c.waited_for, boost::test_tools::per_element());
}

// The message stands above the frames.
BOOST_AUTO_TEST_CASE(frames_of_a_site_count_only_where_their_message_is_lost) {
  const std::string frames = "ringcomm: watchdog ended at 0x55ab";
  const auto is_frames = [](const Diagnosis& d) { return d.rule == "site.ring.frames"; };
  const Report alone = judge([&](uint32_t r) { return r == 3 ? frames : std::string("x"); });
  BOOST_TEST(std::ranges::any_of(alone.diagnoses, is_frames));
  const Report told =
      judge([&](uint32_t r) { return gave_up(r) + (r == 3 ? "\n" + frames : std::string()); });
  BOOST_TEST(std::ranges::none_of(told.diagnoses, is_frames));
}

BOOST_AUTO_TEST_CASE(sizes_of_a_site_support_the_mismatch_that_records_show) {
  const auto& set = *rules_of_site();
  std::vector<Finding> findings(2);
  findings[0].kind = findings[1].kind = FindingKind::kFault;
  findings[0].detector = DetectorKind::kComm;
  findings[0].category = Category::kUser;
  findings[1].observes = set.rules()[set.find("site.ring.sizes").value()].observes;
  findings[1].title = "Ring: sizes";
  fuse::join_mismatch(findings);
  BOOST_REQUIRE(findings.size() == 1u);
  BOOST_TEST(findings[0].why == std::vector<std::string>{"Ring: sizes"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_refusal_is_laid_to_a_loopback_address_by_the_rules_of_a_site) {
  const Report report = judge([](uint32_t r) {
    return r == 4 ? std::string("ringcomm: offers 127.0.0.1")
                  : std::string(r == 0 ? "ringcomm: node-2:4500 refused the link" : "x");
  });
  BOOST_REQUIRE(report.verdict);
  const Diagnosis& d = report.diagnoses[*report.verdict];
  BOOST_TEST(d.rule.value_or("") == "site.ring.loopback", d.title);
}

BOOST_AUTO_TEST_SUITE_END()
