// The controller in the collector, with a scheduler and a time of the test.
#include "app/daemon/recover/recovery_service.h"

#include <boost/test/unit_test.hpp>

#include "../../io/fake_env.h"
#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;

Diagnosis slow_host(const std::string& host, double share) {
  Diagnosis d;
  d.id = "d1";
  d.detector = "comm";
  d.title = "A host is slow as a whole";
  d.category = Category::kHardware;
  d.component = Component::kCpu;
  d.symptom = Symptom::kSlowdown;
  d.confidence = 0.95;
  d.step_share = share;
  d.hosts.emplace_back().host = host;
  d.action = {ActionKind::kIsolate, {host}};
  return d;
}

// Job 7 of user 1000 runs on two hosts.
struct ControlledJob7 {
  ControlledJob7() {
    config.state_dir = folder.path.string();
    RecoveryServiceOptions options;
    options.config = &config;
    options.log = [](LogLevel, const std::string&) {};
    options.scheduler = [this] {
      SchedulerParts parts;
      parts.look = [this]() -> Result<respond::SchedulerView> { return view; };
      return parts;
    };
    respond::SeenJob& job = view.jobs.emplace_back();
    job.job.scheduler = "slurm";
    job.job.id = "7";
    job.job.submit_ns = env.wall_ns;
    job.state = respond::SeenJob::State::kRunning;
    job.uid = 1000;
    job.nodes = 2;
    job.hosts = {"n1", "n2"};
    for (const char* host : {"n1", "n2", "n3"}) view.hosts.emplace_back().host = host;
    service = std::move(*RecoveryService::open(env, std::move(options)));
    service->restored();
    pass(5);
  }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      env.run();
      env.advance(kSecond);
      service->beat();
      env.run();
    }
  }
  void verdict(Diagnosis d, const std::string& user) {
    RunVerdict v;
    v.job = "7";
    v.user = user;
    v.verdict.emplace().diagnosis = std::move(d);
    service->on_verdicts(std::vector<RunVerdict>{v});
    env.run();
  }
  recover::Machine machine() const {
    const auto seen = service->controller().view(service->key_of_job("7"));
    return seen ? seen->machine : recover::Machine::kOut;
  }

  test::Folder folder;
  io::testing::FakeEnv env;
  Config config;
  respond::SchedulerView view;
  std::unique_ptr<RecoveryService> service;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(recovery_service)

BOOST_AUTO_TEST_CASE(a_slow_host_counts_when_it_is_still_the_verdict_after_a_minute) {
  for (const double share : {0.3, 0.05}) {
    ControlledJob7 t;
    t.verdict(slow_host("n1", share), "user 1000");
    BOOST_TEST((t.machine() == recover::Machine::kSuspect));
    t.pass(30);
    t.verdict(slow_host("n1", share), "user 1000");  // revised: the same cause
    t.pass(40);
    // All its evidence is the user's, so the host is left out of this job alone.
    BOOST_TEST((t.machine() == (share > 0.1 ? recover::Machine::kExclude : recover::Machine::kSuspect)));
  }
  ControlledJob7 other;
  other.verdict(slow_host("n1", 0.3), "user 1000");
  other.pass(30);
  other.verdict(slow_host("n2", 0.3), "user 1000");
  other.pass(40);
  BOOST_TEST((other.machine() == recover::Machine::kSuspect));
}

BOOST_AUTO_TEST_CASE(a_verdict_on_another_users_data_is_not_used) {
  ControlledJob7 t;
  t.verdict(slow_host("n1", 0.3), "user 1001");
  t.pass(70);
  BOOST_TEST((t.machine() == recover::Machine::kNone));
}

BOOST_AUTO_TEST_SUITE_END()
