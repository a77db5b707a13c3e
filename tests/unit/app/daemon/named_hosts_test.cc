#include "app/daemon/api/named_hosts.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond, kRowsNow = 100 * kDay;

Verdict row(const char* id, const char* host, double score, bool leads) {
  Verdict out;
  out.job = "j";
  out.run = 1;
  out.last_ns = kRowsNow;
  out.leads = leads;
  out.diagnosis.id = id;
  out.diagnosis.title = "t";
  Suspect& place = out.diagnosis.hosts.emplace_back();
  place.host = host;
  place.score = score;
  return out;
}

std::string shown(const std::vector<Verdict>& rows, const std::map<std::string, TimeNs>& cleared = {}) {
  std::string out;
  const auto named = named_hosts(rows, {{"j", 1}}, cleared);
  for (const NamedHost* one : worst_by_host(named, kRowsNow)) out += one->host + (one->verdict ? "! " : "? ");
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(named_hosts_of_diagnoses)

BOOST_AUTO_TEST_CASE(only_a_verdict_makes_a_suspect) {
  BOOST_TEST(shown({row("d1", "weak", 0.9, false), row("d2", "bad", 0.4, true),
                    row("d3", "bad", 0.9, false)}) == "bad! weak? ");
  Verdict confirmed = row("d1", "said", 0.4, false);
  confirmed.state = VerdictState::kConfirmed;
  BOOST_TEST(shown({confirmed}) == "said! ");
}

BOOST_AUTO_TEST_CASE(a_users_claims_count_once_over_all_jobs_and_stand_behind_the_rest) {
  std::vector<Verdict> rows{row("d1", "real", 0.3, true), row("d2", "odd", 0.2, false)};
  std::map<std::string, uint32_t> last{{"j", 1}};
  for (int n = 0; n < 10; ++n) {
    Verdict claim = row("c", "accused", 0.5, true);
    claim.job = "m" + std::to_string(n);
    claim.diagnosis.said_by = SaidBy{{Principal(n < 5 ? 12002u : 12003u)}, {}};
    last[claim.job] = 1;
    rows.push_back(claim);
  }
  const auto named = named_hosts(rows, last, {});
  BOOST_TEST_REQUIRE(named.size() == 4u, "once for each user");
  BOOST_TEST(named[0].host == "real");
  BOOST_TEST(named[1].host == "odd");
  BOOST_TEST(named[2].host == "accused");
  BOOST_TEST((named[2].claimed() && named[2].claimed_by.front() == Principal(12002u)));
  BOOST_TEST(worst_by_host(named, kRowsNow).size() == 3u);
  BOOST_TEST(worst_by_host(named, kRowsNow + 2 * kDay).size() == 1u, "claims are of a day");
}

BOOST_AUTO_TEST_CASE(what_a_container_alone_says_is_a_claim) {
  Verdict claim = row("d1", "h", 0.9, true);
  claim.diagnosis.said_by = SaidBy{{Principal::pod("3f2a51e8c9d0")}, {}};
  const auto named = named_hosts(std::vector<Verdict>{claim}, {{"j", 1}}, {});
  BOOST_TEST((named.size() == 1u && named[0].claimed()));
}

BOOST_AUTO_TEST_CASE(what_does_not_stand_accuses_no_host) {
  for (const VerdictState state : {VerdictState::kWithdrawn, VerdictState::kRefuted}) {
    Verdict removed = row("d1", "h", 0.9, true);
    removed.state = state;
    BOOST_TEST(shown({removed}) == "", to_string(state));
  }
  Verdict earlier = row("d1", "h", 0.9, true);
  earlier.run = 0;
  BOOST_TEST(shown({earlier}) == "", "of an earlier run");
  Verdict unsettled = row("d1", "h", 0.9, true);
  unsettled.settled = false;
  BOOST_TEST(shown({unsettled}) == "");
  BOOST_TEST(shown({row("d1", "h", 0.9, true)}, {{"h", kRowsNow}}) == "", "cleared");
  BOOST_TEST(shown({row("d1", "h", 0.9, true)}, {{"h", kRowsNow - 1}}) == "h! ", "newer evidence");
}

BOOST_AUTO_TEST_CASE(a_weak_sign_counts_for_a_day_and_a_verdict_until_it_is_cleared) {
  for (const bool verdict : {false, true}) {
    Verdict old = row("d1", "h", 0.9, verdict);
    old.last_ns = kRowsNow - kDay - 1;
    BOOST_TEST(shown({old}) == (verdict ? "h! " : ""));
    old.last_ns = kRowsNow - kDay;
    BOOST_TEST(shown({old}) == (verdict ? "h! " : "h? "));
  }
}

BOOST_AUTO_TEST_SUITE_END()
