// Reads jobs and nodes of a Kubernetes cluster, as the controller needs them: the pods that a Job, JobSet,
// TrainJob, PyTorchJob or MPIJob owns, and the nodes. It reads no workload object.
//
//   A job: "NAMESPACE/NAME" of the workload, with its UID where its pods say it. Its other names, as agents
//   know it: "NAMESPACE_NAME", and "pod-UID" of each pod.
//   Attempt: JobSet's label restart-attempt. Of others the attempts are counted: all pods are others than
//   before, and those did not all succeed; or a container started again. After a restart of the collector
//   the count goes on from the ledger: load().
//   Running: all active pods run, or did before and some still do. Pods that were deleted, and none came
//   within kDeletedNs: cancelled.
//   A node is out: cordoned, not ready, with our taint, or one of Kubernetes' own. Other taints say which
//   pods a node is for.
//
// Lists are read from the store, not from the server's cache, and a watch is not used: either may show a node
// from before our own taint, which would look as if a person had removed it.
//
// Blocking; one thread at a time. While the server is busy, look() gives an error without a request until
// Retry-After, or until a wait that doubles, is over.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/recovery_ledger.h"
#include "respond/kubernetes/api.h"
#include "respond/kubernetes/listing.h"
#include "respond/kubernetes/objects.h"
#include "respond/scheduler_view.h"

namespace culprit::respond::kubernetes {

struct LookOptions {
  ApiCall call;
  std::string space;                          // namespace of the jobs; empty: all
  TimeNs nodes_every_ns = 15 * kNsPerSecond;  // a node has some 20 KB
  std::string spares_selector = {};           // label of nodes that may be spares; empty: all
};

class KubernetesLook {
 public:
  static constexpr TimeNs kDeletedNs = 60 * kNsPerSecond;
  static constexpr size_t kPodsMost = 50'000, kNodesMost = 20'000;

  // Borrows `pace`.
  KubernetesLook(LookOptions options, Pace& pace) : options_(std::move(options)), pace_(pace) {}
  // An attempt of the ledger, before the first look.
  void load(const AttemptRecord& row);
  // An error if the server does not answer, or refuses: then nothing is known.
  Result<SchedulerView> look();
  // The next look reads the nodes as well.
  void renew_nodes() { nodes_read_ns_ = kNoTime; }

 private:
  struct Known {
    ScheduledJob job;
    std::set<std::string> pods;  // UIDs of this attempt's
    std::set<std::string> hosts;
    uint32_t container_restarts = 0;
    bool ran = false;           // this attempt
    bool has_ended = false;     // as last shown
    TimeNs after_ns = kNoTime;  // from the ledger: pods created later are of the next attempt
    TimeNs vanished_ns = kNoTime;
    void begin(uint32_t restarts);
  };
  struct Group {
    std::string uid;
    std::vector<Pod> pods;
  };
  Result<std::map<std::string, Group>> read_groups();
  Status read_nodes();
  // Notes when the server may be asked again.
  Error noted(std::string_view what, const ListFailure& failure);
  SeenJob seen(const std::string& id, Group& group);
  static void count_attempt(Known& known, const std::vector<Pod>& pods);
  static SeenJob shown(const std::string& id, const Known& known);
  void add_vanished(SchedulerView& view, const std::map<std::string, Group>& groups);
  void add_hosts(SchedulerView& view) const;

  const LookOptions options_;
  Pace& pace_;
  std::map<std::string, Known> jobs_;  // by id
  std::vector<SeenHost> nodes_;
  TimeNs nodes_read_ns_ = kNoTime, nodes_read_wall_ns_ = kNoTime;  // when the reading began, by both clocks
  TimeNs wait_until_ns_ = kNoTime, wait_ns_ = 0;                   // monotonic
  std::string waits_for_;
};

// One node; for tests.
SeenHost parse_node(const Json& object);

}  // namespace culprit::respond::kubernetes
