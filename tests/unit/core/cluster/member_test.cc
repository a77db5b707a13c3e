// Partitions of jobs, and how long a collector may believe that it owns one.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <set>

#include "core/cluster/member.h"

using namespace culprit;
using namespace culprit::cluster;

namespace {

constexpr TimeNs kS = kNsPerSecond;

// A member that took partition 7 in the round of second 5.
Member owner_of_seven() {
  Member out;
  BOOST_REQUIRE(out.due(0, {true, false}));
  out.answered({});
  BOOST_REQUIRE(out.due(5 * kS, {true, false})->take);
  out.answered({{}, {}, PartHold{7, 3}});
  return out;
}

struct PartitionCase {
  const char* job;
  uint32_t part;
};
std::ostream& operator<<(std::ostream& out, const PartitionCase& c) { return out << c.job; }
// Rows of databases depend on these numbers.
constexpr PartitionCase kPartitionCases[] = {
    {"", 2}, {"4711", 33}, {"ml/llama", 10}, {"node-17", 12}, {"train", 8}};

}  // namespace

BOOST_DATA_TEST_CASE(the_partition_of_a_job_never_changes, kPartitionCases) {
  BOOST_TEST(partition_of(sample.job) == sample.part);
}

BOOST_AUTO_TEST_CASE(jobs_are_spread_over_all_partitions) {
  std::set<uint32_t> seen;
  for (int job = 0; job < 1000; ++job) seen.insert(partition_of(std::to_string(job)));
  BOOST_TEST(seen.size() == kPartitions);
}

BOOST_AUTO_TEST_CASE(the_first_round_adopts_and_takes_nothing) {
  Member member;
  const auto work = member.due(100 * kS, {true, false});
  BOOST_REQUIRE(work);
  BOOST_TEST(work->adopt);
  BOOST_TEST(!work->take);
  BOOST_TEST(work->renew.empty());
  member.answered({{{3, 8}, {9, 2}}, {}, {}});
  BOOST_TEST(member.epoch(3, 101 * kS).value() == 8u);
  BOOST_TEST(member.epoch(9, 101 * kS).value() == 2u);
  BOOST_TEST(!member.due(105 * kS, {true, false})->adopt);
}

BOOST_AUTO_TEST_CASE(at_most_one_partition_is_taken_in_five_seconds) {
  Member member;
  int takes = 0;
  for (TimeNs now = 0; now < 100 * kS; now += kS / 4) {
    const auto work = member.due(now, {true, false});
    if (!work) continue;
    takes += work->take;
    if (now % (3 * kS) == 0)
      member.failed(now);  // and is asked again a second later
    else
      member.answered({});
  }
  BOOST_TEST(takes <= 20);
  BOOST_TEST(takes >= 10);
}

BOOST_AUTO_TEST_CASE(nothing_is_taken_above_the_memory_mark_and_all_is_renewed) {
  Member member = owner_of_seven();
  const auto work = member.due(10 * kS, {false, false});
  BOOST_REQUIRE(work);
  BOOST_TEST(!work->take);
  BOOST_REQUIRE(work->renew.size() == 1u);
  BOOST_TEST((work->renew[0] == PartHold{7, 3}));
}

struct FenceCase {
  const char* name;
  TimeNs now;
  bool owned;
};
std::ostream& operator<<(std::ostream& out, const FenceCase& c) { return out << c.name; }
// The last renewal was asked for at second 5.
constexpr FenceCase kFenceCases[] = {{"at once", 5 * kS, true},
                                     {"just before the fence", 15 * kS - 1, true},
                                     {"at the fence", 15 * kS, false},
                                     {"after a sleep of the machine", 9000 * kS, false}};

BOOST_DATA_TEST_CASE(a_member_fences_itself_ten_seconds_after_the_last_good_renewal, kFenceCases) {
  const Member member = owner_of_seven();
  BOOST_TEST(member.epoch(7, sample.now).has_value() == sample.owned);
  BOOST_TEST(member.is_fresh(sample.now) == sample.owned);
}

BOOST_AUTO_TEST_CASE(a_renewal_counts_from_its_request_and_not_from_its_answer) {
  Member member = owner_of_seven();
  BOOST_REQUIRE(member.due(10 * kS, {true, false}));
  member.answered({{}, {7}, {}});  // whenever it came
  BOOST_TEST(member.epoch(7, 20 * kS - 1).has_value());
  BOOST_TEST(!member.epoch(7, 20 * kS));
}

BOOST_AUTO_TEST_CASE(a_renewal_of_no_row_loses_the_partition) {
  Member member = owner_of_seven();
  BOOST_REQUIRE(member.due(10 * kS, {true, false}));
  member.answered({});
  BOOST_TEST(!member.epoch(7, 10 * kS));
  const auto lost = member.drain_lost();
  BOOST_REQUIRE(lost.size() == 1u);
  BOOST_TEST((lost[0] == PartHold{7, 3}));
  BOOST_TEST(member.drain_lost().empty());
  BOOST_TEST(member.due(15 * kS, {true, false})->renew.empty());
}

BOOST_AUTO_TEST_CASE(a_round_without_an_answer_is_asked_again_after_a_second_and_keeps_the_holds) {
  Member member = owner_of_seven();
  BOOST_REQUIRE(member.due(10 * kS, {true, false})->take);
  BOOST_TEST(!member.due(11 * kS, {true, false}));  // one at a time
  member.failed(12 * kS);
  BOOST_TEST(!member.due(12 * kS, {true, false}));
  const auto again = member.due(13 * kS, {true, false});
  BOOST_REQUIRE(again);
  BOOST_TEST(again->renew.size() == 1u);
  BOOST_TEST(!again->take);
  BOOST_TEST(again->adopt);  // the lost answer may have been about a taken partition
}

BOOST_AUTO_TEST_CASE(a_fenced_member_renews_its_partition_if_no_other_took_it) {
  Member member = owner_of_seven();
  BOOST_REQUIRE(member.due(10 * kS, {true, false}));
  member.failed(14 * kS);
  BOOST_TEST(!member.epoch(7, 60 * kS));
  const auto work = member.due(60 * kS, {true, false});
  BOOST_REQUIRE(work->renew.size() == 1u);
  member.answered({{}, {7}, {}});
  BOOST_TEST(member.epoch(7, 61 * kS).value() == 3u);
}

BOOST_AUTO_TEST_CASE(a_clean_stop_gives_back_all_and_asks_no_more) {
  Member member = owner_of_seven();
  const auto back = member.stop();
  BOOST_REQUIRE(back.size() == 1u);
  BOOST_TEST((back[0] == PartHold{7, 3}));
  BOOST_TEST(!member.epoch(7, 6 * kS));
  BOOST_TEST(!member.due(100 * kS, {true, false}));
}

namespace {

// `owned` by a, b, c in turn; the rest is free.
ClusterView view_of(std::vector<uint32_t> owned, std::vector<bool> takes = {true, true, true}) {
  ClusterView out;
  for (size_t member = 0; member < owned.size(); ++member) {
    const std::string name(1, static_cast<char>('a' + member));
    out.members.push_back({name, name + ":1", kS, takes[member]});
    for (uint32_t i = 0; i < owned[member]; ++i)
      out.parts.push_back({static_cast<uint32_t>(out.parts.size()), name, 1, 9 * kS});
  }
  while (out.parts.size() < kPartitions)
    out.parts.push_back({static_cast<uint32_t>(out.parts.size()), "", 1, 0});
  return out;
}

struct SurplusCase {
  const char* what;
  ClusterView view;
  bool surplus;  // of a
};
std::ostream& operator<<(std::ostream& out, const SurplusCase& c) { return out << c.what; }
const SurplusCase kSurplusCases[] = {
    {"a new member owns none", view_of({32, 32, 0}), true},
    {"equal shares", view_of({22, 21, 21}), false},
    {"one more than the share", view_of({23, 21, 20}), true},
    {"all others have their least share", view_of({22, 22, 20}), false},
    {"some are free", view_of({32, 31, 0}), false},
    {"the other takes none", view_of({32, 32, 0}, {true, true, false}), false},
    {"it takes none itself", view_of({32, 32, 0}, {false, true, true}), false},
    {"alone", view_of({64}), false},
    {"nothing was read", {}, false},
};

}  // namespace

BOOST_DATA_TEST_CASE(a_member_has_a_surplus_only_while_another_owns_less_than_its_share, kSurplusCases) {
  BOOST_TEST(has_surplus(sample.view, "a", 15 * kS) == sample.surplus);
}

BOOST_AUTO_TEST_CASE(a_given_partition_is_not_owned_from_the_question_on) {
  Member member = owner_of_seven();
  BOOST_TEST(!member.due(8 * kS, {true, true}));  // one change in five seconds
  const auto work = member.due(10 * kS, {true, true});
  BOOST_REQUIRE((work && work->give));
  BOOST_TEST(work->give->part == 7u);
  BOOST_TEST(work->renew.empty());
  BOOST_TEST(!work->take);
  BOOST_TEST(!member.epoch(7, 10 * kS).has_value());
  member.failed(10 * kS);  // it may still be this member's: it is adopted in a new epoch
  BOOST_TEST(member.due(11 * kS, {true, false})->adopt);
}
