// The steps of one order at Kubernetes; see backend.h. One use each.
#pragma once

#include <string>
#include <vector>

#include "model/recovery.h"
#include "respond/kubernetes/backend.h"
#include "respond/kubernetes/objects.h"

namespace culprit::respond::kubernetes {

// What all orders share.
class Steps {
 public:
  // Borrows all.
  Steps(const ActionOrder& order, const KubernetesOptions& options, Pace& pace)
      : order_(order), options_(options), pace_(pace) {}

 protected:
  ActionResult result(ActionState state, std::string detail) const;
  // `path` with ?dryRun=All in observe mode.
  std::string to_write(std::string path) const;
  ApiAnswer call(std::string method, std::string path, std::string body = {}) const;
  ApiAnswer patch(std::string path, std::string_view how, std::string body) const;
  // The parsed object of the answer; null: not one.
  static Json object_of(const ApiAnswer& answer);

  const ActionOrder& order_;
  const KubernetesOptions& options_;
  Pace& pace_;
};

// kIsolate and kReturn.
class NodeSteps : Steps {
 public:
  using Steps::Steps;
  ActionResult isolate() { return change(true); }
  ActionResult give_back() { return change(false); }

 private:
  ActionResult change(bool isolate);
  // What the node says already; nullopt: to be written.
  std::optional<ActionResult> settled(const Json& node, bool isolate) const;
  // After a patch without an answer: reads whether it arrived.
  ActionResult read_back(bool isolate, const ApiAnswer& answer) const;
  // Shows it to people: condition and event. Their failure is a remark on the result.
  ActionResult shown(ActionResult done, const Json& node, bool isolate) const;
  std::string node_path() const;
};

// kIsolate and kReturn of one GPU, by a DeviceTaintRule (dynamic resource allocation).
class DeviceSteps : Steps {
 public:
  using Steps::Steps;
  ActionResult isolate();
  ActionResult give_back();

 private:
  // "/apis/resource.k8s.io/v1beta2", if the server has these rules there. An error is the result to give.
  tl::expected<std::string, ActionResult> rules();
  // {driver, pool, device} of the order's device, from the slices that drivers publish.
  tl::expected<Json, ActionResult> selector(const std::string& api);
  std::string rule_name() const;
};

// kEndTasks, kRunAgain and kVerify.
class PodSteps : Steps {
 public:
  using Steps::Steps;
  ActionResult end_tasks();
  ActionResult run_again();
  ActionResult verify();

 private:
  // All pods of the job, also ended ones. An error is the result to give.
  tl::expected<std::vector<Pod>, ActionResult> pods();
  tl::expected<std::vector<Pod>, ActionResult> list(const std::string& selector);
  std::optional<ActionResult> check_excluded() const;
  bool is_excluded(const Pod& pod) const;
  std::optional<ActionResult> move_away(const std::vector<Pod>& pods) const;
  // kDone: all active pods run, away from the excluded; else why not.
  ActionResult judge(const std::vector<Pod>& pods) const;
  // Hands a spare over while pods of the job find no node. True: it did now.
  bool get_spare(const std::vector<Pod>& pods);

  std::string namespace_, workload_;
  std::vector<std::string> spares_;  // handed over
  size_t spares_unclear_ = 0;        // may have been
  TimeNs spares_ns_ = kNoTime;       // when last asked for
  bool split_id();
};

}  // namespace culprit::respond::kubernetes
