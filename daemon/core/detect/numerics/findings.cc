#include "core/detect/numerics/findings.h"

#include <fmt/format.h>

namespace culprit::numerics {

namespace {

NumericClass class_of(Cause cause) {
  switch (cause) {
    case Cause::kBatch:
    case Cause::kAllBatch:
      return NumericClass::kData;
    case Cause::kUnstable:
      return NumericClass::kOptimizer;
    case Cause::kOverflow:
    case Cause::kSpoilt:
      return NumericClass::kUnknown;
    case Cause::kPlanned:
      return NumericClass::kSchedule;
    default:
      return NumericClass::kSdc;
  }
}

std::string ranks_in_words(const Case& known, const Window& window) {
  std::string text = known.slots.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < known.slots.size(); ++i) {
    if (i == 8) return text + fmt::format(" and {} more", known.slots.size() - i);
    text += fmt::format("{}{}", i == 0 ? "" : ", ", window.rank(known.slots[i]));
  }
  return text;
}

std::string back_to(const Case& known) {
  if (known.undone) return "its wrong steps were not taken, so nothing is to be rolled back";
  return known.equal_step ? fmt::format(
                                "roll back to a checkpoint of step {} or before, when the replicas "
                                "were equal",
                                *known.equal_step)
                          : fmt::format("roll back to a checkpoint from before step {}", known.step);
}

std::string mitigation_of(const Case& known, const Window& window) {
  const std::string who = known.slots.empty() ? "" : ranks_in_words(known, window);
  if (known.proved) {
    return fmt::format("Take the device of {} out: a check proved it wrong; {}.", who, back_to(known));
  }
  switch (known.cause) {
    case Cause::kReplica:
      if (known.shared) {
        return fmt::format("Compute step {} again on a third device to learn which of {} is wrong, and {}.",
                           known.step, who, back_to(known));
      }
      return fmt::format(
          "Copy parameters and optimiser state from a sound replica to {}, or {}; then compute "
          "step {} again on its device, and isolate it when that differs.",
          who, back_to(known), known.step);
    case Cause::kSum:
      return fmt::format(
          "Skip the update of step {}, or {}; reduce the same gradients again, and when that "
          "differs check the devices and links of the reduction.",
          known.step, back_to(known));
    case Cause::kNotFinite:
      return fmt::format(
          "Skip the step; compute step {} of {} again on the same device, then elsewhere: finite "
          "elsewhere means that the device is at fault, not finite there either the sample.",
          known.step, who);
    case Cause::kApart:
      return fmt::format(
          "Compute a step of {} again on the same device, then elsewhere: isolate the device when "
          "they differ; until then leave its gradients out, and keep the checkpoint from before "
          "step {}.",
          who, known.step);
    case Cause::kAudit:
      if (known.shared) {
        return fmt::format(
            "Compute step {} of the same samples on a third device: of {} the one that differs from "
            "it is at fault.",
            known.step, who);
      }
      return fmt::format("Take the device of {} out, and {}.", who, back_to(known));
    case Cause::kSpoilt:
      return fmt::format(
          "Skip the step, and look at the samples of {} at step {}; compute it again on the same device, "
          "then "
          "elsewhere: not finite there either means the sample, finite elsewhere alone the device.",
          who, known.step);
    case Cause::kBatch:
      return fmt::format(
          "Skip the samples of {} from step {} on, and check their source; no device is suspected.", who,
          known.step);
    case Cause::kAllBatch:
      return fmt::format(
          "Check the data of step {}; skip 200 to 500 batches from there, about 100 steps further "
          "back, when the loss does not recover.",
          known.step);
    case Cause::kUnstable:
      return fmt::format(
          "Lower the learning rate or clip gradients, from a checkpoint before step {}; a longer "
          "warm-up or normalised queries and keys keep it from coming back.",
          known.step);
    case Cause::kOverflow:
      return fmt::format(
          "Stop: what is computed from step {0} on is lost. Start from a checkpoint before it without its "
          "batch; where step {0} goes wrong again, look at its samples, the learning rate and the range of "
          "the number format, else at the devices.",
          known.step);
    case Cause::kPlanned:
      break;
  }
  return fmt::format("Nothing, while the loss settles: the change of step {} was planned.", known.step);
}

std::string title_of(const Case& known, const Window& window) {
  if (!known.title.empty()) return known.title;
  const std::string who = known.slots.empty() ? "" : ranks_in_words(known, window);
  switch (known.cause) {
    case Cause::kReplica:
      return known.shared ? "Replicas of the model differ"
                          : fmt::format("The replica of {} differs from its peers", who);
    case Cause::kSum:
      return "The reduced gradient is not the sum of what went into it";
    case Cause::kNotFinite:
      return fmt::format("Numbers of {} alone are not finite", who);
    case Cause::kApart:
      return fmt::format("Numbers of {} point to silent corruption", who);
    case Cause::kAudit:
      return fmt::format("{} computed something else than its peers from the same", who);
    case Cause::kSpoilt:
      return fmt::format("Numbers stopped being finite at step {}, on {} first", known.step, who);
    case Cause::kBatch:
      return fmt::format("Bad samples on {}", who);
    case Cause::kAllBatch:
      return "Bad samples on all ranks";
    case Cause::kUnstable:
      return "The training is unstable";
    case Cause::kOverflow:
      return "Numbers are not finite any more";
    case Cause::kPlanned:
      break;
  }
  return "A planned change moved the loss";
}

void act(Finding& finding, const Case& known) {
  finding.category = Category::kUser;
  finding.component = Component::kNumeric;
  finding.action = ActionKind::kMitigate;
  finding.by_no_device = true;
  switch (known.cause) {
    case Cause::kBatch:
    case Cause::kAllBatch:
      finding.component = Component::kUserData;
      break;
    case Cause::kUnstable:
      finding.component = Component::kUserConfig;
      break;
    case Cause::kOverflow:
      finding.category = Category::kUnknown;
      finding.action = ActionKind::kRollback;
      break;
    case Cause::kSpoilt:
      finding.category = Category::kUnknown;
      break;
    case Cause::kPlanned:
      finding.component = Component::kUserConfig;
      finding.action = ActionKind::kNone;
      break;
    default:
      finding.category = Category::kHardware;
      finding.component = Component::kGpu;
      finding.by_no_device = false;
      // An alarm from metrics alone suggests a check; a proof on the device suggests its isolation.
      finding.action = known.proved ? ActionKind::kIsolate : ActionKind::kCheck;
      break;
  }
}

// "step 70", "step 70 and 3 more until step 90".
std::string steps_in_words(const Agreed& agreed) {
  std::string text = fmt::format("step {}", agreed.first);
  if (agreed.times > 1) text += fmt::format(" and {} more until step {}", agreed.times - 1, agreed.last);
  return text;
}

std::vector<std::string> reasons(const Case& known) {
  std::vector<std::string> why = known.why;
  if (known.same.times > 0) {
    why.push_back(
        fmt::format("computed again on the same device, {} gave the same", steps_in_words(known.same)));
  }
  if (known.elsewhere.times > 0) {
    why.push_back(fmt::format("computed on another device, {} gave the same: the device is sound",
                              steps_in_words(known.elsewhere)));
  }
  return why;
}

}  // namespace

NumericFault fault_of(const Case& known, const Window& window) {
  NumericFault fault;
  fault.step = known.step;
  fault.detected_at = known.detected_at;
  fault.kind = class_of(known.cause);
  if (!known.shared || known.cause != Cause::kReplica) {
    for (const uint32_t slot : known.slots) fault.ranks.push_back(window.rank(slot));
  }
  std::sort(fault.ranks.begin(), fault.ranks.end());
  fault.metrics = known.metrics;
  fault.confidence = known.confidence;
  fault.mitigation = mitigation_of(known, window);
  return fault;
}

Finding finding_of(const Case& known, const Window& window) {
  Finding finding;
  finding.detector = DetectorKind::kNumerics;
  finding.kind = known.cause == Cause::kPlanned ? FindingKind::kSupport : FindingKind::kFault;
  act(finding, known);
  // The rank with the first NaN/Inf is a location, not an accusation.
  const bool accuses = is_corruption(known.cause);
  if (accuses || known.cause == Cause::kSpoilt) {
    finding.one_of = accuses && known.shared;
    for (const uint32_t slot : known.slots) {
      FindingSubject subject;
      if (!window.host(slot).empty()) subject.host = window.host(slot);
      subject.rank = window.rank(slot);
      // Certain evidence against a device counts 1; on a tie, the slots share it.
      if (accuses)
        subject.strength = known.confidence / (known.shared ? static_cast<double>(known.slots.size()) : 1.0);
      finding.subjects.push_back(std::move(subject));
    }
  }
  finding.first_ns = known.first_ns;
  finding.last_ns = known.last_ns;
  finding.iteration = known.step;
  finding.why = reasons(known);
  finding.confidence = known.confidence;
  finding.title = title_of(known, window);
  finding.symptom = Symptom::kNumeric;
  finding.remedy = mitigation_of(known, window);
  return finding;
}

}  // namespace culprit::numerics
