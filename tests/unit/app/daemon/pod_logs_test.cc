// Which pods of a node are followed, with an API server that answers, refuses or is silent, and without one.
#include "app/daemon/intake/pod_logs.h"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;
using respond::kubernetes::ApiAnswer, respond::kubernetes::ApiRequest;

BOOST_AUTO_TEST_SUITE(pod_logs_test)

namespace {

using Enter = PodLogs::Enter;
constexpr const char* kRoot = "/var/log/pods";
const std::string kUid = "1f6e3c1a-7d0e-4c3b-9a54-0f3a5d1c2b3e";

std::string folder(const std::string& space, const std::string& pod) {
  return fmt::format("{}/{}_{}_{}", kRoot, space, pod, kUid);
}
std::string pod_json(const std::string& labels, bool computes, const std::string& uid = kUid) {
  return fmt::format(
      R"({{"metadata":{{"name":"p","uid":"{}","labels":{{{}}}}},"spec":{{"containers":[{{"resources":
                     {{"limits":{{"{}":"8"}}}}}}]}}}})",
      uid, labels, computes ? "nvidia.com/gpu" : "cpu");
}

struct Node {
  std::vector<std::string> requests;
  std::vector<std::pair<std::string, std::string>> found;
  ApiAnswer answer;
  TimeNs now = 1000 * kNsPerSecond, takes = 0;
  std::unique_ptr<PodLogs> pods;

  explicit Node(std::vector<std::string> namespaces, bool with_api = true) {
    PodLogsOptions options;
    options.folder = kRoot;
    options.namespaces = std::move(namespaces);
    options.mono = [this] { return now; };
    options.without = "this is no pod";
    options.found = [this](const std::string& pod, const std::string& job) { found.emplace_back(pod, job); };
    if (with_api)
      options.call = [this](const ApiRequest& request, const respond::Pace&) {
        requests.push_back(request.method + " " + request.path);
        now += takes;
        return answer;
      };
    pods = std::make_unique<PodLogs>(std::move(options));
  }
  void answers(long status, std::string body) {
    answer = {};
    answer.status = status;
    answer.body = std::move(body);
  }
  Enter enter(const std::string& path) { return pods->enter(path); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_pod_that_asks_for_an_accelerator_is_a_job_by_its_labels) {
  Node node({});
  node.answers(200, pod_json(R"("jobset.sigs.k8s.io/jobset-name":"llama")", true));
  const std::string path = folder("train", "llama-workers-0-0-x7zq2");
  BOOST_TEST((node.enter(path) == Enter::kYes));
  BOOST_TEST((node.enter(path) == Enter::kYes));
  BOOST_TEST((node.enter(path + "/pytorch") == Enter::kYes));
  BOOST_TEST(
      node.requests == std::vector<std::string>{"GET /api/v1/namespaces/train/pods/llama-workers-0-0-x7zq2"},
      boost::test_tools::per_element());
  BOOST_TEST(node.pods->job_of(path + "/pytorch/0.log") == "train_llama");
  BOOST_TEST(node.pods->job_named("pod-" + kUid) == "train_llama");
  BOOST_TEST(node.pods->job_named("pod-other") == "pod-other");
  BOOST_TEST(node.pods->job_named("slurm-7") == "slurm-7");
  BOOST_REQUIRE_EQUAL(node.found.size(), 1u);
  BOOST_TEST(node.found[0].first == "pod-" + kUid);
  BOOST_TEST(node.found[0].second == "train_llama");
  BOOST_TEST(to_string(node.pods->container_of(path + "/pytorch/0.log")) == "pod:1f6e3c1a7d0e");
  BOOST_TEST(node.pods->is_log(path + "/pytorch/0.log"));
  BOOST_TEST(!node.pods->is_log("/var/log/pods.log"));
}

BOOST_AUTO_TEST_CASE(pods_of_the_system_and_services_are_no_jobs) {
  Node node({"team-*"});
  node.answers(200, pod_json("", false));
  BOOST_TEST((node.enter(folder("kube-system", "coredns-x7zq2")) == Enter::kNo));
  BOOST_TEST((node.enter(folder("team-a", "chat-x7zq2")) == Enter::kYes), "a chosen namespace");
  node.answers(200,
               fmt::format(R"({{"metadata":{{"name":"p","uid":"{}","ownerReferences":[{{"kind":"DaemonSet",
      "name":"dcgm","controller":true}}]}},"spec":{{"resourceClaims":[{{"name":"g"}}]}}}})",
                           kUid));
  BOOST_TEST((node.enter(folder("gpu", "dcgm-x7zq2")) == Enter::kNo));
  for (const char* name : {"lost+found", "train_llama", "a_b_c", "train_llama_.."})
    BOOST_TEST((node.enter(std::string(kRoot) + "/" + name) != Enter::kYes), name);
  const auto counts = node.pods->counts();
  BOOST_TEST(counts.followed == 1u);
  BOOST_TEST(counts.left_out == 2u);
  BOOST_TEST(counts.trouble.empty());
}

BOOST_AUTO_TEST_CASE(without_the_right_the_chosen_namespaces_and_names_decide) {
  Node node({"train"});
  node.answers(403, R"({"message":"pods is forbidden"})");
  BOOST_TEST((node.enter(folder("train", "llama-0-x7zq2")) == Enter::kYes));
  BOOST_TEST((node.enter(folder("other", "bert-0-x7zq2")) == Enter::kLater));
  BOOST_TEST(node.requests.size() == 1u, "the server is not asked for each pod");
  BOOST_TEST(node.pods->job_of(folder("train", "llama-0-x7zq2") + "/c/0.log") == "train_llama");
  BOOST_TEST(node.pods->counts().trouble == "403 pods is forbidden");
  // The right is granted.
  node.now += 6 * 60 * kNsPerSecond;
  node.answers(200, pod_json(R"("job-name":"bert")", true));
  BOOST_TEST((node.enter(folder("other", "bert-0-x7zq2")) == Enter::kYes));
  BOOST_TEST(node.pods->counts().trouble.empty());
}

BOOST_AUTO_TEST_CASE(a_silent_server_delays_a_pod_and_then_its_name_decides) {
  Node node({"train"});
  node.answer.trouble = "https://k: timeout";
  node.takes = 3 * kNsPerSecond;
  const std::string chosen = folder("train", "llama-worker-1"), other = folder("other", "bert-worker-1");
  BOOST_TEST((node.enter(chosen) == Enter::kLater));
  BOOST_TEST((node.enter(other) == Enter::kLater));
  BOOST_TEST(node.requests.size() == 1u, "it is asked again later");
  for (int second = 0; second < 50; ++second) {
    node.now += kNsPerSecond;
    (void)node.enter(other);
  }
  BOOST_TEST(node.requests.size() < 6u);
  node.now += 20 * kNsPerSecond;
  BOOST_TEST((node.enter(chosen) == Enter::kYes));
  BOOST_TEST(node.pods->job_of(chosen + "/c/0.log") == "train_llama");
  BOOST_TEST((node.enter(other) == Enter::kLater));
  BOOST_TEST(node.pods->counts().waiting == 1u);
}

BOOST_AUTO_TEST_CASE(another_pods_answer_says_nothing) {
  Node node({});
  node.answers(200, pod_json("", true, "00000000-7d0e-4c3b-9a54-0f3a5d1c2b3e"));
  BOOST_TEST((node.enter(folder("train", "llama-0")) == Enter::kNo), "another pod has the name by now");
  node.answers(404, "{}");
  BOOST_TEST((node.enter(folder("train", "llama-1")) == Enter::kNo));
  node.answers(200, "no JSON");
  BOOST_TEST((node.enter(folder("train", "llama-2")) == Enter::kNo));
}

BOOST_AUTO_TEST_CASE(a_pod_speaks_for_jobs_of_its_namespace_only) {
  Node node({});
  for (const char* name : {"victim_llama", "victim/llama", "../victim_llama"}) {
    node.answers(200, pod_json(fmt::format(R"("job-name":"{}")", name), true));
    const std::string path = folder("attacker", fmt::format("p-{}", node.requests.size()));
    BOOST_TEST((node.enter(path) == Enter::kYes));
    BOOST_TEST(node.pods->job_of(path + "/c/0.log").starts_with("attacker_p"), name);
  }
}

BOOST_AUTO_TEST_CASE(outside_of_a_cluster_only_chosen_namespaces_are_followed) {
  Node node({"train"}, false);
  BOOST_TEST((node.enter(folder("train", "llama-x7zq2")) == Enter::kYes));
  BOOST_TEST((node.enter(folder("other", "llama-x7zq2")) == Enter::kNo));
  BOOST_TEST(node.pods->counts().trouble == "this is no pod");
}

BOOST_AUTO_TEST_CASE(many_pods_are_asked_for_in_turns_and_remembered_within_a_bound) {
  Node node({});
  node.takes = 20 * kNsPerMs;
  node.answers(200, pod_json("", true));
  int later = 0;
  for (int i = 0; i < 200; ++i) later += node.enter(folder("train", fmt::format("p-{}", i))) == Enter::kLater;
  BOOST_TEST(later == 150, "a second of 20 ms each");
  for (size_t i = 0; i < 2 * PodLogs::kPods; ++i) (void)node.enter(folder("train", fmt::format("q-{}", i)));
  const auto counts = node.pods->counts();
  BOOST_TEST(counts.followed + counts.left_out + counts.waiting == PodLogs::kPods);
}

BOOST_AUTO_TEST_SUITE_END()
