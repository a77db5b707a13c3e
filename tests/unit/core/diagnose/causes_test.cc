#include "core/diagnose/causes.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::diagnose;

namespace {

struct Row {
  const char* title;
  Component component;
  TimeNs seconds;  // kNoTime: the line has none
  uint64_t line = 1;
  bool fatal = true, general = false;
  FindingRole role = FindingRole::kRoot;
};

Finding fault(const Row& row) {
  Finding f;
  f.kind = FindingKind::kFault;
  f.title = row.title;
  f.component = row.component;
  f.first_ns = row.seconds == kNoTime ? kNoTime : row.seconds * kNsPerSecond;
  f.fatal = row.fatal;
  f.general = row.general;
  f.role = row.role;
  Evidence e;
  e.file = "train.log";
  e.line = row.line;
  f.evidence.push_back(e);
  return f;
}

// A program's own mistake that ended a process, and a machine's fault so many seconds later.
std::string leader_after_mistake(TimeNs seconds, Component mistake, bool ends) {
  std::vector<Finding> findings{fault({"machine", Component::kGpuMemory, 1000 + seconds, 2}),
                                fault({"mistake", mistake, 1000, 1, false, true})};
  findings[1].category = Category::kUser;
  findings[1].ends_process = ends;
  return order_faults(findings).at(0)->title;
}

std::string leader(const std::vector<Row>& rows) {
  std::vector<Finding> findings;
  for (const Row& row : rows) findings.push_back(fault(row));
  return order_faults(findings).at(0)->title;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_lies_beneath_leads_although_it_is_reported_some_seconds_late) {
  BOOST_TEST(leader({{"cuda error", Component::kCudaRuntime, 100}, {"xid", Component::kGpu, 102}}) == "xid");
  BOOST_TEST(leader({{"key error", Component::kUserCode, 100}, {"oom", Component::kHostMemory, 104}}) ==
             "oom");
}

BOOST_AUTO_TEST_CASE(what_came_long_after_explains_nothing) {
  BOOST_TEST(leader({{"key error", Component::kUserCode, 100}, {"link", Component::kNetwork, 400}}) ==
             "key error");
}

BOOST_AUTO_TEST_CASE(without_times_the_lines_of_a_file_tell_the_order) {
  BOOST_TEST(leader({{"full", Component::kStorage, kNoTime, 3},
                     {"damaged", Component::kStorage, kNoTime, 9}}) == "full");
  BOOST_TEST(leader({{"bad value", Component::kUserCode, kNoTime, 9},
                     {"full", Component::kStorage, kNoTime, 3}}) == "full");
  BOOST_TEST(leader({{"bad value", Component::kUserCode, kNoTime, 3},
                     {"full", Component::kStorage, kNoTime, 9}}) == "bad value");
}

BOOST_AUTO_TEST_CASE(neither_a_cascade_nor_a_catch_all_leads_a_particular_root) {
  BOOST_TEST(leader({{"peer gone", Component::kNetwork, 90, 1, true, false, FindingRole::kCascade},
                     {"crash", Component::kFramework, 95, 2, true, true},
                     {"key error", Component::kUserCode, 100}}) == "key error");
}

BOOST_AUTO_TEST_CASE(of_two_catch_alls_on_one_line_the_one_beneath_leads) {
  BOOST_TEST(leader({{"exception", Component::kUserCode, 100, 7, false, true},
                     {"nccl error", Component::kNcclComm, 100, 7, false, true}}) == "nccl error");
}

BOOST_AUTO_TEST_CASE(what_some_processes_survive_does_not_explain_what_none_does) {
  BOOST_TEST(leader({{"warning of a link", Component::kNetwork, 99, 1, false},
                     {"key error", Component::kUserCode, 100}}) == "key error");
}
BOOST_AUTO_TEST_CASE(what_begins_after_a_programs_own_mistake_is_no_cause_of_it) {
  BOOST_TEST(leader_after_mistake(5, Component::kUserCode, true) == "mistake");
  BOOST_TEST(leader_after_mistake(400, Component::kUserData, true) == "mistake");
  BOOST_TEST(leader_after_mistake(-5, Component::kUserCode, true) == "machine");
  BOOST_TEST(leader_after_mistake(0, Component::kUserCode, true) == "machine");
  // Of another time zone; a mistake that ended nothing; a fault that the machine may cause.
  BOOST_TEST(leader_after_mistake(3600, Component::kUserCode, true) == "machine");
  BOOST_TEST(leader_after_mistake(5, Component::kUserCode, false) == "machine");
  BOOST_TEST(leader_after_mistake(8, Component::kFramework, true) == "machine");
}
