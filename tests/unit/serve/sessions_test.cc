// Links that log a page in once, with a numeric clock.
#include "serve/sessions.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::serve;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;
const LinkMaker kRoot{Role::kOperate, "uid 0", false}, kReader{Role::kRead, "token board", true};

std::string outcome(const Result<Token>& token) { return token ? token->name : token.error().text; }
constexpr const char* kExited =
    "this link was used already or is older than 5 minutes: `culprit page` prints another";

}  // namespace

BOOST_AUTO_TEST_SUITE(sessions)

BOOST_AUTO_TEST_CASE(a_link_logs_in_once_with_the_role_of_its_maker) {
  Sessions s;
  BOOST_REQUIRE(s.make_link(kRoot, "c1", 0));
  BOOST_REQUIRE(s.make_link(kReader, "c2", 0));
  BOOST_CHECK_EQUAL(outcome(s.log_in("c2", "10.0.0.1", "s2", 1)), "page of token board");
  BOOST_CHECK_EQUAL(outcome(s.log_in("c2", "10.0.0.1", "s3", 1)), kExited);
  BOOST_CHECK_EQUAL(outcome(s.log_in("c1", "10.0.0.1", "s1", 1)), "page of uid 0");
  BOOST_REQUIRE(s.find("Bearer s2", 2));
  BOOST_CHECK(s.find("Bearer s2", 2)->role == Role::kRead);
  BOOST_CHECK(s.find("Bearer s1", 2)->role == Role::kOperate);
  for (const char* wrong : {"Bearer c1", "Bearer s3", "Bearer ", "", "s1", "Basic s1"})
    BOOST_CHECK_MESSAGE(!s.find(wrong, 2), wrong);
}

BOOST_AUTO_TEST_CASE(an_empty_code_is_none) {
  Sessions s;
  BOOST_CHECK_EQUAL(outcome(s.log_in("", "10.0.0.1", "s", 1)), kExited);
}

BOOST_AUTO_TEST_CASE(a_link_lives_for_minutes_and_a_session_for_hours) {
  Sessions s;
  BOOST_REQUIRE(s.make_link(kRoot, "c1", 0));
  BOOST_REQUIRE(s.make_link(kRoot, "c2", 0));
  BOOST_CHECK(s.log_in("c1", "10.0.0.1", "s1", Sessions::kLinkLife - 1));
  BOOST_CHECK_EQUAL(outcome(s.log_in("c2", "10.0.0.1", "s2", Sessions::kLinkLife)), kExited);
  const TimeNs end = Sessions::kLinkLife - 1 + Sessions::kSessionLife;
  BOOST_CHECK(s.find("Bearer s1", end - 1));
  BOOST_CHECK(!s.find("Bearer s1", end));
}

BOOST_AUTO_TEST_CASE(guesses_of_one_address_are_bounded_and_lock_out_no_right_link) {
  Sessions s;
  BOOST_REQUIRE(s.make_link(kRoot, "c1", 0));
  for (size_t i = 0; i < Sessions::kFailedInMinute; ++i)
    BOOST_CHECK_EQUAL(outcome(s.log_in("guess", "10.0.0.1", "s", 1)), kExited);
  const auto refused = s.log_in("guess", "10.0.0.1", "s", 1);
  BOOST_REQUIRE(!refused);
  BOOST_CHECK(refused.error().code == ErrorCode::kTooSoon);
  BOOST_CHECK(s.log_in("c1", "10.0.0.1", "s1", 1));
  BOOST_CHECK_EQUAL(outcome(s.log_in("guess", "10.0.0.1", "s", 61 * kSecond)), kExited);
}

BOOST_AUTO_TEST_CASE(links_of_one_maker_are_bounded_and_the_oldest_gives_way) {
  Sessions s;
  for (size_t i = 0; i < Sessions::kLinksInMinute; ++i)
    BOOST_REQUIRE(s.make_link(kRoot, "c" + std::to_string(i), 0));
  const Status refused = s.make_link(kRoot, "more", 1);
  BOOST_REQUIRE(!refused);
  BOOST_CHECK(refused.error().code == ErrorCode::kTooSoon);
  BOOST_CHECK(s.make_link(kReader, "other", 1));
  BOOST_CHECK(s.make_link(kRoot, "later", 60 * kSecond));
  BOOST_CHECK_EQUAL(outcome(s.log_in("c5", "10.0.0.1", "s", 61 * kSecond)), kExited);
  BOOST_CHECK(s.log_in("c9", "10.0.0.1", "s", 61 * kSecond));
}

BOOST_AUTO_TEST_CASE(a_changed_token_file_ends_what_its_tokens_opened) {
  Sessions s;
  for (const auto& [maker, code] :
       {std::pair(kRoot, "c1"), std::pair(kReader, "c2"), std::pair(kReader, "c3")})
    BOOST_REQUIRE(s.make_link(maker, code, 0));
  BOOST_REQUIRE(s.log_in("c1", "10.0.0.1", "s1", 1));
  BOOST_REQUIRE(s.log_in("c2", "10.0.0.1", "s2", 1));
  s.end_of_tokens();
  BOOST_CHECK(s.find("Bearer s1", 2));
  BOOST_CHECK(!s.find("Bearer s2", 2));
  BOOST_CHECK_EQUAL(outcome(s.log_in("c3", "10.0.0.1", "s3", 2)), kExited);
}

BOOST_AUTO_TEST_SUITE_END()
