// Pictures of single steps: whose work, who waited for whom, and which steps are kept.
#include "core/detect/comm/picture.h"

#include <boost/test/unit_test.hpp>
#include <numeric>

#include "hand_trace.h"

using namespace culprit;
using namespace culprit::comm;
using boost::test_tools::tolerance;
using hand::Analysis;
using hand::Ranks;
using hand::Trace;

namespace {

constexpr double kNear = 0.05;  // ms: a unit is a 8192th of the step

const StepPicture::Row& row_of(const StepPicture& picture, uint32_t rank) {
  return *std::ranges::find_if(picture.rows, [&](const auto& row) { return row.rank == rank; });
}

// Milliseconds of own work, waits and transfers.
std::array<double, 3> sums(const StepPicture& picture, uint32_t rank) {
  std::array<double, 3> out{};
  for (const StepPicture::Part& p : row_of(picture, rank).parts) {
    const uint32_t of[] = {p.own, p.wait, p.move};
    for (size_t i = 0; i < 3; ++i) out[i] += of[i] * picture.unit_ms;
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(picture)

BOOST_AUTO_TEST_CASE(each_rank_has_its_work_its_wait_and_for_whom) {
  Trace t(4, 2);
  t.skew(1, 400);  // clocks of hosts differ
  t.work({100, 100, 130, 90});
  t.collective({.group = t.all(), .ms = 5});
  t.end_step();
  const Analysis a(t);
  const StepPicture p = picture_of(a.cluster(), a.step());
  BOOST_TEST(p.step == 1);
  BOOST_TEST(p.ranks == 4u);
  BOOST_REQUIRE(p.rows.size() == 4u);
  BOOST_TEST(p.ops == std::vector<std::string>{"all_reduce"}, boost::test_tools::per_element());
  const std::pair<uint32_t, std::array<double, 3>> kRows[] = {
      {0, {100, 30, 5}}, {1, {100, 30, 5}}, {2, {130, 0, 5}}, {3, {90, 40, 5}}};
  for (const auto& [rank, expected] : kRows)
    for (size_t i = 0; i < 3; ++i)
      BOOST_TEST(std::abs(sums(p, rank)[i] - expected[i]) < kNear, rank << ", " << i);
  BOOST_TEST(row_of(p, 0).parts[0].last == 2);
  BOOST_TEST(row_of(p, 2).parts[0].last == -1);
  BOOST_TEST(row_of(p, 2).awaited_ms == 40, tolerance(0.01));
  BOOST_TEST(row_of(p, 0).awaited_ms == 0);
  BOOST_TEST(row_of(p, 3).wait_ms == 40, tolerance(0.01));
  BOOST_TEST(row_of(p, 3).host.value() == "node-1");
}

BOOST_AUTO_TEST_CASE(a_receiver_waits_for_its_sender) {
  Trace t(2);
  t.work({100, 20});
  t.send(0, 1, 3);
  t.work(1, 50);
  t.collective({.group = t.all(), .ms = 2});
  t.end_step();
  const Analysis a(t);
  const StepPicture p = picture_of(a.cluster(), a.step());
  const StepPicture::Part& received = row_of(p, 1).parts.at(0);
  BOOST_TEST(std::abs(received.wait * p.unit_ms - 80) < 1);
  BOOST_TEST(received.last == 0);
  BOOST_TEST(p.ops.at(received.op) == "recv pp");
}

BOOST_AUTO_TEST_CASE(many_short_operations_are_joined_and_lose_no_time) {
  Trace t(64);
  for (int i = 0; i < 300; ++i) {
    t.work_all(1);
    t.collective({.group = t.all(), .ms = 0.5});
  }
  t.work(7, 60);
  t.collective({.group = t.all(), .ms = 5});
  t.end_step();
  const Analysis a(t);
  const StepPicture p = picture_of(a.cluster(), a.step());
  BOOST_TEST(row_of(p, 0).parts.size() <= kPictureParts / 64);
  const auto [own, wait, move] = sums(p, 0);
  BOOST_TEST(std::abs(own - 300) < 1);
  BOOST_TEST(std::abs(wait - 60) < 1);
  BOOST_TEST(std::abs(move - 155) < 1);
  BOOST_TEST(row_of(p, 0).parts.back().last == 7);
}

BOOST_AUTO_TEST_CASE(beyond_the_rows_ranks_are_grouped_by_host_and_the_late_one_keeps_its_own) {
  Trace t(1024, 8);
  t.work_all(100);
  t.work(777, 50);
  t.collective({.group = t.all(), .ms = 5});
  t.end_step();
  const Analysis a(t);
  const StepPicture p = picture_of(a.cluster(), a.step());
  BOOST_TEST(p.rows.size() <= kPictureRows);
  BOOST_TEST(row_of(p, 777).of == 1u);
  BOOST_TEST(row_of(p, 777).awaited_ms == 50, tolerance(0.01));
  const auto all = std::accumulate(p.rows.begin(), p.rows.end(), uint64_t{0},
                                   [](uint64_t n, const auto& row) { return n + row.of; });
  BOOST_TEST(all == 1024u);
}

BOOST_AUTO_TEST_CASE(the_steps_that_a_rank_made_longest_are_kept_and_a_usual_one) {
  Pictures pictures;
  Trace t(4);
  for (int step = 1; step <= 40; ++step) {
    t.work_all(100);
    if (step % 4 == 1) t.work(1, step);  // later ones are longer
    t.collective({.group = t.all(), .ms = 5});
    t.end_step();
  }
  // One analysis of the whole trace, with an offer after each step.
  const Cluster* cluster = nullptr;
  std::vector<Step> steps;
  const Analysis a(t, [&](Step& step) { steps.push_back(step); });
  cluster = &a.cluster();
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i].result = a.steps()[i];
    pictures.offer(*cluster, steps[i]);
  }
  std::vector<int64_t> retained;
  for (const StepPicture& p : pictures.all()) retained.push_back(p.step);
  const std::vector<int64_t> expected{21, 25, 29, 31, 33, 37};  // 31 is the 32nd step that was offered
  BOOST_TEST(retained == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
