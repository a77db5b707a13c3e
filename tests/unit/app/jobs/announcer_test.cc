// The time of announcements of diagnoses, with a numeric clock.
#include "app/jobs/announcer.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;

Diagnosis diagnosis(const std::string& title, double confidence = 0.85) {
  Diagnosis d;
  d.id = "d-" + title;
  d.title = d.headline = title;
  d.confidence = confidence;
  return d;
}

// What users see: "verdict a", "revised b instead of a", "withdrawn b".
struct Listener {
  Announcer announcer;
  bool whole = true;
  std::vector<std::string> report(std::vector<Diagnosis> diagnoses, TimeNs second, bool at_once = false) {
    Report r;
    r.diagnoses = std::move(diagnoses);
    if (!r.diagnoses.empty() && r.diagnoses[0].confidence >= 0.5) r.verdict = 0;
    const std::vector<AccusedTimes> accused(r.diagnoses.size());
    std::vector<std::string> out;
    for (const Announcement& a : announcer.update(r, accused, {second * kSecond, at_once, whole})) {
      if (!a.publish) continue;
      std::string output =
          a.change == Change::kNew ? a.verdict ? "verdict" : "diagnosis" : std::string(to_string(a.change));
      output += " " + a.sentence;
      if (!a.replaced_title.empty()) output += " instead of " + a.replaced_title;
      out.push_back(output);
    }
    return out;
  }
};

using Reported = std::vector<std::string>;

void expect(const Reported& output, const Reported& expected) {
  BOOST_CHECK_EQUAL_COLLECTIONS(output.begin(), output.end(), expected.begin(), expected.end());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(announcer)

BOOST_AUTO_TEST_CASE(a_verdict_is_announced_once_it_stood_still) {
  Listener l;
  expect(l.report({diagnosis("a")}, 100), {});
  BOOST_TEST((l.announcer.due_ns() == 105 * kSecond));
  BOOST_TEST(!l.announcer.settled());
  expect(l.report({diagnosis("a")}, 104), {});
  expect(l.report({diagnosis("a")}, 105), {"verdict a"});
  BOOST_TEST(l.announcer.verdict() == "a");
  BOOST_TEST(!l.announcer.due_ns().has_value());
  expect(l.report({diagnosis("a", 0.88)}, 200), {});
}

BOOST_AUTO_TEST_CASE(the_first_word_of_a_failing_job_is_no_verdict) {
  Listener l;
  expect(l.report({diagnosis("peer closed")}, 100), {});
  expect(l.report({diagnosis("killed"), diagnosis("peer closed", 0.3)}, 103), {});
  expect(l.report({diagnosis("killed"), diagnosis("peer closed", 0.3)}, 107), {});
  expect(l.report({diagnosis("killed"), diagnosis("peer closed", 0.3)}, 108),
         {"verdict killed", "diagnosis peer closed"});
}

BOOST_AUTO_TEST_CASE(a_finding_of_weight_begins_the_wait_again_and_a_storm_does_not_prolong_it_for_ever) {
  Listener l;
  expect(l.report({diagnosis("a")}, 100), {});
  l.announcer.new_finding(104 * kSecond);
  expect(l.report({diagnosis("a")}, 106), {});
  for (TimeNs second = 106; second < 120; ++second) {
    l.announcer.new_finding(second * kSecond);
    expect(l.report({diagnosis("a")}, second), {});
  }
  l.announcer.new_finding(120 * kSecond);
  expect(l.report({diagnosis("a")}, 120), {"verdict a"});
}

BOOST_AUTO_TEST_CASE(what_is_certain_by_itself_does_not_wait) {
  Listener l;
  Diagnosis xid = diagnosis("xid", 0.95);
  xid.rule = "nvidia.xid.79";
  xid.category = Category::kHardware;
  expect(l.report({xid}, 100), {"verdict xid"});
}

BOOST_AUTO_TEST_CASE(changes_are_revised_and_withdrawn_once_they_stand_still) {
  Listener l;
  expect(l.report({diagnosis("a")}, 100, true), {"verdict a"});
  expect(l.report({diagnosis("b")}, 200), {});
  expect(l.report({diagnosis("b")}, 205), {"revised b instead of a", "withdrawn a"});
  expect(l.report({diagnosis("b", 0.6)}, 300, true), {"revised b"});
  expect(l.report({diagnosis("b", 0.4)}, 400, true), {"withdrawn b"});
  BOOST_TEST(l.announcer.verdict() == "");
  expect(l.report({}, 500), {});
  expect(l.report({}, 505), {"withdrawn b"});
}

BOOST_AUTO_TEST_CASE(what_comes_back_before_it_was_withdrawn_is_no_news) {
  Listener l;
  expect(l.report({diagnosis("a")}, 100, true), {"verdict a"});
  expect(l.report({}, 200), {});
  expect(l.report({diagnosis("a")}, 203), {});
  BOOST_TEST(l.announcer.settled());
  expect(l.report({diagnosis("a")}, 300), {});
}

BOOST_AUTO_TEST_CASE(what_goes_before_it_was_announced_is_kept_as_gone_and_no_one_hears_of_it) {
  Listener l;
  expect(l.report({diagnosis("a")}, 100), {});
  Report none;
  const auto reported = l.announcer.update(none, {}, {102 * kSecond});
  BOOST_REQUIRE(reported.size() == 1u);
  BOOST_TEST(!reported[0].index.has_value());
  BOOST_TEST(!reported[0].publish);
  expect(l.report({}, 200), {});
}

BOOST_AUTO_TEST_CASE(a_whole_report_withdraws_what_an_earlier_process_announced_and_it_lacks) {
  Listener l;
  for (const char* title : {"a", "b", "c"})
    l.announcer.load({std::string("d-") + title, title, title == std::string("c")});
  l.whole = false;
  expect(l.report({diagnosis("a")}, 100, true), {"verdict a"});
  expect(l.report({diagnosis("a")}, 110), {});
  BOOST_TEST(l.announcer.settled());
  l.whole = true;
  expect(l.report({diagnosis("a")}, 120), {});
  expect(l.report({diagnosis("a"), diagnosis("b", 0.3)}, 123), {});
  expect(l.report({diagnosis("a"), diagnosis("b", 0.3)}, 128), {"diagnosis b", "withdrawn c"});
  l.announcer.load({"d-a", "a", true});
  expect(l.report({diagnosis("a"), diagnosis("b", 0.3)}, 200, true), {});
  BOOST_TEST(l.announcer.verdict() == "a");
}

BOOST_AUTO_TEST_CASE(a_clock_that_is_set_back_delays_by_one_wait) {
  Listener l;
  expect(l.report({diagnosis("a")}, 1000), {});
  expect(l.report({diagnosis("a")}, 100), {});
  expect(l.report({diagnosis("a")}, 105), {"verdict a"});
}

BOOST_AUTO_TEST_SUITE_END()
