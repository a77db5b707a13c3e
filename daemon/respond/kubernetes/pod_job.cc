#include "respond/kubernetes/pod_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace culprit::respond::kubernetes {
namespace {

constexpr size_t kNameMost = 253;  // of an object
constexpr size_t kUidLeast = 32, kUidMost = 36;

// The outermost first. A LeaderWorkerSet's and a RayCluster's pods have owners in between, as a JobSet's.
constexpr std::string_view kWorkloadLabels[] = {"jobset.sigs.k8s.io/jobset-name",
                                                "training.kubeflow.org/job-name",
                                                "leaderworkerset.sigs.k8s.io/name",
                                                "volcano.sh/job-name",
                                                "ray.io/cluster",
                                                "batch.kubernetes.io/job-name",
                                                "job-name"};
constexpr std::string_view kPodGroup = "kueue.x-k8s.io/pod-group-name";

// Controllers of services and of a node's own pods.
constexpr std::string_view kServices[] = {"ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet",
                                          "Node"};

// Beginnings of the resources of accelerators: nvidia.com/gpu, nvidia.com/mig-1g.5gb, gpu.intel.com/i915.
constexpr std::string_view kAccelerators[] = {
    "nvidia.com/",    "amd.com/gpu",           "google.com/tpu", "habana.ai/gaudi",
    "gpu.intel.com/", "aws.amazon.com/neuron", "huawei.com/",    "cloud-tpus.google.com/"};

// RFC 1123, as the API server checks names of objects. A label's value may hold more.
bool is_object_name(std::string_view text) {
  const auto fits = [](char c) { return digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.'; };
  const auto ends = [](char c) { return c != '-' && c != '.'; };
  return !text.empty() && text.size() <= kNameMost && std::ranges::all_of(text, fits) && ends(text.front()) &&
         ends(text.back());
}

bool is_uid(std::string_view text) {
  return text.size() >= kUidLeast && text.size() <= kUidMost &&
         std::ranges::all_of(text, [](char c) { return (hex_value(c) >= 0 && !upper(c)) || c == '-'; });
}

bool asks(const Json& resources) {
  for (const char* part : {"limits", "requests"}) {
    const Json& list = member(resources, {part});
    if (!list.is_object()) continue;
    for (const auto& [name, amount] : list.items())
      if (std::ranges::any_of(kAccelerators,
                              [&](std::string_view known) { return name.starts_with(known); }) &&
          amount != "0" && amount != 0)
        return true;
  }
  return false;
}

// A claim is of a device, by dynamic resource allocation.
bool computes(const Json& spec) {
  const Json& claims = member(spec, {"resourceClaims"});
  if (claims.is_array() && !claims.empty()) return true;
  for (const char* list : {"containers", "initContainers"})
    for (const Json& container : member(spec, {list}))
      if (asks(member(container, {"resources"}))) return true;
  return false;
}

// The letters of a name that a controller makes up.
bool is_generated(std::string_view part) {
  return part.size() == 5 && std::ranges::all_of(part, [](char c) {
           return std::string_view("bcdfghjklmnpqrstvwxz2456789").find(c) != std::string_view::npos;
         });
}

bool is_role(std::string_view part) {
  constexpr std::string_view kRoles[] = {"master", "worker", "workers", "launcher", "leader", "chief", "ps",
                                         "node",   "driver", "head",    "trainer",  "task",   "server"};
  return std::ranges::find(kRoles, part) != std::end(kRoles);
}

}  // namespace

std::optional<PodFolder> parse_pod_folder(std::string_view folder) {
  const size_t first = folder.find('_');
  const size_t last = folder.rfind('_');
  if (first == folder.npos || last == first) return std::nullopt;
  const PodFolder out{folder.substr(0, first), folder.substr(first + 1, last - first - 1),
                      folder.substr(last + 1)};
  if (!is_object_name(out.space) || !is_object_name(out.name) || !is_uid(out.uid)) return std::nullopt;
  return out;
}

std::optional<PodJob> parse_pod_job(const Json& object) {
  PodJob out;
  const std::string name = text_of(object, {"metadata", "name"});
  const std::string hash = text_of(object, {"metadata", "annotations", "kubernetes.io/config.hash"});
  out.uid = hash.empty() ? text_of(object, {"metadata", "uid"}) : hash;
  if (!is_object_name(name) || !is_uid(out.uid)) return std::nullopt;
  out.computes = computes(member(object, {"spec"}));
  const Json& labels = member(object, {"metadata", "labels"});
  for (const std::string_view label : kWorkloadLabels)
    if (std::string found = text_of(labels, {label}); is_object_name(found)) {
      out.workload = std::move(found);
      out.ends = true;
      return out;
    }
  for (const Json& owner : member(object, {"metadata", "ownerReferences"})) {
    const Json& controls = member(owner, {"controller"});
    if (!controls.is_boolean() || !controls.get<bool>()) continue;
    const std::string kind = text_of(owner, {"kind"});
    out.workload = text_of(owner, {"name"});
    out.ends = std::ranges::find(kServices, kind) == std::end(kServices);
    if (is_object_name(out.workload)) return out;
  }
  const std::string group = text_of(labels, {kPodGroup});
  out.workload = is_object_name(group) ? group : name;
  out.ends = true;
  return out;
}

std::string workload_of_pod_name(std::string_view name) {
  const auto last = [&] {
    const size_t dash = name.rfind('-');
    return dash == name.npos || dash == 0 ? std::string_view() : name.substr(dash + 1);
  };
  const auto drop = [&](std::string_view part) { name.remove_suffix(part.size() + 1); };
  if (is_generated(last())) drop(last());
  while (all_digits(last())) drop(last());
  if (is_role(last())) drop(last());
  return std::string(name);
}

std::string job_id(std::string_view space, std::string_view workload) {
  return fmt::format("{}_{}", space, workload);
}

}  // namespace culprit::respond::kubernetes
