// The pool of spares at an API server that keeps nodes and pods, and refuses stale versions.
#include "respond/kubernetes/standby_pool.h"

#include <boost/test/unit_test.hpp>
#include <map>

#include "../fake_pace.h"
#include "respond/kubernetes/look.h"

using namespace culprit;
using namespace culprit::respond;
using namespace culprit::respond::kubernetes;
using respond::testing::FakePace;

namespace {

const Json kGpuTaint = {{"key", "nvidia.com/gpu"}, {"value", "present"}, {"effect", "NoSchedule"}};

struct PoolServer {
  std::map<std::string, Json> nodes;
  std::vector<Json> pods;
  std::vector<std::string> writes;     // "n1 in", "n1 out"
  std::function<void()> before_patch;  // what others do meanwhile
  long refuse = 0;                     // status of each patch
  FakePace pace;
  StandbyPool pool{[this](const ApiRequest& request, const Pace&) { return answer(request); }, 0};

  PoolServer() {
    for (const char* name : {"n1", "n2", "n3", "n4"}) add_node(name);
    pool.want(1, false, kNsPerSecond * 3600);
    pace.now_ns = 3600 * kNsPerSecond;
  }
  Json& add_node(const std::string& name) {
    nodes[name] = {{"metadata", {{"name", name}, {"resourceVersion", "1"}, {"labels", {{"pool", "train"}}}}},
                   {"spec", {{"taints", Json::array({kGpuTaint})}}},
                   {"status",
                    {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})},
                     {"allocatable", {{"cpu", "4"}, {"nvidia.com/gpu", "8"}}}}}};
    return nodes[name];
  }
  Json& add_pod(const std::string& uid, const std::string& node, const char* owner = "Job") {
    Json pod = {{"metadata",
                 {{"uid", uid},
                  {"creationTimestamp", "2026-11-30T08:00:00Z"},
                  {"ownerReferences", Json::array({{{"kind", owner}}})}}},
                {"spec", {{"containers", Json::array()}}},
                {"status", {{"phase", node.empty() ? "Pending" : "Running"}}}};
    if (node.empty())
      pod["status"]["conditions"] =
          Json::array({{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}});
    else
      pod["spec"]["nodeName"] = node;
    return pods.emplace_back(std::move(pod));
  }
  static ApiAnswer reply(const Json& body, long status = 200) {
    ApiAnswer out;
    out.status = status, out.body = body.dump();
    return out;
  }
  ApiAnswer answer(const ApiRequest& request) {
    const std::string& path = request.path;
    Json items = Json::array();
    if (path.starts_with("/api/v1/pods?")) {
      for (const Json& pod : pods) items.push_back(pod);
      return reply({{"items", items}});
    }
    if (path.starts_with("/api/v1/nodes?")) {
      for (const auto& [name, node] : nodes) items.push_back(node);
      return reply({{"items", items}});
    }
    const std::string name = path.substr(path.rfind('/') + 1);
    Json& node = nodes.at(name);
    if (request.method == "GET") return reply(node);
    if (before_patch) std::exchange(before_patch, nullptr)();
    if (refuse != 0) return reply({{"message", "forbidden"}}, refuse);
    const Json patch = Json::parse(request.body);
    if (patch["metadata"]["resourceVersion"] != node["metadata"]["resourceVersion"])
      return reply({{"message", "modified"}}, 409);
    node.merge_patch(patch);
    node["metadata"]["resourceVersion"] = node["metadata"]["resourceVersion"].get<std::string>() + "1";
    writes.push_back(name + (is_standby(node) ? " in" : " out"));
    return reply(node);
  }
  SchedulerView view() {
    SchedulerView out;
    for (const auto& [name, node] : nodes) {
      SeenHost host = parse_node(node);
      host.idle = !host.out;
      out.hosts.push_back(std::move(host));
    }
    return out;
  }
  std::string keep(TimeNs later = StandbyPool::kKeepEvery) {
    pace.now_ns += later;
    return pool.keep(view(), pace).note;
  }
  std::string hand_over(std::set<std::string> uids, std::vector<std::string> excluded = {"n9"}) {
    const auto host = pool.hand_over({std::move(uids), std::move(excluded)}, pace);
    return host ? *host : "error: " + host.error().text;
  }
  std::string spares() {
    std::string out;
    for (const auto& [name, node] : nodes)
      if (is_standby(node)) out += name;
    return out;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(standby_pool)

BOOST_AUTO_TEST_CASE(the_pool_takes_nodes_without_pods_but_those_of_daemon_sets) {
  PoolServer server;
  server.add_pod("web", "n1", "ReplicaSet");
  server.add_pod("agent", "n2", "DaemonSet");
  BOOST_TEST(server.keep() == "the pool culprit.dev/standby has 1 of 1 nodes, 0 before");
  BOOST_TEST(server.spares() == "n2");
  const Json& taints = server.nodes["n2"]["spec"]["taints"];
  BOOST_TEST(taints.size() == 2U);
  BOOST_TEST(taints[0] == kGpuTaint);
  BOOST_TEST(server.nodes["n2"]["metadata"]["labels"]["pool"] == "train");
  BOOST_TEST(server.keep() == "");
  BOOST_TEST(server.writes.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_node_that_we_returned_lately_is_a_spare_before_it_gets_a_job) {
  PoolServer server;
  server.nodes["n3"]["status"]["conditions"].push_back({{"type", "CulpritFault"},
                                                        {"status", "False"},
                                                        {"reason", "Returned"},
                                                        {"lastTransitionTime", "2026-11-29T19:00:00Z"}});
  server.pool.want(1, false, kNsPerSecond * 1'000'000'000);
  server.keep();
  BOOST_TEST(server.spares() == "n3");
}

BOOST_AUTO_TEST_CASE(the_pool_does_not_grow_while_a_pod_finds_no_node) {
  PoolServer server;
  server.add_pod("waits", "");
  BOOST_TEST(server.keep() == "");
  BOOST_TEST(server.writes.empty());
}

BOOST_AUTO_TEST_CASE(a_pod_that_comes_between_the_look_and_the_taint_keeps_its_node) {
  PoolServer server;
  server.before_patch = [&] { server.add_pod("quick", "n1"); };
  server.keep();
  BOOST_TEST(server.spares() == "n2");
  BOOST_TEST(server.writes == (std::vector<std::string>{"n1 in", "n1 out", "n2 in"}));
  // Another writer's change is a conflict, and stays.
  PoolServer other;
  other.before_patch = [&] {
    other.nodes["n1"]["metadata"]["resourceVersion"] = "7";
    other.nodes["n1"]["spec"]["unschedulable"] = true;
  };
  other.keep();
  BOOST_TEST(other.spares() == "n2");
  BOOST_TEST(other.nodes["n1"]["spec"]["unschedulable"] == true);
}

BOOST_AUTO_TEST_CASE(a_spare_that_is_out_leaves_the_pool_and_another_takes_its_place) {
  PoolServer server;
  server.keep();
  BOOST_TEST(server.spares() == "n1");
  server.nodes["n1"]["spec"]["taints"].push_back({{"key", "culprit.dev/isolated"}, {"effect", "NoSchedule"}});
  server.keep();
  BOOST_TEST(server.spares() == "n1n2");
  server.keep();
  server.keep();
  BOOST_TEST(server.spares() == "n2");
  BOOST_TEST(server.nodes["n1"]["spec"]["taints"].size() == 2U);  // the foreign one, and the isolation
}

BOOST_AUTO_TEST_CASE(marks_of_others_and_a_pool_that_is_switched_off_stay_as_they_are) {
  PoolServer server;
  server.nodes["n1"]["spec"]["taints"].push_back({{"key", "culprit.dev/standby"}, {"effect", "NoExecute"}});
  server.keep();
  BOOST_TEST(server.spares() == "n2");
  server.pool.want(0, false);
  server.keep();
  BOOST_TEST(server.spares() == "n2");
  server.pool.want(2, true);
  BOOST_TEST(server.keep() == "observe: the pool culprit.dev/standby would have 2 of 2 nodes");
  BOOST_TEST(server.keep() == "");
  BOOST_TEST(server.writes.size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_right_that_is_missing_is_reported_once) {
  PoolServer server;
  server.refuse = 403;
  BOOST_TEST(server.keep() == "the pool culprit.dev/standby has 0 of 1 nodes: n1: 403 forbidden");
  BOOST_TEST(server.keep() == "");
  server.refuse = 0;
  BOOST_TEST(server.keep() == "the pool culprit.dev/standby has 1 of 1 nodes, 0 before");
}

BOOST_AUTO_TEST_CASE(a_spare_is_handed_over_to_the_first_pod_that_lacks_a_node) {
  PoolServer server;
  server.keep();
  BOOST_TEST(server.hand_over({"ours"}) == "");  // it waits no more
  server.add_pod("ours", "");
  BOOST_TEST(server.hand_over({"ours"}, {"n1"}) == "");  // the spare is excluded for this job
  server.add_pod("theirs", "")["metadata"]["creationTimestamp"] = "2026-11-30T07:00:00Z";
  BOOST_TEST(server.hand_over({"ours"}) == "");
  // One that could never run on the spare is before no other.
  server.pods.back()["spec"]["containers"] =
      Json::array({{{"resources", {{"requests", {{"nvidia.com/gpu", "16"}}}}}}});
  BOOST_TEST(server.hand_over({"ours"}) == "n1");
  BOOST_TEST(server.spares() == "");
  BOOST_TEST(server.nodes["n1"]["spec"]["taints"] == Json::array({kGpuTaint}));
  // It is not taken back before the pods are bound.
  server.pods.clear();
  BOOST_TEST(server.keep(StandbyPool::kAfterHandOver - kNsPerSecond) == "");
  BOOST_TEST(server.keep() != "");
}

BOOST_AUTO_TEST_CASE(quantities_are_read_as_kubernetes_writes_them) {
  BOOST_TEST(parse_quantity("500m").value_or(0) == .5);
  BOOST_TEST(parse_quantity("16Gi").value_or(0) == 17179869184.0);
  BOOST_TEST(parse_quantity("8").value_or(0) == 8.0);
  for (const char* text : {"", "x", "8X", "-1", "1e9e9"}) BOOST_TEST(!parse_quantity(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
