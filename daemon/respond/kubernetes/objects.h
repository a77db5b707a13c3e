// What is read of Kubernetes objects, and the bodies of writes. Objects come from a server: a member that is
// missing or of another type reads as null or empty. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/recovery.h"

namespace culprit::respond::kubernetes {

using Json = nlohmann::json;

// Members by name, one below the other; null where one is missing.
const Json& member(const Json& object, std::initializer_list<std::string_view> path);
std::string text_of(const Json& object, std::initializer_list<std::string_view> path);

// Value of our taint on the node: the decision. nullopt: there is none.
std::optional<std::string> own_taint(const Json& node);
// Whether the node's version and list of taints can be written back.
bool has_taint_list(const Json& node);
// Merge patch of all taints that are there but ours, and ours with this decision; empty: without.
std::string taint_patch(const Json& node, std::string_view decision, std::string_view effect);

// The label and the taint of a node in the pool of spares.
inline constexpr std::string_view kStandbyKey = "culprit.dev/standby";
// Whether the node has both: one alone is another writer's.
bool is_standby(const Json& node);
bool has_standby_taint(const Json& node);
// Merge patch that adds both, or removes them; other taints stay.
std::string standby_patch(const Json& node, bool spare);
// Whether the labels have KEY=VALUE, or KEY with any value; an empty term selects all.
bool selects(std::string_view term, const Json& labels);

// Strategic merge patch of the node's status: our condition alone. The transition time is of `node` where the
// status is the same.
struct Condition {
  bool is_fault = false;
  std::string reason;  // one word
  std::string message;
};
std::string condition_patch(const Json& node, const Condition& condition, std::string_view now);

struct NodeEvent {
  std::string name;  // of the Event
  std::string node, reason, message, host;
  bool is_warning = false;
  std::string now;
};
std::string event_body(const NodeEvent& event);
// Merge patch for a repeated event.
std::string event_patch(uint64_t count, std::string_view now);

// A reason of a condition or event: letters and digits of the code.
std::string reason_word(std::string_view code);

struct Pod {
  std::string space, name, uid, node, phase;
  std::optional<uint32_t> attempt;  // label of JobSet
  bool ends = false;                // deleted, and within its grace period
  std::vector<std::string> owners;  // UIDs by labels and owner references
  bool is_nested = false;           // of a workload that its UIDs do not name: those are of a Job in between
  TimeNs created_ns = kNoTime;
  std::string workload;      // name of the JobSet, PyTorchJob, MPIJob or Job that it is of; empty: of none
  std::string workload_uid;  // empty: the pod does not say
  uint32_t container_restarts = 0;  // the largest of its containers
  std::string wait;  // why it does not run: "Unschedulable", "CrashLoopBackOff"; empty: it does
  std::string end;   // why it failed: "Evicted", "PreemptionByScheduler"; empty: its own fault

  bool is_active() const { return !ends && phase != "Succeeded" && phase != "Failed"; }
};
std::optional<Pod> parse_pod(const Json& object);
// "2026-11-29T19:00:00Z" and with a fraction; kNoTime: another form.
TimeNs parse_time(std::string_view text);

// What the controllers write on their pods, the outermost first: JobSet and TrainJob, PyTorchJob and MPIJob,
// Job since 1.27, Job.
inline constexpr std::string_view kNameLabels[] = {"jobset.sigs.k8s.io/jobset-name",
                                                   "training.kubeflow.org/job-name",
                                                   "batch.kubernetes.io/job-name", "job-name"};

// DeleteOptions. A server that gets them ignores ?dryRun=All.
std::string delete_body(const std::string& uid, bool dry_run);

}  // namespace culprit::respond::kubernetes
