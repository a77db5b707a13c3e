#include "respond/kubernetes/objects.h"

#include <fmt/format.h>

#include <charconv>

#include "respond/kubernetes/backend.h"

namespace culprit::respond::kubernetes {
namespace {

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

const Json& taints_of(const Json& node) { return member(node, {"spec", "taints"}); }

constexpr std::string_view kAttemptLabel = "jobset.sigs.k8s.io/restart-attempt";
constexpr std::string_view kJobSetLabel = "jobset.sigs.k8s.io/jobset-name";

}  // namespace

const Json& member(const Json& object, std::initializer_list<std::string_view> path) {
  static const Json kNone;
  const Json* at = &object;
  for (const std::string_view name : path) {
    if (!at->is_object()) return kNone;
    const auto found = at->find(name);
    if (found == at->end()) return kNone;
    at = &*found;
  }
  return *at;
}

std::string text_of(const Json& object, std::initializer_list<std::string_view> path) {
  const Json& found = member(object, path);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::optional<std::string> own_taint(const Json& node) {
  for (const Json& taint : taints_of(node))
    if (text_of(taint, {"key"}) == kTaintKey) return text_of(taint, {"value"});
  return std::nullopt;
}

bool has_taint_list(const Json& node) {
  const Json& taints = taints_of(node);
  return !text_of(node, {"metadata", "resourceVersion"}).empty() && (taints.is_null() || taints.is_array());
}

std::string taint_patch(const Json& node, std::string_view decision, std::string_view effect) {
  Json taints = Json::array();
  for (const Json& taint : taints_of(node))
    if (text_of(taint, {"key"}) != kTaintKey) taints.push_back(taint);
  if (!decision.empty()) taints.push_back({{"key", kTaintKey}, {"value", decision}, {"effect", effect}});
  return dumped({{"metadata", {{"resourceVersion", text_of(node, {"metadata", "resourceVersion"})}}},
                 {"spec", {{"taints", std::move(taints)}}}});
}

std::string condition_patch(const Json& node, const Condition& condition, std::string_view now) {
  const std::string_view status = condition.is_fault ? "True" : "False";
  std::string since(now);
  for (const Json& one : member(node, {"status", "conditions"}))
    if (text_of(one, {"type"}) == kConditionType && text_of(one, {"status"}) == status)
      if (std::string known = text_of(one, {"lastTransitionTime"}); !known.empty()) since = std::move(known);
  return dumped({{"status",
                  {{"conditions", Json::array({{{"type", kConditionType},
                                                {"status", status},
                                                {"reason", condition.reason},
                                                {"message", condition.message},
                                                {"lastHeartbeatTime", now},
                                                {"lastTransitionTime", since}}})}}}});
}

std::string event_body(const NodeEvent& event) {
  return dumped(
      {{"apiVersion", "v1"},
       {"kind", "Event"},
       {"metadata", {{"name", event.name}, {"namespace", "default"}}},
       // A kubelet's events of its node have the node's name as UID, and `kubectl describe` looks for it.
       {"involvedObject", {{"kind", "Node"}, {"name", event.node}, {"uid", event.node}}},
       {"reason", event.reason},
       {"message", event.message},
       {"type", event.is_warning ? "Warning" : "Normal"},
       {"source", {{"component", "culprit"}, {"host", event.host}}},
       {"firstTimestamp", event.now},
       {"lastTimestamp", event.now},
       {"count", 1}});
}

std::string event_patch(uint64_t count, std::string_view now) {
  return dumped({{"count", count}, {"lastTimestamp", now}});
}

std::string reason_word(std::string_view code) {
  std::string out;
  for (const char c : code)
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) out += c;
  const bool letter = !out.empty() && (out[0] < '0' || out[0] > '9');
  return letter ? out : "Fault" + out;
}

std::optional<Pod> parse_pod(const Json& object) {
  Pod out;
  out.name = text_of(object, {"metadata", "name"});
  out.uid = text_of(object, {"metadata", "uid"});
  if (out.name.empty() || out.uid.empty()) return std::nullopt;
  out.node = text_of(object, {"spec", "nodeName"});
  out.phase = text_of(object, {"status", "phase"});
  out.ends = !text_of(object, {"metadata", "deletionTimestamp"}).empty();
  const Json& labels = member(object, {"metadata", "labels"});
  out.by_jobset = !text_of(labels, {kJobSetLabel}).empty();
  if (const std::string attempt = text_of(labels, {kAttemptLabel}); !attempt.empty()) {
    uint32_t number = 0;
    if (std::from_chars(attempt.data(), attempt.data() + attempt.size(), number).ec == std::errc())
      out.attempt = number;
  }
  for (const std::string_view label :
       {"controller-uid", "batch.kubernetes.io/controller-uid", "jobset.sigs.k8s.io/jobset-uid"})
    if (std::string uid = text_of(labels, {label}); !uid.empty()) out.owners.push_back(std::move(uid));
  for (const Json& owner : member(object, {"metadata", "ownerReferences"}))
    if (std::string uid = text_of(owner, {"uid"}); !uid.empty()) out.owners.push_back(std::move(uid));
  return out;
}

std::string delete_body(const std::string& uid, bool dry_run) {
  Json out = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}};
  if (dry_run) out["dryRun"] = Json::array({"All"});
  return dumped(out);
}

}  // namespace culprit::respond::kubernetes
