// Orders at an API server that answers what a test gives it.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <map>

#include "../fake_pace.h"
#include "respond/kubernetes/backend.h"
#include "respond/kubernetes/lease.h"
#include "respond/kubernetes/objects.h"

using namespace culprit;
using namespace culprit::respond;
using namespace culprit::respond::kubernetes;
using respond::testing::FakePace, respond::testing::order_for;

namespace {

ApiAnswer answer_of(long status, std::string body = "{}") {
  ApiAnswer out;
  out.status = status, out.body = std::move(body);
  return out;
}
ApiAnswer no_answer(bool unsent) {
  ApiAnswer out;
  out.trouble = "https://k: timeout", out.unsent = unsent;
  return out;
}

// Answers by method and path; the last answer of a list repeats.
struct FakeServer {
  std::map<std::string, std::deque<ApiAnswer>> answers;
  std::vector<ApiRequest> requests;
  FakePace pace;

  ApiCall call() {
    return [this](const ApiRequest& request, const Pace&) {
      requests.push_back(request);
      const std::string line = request.method + " " + request.path;
      const std::deque<ApiAnswer>* found = nullptr;
      std::string best;
      for (auto& [begin, list] : answers)
        if (line.starts_with(begin) && begin.size() >= best.size()) best = begin, found = &list;
      if (!found) return answer_of(404, R"({"message":"not found"})");
      ApiAnswer out = found->front();
      if (found->size() > 1) answers[best].pop_front();
      return out;
    };
  }
  ActionResult carry_out(const ActionOrder& order, bool observe = false) {
    KubernetesOptions options;
    options.call = call();
    options.observe = observe;
    return KubernetesBackend(options).carry_out(order, pace);
  }
  std::vector<ApiRequest> sent(std::string_view method, std::string_view path) const {
    std::vector<ApiRequest> out;
    for (const ApiRequest& one : requests)
      if (one.method == method && one.path == path) out.push_back(one);
    return out;
  }
};

constexpr const char* kNode = "/api/v1/nodes/n1";
const std::string kForeignTaint =
    R"({"key":"gpu","value":"yes","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"})";
const std::string kOurTaint = R"({"key":"culprit.dev/isolated","value":"d-0001","effect":"NoSchedule"})";

std::string node_json(const std::string& taints, const std::string& more = "") {
  return R"({"metadata":{"name":"n1","resourceVersion":"41"},"spec":{"taints":[)" + taints + "]" + more +
         R"(},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"CulpritFault","status":"False",
         "lastTransitionTime":"2026-01-01T00:00:00Z"}]}})";
}

FakeServer server_with_node() {
  FakeServer out;
  out.answers["GET /api/v1/nodes/n1"] = {answer_of(200, node_json(kForeignTaint))};
  out.answers["PATCH /api/v1/nodes/n1"] = {answer_of(200, node_json(kForeignTaint + "," + kOurTaint))};
  out.answers["PATCH /api/v1/nodes/n1/status"] = {answer_of(200)};
  out.answers["POST /api/v1/namespaces/default/events"] = {answer_of(201)};
  return out;
}

std::string pod_json(const std::string& name, const std::string& phase, const std::string& node,
                     const std::string& labels = "") {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u-)" + name + R"(","labels":{)" + labels +
         R"(},"ownerReferences":[{"uid":"job-uid"}]},"spec":{"nodeName":")" + node +
         R"("},"status":{"phase":")" + phase + R"("}})";
}

ActionOrder order_for_pods(OrderKind kind) {
  ActionOrder out = order_for(kind, "");
  out.job.scheduler = "kubernetes", out.job.id = "train/llama", out.job.uid = "job-uid";
  return out;
}

const std::string kPods = "GET /api/v1/namespaces/train/pods";

}  // namespace

BOOST_AUTO_TEST_SUITE(kubernetes)

BOOST_AUTO_TEST_CASE(a_taint_is_written_with_all_that_are_there_and_the_version_that_was_read) {
  FakeServer server = server_with_node();
  const ActionResult result = server.carry_out(order_for(OrderKind::kIsolate));
  BOOST_TEST((result.state == ActionState::kDone), result.detail);
  const auto patches = server.sent("PATCH", kNode);
  BOOST_REQUIRE(patches.size() == 1U);
  BOOST_TEST(patches[0].content_type == "application/merge-patch+json");
  BOOST_TEST(patches[0].body ==
             R"({"metadata":{"resourceVersion":"41"},"spec":{"taints":[{"effect":"NoSchedule",)"
             R"("key":"gpu","timeAdded":"2026-01-01T00:00:00Z","value":"yes"},)"
             R"({"effect":"NoSchedule","key":"culprit.dev/isolated","value":"d-0001"}]}})");
}

BOOST_AUTO_TEST_CASE(
    a_condition_is_one_of_the_status_by_a_strategic_patch_and_its_transition_is_of_a_change) {
  FakeServer server = server_with_node();
  server.carry_out(order_for(OrderKind::kIsolate));
  const auto patches = server.sent("PATCH", std::string(kNode) + "/status");
  BOOST_REQUIRE(patches.size() == 1U);
  BOOST_TEST(patches[0].content_type == "application/strategic-merge-patch+json");
  const Json conditions = Json::parse(patches[0].body)["status"]["conditions"];
  BOOST_TEST(conditions.size() == 1U);
  BOOST_TEST(conditions[0]["type"] == "CulpritFault");
  BOOST_TEST(conditions[0]["reason"] == "XID79");
  BOOST_TEST(conditions[0]["lastTransitionTime"] == conditions[0]["lastHeartbeatTime"]);
  const Json node = Json::parse(node_json(""));
  const Json same = Json::parse(condition_patch(node, {false, "Returned", "d-0001"}, "2026-02-02T00:00:00Z"));
  BOOST_TEST(same["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z");
}

BOOST_AUTO_TEST_CASE(what_a_node_says_already_decides) {
  const std::tuple<OrderKind, std::string, std::string, ActionState> rows[] = {
      {OrderKind::kIsolate, kOurTaint, "", ActionState::kDone},
      {OrderKind::kIsolate, R"({"key":"culprit.dev/isolated","value":"d-0007"})", "",
       ActionState::kSuperseded},
      {OrderKind::kIsolate, "", R"(,"unschedulable":true)", ActionState::kSuperseded},
      {OrderKind::kReturn, kForeignTaint, "", ActionState::kSuperseded},
      {OrderKind::kReturn, R"({"key":"culprit.dev/isolated","value":"d-0007"})", "",
       ActionState::kSuperseded},
  };
  for (const auto& [kind, taints, more, expected] : rows) {
    FakeServer server = server_with_node();
    server.answers["GET /api/v1/nodes/n1"] = {answer_of(200, node_json(taints, more))};
    const ActionResult result = server.carry_out(order_for(kind));
    BOOST_TEST((result.state == expected), result.detail);
    BOOST_TEST(server.requests.size() == 1U);
  }
  for (const char* body :
       {"", "[]", "{", R"({"spec":{"taints":{}}})", R"({"metadata":{"resourceVersion":7}})"}) {
    FakeServer server = server_with_node();
    server.answers["GET /api/v1/nodes/n1"] = {answer_of(200, body)};
    BOOST_TEST((server.carry_out(order_for(OrderKind::kIsolate)).state == ActionState::kFailed), body);
    BOOST_TEST(server.requests.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_to_the_patch_decides) {
  const std::string conflict = R"({"message":"the object has been modified"})";
  const std::tuple<std::vector<ApiAnswer>, ActionState, size_t> rows[] = {
      {{answer_of(409, conflict), answer_of(200, node_json(kOurTaint))}, ActionState::kDone, 2},
      {{answer_of(409, conflict)}, ActionState::kFailed, 5},
      {{answer_of(403)}, ActionState::kFailed, 1},
      {{answer_of(422)}, ActionState::kFailed, 1},
      {{answer_of(404)}, ActionState::kFailed, 1},
      {{answer_of(503), answer_of(200, node_json(kOurTaint))}, ActionState::kDone, 2},
      {{answer_of(503)}, ActionState::kAmbiguous, 5},
      {{no_answer(false)}, ActionState::kAmbiguous, 5},
      {{no_answer(true)}, ActionState::kFailed, 5},
      {{answer_of(200, node_json(kForeignTaint))}, ActionState::kAmbiguous, 1},
  };
  for (const auto& [answers, expected, patches] : rows) {
    FakeServer server = server_with_node();
    server.answers["PATCH /api/v1/nodes/n1"] = {answers.begin(), answers.end()};
    const ActionResult result = server.carry_out(order_for(OrderKind::kIsolate));
    BOOST_TEST((result.state == expected), result.detail);
    BOOST_TEST(server.sent("PATCH", kNode).size() == patches);
    BOOST_TEST(server.pace.paused_ns <= 2 * kBusyMost);
  }
}

// The repetition of a patch that arrived without its answer is a conflict. Its taint is our own doing.
BOOST_AUTO_TEST_CASE(a_patch_whose_answer_was_lost_is_not_taken_for_anothers) {
  const std::tuple<OrderKind, ApiAnswer, ActionState, size_t> rows[] = {
      {OrderKind::kIsolate, no_answer(false), ActionState::kDone, 1},
      {OrderKind::kReturn, no_answer(false), ActionState::kDone, 1},
      {OrderKind::kReturn, answer_of(503), ActionState::kDone, 1},
      {OrderKind::kReturn, answer_of(429), ActionState::kSuperseded, 0},
      {OrderKind::kReturn, no_answer(true), ActionState::kSuperseded, 0},
  };
  for (const auto& [kind, first, expected, conditions] : rows) {
    FakeServer server = server_with_node();
    const bool isolate = kind == OrderKind::kIsolate;
    server.answers["GET /api/v1/nodes/n1"] = {answer_of(200, node_json(isolate ? "" : kOurTaint)),
                                              answer_of(200, node_json(isolate ? kOurTaint : ""))};
    server.answers["PATCH /api/v1/nodes/n1"] = {first, answer_of(409)};
    const ActionResult result = server.carry_out(order_for(kind));
    BOOST_TEST((result.state == expected), result.detail);
    BOOST_TEST(server.sent("PATCH", std::string(kNode) + "/status").size() == conditions, result.detail);
  }
}

BOOST_AUTO_TEST_CASE(a_server_that_is_busy_is_asked_again_when_it_says) {
  FakeServer server = server_with_node();
  ApiAnswer busy = answer_of(429);
  busy.retry_after_ns = 7 * kNsPerSecond;
  server.answers["GET /api/v1/nodes/n1"] = {busy, answer_of(200, node_json(kForeignTaint))};
  BOOST_TEST((server.carry_out(order_for(OrderKind::kIsolate)).state == ActionState::kDone));
  BOOST_TEST(server.pace.paused_ns == 7 * kNsPerSecond);
  busy.retry_after_ns = 3600 * kNsPerSecond;
  server.answers["GET /api/v1/nodes/n1"] = {busy};
  BOOST_TEST((server.carry_out(order_for(OrderKind::kIsolate)).state == ActionState::kFailed));
  BOOST_TEST(server.pace.paused_ns == 7 * kNsPerSecond);  // an hour is not waited
}

BOOST_AUTO_TEST_CASE(refused_condition_or_event_is_a_remark_on_what_is_done) {
  FakeServer server = server_with_node();
  server.answers["PATCH /api/v1/nodes/n1/status"] = {answer_of(403, R"({"message":"forbidden"})")};
  server.answers["POST /api/v1/namespaces/default/events"] = {answer_of(409)};
  server.answers["PATCH /api/v1/namespaces/default/events/n1.culprit.d-0001.isolated"] = {answer_of(200)};
  const ActionResult result = server.carry_out(order_for(OrderKind::kIsolate));
  BOOST_TEST((result.state == ActionState::kDone));
  BOOST_TEST(result.detail.find("condition CulpritFault: 403 forbidden") != std::string::npos, result.detail);
  BOOST_TEST(result.detail.find("event") == std::string::npos, result.detail);
}

BOOST_AUTO_TEST_CASE(observe_writes_as_a_dry_run_alone) {
  FakeServer server = server_with_node();
  server.carry_out(order_for(OrderKind::kIsolate), true);
  server.answers[kPods] = {answer_of(200, R"({"items":[)" + pod_json("p", "Running", "n1") + "]}")};
  server.answers["DELETE"] = {answer_of(200)};
  server.carry_out(order_for_pods(OrderKind::kEndTasks), true);
  size_t writes = 0;
  for (const ApiRequest& one : server.requests) {
    if (one.method == "GET") continue;
    ++writes;
    const bool dry = one.method == "DELETE" ? one.body.find(R"("dryRun":["All"])") != std::string::npos
                                            : one.path.ends_with("?dryRun=All");
    BOOST_TEST(dry, one.path);
  }
  BOOST_TEST(writes == 4U);
}

BOOST_AUTO_TEST_CASE(pods_of_this_attempt_are_deleted_by_their_uid) {
  const std::string attempt =
      R"("jobset.sigs.k8s.io/jobset-name":"llama","jobset.sigs.k8s.io/restart-attempt":)";
  FakeServer server;
  server.answers[kPods] = {
      answer_of(200, R"({"items":[)" + pod_json("a", "Running", "n1", attempt + "\"0\"") + "," +
                         pod_json("b", "Succeeded", "n1", attempt + "\"0\"") + "," +
                         pod_json("c", "Running", "n2", attempt + "\"1\"") + R"(,{"metadata":7},"x"]})")};
  server.answers["DELETE"] = {answer_of(200)};
  const ActionResult result = server.carry_out(order_for_pods(OrderKind::kEndTasks));
  BOOST_TEST((result.state == ActionState::kDone), result.detail);
  const auto deleted = server.sent("DELETE", "/api/v1/namespaces/train/pods/a");
  BOOST_REQUIRE(deleted.size() == 1U);
  BOOST_TEST(Json::parse(deleted[0].body)["preconditions"]["uid"] == "u-a");
  BOOST_TEST(server.requests.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_list_goes_on_over_its_pages_and_begins_again_when_they_expire) {
  FakeServer server;
  server.answers[kPods] = {
      answer_of(200, R"({"metadata":{"continue":"t=1"},"items":[)" + pod_json("a", "Running", "n1") + "]}"),
      answer_of(410),
      answer_of(200, R"({"metadata":{"continue":"t=2"},"items":[)" + pod_json("a", "Running", "n2") + "]}"),
      answer_of(200, R"({"items":[)" + pod_json("b", "Running", "n3") + "]}")};
  const ActionResult result = server.carry_out(order_for_pods(OrderKind::kVerify));
  BOOST_TEST((result.state == ActionState::kDone), result.detail);
  BOOST_TEST(result.hosts == (std::vector<std::string>{"n2", "n3"}));
  BOOST_TEST(server.requests.back().path.find("&continue=t%3D2") != std::string::npos);
  server.answers[kPods] = {answer_of(410)};
  BOOST_TEST((server.carry_out(order_for_pods(OrderKind::kVerify)).state == ActionState::kFailed));
}

BOOST_AUTO_TEST_CASE(pods_of_another_object_of_the_name_are_left_alone) {
  FakeServer server;
  server.answers[kPods] = {answer_of(200, R"({"items":[)" + pod_json("a", "Running", "n1") + "]}")};
  for (const OrderKind kind : {OrderKind::kEndTasks, OrderKind::kVerify, OrderKind::kRunAgain}) {
    ActionOrder order = order_for_pods(kind);
    order.job.uid = "of-another";
    BOOST_TEST((server.carry_out(order).state == ActionState::kSuperseded));
    order.job.id = "train/../secrets";
    BOOST_TEST((server.carry_out(order).state == ActionState::kFailed));
  }
  BOOST_TEST(server.sent("DELETE", "/api/v1/namespaces/train/pods/a").empty());
}

BOOST_AUTO_TEST_CASE(a_job_that_waits_for_a_place_is_pending_and_one_without_pods_is_not_started) {
  FakeServer server;
  server.answers[kPods] = {answer_of(200, R"({"items":[)" + pod_json("a", "Pending", "") + "]}")};
  const ActionResult pending = server.carry_out(order_for_pods(OrderKind::kRunAgain));
  BOOST_TEST((pending.state == ActionState::kDone));
  BOOST_TEST(pending.hosts.empty());
  BOOST_TEST(pending.detail == "job train/llama: 0 of 1 pods run");
  server.answers[kPods] = {answer_of(200, R"({"items":[]})")};
  BOOST_TEST((server.carry_out(order_for_pods(OrderKind::kRunAgain)).state == ActionState::kFailed));
  server.answers[kPods] = {answer_of(200, R"({"items":[)" + pod_json("a", "Running", "n1") + "]}")};
  ActionOrder order = order_for_pods(OrderKind::kRunAgain);
  order.excluded = {"n1"};
  server.answers["GET /api/v1/nodes/n1"] = {answer_of(200, node_json(kOurTaint))};
  BOOST_TEST((server.carry_out(order).state == ActionState::kAmbiguous));
  server.answers["GET /api/v1/nodes/n1"] = {answer_of(200, node_json(kForeignTaint))};
  BOOST_TEST((server.carry_out(order).state == ActionState::kFailed));
}

BOOST_AUTO_TEST_CASE(a_lease_has_one_holder_and_expires_by_this_hosts_clock) {
  FakeServer server;
  constexpr const char* kLease = "/apis/coordination.k8s.io/v1/namespaces/culprit/leases";
  const std::string get = std::string("GET ") + kLease, put = std::string("PUT ") + kLease;
  const auto lease_of = [](const std::string& holder, const std::string& renewed) {
    return answer_of(200, R"({"metadata":{"resourceVersion":"9"},"spec":{"holderIdentity":")" + holder +
                              R"(","leaseDurationSeconds":15,"leaseTransitions":3,"renewTime":")" + renewed +
                              "\"}}");
  };
  LeaseName name;
  name.holder = "c1";
  Lease lease(name, server.call());
  server.answers[std::string("POST ") + kLease] = {answer_of(201)};
  BOOST_TEST(lease.hold(server.pace).held);  // there was none
  server.answers[get] = {lease_of("c2", "t1")};
  server.answers[put] = {answer_of(200)};
  BOOST_TEST(!lease.hold(server.pace).held);
  server.pace.now_ns += 10 * kNsPerSecond;
  server.answers[get] = {lease_of("c2", "t2")};  // renewed
  BOOST_TEST(!lease.hold(server.pace).held);
  server.pace.now_ns += 14 * kNsPerSecond;
  BOOST_TEST(!lease.hold(server.pace).held);
  server.pace.now_ns += kNsPerSecond;
  BOOST_TEST(lease.hold(server.pace).held);  // 15 s without a change
  const auto puts = server.sent("PUT", std::string(kLease) + "/culprit-controller");
  BOOST_REQUIRE(puts.size() == 1U);
  const Json written = Json::parse(puts[0].body);
  BOOST_TEST(written["metadata"]["resourceVersion"] == "9");
  BOOST_TEST(written["spec"]["leaseTransitions"] == 4);
  server.answers[get] = {no_answer(true)};
  server.pace.now_ns += 14 * kNsPerSecond;
  BOOST_TEST(lease.hold(server.pace).held);
  server.pace.now_ns += kNsPerSecond;
  BOOST_TEST(!lease.hold(server.pace).held);
  server.answers[get] = {lease_of("c1", "t3")};
  server.answers[put] = {answer_of(409)};  // another collector was faster
  BOOST_TEST(!lease.hold(server.pace).held);
}

BOOST_AUTO_TEST_CASE(one_gpu_is_isolated_by_a_rule_that_selects_it_alone) {
  const std::string api = "/apis/resource.k8s.io/v1beta2";
  const std::string slices =
      R"({"items":[7,{"spec":{"driver":"gpu.nvidia.com","pool":{"name":"n1"},"devices":[
    {"name":"gpu-0","attributes":{"uuid":{"string":"GPU-1"}}},{"name":"gpu-1","attributes":{
    "gpu.nvidia.com/uuid":{"string":"GPU-2"},"resource.kubernetes.io/pciBusID":{"string":"0000:9B:00.0"}}}]}}]})";
  FakeServer server;
  server.answers["GET /apis/resource.k8s.io"] = {answer_of(404)};
  server.answers["GET /apis/resource.k8s.io/v1beta2"] = {
      answer_of(200, R"({"resources":[{"name":"resourceslices"},{"name":"devicetaintrules"}]})")};
  server.answers["GET " + api + "/resourceslices"] = {answer_of(200, slices)};
  server.answers["POST " + api + "/devicetaintrules"] = {answer_of(201)};
  for (const char* device : {"GPU-2", "0000:9b:00.0"}) {
    server.requests.clear();
    ActionOrder order = order_for(OrderKind::kIsolate);
    order.device = device;
    BOOST_TEST((server.carry_out(order).state == ActionState::kDone));
    const auto sent = server.sent("POST", api + "/devicetaintrules");
    BOOST_REQUIRE(sent.size() == 1U);
    const Json rule = Json::parse(sent[0].body);
    BOOST_TEST(rule["metadata"]["name"] == "culprit-d-0001");
    BOOST_TEST(rule["spec"]["deviceSelector"].dump() ==
               R"({"device":"gpu-1","driver":"gpu.nvidia.com","pool":"n1"})");
    BOOST_TEST(rule["spec"]["taint"]["value"] == "d-0001");
  }
  ActionOrder order = order_for(OrderKind::kIsolate);
  order.device = "GPU-3";  // no driver publishes it: a rule without a selector would be for all devices
  BOOST_TEST((server.carry_out(order).state == ActionState::kFailed));
  order.device = "GPU-1";
  server.answers["POST " + api + "/devicetaintrules"] = {answer_of(409)};
  const auto rule_of = [](const char* decision) {
    return answer_of(
        200, std::string(R"({"metadata":{"uid":"u"},"spec":{"taint":{"key":"culprit.dev/isolated",)") +
                 R"("value":")" + decision + "\"}}}");
  };
  server.answers["GET " + api + "/devicetaintrules/culprit-d-0001"] = {rule_of("d-0001")};
  BOOST_TEST((server.carry_out(order).state == ActionState::kDone));  // written before
  order.kind = OrderKind::kReturn;
  server.answers["DELETE " + api + "/devicetaintrules/culprit-d-0001"] = {answer_of(200)};
  BOOST_TEST((server.carry_out(order).state == ActionState::kDone));
  server.answers["GET " + api + "/devicetaintrules/culprit-d-0001"] = {rule_of("d-0002")};
  BOOST_TEST((server.carry_out(order).state == ActionState::kSuperseded));
  server.answers["GET /apis/resource.k8s.io/v1beta2"] = {answer_of(404)};
  BOOST_TEST((server.carry_out(order).state == ActionState::kFailed));  // no such API
}

BOOST_AUTO_TEST_CASE(a_pod_finds_its_server_in_the_environment) {
  std::map<std::string, std::string, std::less<>> set{{"KUBERNETES_SERVICE_HOST", "fd00::1"},
                                                      {"KUBERNETES_SERVICE_PORT", "443"}};
  const auto variable = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
  const auto access = pod_access(variable, "/sa");
  BOOST_REQUIRE(access);
  BOOST_TEST(access->server == "https://[fd00::1]:443");
  BOOST_TEST(access->token_file == "/sa/token");
  set.clear();
  BOOST_TEST(!pod_access(variable));
}

BOOST_AUTO_TEST_CASE(pods_that_were_made_on_an_excluded_node_before_its_taint_are_made_again) {
  FakeServer server;
  server.answers["GET /api/v1/nodes/n1"] = {answer_of(200, node_json(kOurTaint))};
  const std::string labels = R"("job-name":"llama")";
  const auto both = [&](const std::string& names, const std::string& node) {
    return answer_of(200, R"({"items":[)" + pod_json(names + "0", "Running", node, labels) + "," +
                              pod_json(names + "1", "Running", "n3", labels) + "]}");
  };
  for (const char* label : {"job-name", "batch.kubernetes.io%2Fjob-name"})
    server.answers[kPods + "?labelSelector=" + label] = {both("old", "n1"), both("new", "n2")};
  server.answers[kPods] = {answer_of(200, R"({"items":[]})")};
  server.answers["DELETE /api/v1/namespaces/train/pods/"] = {answer_of(200)};
  ActionOrder order = order_for_pods(OrderKind::kRunAgain);
  order.excluded = {"n1"};
  const ActionResult result = server.carry_out(order);
  BOOST_TEST((result.state == ActionState::kDone), result.detail);
  const std::vector<std::string> hosts{"n2", "n3"};
  BOOST_TEST(result.hosts == hosts, boost::test_tools::per_element());
  BOOST_TEST(server.sent("DELETE", "/api/v1/namespaces/train/pods/old0").size() == 1U);
  BOOST_TEST(server.sent("DELETE", "/api/v1/namespaces/train/pods/old1").size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
