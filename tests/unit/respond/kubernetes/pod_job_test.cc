// Whose logs a pod's are, by what its controllers write on it.
#include "respond/kubernetes/pod_job.h"

#include <fmt/format.h>
#include <boost/test/unit_test.hpp>

using namespace culprit::respond::kubernetes;

namespace {

constexpr const char* kUid = "1f6e3c1a-7d0e-4c3b-9a54-0f3a5d1c2b3e";

// `metadata` and `spec` are members to add.
std::string shown(const std::string& metadata, const std::string& spec = "") {
  const std::string text = fmt::format(
      R"({{"metadata":{{"name":"p-0","uid":"{}"{}}},"spec":{{"nodeName":"n"{}}}}})", kUid, metadata, spec);
  const auto job = parse_pod_job(Json::parse(text, nullptr, false));
  if (!job) return "none";
  return fmt::format("{}{}{}", job->workload, job->computes ? " computes" : "", job->ends ? "" : " stays");
}

std::string labels(const std::string& list) { return R"(,"labels":{)" + list + "}"; }
std::string owner(const std::string& kind, const std::string& name) {
  return fmt::format(
      R"(,"ownerReferences":[{{"kind":"Pod","name":"x"}},{{"kind":"{}","name":"{}","controller":true}}])",
      kind, name);
}
std::string asks(const std::string& list) {
  return R"(,"containers":[{"name":"a"},{"name":"b","resources":{)" + list + "}}]";
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_outermost_workload_of_a_pod_is_its_job) {
  const std::string batch = R"("batch.kubernetes.io/job-name":"j-workers-0","job-name":"j-workers-0")";
  const std::pair<std::string, std::string> cases[] = {
      {labels(R"("jobset.sigs.k8s.io/jobset-name":"j",)" + batch) + owner("Job", "j-workers-0"), "j"},
      {labels(R"("training.kubeflow.org/job-name":"py","training.kubeflow.org/replica-index":"1")"), "py"},
      {labels(R"("training.kubeflow.org/job-name":"mpi","job-name":"mpi-launcher")") +
           owner("Job", "mpi-launcher"),
       "mpi"},
      {labels(R"("leaderworkerset.sigs.k8s.io/name":"lws")") + owner("StatefulSet", "lws-0"), "lws"},
      {labels(R"("volcano.sh/job-name":"v")") + owner("Job", "v"), "v"},
      {labels(R"("ray.io/cluster":"r")") + owner("RayCluster", "r"), "r"},
      {labels(R"("job-name":"old")"), "old"},
      {owner("Job", "plain"), "plain"},
      {owner("AppWrapper", "new-kind"), "new-kind"},
      {labels(R"("kueue.x-k8s.io/pod-group-name":"group")"), "group"},
      {"", "p-0"},
      {owner("ReplicaSet", "web-7f9c"), "web-7f9c stays"},
      {owner("DaemonSet", "dcgm"), "dcgm stays"},
      {owner("StatefulSet", "nb"), "nb stays"},
      {owner("Node", "n"), "n stays"},
      // What no controller writes: the next way decides.
      {labels(R"("jobset.sigs.k8s.io/jobset-name":"a_b","job-name":"j")"), "j"},
      {labels(R"("job-name":"../../x")") + owner("Job", "j"), "j"},
      {labels(R"("job-name":7)") + owner("Job", "A B"), "p-0"},
  };
  for (const auto& [metadata, expected] : cases) BOOST_TEST(shown(metadata) == expected, metadata);
}

BOOST_AUTO_TEST_CASE(a_pod_computes_if_it_asks_for_an_accelerator) {
  const std::pair<std::string, bool> cases[] = {
      {asks(R"("limits":{"nvidia.com/gpu":"8","cpu":"96"})"), true},
      {asks(R"("requests":{"nvidia.com/mig-1g.5gb":1})"), true},
      {asks(R"("limits":{"amd.com/gpu":"1"})"), true},
      {asks(R"("limits":{"google.com/tpu":"4"})"), true},
      {R"(,"resourceClaims":[{"name":"gpu"}])", true},
      {R"(,"initContainers":[{"resources":{"limits":{"habana.ai/gaudi":"1"}}}])", true},
      {asks(R"("limits":{"nvidia.com/gpu":"0"})"), false},
      {asks(R"("limits":{"cpu":"1","memory":"1Gi","rdma/ib":"1","hugepages-2Mi":"1Gi"})"), false},
      {asks(R"("limits":"nvidia.com/gpu")"), false},
      {R"(,"resourceClaims":[])", false},
      {"", false},
  };
  for (const auto& [spec, expected] : cases)
    BOOST_TEST((shown("", spec) == (expected ? "p-0 computes" : "p-0")), spec);
}

BOOST_AUTO_TEST_CASE(a_static_pod_has_the_uid_of_its_file) {
  const auto job = parse_pod_job(Json::parse(
      R"({"metadata":{"name":"etcd-n","uid":"1f6e3c1a-7d0e-4c3b-9a54-0f3a5d1c2b3e",
          "annotations":{"kubernetes.io/config.hash":"0123456789abcdef0123456789abcdef"}}})"));
  BOOST_REQUIRE(job);
  BOOST_TEST(job->uid == "0123456789abcdef0123456789abcdef");
  for (const char* text :
       {"7", "{}", "[]", R"({"metadata":{"name":"a"}})", R"({"metadata":{"name":"A","uid":"x"}})"})
    BOOST_TEST(!parse_pod_job(Json::parse(text)));
}

BOOST_AUTO_TEST_CASE(the_folder_of_a_pods_logs_names_it) {
  const std::string uid = std::string("_") + kUid;
  const std::string name = "train_llama-0" + uid;
  const auto found = parse_pod_folder(name);
  BOOST_REQUIRE(found);
  BOOST_TEST(found->space == "train");
  BOOST_TEST(found->name == "llama-0");
  BOOST_TEST(found->uid == kUid);
  BOOST_TEST(parse_pod_folder("kube-system_etcd-n1_0123456789abcdef0123456789abcdef").has_value());
  for (const std::string other :
       {"", "train", "_llama", "train__x", "train_Llama", "tr/ain_x", "train_a_b", "train_.", "train_-a"})
    BOOST_TEST(!parse_pod_folder(other + (other.find('_') == other.npos ? "" : uid)), other);
  BOOST_TEST(!parse_pod_folder("train_llama_1F6E3C1A-7D0E-4C3B-9A54-0F3A5D1C2B3E"));
}

BOOST_AUTO_TEST_CASE(a_pods_name_alone_gives_its_workload_as_its_controllers_name_pods) {
  const std::pair<const char*, const char*> cases[] = {{"llama-x7zq2", "llama"},
                                                       {"llama-0-x7zq2", "llama"},
                                                       {"llama-workers-0-3-x7zq2", "llama"},
                                                       {"llama-worker-3", "llama"},
                                                       {"llama-master-0", "llama"},
                                                       {"llama-launcher-x7zq2", "llama"},
                                                       {"llama-0", "llama"},
                                                       {"llama-70b", "llama-70b"},
                                                       {"llama", "llama"},
                                                       {"debug-shell", "debug-shell"},
                                                       {"0", "0"},
                                                       {"worker", "worker"},
                                                       {"llama-70b-worker-15", "llama-70b"}};
  for (const auto& [pod, workload] : cases) BOOST_TEST(workload_of_pod_name(pod) == workload, pod);
  BOOST_TEST(job_id("train", "llama") == "train_llama");
}
