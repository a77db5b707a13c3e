#include "core/diagnose/suspects.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::diagnose;

namespace {

Finding against(FindingSubject subject, std::string why) {
  Finding f;
  f.detector = DetectorKind::kComm;
  f.subjects.push_back(std::move(subject));
  f.why.push_back(std::move(why));
  return f;
}

detect::View hosts(size_t n) {
  detect::View view;
  for (size_t h = 0; h < n; ++h) {
    view.hosts.emplace_back();
    view.hosts.back().name = "node-" + std::to_string(h);
    view.ranks.emplace_back();
    view.ranks.back().name = "rank " + std::to_string(h);
    view.ranks.back().ranks = {static_cast<uint32_t>(h)};
    view.ranks.back().host = static_cast<uint32_t>(h);
  }
  return view;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_different_detectors_say_against_a_host_adds_up) {
  const auto out = blame(
      hosts(4), {against({"node-1", {}, {}, {}, 0.6}, "slow"), against({"node-2", {}, {}, {}, 1.0}, "late"),
                 against({"node-1", {}, {}, {}, 0.6}, "wrong")});
  BOOST_REQUIRE(out.size() == 2u);
  BOOST_TEST(out[0].name == "node-1");
  BOOST_TEST(out[0].weight == 1.2, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(out[0].suspect.why == (std::vector<std::string>{"slow", "wrong"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_finding_about_a_rank_is_one_about_its_host) {
  const auto out = blame(hosts(4), {against({{}, 3, 1, {}, 1.0}, "odd")});
  BOOST_REQUIRE(out.size() == 1u);
  BOOST_TEST(out[0].suspect.host.value_or("") == "node-3");
  BOOST_TEST(out[0].suspect.ranks == std::vector<uint32_t>{3}, boost::test_tools::per_element());
  BOOST_TEST(out[0].suspect.devices == std::vector<uint32_t>{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_victim_that_tells_of_a_failure_is_not_the_suspect_of_its_host) {
  Finding victim = against({"node-3", 3, {}, {}, 0}, "timed out");
  for (const FindingRole role : {FindingRole::kRoot, FindingRole::kCascade}) {
    victim.role = role;
    const auto out = blame(hosts(4), {against({"node-3", {}, {}, {}, 1.0}, "killed"), victim});
    BOOST_REQUIRE(out.size() == 1u);
    BOOST_TEST(out[0].suspect.ranks.empty() == (role == FindingRole::kCascade));
  }
}

BOOST_AUTO_TEST_CASE(a_link_is_held_against_both_of_its_ends_by_half) {
  const auto out = blame(hosts(4), {against({"node-0", {}, {}, "node-2", 1.0}, "lossy")});
  BOOST_REQUIRE(out.size() == 2u);
  BOOST_TEST(out[0].weight == 0.5);
  BOOST_TEST(out[1].weight == 0.5);
}

BOOST_AUTO_TEST_CASE(a_host_without_logs_can_be_suspected) {
  const auto out = blame(hosts(2), {against({"node-9", {}, {}, {}, 1.0}, "absent")});
  BOOST_REQUIRE(out.size() == 1u);
  BOOST_TEST(out[0].suspect.host.value_or("") == "node-9");
  BOOST_TEST(out[0].unit == detect::kNowhere);
}

BOOST_AUTO_TEST_CASE(a_subject_without_strength_is_no_suspect) {
  BOOST_TEST(blame(hosts(2), {against({"node-1", {}, {}, {}, 0}, "named")}).empty());
}

BOOST_AUTO_TEST_CASE(claims_of_users_count_as_one_however_many) {
  std::vector<Finding> claims(10, against({"node-1", {}, {}, {}, 1.0}, "claimed"));
  for (Finding& claim : claims) {
    claim.action = ActionKind::kIsolate;
    claim.said_by.uids = {12'002};
  }
  BOOST_TEST(blame(hosts(2), claims)[0].suspect.score == 0.5);
  claims.push_back(against({"node-1", {}, {}, {}, 1.0}, "seen"));
  BOOST_TEST(blame(hosts(2), claims)[0].suspect.score == 2.0 / 3);
}
