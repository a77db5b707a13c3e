#include "respond/kubernetes/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "respond/kubernetes/backend.h"

namespace culprit::respond::kubernetes {
namespace {

std::string dumped(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

const Json& taints_of(const Json& node) { return member(node, {"spec", "taints"}); }

constexpr std::string_view kAttemptLabel = "jobset.sigs.k8s.io/restart-attempt";
constexpr std::string_view kJobSetUid = "jobset.sigs.k8s.io/jobset-uid";

// The workload by the outermost label. A JobSet owns Jobs, and an MPIJob a Job of its launcher: the pod's
// owner is not the workload there.
void parse_workload(const Json& object, Pod& out) {
  const Json& labels = member(object, {"metadata", "labels"});
  std::string_view by;
  for (const std::string_view label : kNameLabels)
    if (out.workload = text_of(labels, {label}); !out.workload.empty()) {
      by = label;
      break;
    }
  if (by == kNameLabels[0]) {
    out.workload_uid = text_of(labels, {kJobSetUid});
    return;
  }
  for (const Json& owner : member(object, {"metadata", "ownerReferences"})) {
    const Json& controls = member(owner, {"controller"});
    const bool is_other = by == kNameLabels[1] && text_of(owner, {"kind"}) == "Job";
    if (controls.is_boolean() && controls.get<bool>() && !is_other)
      out.workload_uid = text_of(owner, {"uid"});
  }
}

void parse_containers(const Json& status, Pod& out) {
  for (const Json& container : member(status, {"containerStatuses"})) {
    const Json& count = member(container, {"restartCount"});
    if (count.is_number_unsigned())
      out.container_restarts =
          std::max(out.container_restarts,
                   static_cast<uint32_t>(std::min<uint64_t>(count.get<uint64_t>(), UINT32_MAX)));
    if (out.wait.empty()) out.wait = text_of(container, {"state", "waiting", "reason"});
  }
}

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

bool has_standby_taint(const Json& node) {
  return std::ranges::any_of(taints_of(node),
                             [](const Json& taint) { return text_of(taint, {"key"}) == kStandbyKey; });
}

bool is_standby(const Json& node) {
  return text_of(node, {"metadata", "labels", kStandbyKey}) == "true" && has_standby_taint(node);
}

std::string standby_patch(const Json& node, bool spare) {
  Json taints = Json::array();
  for (const Json& taint : taints_of(node))
    if (text_of(taint, {"key"}) != kStandbyKey) taints.push_back(taint);
  if (spare) taints.push_back({{"key", kStandbyKey}, {"effect", "NoSchedule"}});
  return dumped({{"metadata",
                  {{"resourceVersion", text_of(node, {"metadata", "resourceVersion"})},
                   {"labels", {{std::string(kStandbyKey), spare ? Json("true") : Json()}}}}},
                 {"spec", {{"taints", std::move(taints)}}}});
}

bool selects(std::string_view term, const Json& labels) {
  if (term.empty()) return true;
  const size_t equals = term.find('=');
  const Json& value = member(labels, {term.substr(0, equals)});
  if (equals == term.npos) return !value.is_null();
  return value.is_string() && value.get<std::string>() == term.substr(equals + 1);
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
  out.space = text_of(object, {"metadata", "namespace"});
  out.name = text_of(object, {"metadata", "name"});
  out.uid = text_of(object, {"metadata", "uid"});
  if (out.name.empty() || out.uid.empty()) return std::nullopt;
  out.node = text_of(object, {"spec", "nodeName"});
  out.phase = text_of(object, {"status", "phase"});
  out.ends = !text_of(object, {"metadata", "deletionTimestamp"}).empty();
  const Json& labels = member(object, {"metadata", "labels"});
  out.created_ns = parse_time(text_of(object, {"metadata", "creationTimestamp"}));
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
  parse_workload(object, out);
  const bool outer = !text_of(labels, {kNameLabels[0]}).empty() || !text_of(labels, {kNameLabels[1]}).empty();
  out.is_nested = outer && out.workload_uid.empty();
  const Json& status = member(object, {"status"});
  parse_containers(status, out);
  out.end = text_of(status, {"reason"});
  for (const Json& condition : member(status, {"conditions"})) {
    const std::string type = text_of(condition, {"type"}), is = text_of(condition, {"status"});
    if (type == "PodScheduled" && is == "False") out.wait = text_of(condition, {"reason"});
    if (type == "DisruptionTarget" && is == "True") out.end = text_of(condition, {"reason"});
  }
  if (out.wait.empty() && out.phase == "Pending") out.wait = "Pending";
  return out;
}

TimeNs parse_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() <= kForm.size() || !text.ends_with('Z')) return kNoTime;
  std::array<int64_t, 6> parts{};
  size_t part = 0;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (is_digit != (kForm[i] == '0') || (!is_digit && text[i] != kForm[i])) return kNoTime;
    if (is_digit)
      parts[part] = parts[part] * 10 + (text[i] - '0');
    else
      ++part;
  }
  if (parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31) return kNoTime;
  if (parts[0] < 1970 || parts[0] > 2200) return kNoTime;
  const int64_t days =
      days_from_civil(parts[0], static_cast<unsigned>(parts[1]), static_cast<unsigned>(parts[2]));
  return (days * 86400 + parts[3] * 3600 + parts[4] * 60 + parts[5]) * kNsPerSecond;
}

std::string delete_body(const std::string& uid, bool dry_run) {
  Json out = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}};
  if (dry_run) out["dryRun"] = Json::array({"All"});
  return dumped(out);
}

}  // namespace culprit::respond::kubernetes
