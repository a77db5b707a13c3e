#include "store/recovery_store.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>

#include "model/recovery_json.h"

using namespace culprit;
using namespace culprit::store;

namespace {

constexpr TimeNs kDay = 24LL * 3600 * kNsPerSecond;
constexpr TimeNs kAt = 1'700'000'000 * kNsPerSecond;

ActionRecord an_action(const std::string& op, ActionState state, TimeNs at = kAt) {
  ActionRecord row;
  row.order = {op,         "d-0001", OrderKind::kIsolate,     "node-3", {"slurm", "77", "", kAt, 1},
               {"node-1"}, "XID79",  "GPU 5 fell off the bus"};
  row.state = state;
  row.attempt = 2;
  row.by = "culprit";
  row.root = "nvidia.xid.79: GPU has fallen off the bus";
  row.undone_by = "anna";
  row.order.device = "GPU-1";
  row.reserved_ns = at;
  return row;
}

AttemptRecord an_attempt(uint32_t attempt, TimeNs at = kAt) {
  AttemptRecord row;
  row.job = {"slurm", "77", "", kAt, attempt};
  row.attempt = attempt;
  row.begin_ns = at;
  row.hosts = {"node-1", "node-3"};
  row.progress_to = 4117;
  row.lost_s = 12.5;
  row.closed = true;
  return row;
}

MachineRecord a_machine(TimeNs at = kAt) {
  MachineRecord row;
  row.host = "node-3";
  row.isolated = 3;
  row.last_ns = at;
  row.isolations = {at - kDay, at};
  return row;
}

class RecoveryFile {
 public:
  RecoveryFile() { BOOST_REQUIRE(mkdtemp(folder_.data()) != nullptr); }
  ~RecoveryFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/recover.db"; }
  std::unique_ptr<RecoveryStore> open() const {
    auto store = RecoveryStore::open(path());
    BOOST_REQUIRE(store.has_value());
    return std::move(*store);
  }

 private:
  std::string folder_ = "/tmp/culprit-recovery-XXXXXX";
};

}  // namespace

BOOST_AUTO_TEST_SUITE(recovery_store)

BOOST_AUTO_TEST_CASE(rows_survive_a_restart_as_they_were) {
  const RecoveryFile file;
  RecoveryRows rows;
  rows.actions = {an_action("a1", ActionState::kReserved), an_action("a2", ActionState::kUndone)};
  rows.attempts = {an_attempt(1), an_attempt(2)};
  rows.machines = {a_machine()};
  rows.reset_ns = kAt;
  rows.reset_by = "anna";
  BOOST_REQUIRE(file.open()->apply(rows));
  const auto read = file.open()->load();
  BOOST_REQUIRE(read.has_value());
  BOOST_REQUIRE_EQUAL(read->actions.size(), 2);
  BOOST_TEST(to_json(read->actions[0]) == to_json(rows.actions[0]));
  BOOST_TEST(to_json(read->actions[1]) == to_json(rows.actions[1]));
  BOOST_REQUIRE_EQUAL(read->attempts.size(), 2);
  BOOST_TEST(to_json(read->attempts[1]) == to_json(rows.attempts[1]));
  BOOST_TEST(read->reset_ns == kAt);
  BOOST_TEST(read->reset_by == "anna");
  BOOST_REQUIRE_EQUAL(read->machines.size(), 1);
  BOOST_TEST(to_json(read->machines[0]) == to_json(rows.machines[0]));
}

BOOST_AUTO_TEST_CASE(a_later_row_replaces_the_earlier_one) {
  const RecoveryFile file;
  auto store = file.open();
  BOOST_REQUIRE(store->apply({{an_action("a1", ActionState::kReserved)}, {}, {}, {}, kNoTime, {}}));
  BOOST_REQUIRE(store->apply({{an_action("a1", ActionState::kDone)}, {}, {}, {}, kNoTime, {}}));
  const auto read = store->load();
  BOOST_REQUIRE_EQUAL(read->actions.size(), 1);
  BOOST_TEST((read->actions[0].state == ActionState::kDone));
}

BOOST_AUTO_TEST_CASE(notes_only_grow_and_are_listed_by_job_and_decision_newest_first) {
  const RecoveryFile file;
  auto store = file.open();
  for (int n = 0; n < 4; ++n)
    BOOST_REQUIRE(store->apply({{}, {}, {}, {{kAt + n, "decided", n % 2 ? "j1" : "j2", "d-1", "why", ""}}}));
  BOOST_TEST(store->notes({}).value().size() == 4);
  BOOST_TEST(store->notes({"j1", ""}).value().size() == 2);
  BOOST_TEST(store->notes({"j1", ""}).value()[0].time_ns == kAt + 3);
  BOOST_TEST(store->notes({"", "d-2"}).value().empty());
}

BOOST_AUTO_TEST_CASE(what_is_older_than_the_retention_goes) {
  const RecoveryFile file;
  auto store = file.open();
  const TimeNs now = kAt + 500 * kDay;
  BOOST_REQUIRE(store->apply({{an_action("a1", ActionState::kDone), an_action("a2", ActionState::kDone, now)},
                              {an_attempt(1)},
                              {a_machine(now)},
                              {{kAt, "decided", "", "", "old", ""}}}));
  BOOST_TEST(store->prune(now).value() == 3);
  const auto left = store->load();
  BOOST_TEST(left->actions.size() == 1);
  BOOST_TEST(left->attempts.empty());
  BOOST_TEST(left->machines.size() == 1);
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_moved_aside_and_told) {
  const RecoveryFile file;
  { BOOST_REQUIRE(file.open()->apply({{an_action("a1", ActionState::kReserved)}, {}, {}, {}, kNoTime, {}})); }
  std::filesystem::resize_file(file.path(), 3000);
  BOOST_TEST(!file.open()->moved_aside().empty());
}

BOOST_AUTO_TEST_CASE(readers_get_the_newest_rows_and_those_of_one_job) {
  const RecoveryFile file;
  auto store = file.open();
  RecoveryRows rows;
  for (int n = 0; n < 5; ++n) {
    rows.actions.push_back(an_action("a" + std::to_string(n), ActionState::kDone, kAt + n));
    rows.attempts.push_back(an_attempt(static_cast<uint32_t>(n + 1)));
    rows.machines.push_back(a_machine(kAt + n));
    rows.machines.back().host = "node-" + std::to_string(n);
    rows.notes.push_back({kAt + n, n % 2 ? "would-do" : "decided", "j", "d-1", "why", ""});
  }
  BOOST_REQUIRE(store->apply(rows));
  const auto actions = store->newest_actions(2).value();
  BOOST_REQUIRE_EQUAL(actions.size(), 2);
  BOOST_TEST(actions[0] == to_json(rows.actions[4]));
  BOOST_TEST(store->newest_machines(1).value().at(0) == to_json(rows.machines[4]));
  const auto attempts = store->attempts_of({"slurm", "77", "", kAt, 9}, 3).value();
  BOOST_REQUIRE_EQUAL(attempts.size(), 3);
  BOOST_TEST(attempts.front().attempt == 3);
  BOOST_TEST(attempts.back().attempt == 5);
  BOOST_TEST(store->attempts_of({"slurm", "77", "", kAt + 1, 9}, 3).value().empty());
  BOOST_TEST(store->newest_attempt("slurm/77").value()->attempt == 5);
  BOOST_TEST(!store->newest_attempt("slurm/7").value().has_value());
  BOOST_TEST(store->notes({"", "", 10, "would-do"}).value().size() == 2);
  BOOST_TEST(store->notes({"j", "d-1", 10, "decided"}).value().size() == 3);
}

BOOST_AUTO_TEST_CASE(a_reader_neither_waits_for_the_writer_nor_writes) {
  const RecoveryFile file;
  auto store = file.open();
  BOOST_REQUIRE(store->apply({{an_action("a1", ActionState::kReserved)}, {}, {}, {}, kNoTime, {}}));
  auto reader = RecoveryStore::open_reader(file.path());
  BOOST_REQUIRE(reader.has_value());
  BOOST_TEST((*reader)->newest_actions(5).value().size() == 1);
  BOOST_REQUIRE(store->apply({{an_action("a2", ActionState::kReserved)}, {}, {}, {}, kNoTime, {}}));
  BOOST_TEST((*reader)->newest_actions(5).value().size() == 2);
  BOOST_TEST(!(*reader)->apply({{an_action("a3", ActionState::kReserved)}, {}, {}, {}, kNoTime, {}}));
  BOOST_TEST(store->newest_actions(5).value().size() == 2);
  BOOST_TEST(!RecoveryStore::open_reader(file.path() + "-not-there").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(recovery_json)

BOOST_AUTO_TEST_CASE(a_row_that_contradicts_itself_is_an_error) {
  const std::string good = to_json(an_action("a1", ActionState::kDone));
  BOOST_TEST(action_of(good).has_value());
  const auto with = [&](std::string_view old, std::string_view replacement) {
    std::string text = good;
    const size_t at = text.find(old);
    BOOST_REQUIRE(at != std::string::npos);
    return text.replace(at, old.size(), replacement);
  };
  for (const std::string& bad :
       {std::string(), std::string("[]"), with("\"done\"", "\"finished\""), with("\"isolate\"", "7"),
        with("\"attempt\":2", "\"attempt\":-2"), with("[\"node-1\"]", "[1]"), with("\"job\":{", "\"bob\":{")})
    BOOST_TEST(!action_of(bad).has_value(), bad);
}

BOOST_AUTO_TEST_SUITE_END()
