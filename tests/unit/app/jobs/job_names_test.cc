// Jobs of one name and several owners: each has an id of its own.
#include "app/jobs/job_names.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint32_t kDaemon = 990, kAlice = 12'003, kMallory = 12'002;

StreamInfo source(const std::string& job, std::optional<uint32_t> uid,
                  OriginKind kind = OriginKind::kSocket) {
  StreamInfo out;
  out.kind = kind;
  out.job = job;
  out.uid = uid;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_names)

BOOST_AUTO_TEST_CASE(a_name_belongs_to_its_first_user_and_others_get_ids_of_their_own) {
  JobNames names(kDaemon);
  for (int again = 0; again < 2; ++again) {
    BOOST_TEST(names.id_of(source("train", kAlice), {}) == "train");
    BOOST_TEST(names.id_of(source("train", kMallory), {}) == "train@uid12002");
    BOOST_TEST(names.id_of(source("train", kMallory, OriginKind::kFile), {}) == "train@uid12002");
  }
}

BOOST_AUTO_TEST_CASE(jobs_of_a_chain_have_the_id_of_the_first_one) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("101", kAlice), {}) == "101");
  JobAttempts again;
  again.successor = "102";
  const auto first = names.join(source("101", kAlice), again);
  BOOST_REQUIRE(first.size() == 1u);
  BOOST_TEST(first[0].name == "102");
  BOOST_TEST(first[0].id == "101");
  BOOST_TEST(names.id_of(source("102", kAlice, OriginKind::kFile), {}) == "101");
  BOOST_TEST(names.id_of(source("102", kAlice), {kAlice}) == "101");
  BOOST_TEST(names.join(source("102", kAlice), again).empty());  // not its own successor
  JobAttempts third;
  third.first = "101", third.member = "103", third.successor = "104";
  BOOST_TEST(names.join(source("103", kAlice), third).size() == 2u);
  for (const char* job : {"103", "104"}) BOOST_TEST(names.id_of(source(job, kAlice), {}) == "101", job);
  // An agent's session keeps its name, and its data follows the chain.
  const StreamInfo session = source("104", kAlice, OriginKind::kCondensed);
  BOOST_TEST(names.id_of(session, {}) == "104");
  BOOST_TEST(names.chain_of("104", session) == "101");
}

BOOST_AUTO_TEST_CASE(no_job_joins_another_users_chain) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("101", kAlice), {}) == "101");
  JobAttempts claim;
  claim.first = "101", claim.member = "666";
  BOOST_TEST(names.join(source("666", kMallory), claim).empty());
  BOOST_TEST(names.id_of(source("666", kMallory), {}) == "666");
  // A claim on another user's job moves nothing of that user.
  BOOST_TEST(names.id_of(source("600", kMallory), {}) == "600");
  claim = {};
  claim.successor = "102";
  BOOST_TEST(names.join(source("600", kMallory), claim).size() == 1u);
  BOOST_TEST(names.id_of(source("102", kAlice), {}) == "102");
  BOOST_TEST(names.id_of(source("102", kMallory), {}) == "600");
  BOOST_TEST(names.join(source("101", kAlice), claim).size() == 1u);
  BOOST_TEST(names.id_of(source("102", kAlice, OriginKind::kRing), {}) == "101");
}

BOOST_AUTO_TEST_CASE(a_chain_of_an_unknown_job_is_none_and_a_user_has_a_limit_of_members) {
  JobNames names(kDaemon);
  JobAttempts claim;
  claim.first = "101", claim.member = "102";
  BOOST_TEST(names.join(source("102", kAlice), claim).empty());
  BOOST_TEST(names.id_of(source("1", kAlice), {}) == "1");
  for (size_t i = 0; i <= JobNames::kMembers; ++i) {
    JobAttempts next;
    next.successor = "n" + std::to_string(i);
    BOOST_TEST(names.join(source("1", kAlice), next).size() == 1u);
  }
  BOOST_TEST(names.id_of(source("n0", kAlice), {}) == "n0");
  BOOST_TEST(names.id_of(source("n1", kAlice), {}) == "1");
}

BOOST_AUTO_TEST_CASE(root_services_and_unknown_users_speak_for_any_job) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("train", kAlice), {}) == "train");
  for (const std::optional<uint32_t> uid : {std::optional<uint32_t>(0), std::optional(kDaemon), {}})
    BOOST_TEST(names.id_of(source("train", uid), {}) == "train");
  BOOST_TEST(names.id_of(source("train", 104, OriginKind::kFile), {}) == "train");
  BOOST_TEST(names.id_of(source("train", 104), {}) == "train@uid104");
}

BOOST_AUTO_TEST_CASE(a_name_that_root_or_the_daemon_has_first_is_free_for_no_user) {
  for (const uint32_t first : {0u, kDaemon})
    for (const OriginKind kind : {OriginKind::kFile, OriginKind::kSocket, OriginKind::kRing}) {
      JobNames names(kDaemon), after(kDaemon);
      const StreamInfo stored = source("train", first, kind);
      BOOST_TEST(names.id_of(stored, {}) == "train");
      after.note(stored);
      for (JobNames* one : {&names, &after}) {
        BOOST_TEST(one->id_of(source("train", kMallory), {}) == "train@uid12002");
        BOOST_TEST(one->id_of(source("train", kAlice), {kAlice}) == "train", "the user of its processes");
        BOOST_TEST(one->id_of(stored, {}) == "train");
        BOOST_TEST(one->id_of(source("train", kAlice), {}) == "train", "and after they ended");
      }
    }
}

BOOST_AUTO_TEST_CASE(root_of_this_host_takes_no_name_of_an_agents_job) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("4711", 0, OriginKind::kFile), {}) == "4711");
  BOOST_TEST(names.id_of(source("4711", kAlice, OriginKind::kCondensed), {}) == "4711");
}

BOOST_AUTO_TEST_CASE(a_user_of_a_job_that_root_logs_has_its_name_once_the_kernel_shows_the_user) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("4711", 0, OriginKind::kFile), {}) == "4711");
  BOOST_TEST(names.id_of(source("4711", kAlice), {}) == "4711@uid12003");
  BOOST_TEST(names.id_of(source("4711", kAlice), {kAlice}) == "4711");
}

BOOST_AUTO_TEST_CASE(root_of_another_host_takes_no_name) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("train", 0, OriginKind::kCondensed), {}) == "train");
  BOOST_TEST(names.id_of(source("train", kAlice), {}) == "train");
}

BOOST_AUTO_TEST_CASE(data_without_a_name_is_of_one_job) {
  JobNames names(kDaemon);
  for (const uint32_t uid : {kAlice, kMallory}) {
    BOOST_TEST(names.id_of(source("default", uid), {}) == "default");
    BOOST_TEST(names.id_of(source("", uid), {}) == "");
  }
}

BOOST_AUTO_TEST_CASE(a_user_whom_the_kernel_shows_takes_the_name) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("4711", kMallory), {}) == "4711");
  BOOST_TEST(names.id_of(source("4711", kAlice), {kAlice}) == "4711");
  BOOST_TEST(names.id_of(source("4711", kMallory), {kAlice}) == "4711@uid12002");
  BOOST_TEST(names.id_of(source("4711", kMallory), {}) == "4711@uid12002", "nor once she is gone");
}

BOOST_AUTO_TEST_CASE(a_job_of_others_that_the_kernel_shows_is_free_for_none) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("4711", kMallory), {kAlice}) == "4711@uid12002");
  BOOST_TEST(names.id_of(source("4711", kAlice), {}) == "4711");
}

BOOST_AUTO_TEST_CASE(a_users_jobs_of_one_name_keep_one_id) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("4711", kMallory), {}) == "4711");
  BOOST_TEST(names.id_of(source("4711", kAlice), {}) == "4711@uid12003");
  BOOST_TEST(names.id_of(source("4711", kAlice), {kAlice}) == "4711@uid12003");
}

BOOST_AUTO_TEST_CASE(an_id_with_an_owner_is_that_owners_alone) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("train@uid12003", kMallory), {}) == "train@uid12003@uid12002");
  BOOST_TEST(names.id_of(source("train@uid12003", kAlice), {}) == "train@uid12003");
  BOOST_TEST(names.id_of(source("train@uid", kMallory), {}) == "train@uid");
  BOOST_TEST(name_of_job("train@uid12003") == "train");
  BOOST_TEST(name_of_job("me@host") == "me@host");
}

BOOST_AUTO_TEST_CASE(the_collectors_id_of_a_job_is_known_here) {
  JobNames names(kDaemon);
  BOOST_TEST(names.id_of(source("train", kAlice), {}) == "train");
  BOOST_TEST(names.known_as("train@uid12003") == "train");
  BOOST_TEST(names.known_as("train@uid12002") == "train@uid12002");
  BOOST_TEST(names.id_of(source("train", kMallory), {}) == "train@uid12002");
  BOOST_TEST(names.known_as("train@uid12002") == "train@uid12002");
  BOOST_TEST(names.known_as("train") == "train");
}

BOOST_AUTO_TEST_CASE(stored_sources_keep_their_ids) {
  JobNames before(kDaemon), after(kDaemon);
  std::vector<StreamInfo> stored;
  for (const uint32_t uid : {kMallory, kAlice}) {
    stored.push_back(source("train", uid));
    stored.back().job = before.id_of(stored.back(), {});
  }
  for (const StreamInfo& info : stored) after.note(info);
  BOOST_TEST(after.id_of(source("train", kAlice), {}) == stored[1].job);
  BOOST_TEST(after.id_of(source("train", kMallory), {}) == stored[0].job);
}

BOOST_AUTO_TEST_SUITE_END()
