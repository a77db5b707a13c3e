#include "core/detect/numerics/replica_check.h"

#include <algorithm>

namespace culprit::numerics {

namespace {

// Number of equal steps after which a difference is an error. Norms that all replicas should share need few.
// For other metrics, 16 consecutive matches of six-digit numbers are practically never chance.
constexpr uint32_t kAlikeShared = 3, kAlikeOther = 16;
// A slot astray is healed after this many equal steps: a diverged replica never matches twice by chance.
constexpr uint8_t kAlikeAgain = 2;
// Error of six-digit numbers: half a unit in the last digit of each factor, and of the sum.
constexpr double kRounding = 1.5e-5;
constexpr uint32_t kSumSteps = 8;

double apart(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-300});
}

}  // namespace

// Sets odd_ to slots outside the majority, and back_ to astray slots within it. False: nothing to compare.
template <class Value, class Reported>
bool ReplicaCheck::compare(const Team& team, Value value, Reported reported) {
  odd_.clear();
  back_.clear();
  voters_ = 0;
  // Boyer-Moore majority vote.
  size_t lead = 0, reported_by = 0;
  bool alike = true;
  leader_.reset();
  for (const uint32_t slot : team.slots) {
    if (!reported(slot)) continue;
    ++reported_by;
    if (team.astray[slot]) continue;
    ++voters_;
    if (!leader_) leader_ = slot;
    const bool same = value(slot) == value(*leader_);
    alike &= same;
    if (same) {
      ++lead;
    } else if (--lead == 0) {
      leader_ = slot;
      lead = 1;
    }
  }
  if (voters_ < 2) return false;
  if (alike && reported_by == voters_) return true;
  for (const uint32_t slot : team.slots) {
    if (!reported(slot)) continue;
    const bool same = value(slot) == value(*leader_);
    if (same && team.astray[slot]) back_.push_back(slot);
    if (!same && !team.astray[slot]) odd_.push_back(slot);
  }
  return true;
}

// Adds the last compared column's odd slots and matches of astray slots.
void ReplicaCheck::count(Odd& odd) {
  ++compared_;
  for (const uint32_t slot : back_) ++again_[slot];
  odd.tie |= odd_.size() * 2 >= voters_ && !odd_.empty();
  for (const uint32_t slot : odd_) odd_now_[slot] = 1;
}

void ReplicaCheck::compare_digests(const Frame& frame, const Team& team, Odd& odd) {
  digests_.resize(std::max(digests_.size(), frame.digests.size()));
  for (uint32_t number = 0; number < frame.digests.size(); ++number) {
    const auto& cells = frame.digests[number];
    const auto& reported = frame.digest_reported[number];
    const auto is_there = [&](uint32_t slot) { return slot < reported.size() && reported[slot]; };
    if (!compare(
            team, [&](uint32_t slot) { return cells[slot]; }, is_there))
      continue;
    Column& column = digests_[number];
    // Parameter shards all differ, so they are not compared. For the first comparison, a clear majority is
    // enough, because equal digests prove equal tensors.
    column.is_held |= odd_.empty() || (voters_ > 2 && odd_.size() * 3 <= voters_);
    if (!column.is_held) continue;
    count(odd);
    has_digest_ = true;
    if (!odd_.empty()) odd.digests.push_back(number);
  }
}

void ReplicaCheck::compare_metrics(const Frame& frame, const Window& window, const Team& team, Odd& odd) {
  columns_.resize(std::max(columns_.size(), frame.values.size()));
  const auto slots = team.slots;
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    if (is_planned(role) || role == Role::kTiming) continue;
    Column& column = columns_[number];
    const auto& cells = frame.values[number];
    const auto is_there = [&](uint32_t slot) { return slot < cells.size() && is_reported(cells[slot]); };
    const auto bits = [&](uint32_t slot) { return std::bit_cast<uint64_t>(cells[slot]); };
    // Shortcut: most metrics already differ between the first two ranks.
    if (!column.is_held && !is_shared(role) && is_there(slots[0]) && is_there(slots[1]) &&
        bits(slots[0]) != bits(slots[1])) {
      column.run = 0;
      continue;
    }
    if (!compare(team, bits, is_there)) continue;
    if (!column.is_held && !odd_.empty()) column.run = 0;
    if (odd_.empty()) {
      if (bits(*leader_) != std::bit_cast<uint64_t>(column.last)) ++column.run;
      column.last = cells[*leader_];
      column.is_held |= column.run >= (is_shared(role) ? kAlikeShared : kAlikeOther);
    }
    if (!column.is_held) continue;
    count(odd);
    has_metric_ = true;
    if (odd_.empty()) continue;
    odd.columns.push_back(number);
    for (const uint32_t slot : odd_) odd.apart = std::max(odd.apart, apart(cells[slot], cells[*leader_]));
  }
}

ReplicaCheck::ReplicaDiffs ReplicaCheck::step(const Frame& frame, const Window& window,
                                              std::span<const uint32_t> slots, const Marks& astray) {
  ReplicaDiffs seen;
  if (slots.size() < 2) return seen;
  odd_now_.assign(window.slots(), 0);
  again_.assign(window.slots(), 0);
  alike_.resize(window.slots());
  compared_ = 0;
  has_digest_ = has_metric_ = false;
  Odd odd;
  const Team team{.slots = slots, .astray = astray};
  compare_digests(frame, team, odd);
  compare_metrics(frame, window, team, odd);
  for (const uint32_t slot : slots) {
    if (odd_now_[slot]) odd.slots.push_back(slot);
    if (odd.tie && !astray[slot] && frame.is_seen(slot) && !odd_now_[slot]) odd.slots.push_back(slot);
    if (!astray[slot] || !frame.is_seen(slot) || compared_ == 0) continue;
    const bool is_alike = again_[slot] == compared_;
    // If the job has digests, equal norms alone do not prove a healed replica.
    if (is_alike && digest_step_ && !has_digest_) continue;
    alike_[slot] = is_alike ? static_cast<uint8_t>(alike_[slot] + 1) : 0;
    if (alike_[slot] < (digest_step_ ? 1 : kAlikeAgain)) continue;
    alike_[slot] = 0;
    seen.healed.push_back(slot);
  }
  if (odd.slots.empty()) {
    if (has_digest_) digest_step_ = frame.step;
    if (has_metric_) metric_step_ = frame.step;
  } else {
    seen.odd = std::move(odd);
  }
  return seen;
}

std::optional<Sum::Wrong> Sum::step(const Frame& frame, const Window& window,
                                    std::span<const uint32_t> slots) {
  std::optional<uint32_t> norm, cosine, reduced, scale;
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    switch (window.names()[number].role) {
      case Role::kGradNorm:
        norm = number;
        break;
      case Role::kGradCos:
        cosine = number;
        break;
      case Role::kReduced:
        reduced = number;
        break;
      case Role::kLossScale:
        scale = number;
        break;
      default:
        break;
    }
  }
  if (!norm || !reduced || slots.empty()) return {};
  double sum = 0, parts = 0, largest = 0;
  bool has_cosine = cosine.has_value();
  const double reported = frame.value(*reduced, slots.front());
  for (const uint32_t slot : slots) {
    const double g = frame.value(*norm, slot), r = frame.value(*reduced, slot);
    const double c = cosine ? frame.value(*cosine, slot) : kAbsent;
    // If a part is missing, the sum cannot be checked; other checks find a single wrong part.
    if (!is_reported(g) || !is_reported(r) || !std::isfinite(g)) return {};
    if (std::bit_cast<uint64_t>(r) != std::bit_cast<uint64_t>(reported)) return {};
    has_cosine &= is_reported(c) && std::isfinite(c);
    sum += g * c;
    parts += std::abs(g * c);
    largest = std::max(largest, g);
  }
  const auto n = static_cast<double>(slots.size());
  sum /= n;
  parts /= n;
  if (!std::isfinite(reported)) {
    // Parts of usual size cannot sum to infinity. With a scaled loss, sums overflow occasionally.
    const bool usual = finite_ >= kSumSteps && largest <= 100 * usual_;
    if (!usual || scale) return {};
    return Wrong{.expected = usual_, .reported = reported, .overflowed = true};
  }
  ++finite_;
  usual_ = std::max(largest, usual_ * 0.99);
  if (!has_cosine || parts <= 0) return {};
  const double error = std::abs(sum - reported) / std::max(parts, std::abs(reported));
  if (error <= kRounding || error <= 4 * worst_) {
    ++run_;
    worst_ = std::max(worst_ * 0.999, error);
    return {};
  }
  if (run_ >= kSumSteps) return Wrong{.expected = sum, .reported = reported};
  // The equation held for too few steps, or does not apply.
  run_ = 0;
  worst_ = error < 0.01 ? std::max(worst_, error) : worst_;
  return {};
}

}  // namespace culprit::numerics
