// What the configuration selects for the controller, and how jobs are named at each scheduler.
#include "app/daemon/recover/schedulers.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <tuple>

#include "../../respond/fake_pace.h"
#include "app/daemon/recover/cluster_lease.h"
#include "app/daemon/recover/scheduled_jobs.h"

using namespace culprit;
using namespace culprit::app;
using respond::testing::FakePace, respond::testing::order_for;

namespace {

namespace kube = respond::kubernetes;

respond::SeenJob kube_job(std::string uid, uint32_t restarts, std::vector<std::string> hosts) {
  respond::SeenJob out;
  out.job = {"kubernetes", "train/llama", std::move(uid), kNoTime, restarts};
  out.state = respond::SeenJob::State::kRunning;
  out.owner = respond::SeenJob::Owner::kUnknown;
  out.hosts = std::move(hosts);
  out.nodes = 2;
  out.may_requeue = true;
  out.aliases = {"pod-1", "pod-2"};
  return out;
}

size_t starts_of(const std::vector<recover::Input>& inputs) {
  size_t out = 0;
  for (const recover::Input& input : inputs) out += std::holds_alternative<recover::AttemptStarted>(input);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(schedulers)

BOOST_AUTO_TEST_CASE(a_job_has_one_name_at_its_scheduler) {
  const std::tuple<Scheduler, std::string, std::string> rows[] = {
      {Scheduler::kSlurm, "4711", "4711"},
      {Scheduler::kSlurm, "4711@uid1000", "4711"},
      {Scheduler::kSlurm, "train", ""},
      {Scheduler::kSlurm, "12345678901", ""},
      {Scheduler::kKubernetes, "train_llama", "train/llama"},
      {Scheduler::kKubernetes, "train_llama@uid1000", "train/llama"},
      {Scheduler::kKubernetes, "train/llama", "train/llama"},
      {Scheduler::kKubernetes, "pod-0f1e", "pod-0f1e"},
      {Scheduler::kKubernetes, "llama", ""},
      {Scheduler::kKubernetes, "_llama", ""},
      {Scheduler::kKubernetes, "a_b_c", ""},
      {Scheduler::kExec, "llama@uid1000", "llama@uid1000"},
      {Scheduler::kNone, "4711", ""},
  };
  for (const auto& [scheduler, job, id] : rows) BOOST_TEST(scheduled_id(scheduler, job) == id, job);
}

BOOST_AUTO_TEST_CASE(what_cannot_work_is_said_at_the_start) {
  Config config;
  config.act.scheduler = Scheduler::kExec;
  config.act.launcher.command = {"/bin/true", "{host}"};
  BOOST_TEST(!scheduler_parts(config).sound);
  config.act.launcher.command = {"/bin/true", "{target}"};
  BOOST_TEST(bool(scheduler_parts(config).sound));
  config.act.scheduler = Scheduler::kWebhook;
  config.act.launcher.headers_file = "/nonexistent/headers";
  BOOST_TEST(!scheduler_parts(config).sound);
}

BOOST_AUTO_TEST_CASE(a_launcher_gets_the_orders_that_it_carries_out) {
  Config config;
  config.act.scheduler = Scheduler::kExec;
  config.act.launcher.command = {"/bin/true"};
  config.act.launcher.orders = {"run_again"};
  const SchedulerParts parts = scheduler_parts(config);
  BOOST_TEST(parts.own_jobs);
  BOOST_TEST(!parts.backend->can(OrderKind::kEndTasks));  // the agents do it
  FakePace pace;
  const ActionResult refused = parts.backend->carry_out(order_for(OrderKind::kIsolate), pace);
  BOOST_TEST((refused.state == ActionState::kFailed));
  BOOST_TEST(refused.detail == "act.launcher.orders has no isolate");
  BOOST_TEST((parts.backend->carry_out(order_for(OrderKind::kRunAgain), pace).state == ActionState::kDone));
}

BOOST_AUTO_TEST_CASE(one_collector_acts_and_without_an_answer_none_does) {
  std::string holder = "other";
  long status = 200;
  ClusterLease lease({"culprit", "controller", "ours", 15 * kNsPerSecond},
                     [&](const kube::ApiRequest& request, const respond::Pace&) {
                       kube::ApiAnswer out;
                       out.status = status;
                       if (request.method == "PUT") holder = "ours";
                       out.body = R"({"metadata":{"resourceVersion":"1"},"spec":{"holderIdentity":")" +
                                  holder + R"(","leaseDurationSeconds":15,"renewTime":"x"}})";
                       return out;
                     });
  FakePace pace;
  BOOST_TEST(lease.permits(pace.now()));  // observe writes nothing
  BOOST_TEST(bool(lease.renew(pace)));
  lease.set_mode(ActMode::kAct);
  BOOST_TEST(!lease.permits(pace.now()));
  const Status refused = lease.renew(pace);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().text == "the Lease culprit/controller is of other, which acts");
  pace.now_ns += 16 * kNsPerSecond;  // it did not change for its duration
  BOOST_TEST(bool(lease.renew(pace)));
  BOOST_TEST(lease.permits(pace.now()));
  status = 503;
  pace.now_ns += 10 * kNsPerSecond;
  BOOST_TEST(bool(lease.renew(pace)));
  BOOST_TEST(lease.permits(pace.now()));
  pace.now_ns += 4 * kNsPerSecond;
  BOOST_TEST(!lease.permits(pace.now()));
  pace.now_ns += 2 * kNsPerSecond;
  BOOST_TEST(!lease.renew(pace));
}

BOOST_AUTO_TEST_CASE(another_uid_is_another_job_and_further_hosts_are_the_same_attempt) {
  ScheduledJobs all;
  const auto see = [&](respond::SeenJob job) {
    respond::SchedulerView view;
    view.jobs = {std::move(job)};
    view.hosts = {{"n1", false, false, "", "", {}}, {"n2", false, true, "", "", {}}};
    return all.update(view, {kNsPerSecond, kNsPerSecond});
  };
  BOOST_TEST(starts_of(see(kube_job("u1", 0, {"n1"}))) == 1U);
  BOOST_TEST(starts_of(see(kube_job("u1", 0, {"n1"}))) == 0U);
  const auto more = see(kube_job("u1", 0, {"n1", "n2"}));
  BOOST_TEST(starts_of(more) == 1U);
  for (const recover::Input& input : more)
    if (const auto* means = std::get_if<recover::JobMeans>(&input)) BOOST_TEST(*means->eligible == 2U);
  BOOST_TEST(all.resolve("pod-2") == "train/llama");
  BOOST_TEST(all.resolve("pod-9") == "pod-9");
  BOOST_TEST(starts_of(see(kube_job("u2", 0, {"n1"}))) == 1U);
  BOOST_TEST(all.known("train/llama")->uid == "u2");
}

BOOST_AUTO_TEST_CASE(a_host_that_is_removed_is_isolated_no_more) {
  ScheduledJobs all;
  respond::SchedulerView view;
  view.hosts = {{"n1", true, false, "00112233445566aa", "", {}}, {"n2", true, false, "", "", {}}};
  all.update(view, {kNsPerSecond, kNsPerSecond});
  view.hosts.clear();
  std::vector<std::string> back;
  for (const recover::Input& input : all.update(view, {2 * kNsPerSecond, 2 * kNsPerSecond}))
    if (const auto* host = std::get_if<recover::HostSeen>(&input); host && !host->out)
      back.push_back(host->host);
  BOOST_TEST(back == std::vector<std::string>{"n1"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
