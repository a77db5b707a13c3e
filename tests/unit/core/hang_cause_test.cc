// A line of the machine that explains a standstill is one diagnosis with it; any other line is not.
#include "core/fuse/hang_cause.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::core;
using namespace culprit::core::fuse;

namespace {

constexpr TimeNs kSince = 10'000 * kNsPerSecond;

Finding line(const char* rule, Component component, const char* host, TimeNs at = kSince) {
  Finding f;
  f.kind = FindingKind::kFault;
  f.rule = rule;
  f.title = rule;
  f.component = component;
  f.category = component == Component::kHostMemory ? Category::kUser
               : component == Component::kStorage  ? Category::kPlatform
                                                   : Category::kHardware;
  f.symptom = component == Component::kStorage ? Symptom::kHang : Symptom::kOther;
  f.first_ns = f.last_ns = at;
  f.confidence = 0.8;
  f.subjects.push_back({host, {}, {}, {}, 0.5});
  Evidence e;
  e.host = host;
  e.text = "Out of memory: Killed process 4955 (python)";
  f.evidence.push_back(e);
  return f;
}

struct Case {
  const char* what;
  HangAnswer answer;
  std::set<std::string> hosts;
  std::vector<Finding> lines;
  std::optional<size_t> cause;
};

Finding on_two(Finding f) {
  f.subjects.push_back({"b", {}, {}, {}, 0.5});
  return f;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hang_cause)

BOOST_AUTO_TEST_CASE(a_line_explains_a_standstill_of_its_own_host_and_time) {
  const Finding link = line("link", Component::kNetwork, "a"), other = line("link", Component::kNetwork, "b");
  const Finding nfs = line("nfs", Component::kStorage, "a"), oom = line("oom", Component::kHostMemory, "a");
  const TimeNs later = kSince + 400 * kNsPerSecond, before = kSince - 9'000 * kNsPerSecond;
  const Case kCases[] = {
      {"its link", HangAnswer::kUnfinished, {"a"}, {link}, 0},
      {"the link of another host", HangAnswer::kUnfinished, {"a"}, {other}, {}},
      {"no host is named", HangAnswer::kUnfinished, {}, {link}, 0},
      {"links of two hosts", HangAnswer::kUnfinished, {}, {link, other}, {}},
      {"long after", HangAnswer::kUnfinished, {"a"}, {line("link", Component::kNetwork, "a", later)}, {}},
      {"long before", HangAnswer::kUnfinished, {"a"}, {line("link", Component::kNetwork, "a", before)}, {}},
      {"memory is no device", HangAnswer::kUnfinished, {"a"}, {oom}, {}},
      {"a rank that did not come", HangAnswer::kMissing, {"a"}, {link}, {}},
      {"a mismatch", HangAnswer::kMismatch, {"a"}, {link}, {}},
      {"a kill of its process", HangAnswer::kLeft, {"a"}, {oom}, 0},
      {"a kill on another host", HangAnswer::kLeft, {"b"}, {oom}, {}},
      {"a link and a rank that left", HangAnswer::kLeft, {"a"}, {link}, {}},
      {"all in the file system", HangAnswer::kNoSingle, {}, {nfs}, 0},
      {"all in the file system, and a link", HangAnswer::kNoSingle, {}, {link}, {}},
      {"one host without its server", HangAnswer::kUnknown, {}, {nfs}, {}},
      {"two hosts without their server", HangAnswer::kUnknown, {}, {on_two(nfs)}, 0},
  };
  for (const Case& c : kCases)
    BOOST_TEST((cause_of({c.answer, c.hosts, {4955}, kSince}, c.lines) == c.cause), c.what);
}

BOOST_AUTO_TEST_CASE(a_line_that_names_the_process_comes_first_and_only_a_kernel_may_name_another) {
  Finding other = line("oom", Component::kHostMemory, "a");
  other.evidence[0].text = "Out of memory: Killed process 49551 (python)";
  const std::vector<Finding> lines = {other, line("oom", Component::kHostMemory, "a")};
  const Standstill still{HangAnswer::kLeft, {"a"}, {4955}, kSince};
  BOOST_TEST((cause_of(still, lines) == std::optional<size_t>(1)));
  BOOST_TEST((!cause_of(still, {lines.data(), 1})));
  other.as_kernel = true;
  BOOST_TEST((cause_of(still, {&other, 1}) == std::optional<size_t>(0)));
}

BOOST_AUTO_TEST_CASE(the_line_leads_the_diagnosis_and_the_ranks_stay) {
  Finding answer;
  answer.title = "Rank 6 did not finish ALLREDUCE #4: a device or link stands still";
  answer.detector = DetectorKind::kComm;
  answer.component = Component::kGpu;
  answer.symptom = Symptom::kHang;
  answer.confidence = 0.7;
  answer.subjects.push_back({"a", 6, {}, {}, 1});
  answer.evidence.resize(9);
  const Finding both = with_cause(answer, line("link", Component::kNetwork, "a"));
  BOOST_TEST(both.title == "Rank 6 did not finish ALLREDUCE #4: link");
  BOOST_TEST(
      (both.component == Component::kNetwork && both.symptom == Symptom::kHang && both.rule == "link"));
  BOOST_TEST((both.subjects.size() == 1u && both.subjects[0].rank == 6u));
  BOOST_TEST((both.evidence.size() == 5u && both.evidence[0].host == "a"));
  BOOST_TEST(both.confidence > 0.8);
  BOOST_TEST((both.found_by.size() == 2u && both.found_by[1] == "rule:link"));
}

BOOST_AUTO_TEST_CASE(a_server_that_several_hosts_miss_is_no_fault_of_a_host) {
  Finding answer;
  answer.title = "Most processes are in the file system: no single rank is late";
  const Finding both = with_cause(answer, on_two(line("nfs", Component::kStorage, "a")));
  BOOST_TEST((both.subjects.empty() && both.by_no_device && both.component == Component::kStorage));
}

BOOST_AUTO_TEST_SUITE_END()
