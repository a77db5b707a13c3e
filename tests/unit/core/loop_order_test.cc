#include "core/loop_order.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "base/limits.h"

using namespace culprit;
using namespace culprit::core;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;

// Rows in order of output, as "rank@step".
struct Ordered {
  std::string text;
  std::vector<std::pair<uint32_t, int64_t>> rows;
  LoopOrder order{{[this](const MetricRow& row) {
                     rows.emplace_back(row.rank, row.step);
                     text += fmt::format("{}@{} ", row.rank, row.step);
                   },
                   [this](const LoopEvent& event) { text += fmt::format("{} ", event.name); }}};

  void tell(uint32_t rank, std::pair<int64_t, int64_t> steps, TimeNs now, bool remote = false) {
    for (int64_t step = steps.first; step < steps.second; ++step) {
      const MetricValue values[] = {{"loss", 0.5 * static_cast<double>(step)}};
      MetricRow row;
      row.rank = rank, row.step = step, row.host = "node-1", row.values = values;
      order.add({&row, 1}, now, remote);
    }
  }
  bool in_order() const {
    return std::is_sorted(rows.begin(), rows.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(loop_order)

BOOST_AUTO_TEST_CASE(rows_of_ranks_that_come_one_after_another_go_on_step_for_step) {
  Ordered o;
  for (uint32_t rank = 0; rank < 4; ++rank) o.tell(rank, {0, 100}, 10 * kSecond + rank);
  BOOST_TEST(o.rows.empty());  // other ranks may still be unknown
  BOOST_TEST(o.order.settle(13 * kSecond));
  BOOST_TEST((o.rows.size() == 400 && o.in_order() && o.order.empty()));
  // From then on a step is passed on when all ranks are beyond it.
  o.rows.clear();
  o.tell(0, {100, 110}, 13 * kSecond);
  o.tell(1, {100, 110}, 13 * kSecond);
  o.tell(2, {100, 110}, 13 * kSecond);
  BOOST_TEST(o.rows.empty());
  o.tell(3, {100, 106}, 13 * kSecond);
  BOOST_TEST((o.rows.size() == 20 && o.in_order() && o.rows.back().second == 104));
}

BOOST_AUTO_TEST_CASE(a_rank_that_fell_silent_is_waited_for_until_no_more_can_come) {
  Ordered o;
  for (int64_t step = 0; step < 20; ++step)
    for (uint32_t rank = 0; rank < 3; ++rank)
      if (rank != 1 || step < 10) o.tell(rank, {step, step + 1}, (10 + step) * kSecond);
  // Those of at least two seconds ago.
  BOOST_TEST(o.in_order());
  BOOST_TEST(o.rows.back().second == 17);
  BOOST_TEST(!o.order.settle(29 * kSecond));
  BOOST_TEST(o.order.settle(31 * kSecond));
  BOOST_TEST((o.rows.size() == 50 && o.order.empty()));
}

BOOST_AUTO_TEST_CASE(hosts_that_report_once_a_minute_are_waited_for) {
  Ordered o;
  for (const TimeNs minute : {0, 1, 2})
    for (uint32_t host = 0; host < 3; ++host) {
      // In the order of blocks: all rows of a host of one minute, one host after the other.
      for (int64_t step = 60 * minute; step < 60 * minute + 60; ++step)
        o.tell(host, {step, step + 1}, (1000 + step) * kSecond, true);
      // The last host completes the minute; the first one does not.
      const bool gave = o.order.settle((1000 + 60 * minute + (host == 2 ? 59 : 0)) * kSecond);
      BOOST_TEST((!gave || minute > 0));
    }
  BOOST_TEST(o.in_order());
  BOOST_TEST(o.rows.size() >= 3 * 175u);
  o.order.settle(2000 * kSecond);
  BOOST_TEST((o.rows.size() == 3 * 180u && o.in_order()));
}

BOOST_AUTO_TEST_CASE(a_jump_back_of_all_ranks_keeps_them_together) {
  Ordered o;
  o.tell(0, {0, 50}, 10 * kSecond);
  o.tell(1, {0, 45}, 10 * kSecond);  // the last rows of this rank are lost
  o.tell(0, {40, 60}, 11 * kSecond);
  o.tell(1, {40, 60}, 11 * kSecond);
  o.order.settle(20 * kSecond);
  std::vector<int64_t> apart;
  std::map<uint32_t, int64_t> last;
  bool again = false;
  for (const auto& [rank, step] : o.rows) {
    again = again || (last.contains(rank) && step < last[rank]);
    last[rank] = step;
    if (again && last.size() == 2) apart.push_back(std::abs(last[0] - last[1]));
  }
  // Once both are in the second run.
  BOOST_TEST_REQUIRE(apart.size() > 30u);
  BOOST_TEST((std::all_of(apart.end() - 30, apart.end(), [](int64_t steps) { return steps <= 1; })));
}

BOOST_AUTO_TEST_CASE(an_event_stands_behind_what_its_rank_reported_before) {
  Ordered o;
  LoopEvent event;
  event.name = "replay";
  o.order.add(event, kSecond, false);
  o.tell(0, {0, 3}, 10 * kSecond);
  event.name = "audit", event.rank = 0;
  o.order.add(event, 10 * kSecond, false);
  o.tell(0, {3, 4}, 10 * kSecond);
  o.tell(1, {0, 4}, 10 * kSecond);
  o.order.settle(20 * kSecond);
  BOOST_TEST(o.text == "replay 0@0 1@0 0@1 1@1 0@2 audit 1@2 0@3 1@3 ");
}

BOOST_AUTO_TEST_CASE(what_waits_is_bounded_and_reported) {
  Ordered o;
  std::vector<std::string> names;
  std::vector<MetricValue> values;
  for (int i = 0; i < 1000; ++i) names.push_back("metric/" + std::to_string(i));
  for (const std::string& name : names) values.push_back({name, 1});
  for (int64_t step = 0; step < 5000; ++step) {
    MetricRow row;
    row.step = step, row.values = values;
    o.order.add({&row, 1}, kSecond, true);
  }
  BOOST_TEST(o.in_order());
  const size_t waits = 5000 - o.rows.size();
  BOOST_TEST((waits * 8000 < kLoopHeldBytes + 2 * kLoopHeldBytesOfRank), waits);
  BOOST_TEST(waits > 1000u);
  BOOST_TEST_REQUIRE(o.order.problems().size() == 1u);
  BOOST_TEST(o.order.problems()[0].find("did not wait") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(names_of_what_waits_are_bounded_and_kept_once_for_rows_that_take_turns) {
  constexpr size_t kNames = 1000, kRows = 500;
  const auto waits = [](size_t kinds) {
    Ordered o;
    for (size_t i = 0; i < kRows; ++i) {
      std::vector<std::string> names;
      std::vector<MetricValue> values;
      for (size_t n = 0; n < kNames; ++n) names.push_back(fmt::format("metric/{}/{}", i % kinds, n));
      for (const std::string& name : names) values.push_back({name, 1});
      MetricRow row;
      row.step = static_cast<int64_t>(i), row.values = values;
      o.order.add({&row, 1}, kSecond, true);
    }
    return kRows - o.rows.size();
  };
  BOOST_TEST(waits(3) == kRows);
  BOOST_TEST(waits(kRows) * kNames * (sizeof(double) + sizeof(std::string)) <
             kLoopHeldBytes + kLoopHeldBytesOfRank);
}

BOOST_AUTO_TEST_CASE(events_that_wait_are_bounded_with_all_that_they_say) {
  Ordered o;
  o.tell(0, {0, 1}, kSecond, true);
  const std::string output(60'000, 'x');
  const EventField fields[] = {{"said", output}};
  LoopEvent event;
  event.rank = 0, event.name = "note", event.fields = fields;
  const size_t held = (kLoopHeldBytes + kLoopHeldBytesOfRank) / output.size();
  for (size_t i = 0; i <= held && o.rows.empty(); ++i) o.order.add(event, kSecond, true);
  BOOST_TEST(o.rows.size() == 1u);
}

BOOST_AUTO_TEST_CASE(steps_that_go_forth_and_back_beyond_all_numbers_go_on) {
  Ordered o;
  for (int i = 0; i < 3000; ++i) {
    const int64_t step = i % 2 ? limits::kStepMax : 0;
    o.tell(0, {step, step + 1}, 10 * kSecond);
  }
  o.order.settle(20 * kSecond);
  BOOST_TEST((o.rows.size() == 3000 && o.order.empty()));
}

BOOST_AUTO_TEST_CASE(what_is_late_goes_on_at_once) {
  Ordered o;
  o.tell(0, {0, 10}, 10 * kSecond);
  o.order.settle(20 * kSecond);
  o.tell(1, {3, 4}, 20 * kSecond);
  BOOST_TEST(o.rows.back().first == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
