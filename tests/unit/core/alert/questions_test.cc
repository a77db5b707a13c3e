// A question of the controller is an issue of its own.
#include <boost/test/unit_test.hpp>

#include "core/alert/alert_book.h"

using namespace culprit;
using namespace culprit::alert;

namespace {

constexpr TimeNs kSec = kNsPerSecond;

Fault verdict_on_j() {
  Fault f;
  f.job = "j";
  f.source = "rule:gpu.lost";
  f.title = "GPU lost";
  f.category = "hardware";
  f.symptom = "crash";
  f.confidence = 0.9;
  f.hosts = {"node-1"};
  return f;
}

Fault question_on_j() {
  Fault f = verdict_on_j();
  f.decision = "d-0001";
  f.answer_by_ns = 900 * kSec;
  return f;
}

BookOptions to_receivers(std::vector<Route> routes) {
  BookOptions out;
  out.routes = std::move(routes);
  return out;
}

Route route_to(const std::string& name) {
  Route r;
  r.name = name;
  return r;
}

// "a firing d-0001", "a resolved" of a verdict.
std::vector<std::string> messages_of(AlertBook& book, std::map<std::string, Issue>& stored) {
  std::vector<std::string> out;
  const BookChanges changes = book.take();
  for (const Message& m : changes.messages) {
    const Issue issue = issue_from_json(m.body).value();
    const char* word = m.kind == Message::Kind::kFiring ? " firing " : " resolved ";
    out.push_back(m.receiver + word + issue.fault.decision);
  }
  for (const Issue& issue : changes.issues) stored[issue.key] = issue_from_json(to_json(issue)).value();
  return out;
}

using Texts = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(alert_questions)

BOOST_AUTO_TEST_CASE(a_question_fires_until_it_is_answered_and_no_progress_ends_it) {
  std::map<std::string, Issue> stored;
  AlertBook book(to_receivers({route_to("a")}));
  book.update("j", 0, verdict_on_j(), End::kNone, kSec);
  book.ask(question_on_j(), 2 * kSec);
  book.ask(question_on_j(), 3 * kSec);
  BOOST_TEST((messages_of(book, stored) == Texts{"a firing ", "a firing d-0001"}));
  book.update("j", 0, std::nullopt, End::kWithdrawn, 4 * kSec);  // the end of the verdict alone
  BOOST_TEST((messages_of(book, stored) == Texts{"a resolved "}));
  for (int64_t n = 0; n < 5; ++n) book.on_runs({{"j", 0, true, false, n}}, (10 + 100 * n) * kSec);
  BOOST_TEST(messages_of(book, stored).empty());

  AlertBook again(to_receivers({route_to("a")}));
  std::vector<Issue> issues;
  for (const auto& [key, issue] : stored) issues.push_back(issue);
  again.load(std::move(issues), {});
  BOOST_TEST(again.asked().size() == 1);
  const std::string key = again.firing().at(0)->key;
  BOOST_TEST(!again.repaired(key, "bob", 600 * kSec).has_value());
  again.answered("d-0002", End::kApproved, "bob", 600 * kSec);
  BOOST_TEST(messages_of(again, stored).empty());
  again.answered("d-0001", End::kApproved, "alice", 601 * kSec);
  BOOST_TEST((messages_of(again, stored) == Texts{"a resolved d-0001"}));
  BOOST_TEST(end_of(stored.at(key)) == "approved by alice");
  // The number of a decision may come again: another question by its expiry.
  Fault other = question_on_j();
  other.answer_by_ns += kSec;
  again.ask(other, 700 * kSec);
  BOOST_TEST((messages_of(again, stored) == Texts{"a firing d-0001"}));
}

BOOST_AUTO_TEST_CASE(a_question_about_a_programs_fault_goes_to_operators_too) {
  std::map<std::string, Issue> stored;
  Route owner = route_to("owner");
  owner.owners = {"user 1000"};
  AlertBook book(to_receivers({route_to("operators"), owner}));
  Fault f = question_on_j();
  f.category = "user";
  f.user = "user 1000";
  book.ask(f, kSec);
  BOOST_TEST((messages_of(book, stored) == Texts{"operators firing d-0001", "owner firing d-0001"}));
}

BOOST_AUTO_TEST_SUITE_END()
