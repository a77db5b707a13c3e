// What pods and nodes of an API server say about jobs and hosts.
#include "respond/kubernetes/look.h"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <functional>

#include "../fake_pace.h"

using namespace culprit;
using namespace culprit::respond;
using namespace culprit::respond::kubernetes;
using respond::testing::FakePace;

namespace {

struct LookPod {
  std::string name, uid, phase = "Running", node = "n1", labels = R"("job-name":"llama")", status{};
  int second = 0;  // of its creation
  bool ends = false;
  std::string owner = R"({"kind":"Job","uid":"job-1","controller":true})";

  std::string json() const {
    return fmt::format(
        R"({{"metadata":{{"namespace":"train","name":"{}","uid":"{}","labels":{{{}}},{}
        "creationTimestamp":"2026-11-29T19:00:{:02}Z","ownerReferences":[{}]}},
        "spec":{{"nodeName":"{}"}},"status":{{"phase":"{}"{}}}}})",
        name, uid, labels, ends ? R"("deletionTimestamp":"2026-11-29T19:01:00Z",)" : "", second, owner, node,
        phase, status);
  }
};

struct LookServer {
  std::vector<LookPod> pods;
  std::string nodes = R"({"metadata":{"name":"n1"},"spec":{},"status":{"conditions":[
      {"type":"Ready","status":"True"}]}})";
  std::deque<ApiAnswer> instead;  // of the next requests
  std::vector<std::string> paths;
  FakePace pace;
  KubernetesLook look{{[this](const ApiRequest& request, const Pace&) { return answer(request); }, "train"},
                      pace};

  ApiAnswer answer(const ApiRequest& request) {
    paths.push_back(request.path);
    ApiAnswer out;
    if (!instead.empty()) {
      out = instead.front();
      instead.pop_front();
      return out;
    }
    out.status = 200;
    std::string items = nodes;
    if (request.path.find("/pods?") != std::string::npos) {
      items.clear();
      const bool first = request.path.find("labelSelector=job-name&") != std::string::npos;
      for (const LookPod& pod : pods)
        if (first) items += (items.empty() ? "" : ",") + pod.json();
    }
    out.body = R"({"items":[)" + items + "]}";
    return out;
  }
  // "running 0 n1,n2": state's word, restarts, hosts.
  std::string job() {
    const auto view = look.look();
    if (!view) return view.error().text;
    if (view->jobs.empty()) return "none";
    const SeenJob& one = view->jobs.front();
    return fmt::format("{} {} {}", one.word, one.job.restarts, fmt::join(one.hosts, ","));
  }
};

LookPod look_pod(std::string uid, std::string node, std::string phase = "Running", int second = 0) {
  LookPod out;
  out.name = "llama-" + uid, out.uid = uid, out.node = node, out.phase = phase, out.second = second;
  return out;
}

ApiAnswer look_answer(long status, std::optional<TimeNs> retry = {}) {
  ApiAnswer out;
  out.status = status, out.body = "{}", out.retry_after_ns = retry;
  return out;
}

constexpr const char* kNotReady =
    R"(,"containerStatuses":[{"restartCount":2,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}])";

}  // namespace

BOOST_AUTO_TEST_SUITE(kubernetes_look)

BOOST_AUTO_TEST_CASE(a_job_runs_once_all_of_its_pods_do) {
  LookServer server;
  server.pods = {look_pod("a", "n1"), look_pod("b", "", "Pending")};
  BOOST_TEST(server.job() == "Pending 0 n1");
  server.pods[1] = look_pod("b", "n2");
  BOOST_TEST(server.job() == "Running 0 n1,n2");
  const auto view = server.look.look();
  BOOST_REQUIRE(view);
  const SeenJob& job = view->jobs.front();
  BOOST_TEST(job.job.id == "train/llama");
  BOOST_TEST(job.job.uid == "job-1");
  BOOST_TEST(job.partition == "train");
  BOOST_TEST((job.owner == SeenJob::Owner::kUnknown));
  const std::vector<std::string> pods{"pod-a", "pod-b"};
  BOOST_TEST(job.aliases == pods, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(pods_that_are_all_others_are_the_next_attempt_and_one_other_is_not) {
  LookServer server;
  server.pods = {look_pod("a", "n1"), look_pod("b", "n2")};
  server.job();
  server.pods[0] = look_pod("c", "n3", "Running", 10);
  BOOST_TEST(server.job() == "Running 0 n1,n2,n3");
  server.pods = {look_pod("a", "n1", "Failed"), look_pod("b", "n2", "Failed"), look_pod("c", "n3", "Failed")};
  BOOST_TEST(server.job() == "Failed 0 n1,n2,n3");
  server.pods.push_back(look_pod("d", "n3", "Pending", 20));
  server.pods.push_back(look_pod("e", "n4", "Running", 20));
  BOOST_TEST(server.job() == "Pending 1 n3,n4");
  server.pods[3].phase = "Running";
  BOOST_TEST(server.job() == "Running 1 n3,n4");
}

BOOST_AUTO_TEST_CASE(pods_that_follow_successful_ones_are_the_same_attempt) {
  LookServer server;
  server.pods = {look_pod("a", "n1")};
  server.job();
  server.pods = {look_pod("a", "n1", "Succeeded"), look_pod("b", "n2", "Running", 9)};
  BOOST_TEST(server.job() == "Running 0 n1,n2");
  server.pods[1].phase = "Succeeded";
  BOOST_TEST(server.job() == "Succeeded 0 n1,n2");
}

BOOST_AUTO_TEST_CASE(a_container_that_starts_again_is_the_next_attempt) {
  LookServer server;
  server.pods = {look_pod("a", "n1")};
  server.job();
  server.pods[0].status = kNotReady;
  BOOST_TEST(server.job() == "Pending 1 n1");
  server.pods[0].status = R"(,"containerStatuses":[{"restartCount":2,"state":{"running":{}}}])";
  BOOST_TEST(server.job() == "Running 1 n1");
}

BOOST_AUTO_TEST_CASE(the_attempt_of_a_jobset_is_its_label) {
  LookServer server;
  const auto labels = [](int attempt) {
    return fmt::format(
        R"("jobset.sigs.k8s.io/jobset-name":"set","jobset.sigs.k8s.io/jobset-uid":"set-1",
        "jobset.sigs.k8s.io/restart-attempt":"{}","job-name":"set-w-0")",
        attempt);
  };
  server.pods = {look_pod("a", "n1"), look_pod("b", "n2")};
  for (LookPod& pod : server.pods) pod.labels = labels(3);
  const auto view = server.look.look();
  BOOST_REQUIRE(view);
  BOOST_TEST(view->jobs[0].job.id == "train/set");
  BOOST_TEST(view->jobs[0].job.uid == "set-1");
  BOOST_TEST(view->jobs[0].job.restarts == 3U);
  server.pods[0].phase = server.pods[1].phase = "Failed";
  server.pods.push_back(look_pod("c", "n3"));
  server.pods.back().labels = labels(4);
  BOOST_TEST(server.job() == "Running 4 n3");
  server.pods[2] = look_pod("d", "n4");  // deleted, and made again in the same attempt
  server.pods[2].labels = labels(4);
  BOOST_TEST(server.job() == "Running 4 n4");
}

BOOST_AUTO_TEST_CASE(how_pods_ended_is_how_the_job_did) {
  using State = SeenJob::State;
  const std::tuple<std::string, State> rows[] = {
      {"", State::kFailed},
      {R"(,"reason":"DeadlineExceeded")", State::kTimeLimit},
      {R"(,"reason":"Evicted")", State::kPreempted},
      {R"(,"conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}])",
       State::kPreempted},
      {R"(,"conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByPodGC"}])",
       State::kNodeFailed},
  };
  for (const auto& [status, state] : rows) {
    LookServer server;
    server.pods = {look_pod("a", "n1", "Failed"), look_pod("b", "n2", "Failed"),
                   look_pod("c", "n3", "Succeeded")};
    server.pods[1].status = status;
    const auto view = server.look.look();
    BOOST_REQUIRE(view);
    BOOST_TEST((view->jobs[0].state == state), status);
  }
}

BOOST_AUTO_TEST_CASE(a_deleted_workload_is_cancelled_after_a_while_and_another_of_its_name_is_another_job) {
  LookServer server;
  server.pods = {look_pod("a", "n1")};
  server.job();
  server.pods[0].ends = true;
  BOOST_TEST(server.job() == "Terminating 0 n1");
  server.pods.clear();
  BOOST_TEST(server.job() == "Terminating 0 n1");
  server.pace.now_ns += KubernetesLook::kDeletedNs;
  BOOST_TEST(server.job() == "Deleted 0 n1");
  BOOST_TEST(server.job() == "none");
  server.pods = {look_pod("b", "n2", "Running", 30)};
  server.pods[0].owner = R"({"kind":"Job","uid":"job-2","controller":true})";
  BOOST_TEST(server.job() == "Running 0 n2");
}

BOOST_AUTO_TEST_CASE(after_a_restart_of_the_collector_the_attempts_are_counted_on) {
  const TimeNs seven = parse_time("2026-11-29T19:00:07Z");
  const std::tuple<TimeNs, int, std::string> rows[] = {
      {kNoTime, 5, "Running 4 n1"},  // runs since before the attempt was seen
      {kNoTime, 9, "Running 5 n1"},  // created after it began
      {seven, 9, "Running 5 n1"},
  };
  for (const auto& [ended, created, expected] : rows) {
    LookServer server;
    AttemptRecord row;
    row.job = {"kubernetes", "train/llama", "job-1", kNoTime, 4};
    row.begin_ns = parse_time("2026-11-29T19:00:06Z");
    row.end_ns = ended;
    server.look.load(row);
    server.pods = {look_pod("a", "n1", "Running", created)};
    BOOST_TEST(server.job() == expected);
  }
}

BOOST_AUTO_TEST_CASE(a_node_is_out_by_what_closes_it_to_all_work) {
  const std::tuple<std::string, bool, std::string> rows[] = {
      {R"("spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]})", false, ""},
      {R"("spec":{},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]})", true, ""},
      {R"("spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"True"}]})", true,
       ""},
      {R"("spec":{"taints":[{"key":"nvidia.com/gpu","effect":"NoSchedule"}]},
       "status":{"conditions":[{"type":"Ready","status":"True"}]})",
       false, ""},
      {R"("spec":{"taints":[{"key":"node.kubernetes.io/unreachable","effect":"NoExecute"}]},
       "status":{"conditions":[{"type":"Ready","status":"True"}]})",
       true, ""},
      {R"("spec":{"taints":[{"key":"culprit.dev/isolated","value":"d-0001","effect":"NoSchedule"}]},
       "status":{"conditions":[{"type":"Ready","status":"True"}]})",
       true, "d-0001"},
  };
  for (const auto& [text, out, op] : rows) {
    const SeenHost host = parse_node(Json::parse(R"({"metadata":{"name":"n1"},)" + text + "}"));
    BOOST_TEST(host.out == out, text);
    BOOST_TEST(host.op == op);
  }
}

BOOST_AUTO_TEST_CASE(a_busy_server_is_asked_again_when_it_says_and_nodes_are_read_less_often) {
  LookServer server;
  server.pods = {look_pod("a", "n1")};
  server.job();
  const size_t first = server.paths.size();
  BOOST_TEST(first == 5U);  // four lists of pods, one of nodes
  server.job();
  BOOST_TEST(server.paths.size() == first + 4);
  server.instead = std::deque<ApiAnswer>(kTries, look_answer(429, 7 * kNsPerSecond));
  server.pace.pauses_left = 0;
  BOOST_TEST(server.job() == "pods: 429 {}");
  const size_t before = server.paths.size();
  BOOST_TEST(server.job() == "pods: 429 {}");
  BOOST_TEST(server.paths.size() == before);
  server.pace.now_ns += 8 * kNsPerSecond;
  server.instead.clear();
  BOOST_TEST(server.job() == "Running 0 n1");
  server.pace.now_ns += 20 * kNsPerSecond;
  server.look.look();
  BOOST_TEST(server.paths.back().starts_with("/api/v1/nodes?"));
  const auto view = server.look.look();
  BOOST_REQUIRE(view);
  BOOST_TEST(view->hosts_read_ns != kNoTime);
}

BOOST_AUTO_TEST_CASE(an_expired_page_begins_the_list_again_and_a_refusal_ends_it) {
  LookServer server;
  server.pods = {look_pod("a", "n1")};
  server.instead = {look_answer(410)};
  BOOST_TEST(server.job() == "Running 0 n1");
  server.instead = {look_answer(403)};
  BOOST_TEST(server.job() == "pods: 403 {}");
  BOOST_TEST(server.job() == "Running 0 n1");
}

BOOST_AUTO_TEST_CASE(times_of_objects_are_read) {
  BOOST_TEST(parse_time("1970-01-02T00:00:01Z") == 86'401 * kNsPerSecond);
  BOOST_TEST(parse_time("2026-11-29T19:00:00.123456Z") == parse_time("2026-11-29T19:00:00Z"));
  for (const char* wrong : {"", "2026-11-29", "2026-13-29T19:00:00Z", "2026-11-29T19:00:00+01:00", "x"})
    BOOST_TEST(parse_time(wrong) == kNoTime, wrong);
}

BOOST_AUTO_TEST_SUITE_END()
