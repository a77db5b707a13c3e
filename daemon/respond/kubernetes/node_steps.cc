#include <fmt/format.h>

#include "respond/kubernetes/steps.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {
namespace {

constexpr int kConflictTries = 5;
constexpr TimeNs kConflictWait = 20 * kNsPerMs;
constexpr std::string_view kMerge = "application/merge-patch+json";
constexpr std::string_view kStrategic = "application/strategic-merge-patch+json";

}  // namespace

std::string NodeSteps::node_path() const { return "/api/v1/nodes/" + escaped(order_.target); }

std::optional<ActionResult> NodeSteps::settled(const Json& node, bool isolate) const {
  const auto taint = own_taint(node);
  const std::string& name = order_.target;
  const bool ours = taint == order_.decision;
  if (isolate && ours) return result(ActionState::kDone, fmt::format("{} has the taint {}", name, kTaintKey));
  if (taint && !ours)
    return result(ActionState::kSuperseded, fmt::format("{} is isolated by decision {}", name, *taint));
  if (!isolate && !taint)
    return result(ActionState::kSuperseded,
                  fmt::format("{} was returned by others: no taint {}", name, kTaintKey));
  const Json& cordon = member(node, {"spec", "unschedulable"});
  if (isolate && cordon.is_boolean() && cordon.get<bool>())
    return result(ActionState::kSuperseded, fmt::format("{} is cordoned by others", name));
  if (!has_taint_list(node))
    return result(ActionState::kFailed, fmt::format("{}: the answer is no node", name));
  return std::nullopt;
}

ActionResult NodeSteps::read_back(bool isolate, const ApiAnswer& answer) const {
  const std::string why = message_of(answer);
  if (answer.unsent || answer.status == 429) return result(ActionState::kFailed, why);
  const ApiAnswer now = call("GET", node_path());
  if (now.status != 200)
    return result(ActionState::kAmbiguous, fmt::format("{}; not read back: {}", why, message_of(now)));
  const auto taint = own_taint(object_of(now));
  const bool arrived = isolate ? taint == order_.decision : !taint;
  return result(arrived ? ActionState::kDone : ActionState::kAmbiguous,
                fmt::format("{}; {} has {} taint {}", why, order_.target, taint ? "the" : "no", kTaintKey));
}

ActionResult NodeSteps::change(bool isolate) {
  const std::string_view effect = options_.no_execute ? "NoExecute" : "NoSchedule";
  std::string last;
  bool unclear = false;  // a patch of ours may have arrived, although the server refuses its repetition
  for (int i = 0; i < kConflictTries; ++i) {
    if (i > 0 && !pace_.pause(kConflictWait * i)) break;
    const ApiAnswer read = call("GET", node_path());
    if (read.status != 200)
      return result(ActionState::kFailed, fmt::format("{}: {}", order_.target, message_of(read)));
    const Json node = object_of(read);
    const auto found = own_taint(node);
    if (unclear && has_taint_list(node) && (isolate ? found == order_.decision : !found))
      return shown(
          result(ActionState::kDone, fmt::format("{} has {} taint {}; {}", order_.target,
                                                 isolate ? "the" : "no longer the", kTaintKey, last)),
          node, isolate);
    if (auto known = settled(node, isolate)) return *known;
    const ApiAnswer written =
        patch(node_path(), kMerge, taint_patch(node, isolate ? order_.decision : "", effect));
    last = message_of(written);
    unclear = unclear || written.unclear;
    if (written.status == 409) continue;
    if (is_busy(written)) {
      ActionResult out = read_back(isolate, written);
      return out.state == ActionState::kDone ? shown(std::move(out), node, isolate) : out;
    }
    if (written.status != 200)
      return result(ActionState::kFailed, fmt::format("{}: {}", order_.target, last));
    const auto taint = own_taint(object_of(written));
    if (isolate ? taint != order_.decision : taint.has_value())
      return result(ActionState::kAmbiguous,
                    fmt::format("{}: the server's answer has another taint than written", order_.target));
    return shown(result(ActionState::kDone,
                        fmt::format("{} has {} taint {}={}:{}", order_.target,
                                    isolate ? "the" : "no longer the", kTaintKey, order_.decision, effect)),
                 node, isolate);
  }
  return result(ActionState::kFailed, fmt::format("{}: other writers changed the node {} times meanwhile: {}",
                                                  order_.target, kConflictTries, last));
}

ActionResult NodeSteps::shown(ActionResult done, const Json& node, bool isolate) const {
  const std::string now = time_text(pace_.wall());
  Condition condition;
  condition.is_fault = isolate;
  condition.reason = isolate ? reason_word(order_.code) : std::string(kReturnedReason);
  condition.message = order_.reason.empty() ? order_.decision : order_.reason;
  const ApiAnswer set = patch(node_path() + "/status", kStrategic, condition_patch(node, condition, now));
  if (set.status != 200)
    done.detail = one_line(fmt::format("{}; condition {}: {}", done.detail, kConditionType, message_of(set)));

  NodeEvent event;
  // One name for each change of a decision: a repeated order is the same event once more.
  event.name =
      fmt::format("{}.culprit.{}.{}", order_.target, order_.decision, isolate ? "isolated" : "returned");
  event.node = order_.target;
  event.reason = isolate ? "CulpritIsolated" : "CulpritReturned";
  event.message = fmt::format("{} ({})", condition.message, order_.decision);
  event.host = options_.host;
  event.is_warning = isolate;
  event.now = now;
  constexpr std::string_view kEvents = "/api/v1/namespaces/default/events";
  ApiAnswer sent = call("POST", to_write(std::string(kEvents)), event_body(event));
  if (sent.status == 409)
    sent = patch(fmt::format("{}/{}", kEvents, escaped(event.name)), kMerge, event_patch(2, now));
  if (sent.status != 200 && sent.status != 201)
    done.detail = one_line(fmt::format("{}; event: {}", done.detail, message_of(sent)));
  return done;
}

}  // namespace culprit::respond::kubernetes
