// The cost that is counted while attempts change is the cost of all rows at once.
#include "core/recover/cost_book.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

using namespace culprit;
using namespace culprit::recover;

namespace {

constexpr TimeNs kBookAt = 1'700'000'000 * kNsPerSecond;

AttemptRecord random_attempt(std::mt19937& rng) {
  const auto upto = [&](int most) { return std::uniform_int_distribution<int>(0, most)(rng); };
  AttemptRecord a;
  a.job = {"slurm", std::to_string(upto(4)), "", kBookAt + upto(1), static_cast<uint32_t>(upto(3))};
  a.attempt = static_cast<uint32_t>(1 + upto(3));
  TimeNs at = kBookAt + upto(1000) * kNsPerSecond;
  const auto next = [&] { return upto(3) ? at += upto(100) * kNsPerSecond : kNoTime; };
  a.begin_ns = at;
  a.first_step_ns = next(), a.saved_ns = next(), a.last_progress_ns = next();
  a.detected_ns = next(), a.decided_ns = next(), a.end_ns = next();
  constexpr const char* kCauses[] = {"device", "software", ""};
  a.cause = kCauses[upto(2)];
  a.root = upto(1) ? "xid" : "";
  a.decision = upto(1) ? "d-0001" : "";
  return a;
}

void check_close(double a, double b) { BOOST_TEST(a == b, boost::test_tools::tolerance(1e-9)); }

uint64_t sum_of(const CostHistogram& h) {
  uint64_t out = 0;
  for (const uint64_t n : h.counts) out += n;
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cost_book)

BOOST_AUTO_TEST_CASE(sums_are_those_of_all_rows_at_once) {
  std::mt19937 rng(7);
  CostBook book;
  std::map<std::tuple<std::string, TimeNs, uint32_t>, AttemptRecord> rows;
  for (int n = 0; n < 600; ++n) {
    const AttemptRecord a = random_attempt(rng);
    book.put(a);
    rows[{a.job.id, a.job.submit_ns, a.attempt}] = a;
    if (n % 20) continue;
    std::vector<AttemptRecord> all;
    for (const auto& [key, row] : rows) all.push_back(row);
    const Cost whole = cost_of(all);
    Cost book_cost = book.total();
    add_quantiles(book.spans(), book_cost);
    BOOST_TEST(book_cost.jobs == whole.jobs);
    BOOST_TEST(book_cost.attempts == whole.attempts);
    BOOST_TEST(book_cost.failures == whole.failures);
    check_close(1 + book_cost.wall_s, 1 + whole.wall_s);
    check_close(1 + book_cost.productive_s, 1 + whole.productive_s);
    for (const auto& [cause, seconds] : whole.lost_s) check_close(1 + book_cost.lost_s[cause], 1 + seconds);
    BOOST_TEST(book_cost.detect.count == whole.detect.count);
    check_close(1 + book_cost.again.p90_s, 1 + whole.again.p90_s);
    BOOST_TEST(sum_of(book.decide()) == whole.decide.count);
  }
  book.prune(kBookAt + 100'000 * kNsPerSecond);
  BOOST_TEST(book.total().jobs == 0);
  BOOST_TEST(sum_of(book.detect()) == 0);
  BOOST_TEST(book.newest(10).empty());
}

BOOST_AUTO_TEST_CASE(the_newest_job_of_an_id_counts_for_it) {
  CostBook book;
  AttemptRecord a;
  a.job = {"slurm", "7", "", kBookAt, 0};
  a.attempt = 1;
  a.begin_ns = kBookAt;
  book.put(a);
  a.job.submit_ns = a.begin_ns = kBookAt + kNsPerSecond;
  book.put(a);
  BOOST_REQUIRE(book.find("7") != nullptr);
  BOOST_TEST(book.find("7")->job.submit_ns == kBookAt + kNsPerSecond);
  BOOST_TEST(book.find("8") == nullptr);
  BOOST_TEST(book.newest(1).at(0).last_ns == kBookAt + kNsPerSecond);
}

BOOST_AUTO_TEST_SUITE_END()
