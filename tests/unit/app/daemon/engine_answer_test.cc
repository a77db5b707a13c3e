// Readers of the engine's answers do not wait for a busy engine.
#include "app/daemon/engine/engine_answer.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "../../serve/fixtures.h"

namespace culprit::app {
namespace {

struct Asked {
  serve::test::ManualEnv env;
  std::vector<EngineAnswer<int>::Done> questions;
  EngineAnswer<int> engine{env, [this](auto done) { questions.push_back(std::move(done)); }};
  std::string got;

  void get() {
    engine.get([this](const std::shared_ptr<const int>& value, bool late) {
      got += (value ? std::to_string(*value) : "none") + (late ? " late, " : ", ");
    });
  }
  void answer(int value) {
    const auto done = std::move(questions.front());
    questions.erase(questions.begin());
    done(std::make_shared<const int>(value));
  }
};

BOOST_FIXTURE_TEST_SUITE(engine_answer, Asked)

BOOST_AUTO_TEST_CASE(readers_share_one_question) {
  get();
  get();
  BOOST_TEST(questions.size() == 1u);
  answer(1);
  BOOST_TEST(got == "1, 1, ");
  get();
  BOOST_TEST(questions.size() == 1u, "asked again");
}

BOOST_AUTO_TEST_CASE(a_busy_engine_gives_its_last_answer_and_the_age) {
  get();
  env.advance(EngineAnswer<int>::kPatience);
  BOOST_TEST(got == "none late, ");
  BOOST_TEST(engine.age() == EngineAnswer<int>::kPatience);
  answer(7);
  BOOST_TEST(got == "none late, ", "the reader had its answer");
  env.advance(5 * kNsPerSecond);
  BOOST_TEST(engine.age() == 5 * kNsPerSecond);
  got.clear();
  get();
  env.advance(EngineAnswer<int>::kPatience);
  get();
  BOOST_TEST(questions.size() == 1u, "it is still asked");
  env.advance(EngineAnswer<int>::kPatience);
  BOOST_TEST(got == "7 late, 7 late, ");
  answer(8);
  got.clear();
  get();
  answer(9);
  BOOST_TEST(got == "9, ");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
