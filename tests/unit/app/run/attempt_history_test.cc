#include "app/run/attempt_history.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace culprit::app {
namespace {

Attempt failed(uint32_t number, TimeNs begin_s, TimeNs lost_s, std::vector<std::string> without) {
  Attempt out;
  out.number = number;
  out.begin_ns = begin_s * kNsPerSecond;
  out.end_ns = out.begin_ns + 10 * kNsPerSecond;
  out.status = 1;
  out.lost_ns = lost_s * kNsPerSecond;
  out.headline = "GPU 5 fell off the bus";
  out.decision.again = !without.empty();
  out.decision.hosts = std::move(without);
  return out;
}

AttemptHistory three() {
  AttemptHistory out;
  out.attempts = {failed(1, 0, 15, {"n3"}), failed(2, 15, 20, {"n1", "n3"}), failed(3, 35, 10, {})};
  out.attempts[2].decision.hosts = {"n9"};  // named, but there is no further attempt
  out.pages = {"attempts/a-1/report.html", "", ""};
  out.most = 4;
  out.ledger = "/runs/a/attempts.jsonl";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt_history)

BOOST_AUTO_TEST_CASE(an_attempt_runs_without_what_earlier_decisions_left_out) {
  const AttemptHistory history = three();
  using Names = std::vector<std::string>;
  BOOST_TEST(excluded(history, 0) == Names());
  BOOST_TEST(excluded(history, 1) == Names{"n3"});
  BOOST_TEST(excluded(history, 2) == (Names{"n3", "n1"}));
  BOOST_TEST(excluded(history, 3) == (Names{"n3", "n1"}));
}

BOOST_AUTO_TEST_CASE(the_report_has_each_line_of_the_ledger_and_the_totals) {
  const auto json = nlohmann::json::parse(to_json(three()));
  BOOST_TEST(json["count"] == 3);
  BOOST_TEST(json["of"] == 4);
  BOOST_TEST(json["lost_ns"] == 45 * kNsPerSecond);
  BOOST_TEST(json["excluded"] == nlohmann::json({"n3", "n1"}));
  BOOST_TEST(json["list"].size() == 3);
  const auto& first = json["list"][0];
  BOOST_TEST(first["headline"] == "GPU 5 fell off the bus");
  BOOST_TEST(first["page"] == "attempts/a-1/report.html");
  BOOST_TEST(first["lost_ns"] == 15 * kNsPerSecond);
  BOOST_TEST(json["list"][1]["page"].is_null());
  BOOST_TEST(json["list"][1]["excluded"] == nlohmann::json({"n3"}));
}

BOOST_AUTO_TEST_CASE(a_report_of_many_attempts_has_the_newest_and_short_texts) {
  AttemptHistory history;
  for (uint32_t n = 1; n <= 1000; ++n)
    history.attempts.push_back(failed(n, 20 * n, 1, {"host-" + std::to_string(n)}));
  for (Attempt& a : history.attempts) a.headline = std::string(100'000, 'x');
  const std::string text = to_json(history);
  const auto json = nlohmann::json::parse(text);
  BOOST_TEST(json["count"] == 1000);
  BOOST_TEST(json["list"].size() == kAttemptsReported);
  BOOST_TEST(json["list"].back()["attempt"] == 1000);
  BOOST_TEST(text.size() < 512u << 10);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
