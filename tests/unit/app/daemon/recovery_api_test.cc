// Of a controller that did not start, over the API.
#include "app/daemon/api/recovery_api.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/daemon/api/recovery_metrics.h"

using namespace culprit;
using namespace culprit::app;

namespace {

const RecoveryTrouble kNotStarted{"the controller did not start: recover.db: not a database",
                                  7 * kNsPerSecond, "culpritd --check"};

}  // namespace

BOOST_AUTO_TEST_SUITE(recovery_api)

BOOST_AUTO_TEST_CASE(a_controller_that_did_not_start_says_why_in_each_answer) {
  Config config;
  config.act = {.mode = ActMode::kAct, .scheduler = Scheduler::kSlurm, .restart = true};
  StoppedRecoveryApi api(config, kNotStarted);
  std::optional<Result<std::string>> given;
  const auto take = [&](Result<std::string> answer) { given = std::move(answer); };
  api.overview(take);
  BOOST_TEST_REQUIRE(given->has_value());
  const auto json = nlohmann::json::parse(**given);
  BOOST_TEST(json["mode"] == "act");
  BOOST_TEST(json["trouble"] == kNotStarted.text);
  BOOST_TEST(json["trouble_since_ns"] == kNotStarted.since_ns);
  BOOST_TEST(json["remedy"] == kNotStarted.remedy);
  BOOST_TEST(json["stages"][0]["restart"] == true);
  BOOST_TEST(json["items"].empty());
  using Ask = std::function<void()>;
  for (const Ask& ask : {Ask([&] { api.decision("7", take); }), Ask([&] { api.machines(take); }),
                         Ask([&] { api.cost(0, take); }), Ask([&] { api.actions(take); }),
                         Ask([&] { api.notes("", take); }), Ask([&] { api.order({}, {}, take); })}) {
    given.reset();
    ask();
    BOOST_TEST_REQUIRE((given && !given->has_value()));
    BOOST_TEST(given->error().text == kNotStarted.text + "; mend: `culpritd --check`");
  }
}

BOOST_AUTO_TEST_CASE(a_controller_that_did_not_start_is_in_the_status_and_the_metrics) {
  const auto status = recovery_status(nullptr, kNotStarted, ActMode::kAsk);
  BOOST_TEST(status["mode"] == "ask");
  BOOST_TEST(status["trouble"] == kNotStarted.text);
  BOOST_TEST(status["remedy"] == kNotStarted.remedy);
  BOOST_TEST(recovery_status(nullptr, std::nullopt, ActMode::kObserve).is_null());
  serve::MetricsText metrics;
  about_stopped_recovery(metrics);
  BOOST_TEST(metrics.finish().find("\nculprit_recovery_trouble 1\n") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
