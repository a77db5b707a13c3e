// Results of a training loop's own checks: proofs and retractions.
#include <fmt/format.h>

#include "core/detect/numerics/judge.h"

namespace culprit::numerics {

namespace {

// Confidence from one check that shows a difference. A test of a device against itself or others leaves
// little doubt; each further check halves the doubt.
constexpr double kProved = 0.95;
constexpr double kSharedDoubt = 0.7;  // two ranks differ, without a third for comparison

bool holds(const Case& known, uint32_t slot) {
  return std::find(known.slots.begin(), known.slots.end(), slot) != known.slots.end();
}

}  // namespace

// The last corruption case in which the slot is suspected.
Case* Judge::suspected(uint32_t slot) {
  auto& all = cases_.all();
  for (auto at = all.rbegin(); at != all.rend(); ++at) {
    const bool may = is_corruption(at->cause) || at->cause == Cause::kBatch || at->cause == Cause::kSpoilt;
    if (may && holds(*at, slot)) return &*at;
  }
  return nullptr;
}

void Judge::prove(uint32_t slot, const Check& check, TimeNs time_ns, std::string why) {
  Case* known = suspected(slot);
  const bool spoilt = known != nullptr && known->cause == Cause::kSpoilt && known->step == check.step &&
                      known->slots == std::vector<uint32_t>{slot};
  if (spoilt) {
    known->cause = Cause::kAudit;  // the device, then, and not its samples
    known->why.clear();
    known->undone = check.undone;
  } else if (known == nullptr || !is_corruption(known->cause)) {
    Case made;
    made.cause = Cause::kAudit;
    made.step = made.detected_at = made.last_step = check.step;
    made.first_ns = made.last_ns = time_ns;
    made.slots = {slot};
    made.undone = check.undone;
    known = cases_.add(std::move(made));
    if (known == nullptr) return;
  }
  known->undone = known->undone && check.undone;
  known->confidence = known->proved ? 1 - (1 - known->confidence) / 2 : std::max(kProved, known->confidence);
  known->proved = true;
  known->shared = false;
  known->slots = {slot};
  known->last_step = std::max(known->last_step, check.step);
  known->last_ns = std::max(known->last_ns, time_ns);
  if (known->why.size() < 8) known->why.push_back(std::move(why));
}

void Judge::add_replay(uint32_t slot, const Check& check, TimeNs time_ns) {
  const bool is_same = check.kind == Check::Kind::kReplaySame;
  if (!check.equal) {
    prove(slot, check, time_ns,
          fmt::format("step {} of rank {} computed again {} gave something else", check.step, check.rank,
                      is_same ? "on the same device" : "on another device"));
    return;
  }
  Case* known = suspected(slot);
  // A check of a step before the fault is no evidence.
  if (known == nullptr || known->proved || check.step < known->step) return;
  Agreed& agreed = is_same ? known->same : known->elsewhere;
  if (agreed.times == 0) agreed.first = check.step;
  agreed.last = std::max(agreed.last, check.step);
  // Only the first result counts, because a loop may recompute every step.
  if (++agreed.times > 1) return;
  if (is_same) {
    // A permanently faulty device repeats its error.
    known->confidence *= 0.8;
    return;
  }
  const bool is_local =
      known->cause == Cause::kApart || known->cause == Cause::kNotFinite || known->cause == Cause::kSpoilt;
  if (is_local && known->slots.size() == 1) {
    known->cause = Cause::kBatch;
    known->confidence = 0.8;
  } else {
    known->confidence *= 0.5;
  }
}

void Judge::add_audit(uint32_t slot, uint32_t by, const Check& check, TimeNs time_ns) {
  if (check.equal) return;
  std::optional<uint32_t> odd;
  if (check.odd) odd = *check.odd == check.rank ? slot : by;
  // A rank in two differing pairs is the odd one.
  auto& all = cases_.all();
  for (Case& known : all) {
    if (odd || known.cause != Cause::kAudit || !known.shared) continue;
    const bool first = holds(known, slot), second = holds(known, by);
    if (first == second) continue;
    odd = first ? slot : by;
  }
  if (odd) {
    for (Case& known : all) {
      if (known.cause == Cause::kAudit && known.shared && holds(known, *odd)) known.slots = {*odd};
    }
    const uint32_t rank = *odd == slot ? check.rank : check.by;
    prove(*odd, check, time_ns,
          fmt::format("rank {} computed step {} of the same samples otherwise than rank {}", rank, check.step,
                      *odd == slot ? check.by : check.rank));
    return;
  }
  std::vector<uint32_t> slots = {std::min(slot, by), std::max(slot, by)};
  if (Case* known = cases_.open(Cause::kAudit, slots)) {
    known->last_step = std::max(known->last_step, check.step);
    return;
  }
  Case made;
  made.cause = Cause::kAudit;
  made.step = made.detected_at = made.last_step = check.step;
  made.first_ns = made.last_ns = time_ns;
  made.slots = std::move(slots);
  made.shared = true;
  made.confidence = kSharedDoubt;
  made.why.push_back(fmt::format("ranks {} and {} computed step {} of the same samples differently",
                                 check.rank, check.by, check.step));
  cases_.add(std::move(made));
}

void Judge::add_check(const Check& check, TimeNs time_ns, Window& window) {
  const auto slot = window.slot_of(check.rank, {});
  if (!slot) return;
  if (check.kind != Check::Kind::kAudit) return add_replay(*slot, check, time_ns);
  if (const auto by = window.slot_of(check.by, {})) add_audit(*slot, *by, check, time_ns);
}

}  // namespace culprit::numerics
