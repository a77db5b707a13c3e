// The policy by class of fault, and the authors of evidence.
#include "core/recover/policy.h"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace culprit;
using namespace culprit::recover;

namespace {

Case fault_of(FaultClass fault, std::vector<std::string> hosts, double confidence = 0.9) {
  Case c;
  c.fault = fault;
  c.root = "r";
  c.hosts = c.confirmed = std::move(hosts);
  c.confidence = confidence;
  c.authors.kernel = true;
  c.sources = 2;
  return c;
}

Past in_cluster(uint32_t hosts = 1200) {
  Past past;
  past.cluster_hosts = hosts;
  return past;
}

std::string shown(const Treatment& t) {
  std::string out(to_string(t.machine));
  for (const std::string& host : t.hosts) out += " " + host;
  return out + ", " + std::string(to_string(t.restart.kind));
}

Diagnosis of(Category category, Component component, Symptom symptom = Symptom::kCrash) {
  Diagnosis d;
  d.category = category;
  d.component = component;
  d.symptom = symptom;
  return d;
}

}  // namespace

// One row of the table in daemon/docs/recover.md each: the first time, and again without progress between.
BOOST_AUTO_TEST_CASE(the_policy_by_class) {
  using enum FaultClass;
  const std::vector<std::string> one = {"n1"}, two = {"n1", "n2"}, none;
  const struct {
    FaultClass fault;
    const std::vector<std::string>& hosts;
    const char* first;
    const char* again;
  } rows[] = {
      {kDevice, one, "isolate n1, elsewhere", "isolate n1, elsewhere"},
      {kDeviceProgram, one, "none, same", "none, same"},
      {kHostNetwork, one, "suspect n1, same", "isolate n1, elsewhere"},
      {kFabric, two, "none, later", "none, later"},
      {kStorage, none, "none, later", "none, later"},
      {kHostMemory, one, "exclude n1, elsewhere", "isolate n1, elsewhere"},
      {kNodeFailure, one, "exclude n1, elsewhere", "exclude n1, elsewhere"},
      {kHangOnHost, one, "isolate n1, elsewhere", "isolate n1, elsewhere"},
      {kHangInGroup, two, "group n1 n2, elsewhere", "check n1 n2, same"},
      {kNoCulprit, none, "none, same", "check, same"},
      {kSlowHost, one, "suspect n1, same", "suspect n1, same"},
      {kSoftware, one, "none, never", "none, never"},
      {kNumeric, one, "none, older", "none, older"},
      {kSilentCorruption, one, "exclude n1, elsewhere", "exclude n1, elsewhere"},
      {kCheckpoint, none, "none, older", "none, older"},
      {kUnknown, none, "none, unknown", "none, unknown"},
  };
  BOOST_TEST(std::size(rows) == kFaultClasses);
  for (const auto& row : rows) {
    const Case c = fault_of(row.fault, row.hosts);
    BOOST_TEST(shown(treat(c, in_cluster(), 0, {})) == row.first, to_string(row.fault));
    BOOST_TEST(shown(treat(c, in_cluster(), 1, {})) == row.again, to_string(row.fault) << " again");
  }
}

BOOST_AUTO_TEST_CASE(thresholds_of_the_policy) {
  using enum FaultClass;
  Case weak = fault_of(kDevice, {"n1"}, 0.84);
  BOOST_TEST(shown(treat(weak, in_cluster(), 0, {})) == "exclude n1, elsewhere");
  Past probation = in_cluster();
  probation.probation = true;
  BOOST_TEST(shown(treat(weak, probation, 0, {})) == "isolate n1, elsewhere");

  Past suspected = in_cluster();
  suspected.suspected_lately = 1;
  BOOST_TEST(shown(treat(fault_of(kHostNetwork, {"n1"}), suspected, 0, {})) == "isolate n1, elsewhere");

  Past third = in_cluster(100);
  third.cause_hosts = 2;
  const Treatment held_back = treat(fault_of(kDevice, {"n1"}), third, 0, {});
  BOOST_TEST(shown(held_back) == "exclude n1, elsewhere");
  BOOST_TEST(held_back.not_isolated.find("2 other hosts") != std::string::npos);
  third.cluster_hosts = 1200;  // three of so many hosts have one fault by chance
  BOOST_TEST(shown(treat(fault_of(kDevice, {"n1"}), third, 0, {})) == "isolate n1, elsewhere");
  third.cause_hosts = 11;
  BOOST_TEST(shown(treat(fault_of(kDevice, {"n1"}), third, 0, {})) == "exclude n1, elsewhere");

  // Without hosts to spare, checks come before what is in doubt.
  Past scarce = in_cluster();
  scarce.lacks_hosts = scarce.may_check = true;
  BOOST_TEST(shown(treat(weak, scarce, 0, {})) == "check n1, same");
  BOOST_TEST(shown(treat(fault_of(kDevice, {"n1"}), scarce, 0, {})) == "isolate n1, elsewhere");
  BOOST_TEST(shown(treat(fault_of(kHangInGroup, {"n1", "n2"}), scarce, 0, {})) == "check n1 n2, same");
  scarce.may_check = false;
  BOOST_TEST(shown(treat(weak, scarce, 0, {})) == "exclude n1, elsewhere");

  // The network's first failure: an idle host takes the place while a check looks.
  Past idle = in_cluster();
  BOOST_TEST(shown(treat(fault_of(kHostNetwork, {"n1"}), idle, 0, {})) == "suspect n1, same");
  idle.spares = idle.may_check = true;
  BOOST_TEST(shown(treat(fault_of(kHostNetwork, {"n1"}), idle, 0, {})) == "exclude n1, elsewhere");
  idle.lacks_hosts = true;
  BOOST_TEST(shown(treat(fault_of(kHostNetwork, {"n1"}), idle, 0, {})) == "suspect n1, same");

  Case slow = fault_of(kSlowHost, {"n1"});
  slow.measured = 2;
  slow.step_share = 0.11;
  BOOST_TEST(shown(treat(slow, in_cluster(), 0, {})) == "isolate-later n1, elsewhere");
  slow.step_share = 0.10;
  BOOST_TEST(shown(treat(slow, in_cluster(), 0, {})) == "suspect n1, same");

  Case corrupt = fault_of(kSilentCorruption, {"n1"});
  corrupt.measured = 2;
  BOOST_TEST(shown(treat(corrupt, in_cluster(), 0, {})) == "device n1, elsewhere");
  BOOST_TEST(treat(corrupt, in_cluster(), 0, {}).older);

  Case single = fault_of(kHangOnHost, {"n1"});
  single.sources = 1;
  BOOST_TEST(shown(treat(single, in_cluster(), 0, {})) == "exclude n1, elsewhere");

  Case node = fault_of(kNodeFailure, {"n1"});
  node.authors.scheduler = true;
  BOOST_TEST(shown(treat(node, in_cluster(), 0, {})) == "out n1, elsewhere");
}

BOOST_AUTO_TEST_CASE(a_group_is_limited_by_number_and_by_share) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 17; ++i) hosts.push_back("n" + std::to_string(i));
  const auto group = [&](size_t size, uint32_t cluster) {
    const std::vector<std::string> some(hosts.begin(), hosts.begin() + static_cast<ptrdiff_t>(size));
    return treat(fault_of(FaultClass::kHangInGroup, some), in_cluster(cluster), 0, {});
  };
  BOOST_TEST((group(16, 1200).machine == Machine::kGroup));
  BOOST_TEST(group(16, 1200).probably_innocent == 15u);
  BOOST_TEST((group(17, 1200).machine == Machine::kCheck));
  BOOST_TEST((group(3, 100).machine == Machine::kCheck));  // 2 % are 2
  BOOST_TEST((group(2, 0).machine == Machine::kCheck));    // unknown size of the cluster
}

// No treatment of any class isolates without an independent author, whatever else is true.
BOOST_AUTO_TEST_CASE(no_class_isolates_on_a_users_evidence) {
  uint64_t explored = 0;
  for (size_t i = 0; i < kFaultClasses; ++i)
    for (const double confidence : {0.5, 0.9, 1.0})
      for (const uint32_t before : {0u, 1u, 5u})
        for (const uint32_t bits : {0u, 1u, 2u, 3u}) {
          Case c = fault_of(static_cast<FaultClass>(i), {"n1"}, confidence);
          c.authors = {};
          c.authors.user = true;
          c.authors.peers = 1;
          c.confirmed.clear();
          c.measured = 5;
          c.step_share = 0.9;
          Past past = in_cluster();
          past.probation = (bits & 1) != 0;
          past.suspected_lately = (bits & 2) != 0 ? 9 : 0;
          const Machine machine = treat(c, past, before, {}).machine;
          const bool touches = machine == Machine::kIsolate || machine == Machine::kIsolateLater ||
                               machine == Machine::kGroup || machine == Machine::kDevice;
          BOOST_TEST(!touches, to_string(c.fault));
          ++explored;
        }
  BOOST_TEST(explored == kFaultClasses * 36);
}

BOOST_AUTO_TEST_CASE(who_wrote_the_evidence) {
  const Origins origins;
  Diagnosis d = of(Category::kHardware, Component::kGpu);
  d.hosts.emplace_back().host = "n1";
  const auto line = [&](const char* host, const char* file, std::optional<Principal> user) {
    Evidence& e = d.evidence.emplace_back();
    e.host = host;
    e.file = file;
    e.uid = user;
  };
  line("n1", "/home/u/job.log", Principal(1000));
  BOOST_TEST(!authors_of(d, origins).independent());
  line("n1", "/var/log/syslog", std::nullopt);  // logger(1) writes it for any user
  BOOST_TEST(!authors_of(d, origins).independent());
  line("n1", "/dev/kmsg", Principal(1000));  // a file of a user with this name
  BOOST_TEST(!authors_of(d, origins).independent());
  line("n2", "/dev/kmsg", std::nullopt);  // another host's kernel
  BOOST_TEST(!authors_of(d, origins).independent());
  line("n2", "/home/u/job.log", Principal(1000));
  line("n3", "/home/u/job.log", Principal(1000));  // one user on all hosts
  BOOST_TEST(!authors_of(d, origins).independent());
  line("n3", "/home/v/job.log", Principal(1001));
  BOOST_TEST(!authors_of(d, origins).independent());
  line("n2", "/home/w/job.log", Principal(1002));
  BOOST_TEST(authors_of(d, origins).peers == 2u);
  BOOST_TEST(authors_of(d, origins).independent());
  d.evidence.clear();
  line("n1", "/dev/kmsg", std::nullopt);
  BOOST_TEST(authors_of(d, origins).kernel);
  d.said_by.emplace().uids = {Principal(1000)};  // the engine found users to be the only authors
  BOOST_TEST(!authors_of(d, origins).independent());
  d.said_by.reset();
  d.evidence.clear();
  d.found_by = {"comm", "plugin:gpu_health"};
  BOOST_TEST(authors_of(d, origins).plugin);
}

BOOST_AUTO_TEST_CASE(only_hosts_with_an_independent_author_are_isolated) {
  Diagnosis d = of(Category::kHardware, Component::kGpu);
  d.action.kind = ActionKind::kIsolate;
  d.action.targets = {"n1", "n2"};
  d.restart.kind = Restart::kElsewhere;
  d.confidence = 0.9;
  Evidence& e = d.evidence.emplace_back();
  e.host = "n1";
  e.file = "/dev/kmsg";
  const Case c = case_of(d, {});
  BOOST_TEST((c.confirmed == std::vector<std::string>{"n1"}));
  const Treatment t = treat(c, in_cluster(), 0, {});
  BOOST_TEST(shown(t) == "isolate n1, elsewhere");
  BOOST_TEST((t.restart.hosts == std::vector<std::string>{"n1", "n2"}));
  // A plugin's evidence has no line; it speaks for its own host too.
  d.detector = "plugin:counters";
  e.file = "plugins/n2";
  e.host = "n2";
  e.offset = 0;
  BOOST_TEST((case_of(d, {}).confirmed == std::vector<std::string>{"n2"}));
}

namespace {

struct ClassRow {
  const char* what;
  Diagnosis diagnosis;
  FaultClass wanted;
};

Diagnosis with(Diagnosis d, ActionKind action, Restart restart, const std::vector<std::string>& hosts) {
  d.action.kind = action;
  d.restart.kind = restart;
  for (const std::string& host : hosts) d.hosts.emplace_back().host = host;
  return d;
}

std::vector<ClassRow> class_rows() {
  using enum FaultClass;
  const Diagnosis gpu = of(Category::kHardware, Component::kGpu);
  Diagnosis own = with(gpu, ActionKind::kIsolate, Restart::kElsewhere, {"n1"});
  own.about = About::kCulprit;
  return {
      {"gpu gone", with(gpu, ActionKind::kIsolate, Restart::kElsewhere, {"n1"}), kDevice},
      {"our own death", own, kUnknown},
      {"illegal access",
       with(of(Category::kFramework, Component::kCudaRuntime), ActionKind::kRestart, Restart::kSame, {"n1"}),
       kDeviceProgram},
      {"import", with(of(Category::kUser, Component::kDependency), ActionKind::kFix, Restart::kNever, {}),
       kSoftware},
      {"network of a host",
       with(of(Category::kPlatform, Component::kNetwork), ActionKind::kCheck, Restart::kSame, {"n1"}),
       kHostNetwork},
      {"switch",
       with(of(Category::kPlatform, Component::kNetwork), ActionKind::kCheck, Restart::kSame, {"n1", "n2"}),
       kFabric},
      {"storage service",
       with(of(Category::kPlatform, Component::kStorage), ActionKind::kRetry, Restart::kLater, {"n1"}),
       kStorage},
      {"disk",
       with(of(Category::kHardware, Component::kStorage), ActionKind::kIsolate, Restart::kElsewhere, {"n1"}),
       kDevice},
      {"memory errors",
       with(of(Category::kHardware, Component::kHostMemory), ActionKind::kCheck, Restart::kElsewhere, {"n1"}),
       kHostMemory},
      {"out of memory",
       with(of(Category::kPlatform, Component::kHostMemory), ActionKind::kFix, Restart::kNever, {"n1"}),
       kSoftware},
      {"node failed",
       with(of(Category::kPlatform, Component::kPlatform), ActionKind::kIsolate, Restart::kElsewhere, {"n1"}),
       kNodeFailure},
      {"hang on a host",
       with(of(Category::kUnknown, Component::kNcclComm, Symptom::kHang), ActionKind::kCheck, Restart::kSame,
            {"n1"}),
       kHangOnHost},
      {"hang in a group",
       with(of(Category::kUnknown, Component::kNcclComm, Symptom::kHang), ActionKind::kCheck, Restart::kSame,
            {"n1", "n2"}),
       kHangInGroup},
      {"hang",
       with(of(Category::kUnknown, Component::kUnknown, Symptom::kHang), ActionKind::kNone, Restart::kUnknown,
            {}),
       kNoCulprit},
      {"slow host",
       with(of(Category::kHardware, Component::kGpu, Symptom::kSlowdown), ActionKind::kCheck,
            Restart::kElsewhere, {"n1"}),
       kSlowHost},
      {"spike",
       with(of(Category::kUnknown, Component::kNumeric, Symptom::kNumeric), ActionKind::kRollback,
            Restart::kOlder, {}),
       kNumeric},
      {"wrong values",
       with(of(Category::kHardware, Component::kGpu, Symptom::kNumeric), ActionKind::kIsolate,
            Restart::kElsewhere, {"n1"}),
       kSilentCorruption},
      {"torn",
       with(of(Category::kFramework, Component::kFramework), ActionKind::kRollback, Restart::kOlder, {}),
       kCheckpoint},
  };
}

}  // namespace

// NVSentinel#1748: evidence of the monitor's own death is not the host's.
BOOST_AUTO_TEST_CASE(the_class_of_a_diagnosis) {
  for (const ClassRow& row : class_rows())
    BOOST_TEST(to_string(case_of(row.diagnosis, {}).fault) == to_string(row.wanted), row.what);
}

BOOST_AUTO_TEST_CASE(the_scheduler_gets_a_short_code) {
  const struct {
    const char* rule;
    const char* wanted;
  } rows[] = {{"nvidia.xid.79", "XID79"},
              {"kernel.mce.fatal", "MCE-FATAL"},
              {"single", "SINGLE"},
              {"a.b\"; reboot", "A-B___REBOOT"},
              {".79", "79"},
              {"x.a_very_long_name_that_goes_on_and_on", "X-A_VERY_LONG_NAME_THAT_"}};
  for (const auto& row : rows) {
    Diagnosis d;
    d.rule = row.rule;
    BOOST_TEST(case_of(d, {}).code == row.wanted);
  }
}
