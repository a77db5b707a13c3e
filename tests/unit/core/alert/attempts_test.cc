// Alerts of a job that runs again: its attempts are one issue.
#include <boost/test/unit_test.hpp>

#include "core/alert/alert_book.h"

namespace culprit::alert {
namespace {

// A crash in attempt `failed` + 1 that is not judged yet.
Fault undecided(uint32_t failed, const std::string& title = "GPU lost") {
  Fault f;
  f.job = "j";
  f.diagnosis = "d-" + title;
  f.source = "rule:gpu.lost";
  f.title = title;
  f.category = "hardware";
  f.component = "gpu";
  f.symptom = "crash";
  f.confidence = 0.9;
  f.hosts = {"node-3"};
  f.undecided = true;
  f.failed_attempts = failed;
  return f;
}

// Attempt `failed` has failed, and another one follows.
Fault again(uint32_t failed, const std::string& title = "GPU lost") {
  Fault f = undecided(failed, title);
  f.undecided = false;
  f.again = "runs again without node-3 (attempt " + std::to_string(failed + 1) + " of 4)";
  return f;
}

Fault last(uint32_t failed, const std::string& title = "GPU lost") {
  Fault f = again(failed, title);
  f.again.clear();
  return f;
}

RunNews attempt(uint32_t number, int64_t iteration, bool well = false) {
  return {"j", 0, true, false, iteration, "", number, well};
}

class Receiver {
 public:
  Receiver() : book_(options()) {}
  void verdict(const Fault& f, TimeNs second) {
    book_.update(f.job, f.run, f, End::kNone, second * kNsPerSecond);
  }
  void runs(const RunNews& news, TimeNs second) { book_.on_runs({news}, second * kNsPerSecond); }
  // What came by then: "firing runs again without node-3 (attempt 2 of 4)".
  std::vector<std::string> at(TimeNs second) {
    book_.tick(second * kNsPerSecond);
    std::vector<std::string> out;
    for (const Message& m : book_.take().messages) {
      constexpr const char* kWords[] = {"firing", "revised", "resolved"};
      const auto issue = issue_from_json(m.body);
      BOOST_REQUIRE(issue);
      keys.push_back(issue->key);
      out.push_back(std::string(kWords[static_cast<int>(m.kind)]) + " " + issue->fault.again);
    }
    return out;
  }
  AlertBook& book() { return book_; }
  std::vector<std::string> keys;

 private:
  static BookOptions options() {
    BookOptions out;
    out.routes.emplace_back().name = "a";
    out.remind_every_ns = 3600 * kNsPerSecond;
    return out;
  }
  AlertBook book_;
};

using Texts = std::vector<std::string>;
const std::string kSecond = "runs again without node-3 (attempt 2 of 4)";
const std::string kThird = "runs again without node-3 (attempt 3 of 4)";

}  // namespace

BOOST_AUTO_TEST_SUITE(alerts_of_attempts)

BOOST_AUTO_TEST_CASE(a_failed_attempt_that_runs_again_is_one_message) {
  Receiver r;
  r.verdict(undecided(0), 1);
  BOOST_TEST(r.at(2) == Texts());
  BOOST_TEST(r.book().undecided().size() == 1u);
  r.verdict(again(1), 3);
  BOOST_TEST(r.at(4) == Texts{"firing " + kSecond});
  BOOST_TEST(r.book().undecided().empty());
  r.verdict(undecided(1), 30);  // the verdict stays while the second attempt starts
  r.verdict(undecided(1), 300);
  BOOST_TEST(r.at(301) == Texts());
  r.verdict(again(2), 400);
  BOOST_TEST(r.at(401) == Texts{"revised " + kThird});
  BOOST_TEST(r.book().issues().size() == 1u);
  BOOST_TEST(r.at(9000) == Texts());  // no reminder while it runs again
}

BOOST_AUTO_TEST_CASE(the_failure_of_the_last_attempt_calls_again) {
  Receiver r;
  r.verdict(again(1), 1);
  BOOST_TEST(r.at(2) == Texts{"firing " + kSecond});
  BOOST_REQUIRE(r.book().acknowledge(r.keys[0], "alice", 3 * kNsPerSecond));
  r.verdict(last(2), 100);
  BOOST_TEST(r.at(101) == Texts{"firing "});
  BOOST_TEST(r.keys[0] == r.keys[1]);
  BOOST_TEST(r.book().firing().front()->handling.acknowledged_by == "");
  r.verdict(last(2), 110);
  BOOST_TEST(r.at(111) == Texts());
}

BOOST_AUTO_TEST_CASE(an_attempt_that_makes_progress_clears_it_and_a_later_failure_is_new) {
  Receiver r;
  r.verdict(again(1), 1);
  (void)r.at(2);
  r.runs(attempt(1, 50), 3);
  r.runs(attempt(2, 50), 20);  // it began, and is as far as before
  BOOST_TEST(r.at(21) == Texts());
  r.runs(attempt(2, 51), 30);
  BOOST_TEST(r.at(31) == Texts{"resolved " + kSecond});
  r.verdict(undecided(1), 40);  // still the verdict of the first attempt
  BOOST_TEST(r.at(200) == Texts());
  r.verdict(last(2), 300);
  BOOST_TEST(r.at(301) == Texts{"firing "});
}

BOOST_AUTO_TEST_CASE(an_attempt_that_ends_well_clears_it) {
  Receiver r;
  r.verdict(again(1), 1);
  (void)r.at(2);
  r.runs(attempt(2, 50, true), 20);
  BOOST_TEST(r.at(21) == Texts{"resolved " + kSecond});
}

BOOST_AUTO_TEST_CASE(a_crash_without_a_decision_fires_after_a_minute) {
  Receiver r;
  r.verdict(undecided(0), 1);
  r.verdict(undecided(0), 60);
  BOOST_TEST(r.at(60) == Texts());
  r.verdict(undecided(0), 61);
  BOOST_TEST(r.at(62) == Texts{"firing "});
}

BOOST_AUTO_TEST_CASE(another_fault_of_the_next_attempt_waits_for_its_decision_too) {
  Receiver r;
  r.verdict(again(1), 1);
  (void)r.at(2);
  r.verdict(undecided(1, "Out of memory"), 100);
  BOOST_TEST(r.at(101) == Texts());
  r.verdict(again(2, "Out of memory"), 102);
  BOOST_TEST(r.at(103) == Texts{"revised " + kThird});
}

BOOST_AUTO_TEST_CASE(a_hang_and_a_slowdown_of_an_attempt_do_not_wait) {
  for (const char* symptom : {"hang", "slowdown"}) {
    Receiver r;
    Fault f = undecided(0);
    f.symptom = symptom;
    r.verdict(f, 1);
    BOOST_TEST(r.at(2) == Texts{"firing "});
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::alert
