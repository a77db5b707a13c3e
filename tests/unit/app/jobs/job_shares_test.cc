#include "app/jobs/job_shares.h"

#include <boost/test/unit_test.hpp>
#include <vector>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr size_t kSlots = 8;

EngineHolder holder(const char* owner, TimeNs last_ns, JobOrigin origin = JobOrigin::kClaimed,
                    uint64_t bytes = 0) {
  return {owner, origin, last_ns, false, bytes};
}

// All slots are held by one user, the first job silent for the longest time.
std::vector<EngineHolder> all_of(const char* owner, JobOrigin origin = JobOrigin::kClaimed) {
  std::vector<EngineHolder> out;
  for (size_t i = 0; i < kSlots; ++i) out.push_back(holder(owner, static_cast<TimeNs>(100 + i), origin));
  return out;
}

const JobClaim kAliceClaim{"user 1", JobOrigin::kClaimed, 1000};
const JobClaim kMalloryClaim{"user 2", JobOrigin::kClaimed, 1000};

}  // namespace

BOOST_AUTO_TEST_SUITE(job_shares)

BOOST_AUTO_TEST_CASE(a_user_with_all_engines_gives_one_to_another_user) {
  BOOST_TEST(gives_way(all_of("user 2"), kAliceClaim, kSlots).value() == 0u);
}

BOOST_AUTO_TEST_CASE(a_user_with_all_engines_gets_no_more) {
  BOOST_TEST(!gives_way(all_of("user 2"), kMalloryClaim, kSlots));
}

BOOST_AUTO_TEST_CASE(a_user_gets_no_more_than_an_even_share) {
  auto holders = all_of("user 2");
  for (size_t i = 0; i < kSlots / 2; ++i) {
    const auto victim = gives_way(holders, kAliceClaim, kSlots);
    BOOST_REQUIRE(victim);
    BOOST_TEST(holders[*victim].owner == "user 2");
    holders[*victim] = holder("user 1", 2000);
  }
  BOOST_TEST(!gives_way(holders, kAliceClaim, kSlots));
  BOOST_TEST(!gives_way(holders, kMalloryClaim, kSlots));
}

BOOST_AUTO_TEST_CASE(of_the_largest_user_the_least_known_job_goes_then_the_longest_silent_one) {
  auto holders = all_of("user 2", JobOrigin::kWatched);
  holders[3].origin = holders[5].origin = JobOrigin::kClaimed;
  holders[5].last_ns = 50;
  BOOST_TEST(gives_way(holders, kAliceClaim, kSlots).value() == 5u);
}

BOOST_AUTO_TEST_CASE(the_largest_user_gives_way_before_a_smaller_one) {
  auto holders = all_of("user 2");
  holders[0] = holders[1] = holders[2] = holder("user 3", 1);
  BOOST_TEST(holders[gives_way(holders, kAliceClaim, kSlots).value()].owner == "user 2");
}

BOOST_AUTO_TEST_CASE(a_job_that_the_kernel_shows_goes_before_a_claimed_one_of_its_user) {
  auto holders = all_of("user 1", JobOrigin::kShown);
  holders[6].origin = JobOrigin::kClaimed;
  const JobClaim shown{"user 1", JobOrigin::kShown, 1000};
  BOOST_TEST(gives_way(holders, shown, kSlots).value() == 6u);
  holders[6].origin = JobOrigin::kShown;
  BOOST_TEST(!gives_way(holders, shown, kSlots));
}

BOOST_AUTO_TEST_CASE(names_under_many_uids_give_way_to_a_watched_job) {
  std::vector<EngineHolder> holders;
  for (size_t i = 0; i < kSlots; ++i) holders.push_back(holder(std::to_string(i).c_str(), 100));
  BOOST_TEST(!gives_way(holders, kAliceClaim, kSlots));
  BOOST_TEST(gives_way(holders, {"user 1", JobOrigin::kWatched, 1000}, kSlots).has_value());
}

BOOST_AUTO_TEST_CASE(a_user_within_its_share_keeps_its_job) {
  auto holders = all_of("user 2", JobOrigin::kShown);
  holders[4] = holder("user 3", 1);
  const JobClaim more{"user 2", JobOrigin::kShown, 1000};
  BOOST_TEST(!gives_way(holders, more, kSlots));
}

BOOST_AUTO_TEST_CASE(an_idle_job_gives_way_to_anyone_of_its_rank) {
  auto holders = all_of("user 2", JobOrigin::kWatched);
  holders[7].idle = true;
  BOOST_TEST(!gives_way(holders, kMalloryClaim, kSlots));
  BOOST_TEST(gives_way(holders, {"user 2", JobOrigin::kWatched, 1000}, kSlots).value() == 7u);
  BOOST_TEST(gives_way(holders, {"user 1", JobOrigin::kWatched, 1000}, kSlots).value() == 7u);
}

BOOST_AUTO_TEST_CASE(the_longest_silent_job_gives_way_to_one_of_its_user_that_writes) {
  auto holders = all_of("user 1", JobOrigin::kWatched);
  const JobClaim fresh{"user 1", JobOrigin::kWatched, 60 * kNsPerSecond};
  for (size_t i = 0; i < kSlots; ++i) holders[i].last_ns = fresh.at - kQuietHolder + 1;
  BOOST_TEST(!gives_way(holders, fresh, kSlots));
  holders[3].last_ns = holders[6].last_ns = fresh.at - kQuietHolder;
  holders[6].last_ns -= 1;
  BOOST_TEST(gives_way(holders, fresh, kSlots).value() == 6u);
}

BOOST_AUTO_TEST_CASE(an_old_job_gets_the_engine_of_an_old_one_that_is_read_alone) {
  auto holders = all_of("user 2", JobOrigin::kWatched);
  const JobClaim old{"user 1", JobOrigin::kWatched, 60 * kNsPerSecond, true};
  BOOST_TEST(!gives_way(holders, old, kSlots));
  holders[2].idle = true;
  holders[2].read_ns = old.at - kReadWithin + 1;
  BOOST_TEST(!gives_way(holders, old, kSlots));
  holders[2].read_ns = old.at - kReadWithin;
  BOOST_TEST(gives_way(holders, old, kSlots).value() == 2u);
}

BOOST_AUTO_TEST_CASE(the_largest_job_of_the_user_who_takes_most_memory_gives_way) {
  std::vector<EngineHolder> holders{holder("user 1", 1, JobOrigin::kWatched, 30)};
  for (uint64_t i = 0; i < 4; ++i) holders.push_back(holder("user 2", 1, JobOrigin::kClaimed, 10 + i));
  BOOST_TEST(largest_holder(holders).value() == 4u);
  holders.resize(3);
  BOOST_TEST(largest_holder(holders).value() == 0u);
  BOOST_TEST(!largest_holder({}));
}

BOOST_AUTO_TEST_CASE(lines_of_users_claim_and_files_are_watched) {
  StreamInfo socket, file;
  socket.kind = OriginKind::kSocket;
  socket.uid = 1000;
  file.kind = OriginKind::kFile;
  BOOST_TEST((origin_of(socket, 7) == JobOrigin::kClaimed));
  BOOST_TEST((origin_of(socket, 1000) == JobOrigin::kWatched));
  BOOST_TEST((origin_of(file, 7) == JobOrigin::kWatched));
  socket.uid = 0;
  BOOST_TEST((origin_of(socket, 7) == JobOrigin::kWatched));
  BOOST_TEST(owner_of(socket) == "user 0");
}

BOOST_AUTO_TEST_SUITE_END()
