// Tells which job a pod's log is of, from the pod's object or from the path of its log alone. All of it but
// the namespace is the choice of who made the pod, so a job's name begins with the namespace: a pod speaks
// for jobs of its own namespace only. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "respond/kubernetes/objects.h"

namespace culprit::respond::kubernetes {

// "NAMESPACE_POD_UID", the folder of a pod's logs, which the kubelet makes. Of a static pod the UID is 32
// digits.
struct PodFolder {
  std::string_view space, name, uid;
};
std::optional<PodFolder> parse_pod_folder(std::string_view folder);

struct PodJob {
  std::string workload;   // name of the workload, or of a pod that has none
  bool computes = false;  // it asks for an accelerator
  bool ends = false;      // its controller runs it to an end, so it is no service and no agent of the node
  std::string uid;        // as in PodFolder: of a static pod the hash of its file
};
// nullopt: no pod. Labels of the operators, the outermost first: JobSet and TrainJob, PyTorchJob and MPIJob,
// LeaderWorkerSet, Volcano, RayCluster, Job; else the controlling owner; else Kueue's group of pods; else the
// pod itself.
std::optional<PodJob> parse_pod_job(const Json& object);

// The workload's name by the names that its controller gives pods: "llama" of llama-x7zq2, llama-0-x7zq2,
// llama-workers-0-3-x7zq2, llama-worker-3. A guess: a workload may have such an end itself.
std::string workload_of_pod_name(std::string_view name);

// "NAMESPACE_WORKLOAD", culprit's id of the job.
std::string job_id(std::string_view space, std::string_view workload);

}  // namespace culprit::respond::kubernetes
