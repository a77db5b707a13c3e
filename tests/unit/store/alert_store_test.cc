// What alerts remember over a restart.
#include "store/alert_store.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>

using namespace culprit;
using namespace culprit::store;

namespace {

struct AlertFolder {
  AlertFolder() { BOOST_REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~AlertFolder() { std::filesystem::remove_all(path); }
  std::unique_ptr<AlertStore> open() const {
    auto made = AlertStore::open(path + "/alerts.db");
    BOOST_REQUIRE_MESSAGE(made, (made ? "" : made.error().text));
    return std::move(*made);
  }
  std::string path = "/tmp/culprit-alerts-XXXXXX";
};

}  // namespace

BOOST_AUTO_TEST_SUITE(alert_store)

BOOST_AUTO_TEST_CASE(a_new_one_has_seen_nothing) {
  const AlertFolder folder;
  const auto stored = folder.open()->load();
  BOOST_REQUIRE(stored);
  BOOST_CHECK(stored->issues.empty() && stored->messages.empty() && stored->windows.empty());
  BOOST_CHECK_EQUAL(stored->seen_until_ns, kNoTime);
}

BOOST_AUTO_TEST_CASE(what_was_applied_is_there_after_a_restart_in_order) {
  const AlertFolder folder;
  {
    auto store = folder.open();
    AlertChanges c;
    c.issues = {{"k1", "one"}, {"k2", "two"}};
    c.messages = {{7, "k1/1", "b", "k1", 0, 5, "body \xff"}, {3, "k2/1", "a", "k2", 1, kNoTime, ""}};
    c.windows = {{1, "w"}};
    c.receivers = {{"a", "past"}, {"b", "past"}};
    c.seen_until_ns = 9;
    BOOST_REQUIRE(store->apply(c));
    AlertChanges again;
    again.issues = {{"k1", "more"}};
    again.issues_removed = {"k2", "nothing"};
    again.receivers = {{"a", "newer"}};
    again.receivers_removed = {"b"};
    BOOST_REQUIRE(store->apply(again));
  }
  auto store = folder.open();
  auto stored = store->load();
  BOOST_REQUIRE(stored);
  BOOST_REQUIRE_EQUAL(stored->issues.size(), 1);
  BOOST_CHECK_EQUAL(stored->issues[0].text, "more");
  BOOST_REQUIRE_EQUAL(stored->messages.size(), 2);
  BOOST_CHECK_EQUAL(stored->messages[0].row, 3);
  BOOST_CHECK_EQUAL(stored->messages[1].body, "body \xff");
  BOOST_CHECK_EQUAL(stored->messages[0].created_ns, kNoTime);
  BOOST_CHECK_EQUAL(stored->windows.size(), 1);
  BOOST_REQUIRE_EQUAL(stored->receivers.size(), 1);
  BOOST_CHECK_EQUAL(stored->receivers[0].text, "newer");
  BOOST_CHECK_EQUAL(stored->seen_until_ns, 9);
  AlertChanges removed;
  removed.messages_removed = {3, 7};
  removed.windows_removed = {1};
  BOOST_REQUIRE(store->apply(removed));
  stored = store->load();
  BOOST_REQUIRE(stored);
  BOOST_CHECK(stored->messages.empty() && stored->windows.empty() && stored->issues.size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
