#include "respond/slurm/backend.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "respond/order.h"
#include "respond/slurm/steps.h"

namespace culprit::respond::slurm {
namespace {

constexpr std::string_view kOwnMark = "culprit:";
constexpr size_t kIdDigits = 10;

bool is_job_id(std::string_view text) {
  return !text.empty() && text.size() <= kIdDigits && text.front() != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string drain_reason(const ActionOrder& order) {
  return fmt::format("{}{} {} {}", kOwnMark, order.code.empty() ? "FAULT" : order.code, order.decision,
                     order.op);
}

// Exactly three words: a person who adds to the reason makes the drain their own.
bool is_own_reason(std::string_view reason, const ActionOrder& order) {
  const std::vector<std::string_view> words = split(reason, ' ');
  return words.size() == 3 && words[0].starts_with(kOwnMark) &&
         (words[1] == order.decision || words[2] == order.op);
}

ActionResult SlurmBackend::carry_out(const ActionOrder& order, Pace& pace) const {
  const bool of_job = order.kind == OrderKind::kRunAgain || order.kind == OrderKind::kVerify;
  if (of_job && !is_job_id(order.job.id))
    return result_of(order, ActionState::kFailed,
                     fmt::format("{} is no id of a job of Slurm", one_line(order.job.id)));
  if (!order.device.empty())
    return result_of(order, ActionState::kFailed, "Slurm cannot drain one GPU of a node");
  switch (order.kind) {
    case OrderKind::kIsolate:
      return NodeSteps(order, options_, pace).isolate();
    case OrderKind::kReturn:
      return NodeSteps(order, options_, pace).give_back();
    case OrderKind::kRunAgain:
      return JobSteps(order, options_, pace).run_again();
    case OrderKind::kVerify:
      return JobSteps(order, options_, pace).verify();
    case OrderKind::kEndTasks:
      break;
  }
  return result_of(order, ActionState::kFailed, "the agents end a job's processes");
}

ActionResult Steps::result(ActionState state, std::string detail) const {
  return result_of(order_, state, std::move(detail));
}

ActionResult Steps::unchanged(const SlurmError& error) const {
  return result(ActionState::kFailed, error.text);
}

}  // namespace culprit::respond::slurm
