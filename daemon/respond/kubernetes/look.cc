#include "respond/kubernetes/look.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "respond/kubernetes/backend.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {
namespace {

using State = SeenJob::State;

// One of each pod's labels; no pod is in two of the lists.
constexpr std::string_view kSelectors[] = {
    "job-name", "batch.kubernetes.io/job-name,!job-name",
    "training.kubeflow.org/job-name,!job-name,!batch.kubernetes.io/job-name",
    "jobset.sigs.k8s.io/jobset-name,!job-name,!batch.kubernetes.io/job-name"};

constexpr TimeNs kFirstBackoff = kNsPerSecond, kLongestBackoff = 60 * kNsPerSecond;
constexpr TimeNs kForgetNs = 24 * 3600 * kNsPerSecond;

// Taints of Kubernetes and of its autoscalers that say a node takes no work at all.
constexpr std::string_view kClosed[] = {"node.kubernetes.io/",      "node.cloudprovider.kubernetes.io/",
                                        "node-role.kubernetes.io/", "ToBeDeletedByClusterAutoscaler",
                                        "karpenter.sh/disrupted",   "karpenter.sh/disruption"};

bool closes(const Json& taint) {
  const std::string key = text_of(taint, {"key"}), effect = text_of(taint, {"effect"});
  if (key == kTaintKey) return true;
  return effect != "PreferNoSchedule" &&
         std::ranges::any_of(kClosed, [&](std::string_view begin) { return key.starts_with(begin); });
}

// `reason` of a failed pod or of its DisruptionTarget.
State state_of_end(std::string_view reason) {
  constexpr std::pair<std::string_view, State> kReasons[] = {
      {"DeadlineExceeded", State::kTimeLimit},
      {"Evicted", State::kPreempted},
      {"Preempting", State::kPreempted},
      {"PreemptionByScheduler", State::kPreempted},
      {"EvictionByEvictionAPI", State::kPreempted},
      {"TerminationByKubelet", State::kPreempted},
      {"DeletionByTaintManager", State::kPreempted},
      {"Terminated", State::kPreempted},  // the node shuts down
      {"NodeShutdown", State::kPreempted},
      {"NodeLost", State::kNodeFailed},
      {"DeletionByPodGC", State::kNodeFailed},
  };
  for (const auto& [known, state] : kReasons)
    if (reason == known) return state;
  return State::kFailed;
}

// How an attempt without active pods ended. One pod that was taken away makes the others fail.
std::pair<State, std::string> end_of(const std::vector<const Pod*>& pods) {
  bool failed = false;
  std::pair<State, std::string> out{State::kCompleted, "Succeeded"};
  for (const Pod* pod : pods) {
    if (pod->phase != "Failed") continue;
    const State state = state_of_end(pod->end);
    if (!failed || out.first == State::kFailed || state == State::kNodeFailed)
      out = {state, pod->end.empty() ? "Failed" : pod->end};
    failed = true;
  }
  return out;
}

}  // namespace

SeenHost parse_node(const Json& object) {
  SeenHost out;
  out.host = text_of(object, {"metadata", "name"});
  const Json& cordon = member(object, {"spec", "unschedulable"});
  bool ready = false;
  for (const Json& condition : member(object, {"status", "conditions"}))
    if (text_of(condition, {"type"}) == "Ready") ready = text_of(condition, {"status"}) == "True";
  out.out = !ready || (cordon.is_boolean() && cordon.get<bool>());
  for (const Json& taint : member(object, {"spec", "taints"})) out.out = out.out || closes(taint);
  out.op = own_taint(object).value_or("");
  out.spare = is_standby(object);
  for (const Json& condition : member(object, {"status", "conditions"}))
    if (text_of(condition, {"type"}) == kConditionType && text_of(condition, {"reason"}) == kReturnedReason)
      out.returned_ns = parse_time(text_of(condition, {"lastTransitionTime"}));
  return out;
}

void KubernetesLook::Known::begin(uint32_t restarts) {
  job.restarts = restarts;
  pods.clear();
  hosts.clear();
  container_restarts = 0;
  ran = false;
}

void KubernetesLook::load(const AttemptRecord& row) {
  if (row.closed || row.job.scheduler != "kubernetes") return;
  Known& known = jobs_[row.job.id];
  if (known.job.id == row.job.id && known.job.restarts > row.job.restarts) return;
  known.job = row.job;
  known.hosts = {row.hosts.begin(), row.hosts.end()};
  known.ran = row.end_ns == kNoTime;
  known.has_ended = !known.ran;
  known.after_ns = known.ran ? row.begin_ns : row.end_ns;
}

Error KubernetesLook::noted(std::string_view what, const ListFailure& failure) {
  if (failure.busy) {
    wait_ns_ = wait_ns_ == 0 ? kFirstBackoff : std::min(2 * wait_ns_, kLongestBackoff);
    const TimeNs asked = std::clamp<TimeNs>(failure.retry_after_ns.value_or(wait_ns_), 0, kLongestBackoff);
    wait_until_ns_ = pace_.now() + asked;
  }
  waits_for_ = fmt::format("{}: {}", what, failure.text);
  return {ErrorCode::kIo, waits_for_};
}

Result<std::map<std::string, KubernetesLook::Group>> KubernetesLook::read_groups() {
  std::map<std::string, Group> out;
  size_t count = 0;
  for (const std::string_view selector : kSelectors) {
    std::vector<Pod> page;
    const std::string space =
        options_.space.empty() ? "" : fmt::format("namespaces/{}/", escaped(options_.space));
    ListRequest request;
    request.path = fmt::format("/api/v1/{}pods?labelSelector={}", space, escaped(selector));
    request.most = kPodsMost - count;
    const auto listed = list_objects(
        options_.call, request, pace_, [&] { page.clear(); },
        [&](const Json& item) {
          auto pod = parse_pod(item);
          if (pod && is_host_name(pod->space) && is_host_name(pod->workload)) page.push_back(std::move(*pod));
        });
    if (!listed) return tl::unexpected(noted("pods", listed.error()));
    count += page.size();
    for (Pod& pod : page) out[fmt::format("{}/{}", pod.space, pod.workload)].pods.push_back(std::move(pod));
  }
  // Pods of a deleted workload may still end while another of its name has begun.
  for (auto& [id, group] : out) {
    TimeNs newest = kNoTime;
    for (const Pod& pod : group.pods)
      if (!pod.workload_uid.empty() && (group.uid.empty() || pod.created_ns > newest))
        group.uid = pod.workload_uid, newest = pod.created_ns;
    std::erase_if(group.pods,
                  [&](const Pod& pod) { return !pod.workload_uid.empty() && pod.workload_uid != group.uid; });
  }
  return out;
}

Status KubernetesLook::read_nodes() {
  const TimeNs began = pace_.now(), wall = pace_.wall();
  if (nodes_read_ns_ != kNoTime && began - nodes_read_ns_ < options_.nodes_every_ns) return {};
  std::vector<SeenHost> nodes;
  const auto listed = list_objects(
      options_.call, {"/api/v1/nodes", kNodesMost}, pace_, [&] { nodes.clear(); },
      [&](const Json& item) {
        SeenHost host = parse_node(item);
        if (!is_host_name(host.host)) return;
        host.may_be_spare = selects(options_.spares_selector, member(item, {"metadata", "labels"}));
        nodes.push_back(std::move(host));
      });
  if (!listed) return tl::unexpected(noted("nodes", listed.error()));
  nodes_ = std::move(nodes);
  nodes_read_ns_ = began, nodes_read_wall_ns_ = wall;
  return {};
}

void KubernetesLook::count_attempt(Known& known, const std::vector<Pod>& pods) {
  std::optional<uint32_t> label;
  for (const Pod& pod : pods)
    if (pod.attempt) label = std::max(label.value_or(0), *pod.attempt);
  bool any = false, any_old = false, all_later = true;
  uint32_t container_restarts = 0;
  size_t succeeded = 0;
  for (const Pod& pod : pods) {
    if (known.pods.contains(pod.uid)) succeeded += pod.phase == "Succeeded";
    if (!pod.is_active() || pod.attempt != label) continue;
    any = true;
    any_old = any_old || known.pods.contains(pod.uid);
    all_later = all_later && pod.created_ns > known.after_ns;
    container_restarts = std::max(container_restarts, pod.container_restarts);
  }
  const bool is_first = known.pods.empty();
  if (label) {
    // Pods that were deleted are made again in the same attempt of a JobSet.
    if (*label != known.job.restarts || (any && !is_first && !any_old)) known.begin(*label);
    return;
  }
  if (!any) return;
  const bool replaced = !is_first && !any_old && succeeded < known.pods.size();
  const bool from_ledger = is_first && known.after_ns != kNoTime;
  if (replaced || (from_ledger && all_later))
    known.begin(known.job.restarts + 1);
  else if (!is_first && container_restarts > known.container_restarts)
    ++known.job.restarts, known.ran = false;
  known.after_ns = kNoTime;
  known.container_restarts = container_restarts;
}

SeenJob KubernetesLook::shown(const std::string& id, const Known& known) {
  SeenJob out;
  out.job = known.job;
  out.partition = id.substr(0, id.find('/'));
  out.owner = SeenJob::Owner::kUnknown;
  out.may_requeue = true;  // the workload's controller does
  out.hosts = {known.hosts.begin(), known.hosts.end()};
  out.nodes = static_cast<uint32_t>(out.hosts.size());
  return out;
}

SeenJob KubernetesLook::seen(const std::string& id, Group& group) {
  Known& known = jobs_[id];
  if (known.job.id.empty() || known.job.uid != group.uid) {
    known = {};
    known.job = {"kubernetes", id, group.uid, kNoTime, 0};
  }
  known.vanished_ns = kNoTime;
  count_attempt(known, group.pods);
  std::vector<const Pod*> pods;
  size_t active = 0, running = 0, ending = 0;
  std::string wait;
  for (const Pod& pod : group.pods)
    if (pod.is_active()) known.pods.insert(pod.uid);
  const bool first = known.pods.empty();
  for (const Pod& pod : group.pods) {
    const bool is_earlier =
        pod.attempt ? *pod.attempt != known.job.restarts : !first && !known.pods.contains(pod.uid);
    if (is_earlier) continue;
    const bool is_active = pod.is_active();
    pods.push_back(&pod);
    ending += pod.ends;
    if (!pod.node.empty() && (is_active || pod.phase == "Failed")) known.hosts.insert(pod.node);
    if (!is_active) continue;
    ++active;
    const bool runs = pod.phase == "Running" && pod.wait.empty();
    running += runs;
    if (!runs && wait.empty()) wait = pod.wait;
  }
  State state = State::kPending;
  std::string word = "Pending";
  if (active == 0)
    std::tie(state, word) = ending > 0 ? std::pair(State::kEnding, std::string("Terminating")) : end_of(pods);
  else if (running == active || (known.ran && running > 0))
    state = State::kRunning, word = "Running", known.ran = true;
  SeenJob out = shown(id, known);
  out.state = state, out.word = word, out.reason = one_line(wait);
  known.has_ended = out.has_ended();
  for (const Pod* pod : pods) out.aliases.push_back("pod-" + pod->uid);
  return out;
}

// A workload without pods is deleted, suspended, or its controller is about to make others.
void KubernetesLook::add_vanished(SchedulerView& view, const std::map<std::string, Group>& groups) {
  const TimeNs now = pace_.now();
  for (auto one = jobs_.begin(); one != jobs_.end();) {
    auto& [id, known] = *one;
    if (groups.contains(id)) {
      ++one;
      continue;
    }
    if (known.vanished_ns == kNoTime) known.vanished_ns = now;
    if (!known.has_ended) {
      SeenJob job = shown(id, known);
      const bool deleted = now - known.vanished_ns >= kDeletedNs;
      job.state = deleted ? State::kCancelled : State::kEnding;
      job.word = deleted ? "Deleted" : "Terminating";
      known.has_ended = deleted;
      view.jobs.push_back(std::move(job));
    }
    one = now - known.vanished_ns > kForgetNs ? jobs_.erase(one) : std::next(one);
  }
}

void KubernetesLook::add_hosts(SchedulerView& view) const {
  std::set<std::string> used;
  for (const SeenJob& job : view.jobs)
    if (!job.has_ended()) used.insert(job.hosts.begin(), job.hosts.end());
  view.hosts = nodes_;
  for (SeenHost& host : view.hosts) {
    host.idle = !host.out && !used.contains(host.host);
    if (host.spare && !host.out) view.spare_hosts.push_back(host.host);
  }
  view.hosts_read_ns = nodes_read_wall_ns_;
}

Result<SchedulerView> KubernetesLook::look() {
  if (wait_until_ns_ != kNoTime && pace_.now() < wait_until_ns_) return fail(ErrorCode::kIo, waits_for_);
  auto groups = read_groups();
  if (!groups) return tl::unexpected(groups.error());
  if (const Status read = read_nodes(); !read) return tl::unexpected(read.error());
  wait_until_ns_ = kNoTime, wait_ns_ = 0;
  SchedulerView view;
  for (auto& [id, group] : *groups)
    if (!group.pods.empty()) view.jobs.push_back(seen(id, group));
  add_vanished(view, *groups);
  add_hosts(view);
  return view;
}

}  // namespace culprit::respond::kubernetes
