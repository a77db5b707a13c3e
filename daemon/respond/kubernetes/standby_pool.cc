#include "respond/kubernetes/standby_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "respond/kubernetes/backend.h"
#include "respond/kubernetes/listing.h"
#include "respond/kubernetes/look.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {
namespace {

constexpr std::chrono::milliseconds kLockWithin{200};  // requests of another thread may take longer
constexpr int kWriteTries = 5;
constexpr size_t kPodsOfNodeMost = 2000, kWaitingMost = 5000, kSparesMost = 1000;
constexpr std::string_view kMergePatch = "application/merge-patch+json";

bool waits_for_node(const Json& pod) {
  for (const Json& condition : member(pod, {"status", "conditions"}))
    if (text_of(condition, {"type"}) == "PodScheduled" && text_of(condition, {"status"}) == "False")
      return text_of(condition, {"reason"}) == "Unschedulable";
  return false;
}

int64_t priority_of(const Json& pod) {
  const Json& priority = member(pod, {"spec", "priority"});
  return priority.is_number_integer() ? priority.get<int64_t>() : 0;
}

// Pods that belong to the node itself: of a DaemonSet, or static ones.
bool is_of_the_node(const Json& pod) {
  for (const Json& owner : member(pod, {"metadata", "ownerReferences"}))
    if (const std::string kind = text_of(owner, {"kind"}); kind == "DaemonSet" || kind == "Node") return true;
  return false;
}

std::string uid_of(const Json& pod) { return text_of(pod, {"metadata", "uid"}); }
TimeNs created_of(const Json& pod) { return parse_time(text_of(pod, {"metadata", "creationTimestamp"})); }

}  // namespace

std::optional<double> parse_quantity(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 12> kUnits{{{"", 1},
                                                                        {"m", 1e-3},
                                                                        {"k", 1e3},
                                                                        {"M", 1e6},
                                                                        {"G", 1e9},
                                                                        {"T", 1e12},
                                                                        {"P", 1e15},
                                                                        {"Ki", 1024.0},
                                                                        {"Mi", 1048576.0},
                                                                        {"Gi", 1073741824.0},
                                                                        {"Ti", 1099511627776.0},
                                                                        {"Pi", 1125899906842624.0}}};
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (end.ec != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end.ptr - text.data()));
  for (const auto& [unit, factor] : kUnits)
    if (text == unit) return number * factor;
  return std::nullopt;
}

bool could_run(const Json& pod, const Json& node) {
  const Json& labels = member(node, {"metadata", "labels"});
  const Json& selector = member(pod, {"spec", "nodeSelector"});
  if (selector.is_object())
    for (const auto& [key, value] : selector.items())
      if (!value.is_string() || text_of(labels, {key}) != value.get<std::string>()) return false;
  std::map<std::string, double> wanted;
  for (const Json& container : member(pod, {"spec", "containers"})) {
    const Json& requests = member(container, {"resources", "requests"});
    if (!requests.is_object()) continue;
    for (const auto& [name, value] : requests.items())
      if (value.is_string()) wanted[name] += parse_quantity(value.get<std::string>()).value_or(0);
  }
  for (const auto& [name, amount] : wanted) {
    const auto room = parse_quantity(text_of(node, {"status", "allocatable", name}));
    if (amount > 0 && amount > room.value_or(0)) return false;
  }
  return true;
}

void StandbyPool::want(uint32_t nodes, bool observe, TimeNs probation_ns) {
  wanted_ = nodes;
  observe_ = observe;
  probation_ns_ = probation_ns;
}

std::optional<uint32_t> StandbyPool::nodes() const {
  const int64_t nodes = nodes_;
  if (wanted_ == 0 || nodes < 0) return std::nullopt;
  return static_cast<uint32_t>(nodes);
}

// Read, write with the version that was read, read back by the answer. What another writer does meanwhile
// is a conflict, and the node is looked at again.
StandbyPool::Written StandbyPool::write(const std::string& host, bool spare, Pace& pace,
                                        std::string& trouble) const {
  const std::string path = "/api/v1/nodes/" + escaped(host);
  for (int i = 0; i < kWriteTries; ++i) {
    if (i > 0 && !pace.pause(20 * kNsPerMs * i)) break;
    const ApiAnswer read = patient_call(call_, {.method = "GET", .path = path}, pace);
    if (read.status == 404) return Written::kNotFit;
    if (read.status != 200) {
      trouble = fmt::format("{}: {}", host, message_of(read));
      return Written::kFailed;
    }
    const Json node = Json::parse(read.body, nullptr, false);
    if (!has_taint_list(node)) {
      trouble = fmt::format("{}: the answer is no node", host);
      return Written::kFailed;
    }
    if (is_standby(node) == spare) return Written::kDone;
    // A taint of this key without our label is another's.
    if (spare && (parse_node(node).out || has_standby_taint(node))) return Written::kNotFit;
    ApiRequest request{.method = "PATCH", .path = path, .content_type = std::string(kMergePatch)};
    request.body = standby_patch(node, spare);
    const ApiAnswer written = patient_call(call_, request, pace);
    if (written.status == 409) continue;
    if (written.status == 200 && is_standby(Json::parse(written.body, nullptr, false)) == spare)
      return Written::kDone;
    trouble = fmt::format("{}: {}", host, message_of(written));
    return Written::kFailed;
  }
  trouble = fmt::format("{}: other writers changed the node {} times meanwhile", host, kWriteTries);
  return Written::kFailed;
}

// Whether only pods of the node itself are there.
std::optional<bool> StandbyPool::is_idle(const std::string& host, Pace& pace, std::string& trouble) const {
  bool idle = true;
  const auto listed = list_objects(
      call_, {"/api/v1/pods?fieldSelector=" + escaped("spec.nodeName=" + host), kPodsOfNodeMost}, pace,
      [&] { idle = true; },
      [&](const Json& pod) {
        const std::string phase = text_of(pod, {"status", "phase"});
        // The server selects; a stub of one may not.
        if (text_of(pod, {"spec", "nodeName"}) != host) return;
        if (phase != "Succeeded" && phase != "Failed" && !is_of_the_node(pod)) idle = false;
      });
  if (listed) return idle;
  trouble = fmt::format("pods of {}: {}", host, listed.error().text);
  return std::nullopt;
}

// A pod may be bound between the look and the taint: then the node is given back at once.
bool StandbyPool::add(const std::string& host, Pace& pace, std::string& trouble) const {
  if (is_idle(host, pace, trouble) != true) return false;
  if (write(host, true, pace, trouble) != Written::kDone) return false;
  if (is_idle(host, pace, trouble) == true) return true;
  (void)write(host, false, pace, trouble);
  return false;
}

std::optional<std::vector<Json>> StandbyPool::unschedulable(Pace& pace, std::string& trouble) const {
  std::vector<Json> out;
  const auto listed = list_objects(
      call_, {"/api/v1/pods?fieldSelector=" + escaped("status.phase=Pending"), kWaitingMost}, pace,
      [&] { out.clear(); },
      [&](const Json& pod) {
        if (waits_for_node(pod) && text_of(pod, {"spec", "nodeName"}).empty()) out.push_back(pod);
      });
  if (listed) return out;
  trouble = "pods that wait for a node: " + listed.error().text;
  return std::nullopt;
}

// Nodes that we returned lately first: they are on probation. The others in turn, so that no node that cannot
// be taken hides the next.
std::vector<std::string> StandbyPool::candidates(const SchedulerView& view, TimeNs wall) const {
  std::vector<std::string> lately, others;
  for (const SeenHost& host : view.hosts) {
    if (!host.idle || host.out || host.spare || !host.may_be_spare) continue;
    const bool on_probation = host.returned_ns != kNoTime && wall - host.returned_ns < probation_ns_;
    (on_probation ? lately : others).push_back(host.host);
  }
  if (others.size() > kLooksMost)
    std::ranges::rotate(others,
                        others.begin() + static_cast<ptrdiff_t>(rounds_ * kLooksMost % others.size()));
  lately.insert(lately.end(), others.begin(), others.end());
  return lately;
}

void StandbyPool::drop_broken(const SchedulerView& view, Pace& pace, Round& out, std::string& trouble) {
  std::set<std::string> seen;
  for (const SeenHost& host : view.hosts) {
    if (!host.spare || !host.out) continue;
    seen.insert(host.host);
    const TimeNs since = out_since_.try_emplace(host.host, pace.now()).first->second;
    if (observe_ || pace.now() - since < kOutFor) continue;
    out.changed = write(host.host, false, pace, trouble) == Written::kDone || out.changed;
  }
  std::erase_if(out_since_, [&](const auto& one) { return !seen.contains(one.first); });
}

uint32_t StandbyPool::grow(const SchedulerView& view, uint32_t missing, Pace& pace, std::string& trouble) {
  uint32_t added = 0;
  size_t looks = 0;
  for (const std::string& host : candidates(view, pace.wall())) {
    if (added >= missing || looks++ >= kLooksMost || pace.stop().load()) break;
    const bool fits = observe_ ? is_idle(host, pace, trouble) == true : add(host, pace, trouble);
    added += fits;
    if (!trouble.empty()) break;
  }
  ++rounds_;
  return added;
}

StandbyPool::Round StandbyPool::keep(const SchedulerView& view, Pace& pace) {
  Round out;
  const std::unique_lock lock(mutex_, kLockWithin);
  const uint32_t wanted = wanted_;
  if (!lock || wanted == 0) return out;
  std::vector<std::string> spares;
  for (const SeenHost& host : view.hosts)
    if (host.spare && !host.out) spares.push_back(host.host);
  const auto before = static_cast<uint32_t>(spares.size());
  nodes_ = before;
  const TimeNs now = pace.now();
  if ((round_ns_ != kNoTime && now - round_ns_ < kKeepEvery) || now - handed_over_ns_ < kAfterHandOver)
    return out;
  round_ns_ = now;
  std::string trouble;
  drop_broken(view, pace, out, trouble);
  uint32_t count = before;
  for (; count > wanted && !observe_ && trouble.empty(); --count)
    out.changed = write(spares[count - 1], false, pace, trouble) == Written::kDone || out.changed;
  if (count < wanted && trouble.empty())
    if (const auto waits = unschedulable(pace, trouble); waits && waits->empty())
      count += grow(view, wanted - count, pace, trouble);
  out.changed = out.changed || (!observe_ && count != before);
  if (!observe_) nodes_ = count;
  std::string text;
  if (!trouble.empty())
    text = fmt::format("the pool {} has {} of {} nodes: {}", kStandbyKey, count, wanted, one_line(trouble));
  else if (observe_ && count != before)
    text = fmt::format("observe: the pool {} would have {} of {} nodes", kStandbyKey, count, wanted);
  const bool is_new = std::exchange(reported_note_, text) != text;
  if (text.empty() && count != before)
    text = fmt::format("the pool {} has {} of {} nodes, {} before", kStandbyKey, count, wanted, before);
  else if (!is_new)
    text.clear();
  out.note = std::move(text);
  return out;
}

Result<std::string> StandbyPool::hand_over(const Lack& lack, Pace& pace) {
  const std::unique_lock lock(mutex_, kLockWithin);
  if (!lock || wanted_ == 0 || observe_) return std::string();
  std::string trouble;
  const auto waiting = unschedulable(pace, trouble);
  if (!waiting) return fail(ErrorCode::kIo, trouble);
  std::vector<const Json*> ours, others;
  for (const Json& pod : *waiting) (lack.pods.contains(uid_of(pod)) ? ours : others).push_back(&pod);
  std::vector<Json> spares;
  const auto listed = list_objects(
      call_, {"/api/v1/nodes?labelSelector=" + escaped(fmt::format("{}=true", kStandbyKey)), kSparesMost},
      pace, [&] { spares.clear(); },
      [&](const Json& node) {
        if (is_standby(node) && !parse_node(node).out) spares.push_back(node);
      });
  if (!listed) return fail(ErrorCode::kIo, "nodes: " + listed.error().text);
  for (const Json& node : spares) {
    const std::string host = text_of(node, {"metadata", "name"});
    if (!is_host_name(host) || std::ranges::find(lack.excluded, host) != lack.excluded.end()) continue;
    const auto pod = std::ranges::find_if(ours, [&](const Json* one) { return could_run(*one, node); });
    if (pod == ours.end()) continue;
    const bool is_first = std::ranges::none_of(others, [&](const Json* one) {
      const int64_t theirs = priority_of(*one), own = priority_of(**pod);
      const bool before = theirs > own || (theirs == own && created_of(*one) < created_of(**pod));
      return before && could_run(*one, node);
    });
    if (!is_first) continue;
    handed_over_ns_ = pace.now();
    const Written written = write(host, false, pace, trouble);
    if (written == Written::kFailed) return fail(ErrorCode::kIo, trouble);
    nodes_ = std::max<int64_t>(0, nodes_ - 1);
    return host;
  }
  return std::string();
}

}  // namespace culprit::respond::kubernetes
