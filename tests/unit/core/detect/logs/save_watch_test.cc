// What a job says of its checkpoints and of advice.
#include "core/detect/logs/save_watch.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace culprit;
using namespace culprit::detect;

namespace {

struct AdviceEvent {
  std::vector<EventField> fields;
  LoopEvent event;
  AdviceEvent(std::string_view id, std::string_view kind, std::string_view outcome, int64_t step = 120) {
    fields = {{"id", id}, {"advice", kind}, {"outcome", outcome}};
    event.name = "advice";
    event.step = step;
    event.fields = fields;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_checkpoint_is_saved_once_no_rank_is_within_it) {
  SaveWatch watch;
  watch.phase({"checkpoint", true, 0}, 10, 1);
  watch.phase({"checkpoint", true, 1}, 10, 2);
  watch.phase({"checkpoint", false, 1}, 10, 3);
  BOOST_TEST(!watch.saved());
  watch.phase({"checkpoint", false, 0}, 10, 4);
  BOOST_REQUIRE(watch.saved());
  BOOST_TEST(watch.saved()->iteration == 10);
  BOOST_TEST(watch.saved()->at_ns == 4);
}

BOOST_AUTO_TEST_CASE(other_phases_and_ends_without_a_begin_save_nothing) {
  SaveWatch watch;
  watch.phase({"evaluation", true, 0}, 10, 1);
  watch.phase({"evaluation", false, 0}, 10, 2);
  watch.phase({"checkpoint", false, 0}, 10, 3);
  BOOST_TEST(!watch.saved());
}

BOOST_AUTO_TEST_CASE(advice_is_counted_by_what_the_ranks_did) {
  SaveWatch watch;
  for (int rank = 0; rank < 3; ++rank) watch.event(AdviceEvent("7", "\"save_now\"", "\"taken\"").event, 1);
  watch.event(AdviceEvent("7", "\"save_now\"", "\"achieved\"", 121).event, 2);
  BOOST_TEST(!watch.saved());
  watch.event(AdviceEvent("7", "\"save_now\"", "\"achieved\"", 121).event, 3);
  watch.event(AdviceEvent("7", "\"save_now\"", "\"achieved\"", 121).event, 4);
  BOOST_REQUIRE(watch.saved());
  BOOST_TEST(watch.saved()->iteration == 121);
  BOOST_REQUIRE(watch.sentences().size() == 1u);
  BOOST_TEST(watch.sentences()[0] ==
             "advice save_now (7): taken by 3 ranks at step 120, achieved by 3 ranks");
}

BOOST_AUTO_TEST_CASE(hostile_events_of_advice_are_bounded) {
  SaveWatch watch;
  for (const char* id : {"", "0", "-1", "x", "1e9", "99999999999999999999", "\"7\""})
    watch.event(AdviceEvent(id, "\"stop\"", "\"taken\"").event, 1);
  watch.event(AdviceEvent("7", "\"stop\"", "\"done\"").event, 1);
  BOOST_TEST(watch.advice().empty());
  for (int id = 1; id <= 100; ++id)
    watch.event(AdviceEvent(std::to_string(id), "\"\\u001b[2J\"", "\"refused\"").event, 1);
  BOOST_TEST(watch.advice().size() == SaveWatch::kAdvice);
  BOOST_TEST(watch.advice().begin()->first == 85u);
  BOOST_TEST(watch.advice().begin()->second.kind.empty());
  for (uint32_t rank = 0; rank < 1'000'000; ++rank) watch.phase({"checkpoint", true, rank}, 1, 1);
}
