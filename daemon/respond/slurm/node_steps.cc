#include <fmt/format.h>

#include "respond/order.h"
#include "respond/slurm/backend.h"
#include "respond/slurm/steps.h"

namespace culprit::respond::slurm {
namespace {

constexpr int kWrites = 3;  // of one change, each after a look at the node

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

SlurmResult<NodeState> NodeSteps::node() const {
  return when_answered([this] { return commands_.node(order_.target); });
}

ActionResult NodeSteps::write_node(const std::vector<std::string>& words, const Settled& settled) const {
  SlurmResult<void> written;
  for (int tries = 0;; ++tries) {
    const auto now = node();
    if (!now && tries == 0) return unchanged(now.error());
    if (!now)
      return result(ActionState::kAmbiguous,
                    fmt::format("the change of {} was not read back: {}", order_.target, now.error().text));
    if (auto out = settled(*now, tries == 0 ? nullptr : &written)) return *out;
    written = commands_.write(words);
    if (!written && written.error().kind != SlurmError::Kind::kNoAnswer) return unchanged(written.error());
    if (!written) (void)pace_.pause(options_.settle_ns);  // it may be on its way
  }
}

ActionResult NodeSteps::isolated_or_not(const NodeState& now, const SlurmResult<void>& written) const {
  const std::string what = describe(order_.target, now);
  if (now.has("DRAIN") && is_own_reason(now.reason, order_)) return result(ActionState::kDone, what);
  if (is_out(now)) return result(ActionState::kSuperseded, fmt::format("taken out by others, {}", what));
  if (!written) return result(ActionState::kAmbiguous, fmt::format("{}; {}", written.error().text, what));
  return result(ActionState::kAmbiguous, fmt::format("Slurm accepted the drain, but {}", what));
}

ActionResult NodeSteps::isolate() {
  const std::string reason = drain_reason(order_);
  int left = kWrites;
  return write_node(
      {"update", "NodeName=" + order_.target, "State=DRAIN", "Reason=" + reason},
      [&](const NodeState& now, const SlurmResult<void>* written) -> std::optional<ActionResult> {
        const bool again = !written || !*written;
        if (!is_out(now) && again && left-- > 0) {
          if (!options_.observe) return std::nullopt;
          return result(ActionState::kDone,
                        fmt::format("observe: would drain {} as {}", order_.target, reason));
        }
        return isolated_or_not(now, written ? *written : SlurmResult<void>{});
      });
}

ActionResult NodeSteps::returned_or_not(const NodeState& now, const SlurmResult<void>& written) const {
  const std::string what = describe(order_.target, now);
  if (!now.has("DRAIN")) return result(ActionState::kDone, what);
  if (!is_own_reason(now.reason, order_))
    return result(ActionState::kSuperseded, fmt::format("taken out by others, {}", what));
  return result(ActionState::kAmbiguous,
                written ? fmt::format("Slurm accepted the return, but {}", what) : written.error().text);
}

// Why the node cannot be returned by this order; nothing: it can.
std::optional<ActionResult> NodeSteps::refuse_return(const NodeState& now) const {
  const std::string what = describe(order_.target, now);
  if (!now.has("DRAIN")) return result(ActionState::kSuperseded, fmt::format("returned by others, {}", what));
  if (!is_own_reason(now.reason, order_))
    return result(ActionState::kSuperseded, fmt::format("taken out by others, {}", what));
  for (const std::string_view flag : {"DOWN", "FAIL", "MAINT", "POWER", "REBOOT", "NOT_RESPONDING"})
    if (now.has(flag)) return result(ActionState::kFailed, fmt::format("not fit to return, {}", what));
  if (options_.observe)
    return result(ActionState::kDone, fmt::format("observe: would return {}", order_.target));
  return std::nullopt;
}

ActionResult NodeSteps::give_back() {
  int left = kWrites;
  return write_node(
      {"update", "NodeName=" + order_.target, "State=RESUME"},
      [&](const NodeState& now, const SlurmResult<void>* written) -> std::optional<ActionResult> {
        if (!written) {
          if (auto no = refuse_return(now)) return no;
        } else if (*written || !now.has("DRAIN") || left <= 0) {
          return returned_or_not(now, *written);
        } else if (auto no = refuse_return(now)) {
          return no;
        }
        --left;
        return std::nullopt;
      });
}

}  // namespace culprit::respond::slurm
