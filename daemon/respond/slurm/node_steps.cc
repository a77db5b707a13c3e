#include <fmt/format.h>

#include "respond/order.h"
#include "respond/slurm/backend.h"
#include "respond/slurm/steps.h"

namespace culprit::respond::slurm {
namespace {

// Out of service, or on its way. A node that does not answer (NOT_RESPONDING) is none of these: Slurm may
// take it back by itself once it answers.
bool is_out(const NodeState& node) {
  for (const std::string_view flag : {"DRAIN", "DOWN", "FAIL", "MAINT", "POWER", "REBOOT"})
    if (node.has(flag)) return true;
  return false;
}

std::string describe(std::string_view name, const NodeState& node) {
  std::string out = fmt::format("{}: {}", name, node.flags_text());
  if (!node.reason.empty()) out += fmt::format(", {}", node.reason);
  if (!node.by.empty()) out += fmt::format(" [{}]", node.by);
  return one_line(out);
}

}  // namespace

SlurmResult<NodeState> NodeSteps::read_back(const SlurmResult<void>& written) {
  if (!written) (void)pace_.pause(options_.settle_ns);
  return commands_.node(order_.target);
}

ActionResult NodeSteps::isolated_or_not(const NodeState& now, const SlurmResult<void>& written) const {
  const std::string what = describe(order_.target, now);
  if (now.has("DRAIN") && is_own_reason(now.reason, order_)) return result(ActionState::kDone, what);
  if (is_out(now)) return result(ActionState::kSuperseded, fmt::format("taken out by others, {}", what));
  if (!written) return result(ActionState::kAmbiguous, fmt::format("{}; {}", written.error().text, what));
  return result(ActionState::kAmbiguous, fmt::format("Slurm accepted the drain, but {}", what));
}

ActionResult NodeSteps::isolate() {
  const auto before = commands_.node(order_.target);
  if (!before) return unchanged(before.error());
  if (is_out(*before)) return isolated_or_not(*before, {});
  const std::string reason = drain_reason(order_);
  if (options_.observe)
    return result(ActionState::kDone, fmt::format("observe: would drain {} as {}", order_.target, reason));
  const auto written =
      commands_.write({"update", "NodeName=" + order_.target, "State=DRAIN", "Reason=" + reason});
  if (!written && written.error().kind != SlurmError::Kind::kNoAnswer) return unchanged(written.error());
  const auto now = read_back(written);
  if (!now)
    return result(ActionState::kAmbiguous,
                  fmt::format("the drain of {} was not read back: {}", order_.target, now.error().text));
  return isolated_or_not(*now, written);
}

ActionResult NodeSteps::give_back() {
  const auto before = commands_.node(order_.target);
  if (!before) return unchanged(before.error());
  const std::string what = describe(order_.target, *before);
  if (!before->has("DRAIN"))
    return result(ActionState::kSuperseded, fmt::format("returned by others, {}", what));
  if (!is_own_reason(before->reason, order_))
    return result(ActionState::kSuperseded, fmt::format("taken out by others, {}", what));
  for (const std::string_view flag : {"DOWN", "FAIL", "MAINT", "POWER", "REBOOT", "NOT_RESPONDING"})
    if (before->has(flag)) return result(ActionState::kFailed, fmt::format("not fit to return, {}", what));
  if (options_.observe)
    return result(ActionState::kDone, fmt::format("observe: would return {}", order_.target));
  const auto written = commands_.write({"update", "NodeName=" + order_.target, "State=RESUME"});
  if (!written && written.error().kind != SlurmError::Kind::kNoAnswer) return unchanged(written.error());
  const auto now = read_back(written);
  if (!now)
    return result(ActionState::kAmbiguous,
                  fmt::format("the return of {} was not read back: {}", order_.target, now.error().text));
  const std::string after = describe(order_.target, *now);
  if (!now->has("DRAIN")) return result(ActionState::kDone, after);
  if (!is_own_reason(now->reason, order_))
    return result(ActionState::kSuperseded, fmt::format("taken out by others, {}", after));
  return result(ActionState::kAmbiguous,
                written ? fmt::format("Slurm accepted the return, but {}", after) : written.error().text);
}

}  // namespace culprit::respond::slurm
