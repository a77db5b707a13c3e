#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "respond/kubernetes/listing.h"
#include "respond/kubernetes/standby_pool.h"
#include "respond/kubernetes/steps.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {
namespace {

constexpr int kMovesMost = 3;

bool is_name(std::string_view text) {
  return is_host_name(text) && text.find("..") == text.npos;  // a DNS name as well
}

}  // namespace

bool PodSteps::split_id() {
  const std::string_view id = order_.job.id;
  const size_t slash = id.find('/');
  if (slash == id.npos || !is_name(id.substr(0, slash)) || !is_name(id.substr(slash + 1))) return false;
  namespace_ = id.substr(0, slash), workload_ = id.substr(slash + 1);
  return true;
}

tl::expected<std::vector<Pod>, ActionResult> PodSteps::list(const std::string& selector) {
  std::vector<Pod> out;
  const auto listed = list_objects(
      options_.call,
      {fmt::format("/api/v1/namespaces/{}/pods?labelSelector={}", escaped(namespace_), escaped(selector))},
      pace_, [&] { out.clear(); },
      [&](const Json& item) {
        if (auto pod = parse_pod(item)) out.push_back(std::move(*pod));
      });
  if (listed) return out;
  return tl::unexpected(
      result(ActionState::kFailed, fmt::format("pods of job {}: {}", order_.job.id, listed.error().text)));
}

tl::expected<std::vector<Pod>, ActionResult> PodSteps::pods() {
  for (const std::string_view label : kNameLabels) {
    auto found = list(fmt::format("{}={}", label, workload_));
    if (!found || !found->empty()) {
      if (!found || order_.job.uid.empty()) return found;
      std::erase_if(*found, [&](const Pod& pod) {
        return !pod.is_nested && std::ranges::find(pod.owners, order_.job.uid) == pod.owners.end();
      });
      if (!found->empty()) return found;
      return tl::unexpected(
          result(ActionState::kSuperseded, fmt::format("job {} is another object by now", order_.job.id)));
    }
  }
  return std::vector<Pod>{};
}

ActionResult PodSteps::end_tasks() {
  if (!split_id())
    return result(ActionState::kFailed, fmt::format("{} is no NAMESPACE/NAME", one_line(order_.job.id)));
  const auto all = pods();
  if (!all) return all.error();
  size_t ended = 0, already = 0;
  std::optional<uint32_t> newer;
  std::string refused;
  for (const Pod& pod : *all) {
    if (pod.attempt && *pod.attempt != order_.job.restarts) {
      if (*pod.attempt > order_.job.restarts) newer = pod.attempt;
      continue;
    }
    if (!pod.is_active()) {
      ++already;
      continue;
    }
    const ApiAnswer answer =
        call("DELETE", fmt::format("/api/v1/namespaces/{}/pods/{}", escaped(namespace_), escaped(pod.name)),
             delete_body(pod.uid, options_.observe));
    if (answer.status == 200 || answer.status == 202)
      ++ended;
    else if (answer.status == 404 || answer.status == 409)  // 409: another pod of the name
      ++already;
    else
      refused = message_of(answer);
    if (pace_.stop().load()) break;
  }
  if (!refused.empty())
    return result(ended > 0 ? ActionState::kAmbiguous : ActionState::kFailed,
                  fmt::format("{} deleted, then {}", counted(ended, "pod"), refused));
  if (newer && ended == 0)
    return result(ActionState::kSuperseded,
                  fmt::format("job {} is in attempt {} already", order_.job.id, *newer));
  return result(ActionState::kDone,
                fmt::format("{} deleted, {} had ended before", counted(ended, "pod"), already));
}

std::optional<ActionResult> PodSteps::check_excluded() const {
  for (const std::string& host : order_.excluded) {
    const ApiAnswer answer = call("GET", "/api/v1/nodes/" + escaped(host));
    if (answer.status == 404) continue;  // nothing is placed there
    if (answer.status != 200)
      return result(ActionState::kFailed, fmt::format("{}: {}", host, message_of(answer)));
    const Json node = object_of(answer);
    const Json& cordon = member(node, {"spec", "unschedulable"});
    if (!own_taint(node) && !(cordon.is_boolean() && cordon.get<bool>()))
      return result(ActionState::kFailed,
                    fmt::format("{} has no taint {}: pods of the job may come back to it", host, kTaintKey));
  }
  return std::nullopt;
}

ActionResult PodSteps::judge(const std::vector<Pod>& all) const {
  uint32_t attempt = order_.job.restarts;
  for (const Pod& pod : all) attempt = std::max(attempt, pod.attempt.value_or(0));
  size_t active = 0, running = 0, ended = 0;
  std::set<std::string> hosts;
  for (const Pod& pod : all) {
    if (pod.attempt && *pod.attempt != attempt) continue;
    if (!pod.is_active()) {
      ended += !pod.ends;
      continue;
    }
    ++active;
    running += pod.phase == "Running";
    if (!pod.node.empty()) hosts.insert(pod.node);
  }
  const auto with = [&](ActionState state, std::string detail) {
    ActionResult out = result(state, std::move(detail));
    out.job = order_.job;
    out.job.restarts = attempt;
    return out;
  };
  const std::string subject = fmt::format("job {}", order_.job.id);
  if (active == 0) return with(ActionState::kFailed, fmt::format("{}: no pod, {} ended", subject, ended));
  if (running < active)
    return with(ActionState::kFailed, fmt::format("{}: {} of {} pods run", subject, running, active));
  ActionResult out = with(ActionState::kDone, fmt::format("{}: {} run", subject, counted(running, "pod")));
  for (const std::string& host : order_.excluded)
    if (hosts.contains(host)) {
      out.state = ActionState::kFailed;
      out.detail = one_line(fmt::format("{}: runs on the excluded {}", subject, host));
    }
  out.hosts.assign(hosts.begin(), hosts.end());
  return out;
}

ActionResult PodSteps::verify() {
  if (!split_id())
    return result(ActionState::kFailed, fmt::format("{} is no NAMESPACE/NAME", one_line(order_.job.id)));
  const auto all = pods();
  return all ? judge(*all) : all.error();
}

bool PodSteps::is_excluded(const Pod& pod) const {
  return pod.is_active() && std::ranges::find(order_.excluded, pod.node) != order_.excluded.end();
}

// All of them: the others would wait for the peer that is made elsewhere.
std::optional<ActionResult> PodSteps::move_away(const std::vector<Pod>& all) const {
  for (const Pod& pod : all) {
    if (!pod.is_active()) continue;
    const ApiAnswer answer =
        call("DELETE", fmt::format("/api/v1/namespaces/{}/pods/{}", escaped(namespace_), escaped(pod.name)),
             delete_body(pod.uid, options_.observe));
    const bool ended = answer.status == 200 || answer.status == 202 || answer.status == 404 ||
                       answer.status == 409;  // 409: another pod of the name
    if (!ended) return result(ActionState::kFailed, fmt::format("{}: {}", pod.name, message_of(answer)));
  }
  return std::nullopt;
}

bool PodSteps::get_spare(const std::vector<Pod>& all) {
  if (!options_.spares || order_.excluded.empty()) return false;
  const TimeNs now = pace_.now();
  if (spares_.size() + spares_unclear_ >= order_.excluded.size()) return false;
  if (spares_ns_ != kNoTime && now - spares_ns_ < options_.next_spare_ns) return false;
  StandbyPool::Lack lack;
  for (const Pod& pod : all)
    if (pod.is_active() && pod.node.empty() && pod.wait == "Unschedulable") lack.pods.insert(pod.uid);
  if (lack.pods.empty()) return false;
  lack.excluded = order_.excluded;
  spares_ns_ = now;
  const auto host = options_.spares->hand_over(lack, pace_);
  spares_unclear_ += !host;  // what may have been done counts as done
  if (!host || host->empty()) return false;
  spares_.push_back(*host);
  return true;
}

ActionResult PodSteps::run_again() {
  if (!split_id())
    return result(ActionState::kFailed, fmt::format("{} is no NAMESPACE/NAME", one_line(order_.job.id)));
  if (auto no = check_excluded()) return *no;
  TimeNs until = pace_.now() + options_.start_ns;
  for (int moves = 0;;) {
    const auto all = pods();
    // Their controller made them before the taint was there.
    if (all && moves < kMovesMost &&
        std::ranges::any_of(*all, [&](const Pod& p) { return is_excluded(p); })) {
      ++moves;
      if (auto refused = move_away(*all)) return *refused;
      if (pace_.pause(options_.round_ns)) continue;
    }
    ActionResult out = all ? judge(*all) : all.error();
    if (all && get_spare(*all)) until = pace_.now() + options_.start_ns;
    if (!spares_.empty())
      out.detail =
          one_line(fmt::format("{}; {} of the spares handed over", out.detail, fmt::join(spares_, ", ")));
    if (out.state == ActionState::kDone || out.state == ActionState::kSuperseded) return out;
    const bool goes_on = pace_.pause(options_.round_ns);
    if (goes_on && pace_.now() < until) continue;
    // Pending pods are the scheduler's: reported as such. No pod at all, or one on an excluded host, is not.
    const bool pending = all && out.hosts.empty() && std::ranges::any_of(*all, &Pod::is_active);
    if (pending) out.state = ActionState::kDone;
    if (!out.hosts.empty()) out.state = ActionState::kAmbiguous;
    return out;
  }
}

}  // namespace culprit::respond::kubernetes
