// What waits for a receiver, and when it is tried again, with a numeric clock.
#include "respond/outbox.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::alert;
using namespace culprit::respond;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;
using Kind = Message::Kind;

Message message(const std::string& issue, Kind kind, const std::string& receiver = "a") {
  Message m;
  m.issue = issue;
  m.kind = kind;
  m.receiver = receiver;
  return m;
}

struct Box {
  explicit Box(size_t most = 100) : outbox(most) {}
  void add(const std::string& issue, Kind kind, const std::string& receiver = "a") {
    outbox.add(message(issue, kind, receiver), removed);
  }
  std::string waiting(TimeNs second = 0, size_t most = 100) {
    std::string out;
    for (const Message& m : outbox.due("a", most, second * kSecond))
      out += m.issue + "fersl"[static_cast<int>(m.kind)];
    return out;
  }
  Outbox outbox;
  std::vector<int64_t> removed;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(outbox)

BOOST_AUTO_TEST_CASE(a_newer_message_replaces_a_revision_and_never_the_first) {
  Box b;
  b.add("x", Kind::kFiring);
  b.add("x", Kind::kRevised);
  b.add("y", Kind::kRevised);
  b.add("x", Kind::kRevised);
  BOOST_CHECK_EQUAL(b.waiting(), "xfyexe");
  b.add("x", Kind::kResolved);
  BOOST_CHECK_EQUAL(b.waiting(), "xfyexr");
  BOOST_CHECK(b.removed == (std::vector<int64_t>{2, 4}));
  BOOST_CHECK_EQUAL(b.outbox.lines().at("a").counts.dropped, 0);
}

BOOST_AUTO_TEST_CASE(records_all_go_out_and_of_states_the_newest) {
  Box b;
  b.add("", Kind::kRecord);
  b.add("", Kind::kLatest);
  b.add("", Kind::kRecord);
  b.add("", Kind::kLatest);
  BOOST_CHECK_EQUAL(b.waiting(), "ssl");
}

BOOST_AUTO_TEST_CASE(beyond_the_limit_the_oldest_ends_go_first_and_are_counted) {
  Box b(4);
  b.add("x", Kind::kFiring);
  b.add("x", Kind::kResolved);
  b.add("y", Kind::kFiring);
  b.add("y", Kind::kResolved);
  b.add("z", Kind::kFiring);
  BOOST_CHECK_EQUAL(b.waiting(), "xfyfyrzf");
  b.add("v", Kind::kFiring);
  b.add("w", Kind::kFiring);
  BOOST_CHECK_EQUAL(b.waiting(), "yfzfvfwf");
  BOOST_CHECK_EQUAL(b.outbox.lines().at("a").counts.dropped, 3);
  BOOST_CHECK(b.removed == (std::vector<int64_t>{2, 4, 1}));
}

BOOST_AUTO_TEST_CASE(a_failing_receiver_waits_longer_each_time_and_others_do_not) {
  Box b;
  b.add("x", Kind::kFiring);
  b.add("x", Kind::kFiring, "other");
  TimeNs now = 0;
  for (const TimeNs wait : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    b.outbox.failed("a", "down", std::nullopt, now * kSecond);
    BOOST_CHECK_EQUAL(b.waiting(now + wait - 1), "");
    BOOST_CHECK_EQUAL(b.waiting(now + wait), "xf");
    BOOST_CHECK_EQUAL(b.outbox.due("other", 1, now * kSecond).size(), 1);
    now += wait;
  }
  BOOST_CHECK_EQUAL(b.outbox.lines().at("a").failing_ns, 0);
  b.outbox.sent("a", {1}, now * kSecond);
  BOOST_CHECK_EQUAL(b.outbox.lines().at("a").trouble, "");
  b.outbox.failed("a", "down", 90 * kSecond, now * kSecond);  // as the receiver asks
  b.add("x", Kind::kFiring);
  BOOST_CHECK_EQUAL(b.waiting(now + 89), "");
  BOOST_CHECK_EQUAL(b.waiting(now + 90), "xf");
  BOOST_CHECK_EQUAL(b.waiting(now - 1000), "xf");  // the clock was set back
}

BOOST_AUTO_TEST_CASE(no_receiver_asks_for_more_than_minutes_and_a_person_ends_the_wait) {
  Box b;
  b.add("x", Kind::kFiring);
  b.outbox.failed("a", "429", 24 * 3600 * kSecond, 0);
  BOOST_CHECK_EQUAL(b.waiting(299), "");
  BOOST_CHECK_EQUAL(b.waiting(300), "xf");
  b.outbox.try_now("a");
  b.outbox.try_now("unknown");
  BOOST_CHECK_EQUAL(b.waiting(1), "xf");
  b.outbox.failed("a", "429", std::nullopt, kSecond);  // the wait goes on from where it was
  BOOST_CHECK_EQUAL(b.waiting(300), "");
}

BOOST_AUTO_TEST_CASE(a_message_that_is_refused_does_not_stop_those_behind_it) {
  Box b;
  b.add("x", Kind::kFiring);
  b.add("y", Kind::kFiring);
  BOOST_CHECK(b.outbox.refused("a", {1}, "400", 0).empty());
  BOOST_CHECK_EQUAL(b.waiting(0), "");
  BOOST_CHECK(b.outbox.refused("a", {1}, "400", 0).empty());
  BOOST_CHECK(b.outbox.refused("a", {1}, "400", 0) == std::vector<int64_t>{1});
  BOOST_CHECK_EQUAL(b.waiting(2), "yf");
  BOOST_CHECK_EQUAL(b.outbox.lines().at("a").counts.dropped, 1);
}

BOOST_AUTO_TEST_CASE(refusals_of_a_message_that_gave_way_are_not_kept) {
  Box b;
  b.add("x", Kind::kFiring);
  b.add("x", Kind::kRevised);
  b.outbox.refused("a", {1, 2}, "400", 0);
  b.add("x", Kind::kRevised);                      // the one before gives way
  b.outbox.refused("a", {2}, "400", 5 * kSecond);  // it was on its way meanwhile
  BOOST_CHECK_EQUAL(b.outbox.lines().at("a").refusals.size(), 1);
}

BOOST_AUTO_TEST_CASE(what_is_given_up_is_told_once_and_counted_over_a_restart) {
  Box b(2);
  b.add("x", Kind::kFiring);
  b.add("y", Kind::kFiring);
  b.add("z", Kind::kFiring);  // no room
  for (int i = 0; i < 3; ++i) b.outbox.refused("a", {2}, "no such field", 7);
  std::string dropped;
  for (const Message& m : b.outbox.take_dropped()) dropped += m.receiver + m.issue + " ";
  BOOST_CHECK_EQUAL(dropped, "ax ay ");
  BOOST_CHECK(b.outbox.take_dropped().empty());
  Outbox again;
  again.load(b.outbox.past("a"));
  BOOST_CHECK_EQUAL(again.lines().at("a").counts.dropped, 2);
  BOOST_CHECK_EQUAL(again.lines().at("a").trouble, "no such field");
  BOOST_CHECK_EQUAL(again.lines().at("a").failing_ns, 7);
  BOOST_CHECK(!again.waits("a", 8));
}

BOOST_AUTO_TEST_CASE(a_restart_keeps_the_order_and_the_numbers_go_on) {
  Box b;
  std::vector<Message> retained{message("x", Kind::kFiring), message("y", Kind::kFiring)};
  retained[0].row = 5;
  retained[1].row = 9;
  b.outbox.load(retained);
  b.add("z", Kind::kFiring);
  BOOST_CHECK_EQUAL(b.waiting(), "xfyfzf");
  BOOST_CHECK_EQUAL(b.outbox.due("a", 9, 0).back().row, 10);
  BOOST_CHECK(b.outbox.keep_only({"b"}) == (std::vector<int64_t>{5, 9, 10}));
  BOOST_CHECK_EQUAL(b.outbox.pending(), 0);
  BOOST_CHECK_EQUAL(b.outbox.dropped_without_receiver(), 3);
}

BOOST_AUTO_TEST_SUITE_END()
