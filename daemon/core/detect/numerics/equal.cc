#include "core/detect/numerics/equal.h"

#include <algorithm>

namespace culprit::core::numerics {

namespace {

// Steps alike until a metric is held to be equal for ever. Norms that all replicas should share need few; of
// another name, numbers of six digits of which 16 in a row agree on two ranks by chance are unheard of.
constexpr uint32_t kAlikeShared = 3, kAlikeOther = 16;
// A slot astray is back when it was alike in as many steps: a diverged replica is never twice by chance.
constexpr uint8_t kAlikeAgain = 2;
// What six digits leave: half a unit in the last of each factor, and as much in the sum.
constexpr double kRounding = 1.5e-5;
constexpr uint32_t kSumSteps = 8;

double apart(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / std::max({std::abs(a), std::abs(b), 1e-300});
}

}  // namespace

// Into odd_ and back_: who is not with the most, and who is astray and is. False: nothing to compare.
template <class Value, class Told>
bool Equal::compare(const Team& team, Value value, Told told) {
  odd_.clear();
  back_.clear();
  voters_ = 0;
  // Boyer and Moore's vote, then its count.
  size_t lead = 0, told_by = 0;
  bool alike = true;
  leader_.reset();
  for (const uint32_t slot : team.slots) {
    if (!told(slot)) continue;
    ++told_by;
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
  if (alike && told_by == voters_) return true;
  for (const uint32_t slot : team.slots) {
    if (!told(slot)) continue;
    const bool same = value(slot) == value(*leader_);
    if (same && team.astray[slot]) back_.push_back(slot);
    if (!same && !team.astray[slot]) odd_.push_back(slot);
  }
  return true;
}

// Takes in what the column compared last says: who is odd, and who astray is alike again in one more.
void Equal::count(Odd& odd) {
  ++compared_;
  for (const uint32_t slot : back_) ++again_[slot];
  odd.tie |= odd_.size() * 2 >= voters_ && !odd_.empty();
  for (const uint32_t slot : odd_) odd_now_[slot] = 1;
}

void Equal::compare_digests(const Frame& frame, const Team& team, Odd& odd) {
  digests_.resize(std::max(digests_.size(), frame.digests.size()));
  for (uint32_t number = 0; number < frame.digests.size(); ++number) {
    const auto& cells = frame.digests[number];
    const auto& told = frame.digest_told[number];
    const auto is_there = [&](uint32_t slot) { return slot < told.size() && told[slot]; };
    if (!compare(
            team, [&](uint32_t slot) { return cells[slot]; }, is_there))
      continue;
    Column& column = digests_[number];
    // Shards, of which no two are alike, are nothing to compare. Most alike at first sight is enough: equal
    // digests say equal tensors.
    column.is_held |= odd_.empty() || (voters_ > 2 && odd_.size() * 3 <= voters_);
    if (!column.is_held) continue;
    count(odd);
    has_digest_ = true;
    if (!odd_.empty()) odd.digests.push_back(number);
  }
}

void Equal::compare_metrics(const Frame& frame, const Window& window, const Team& team, Odd& odd) {
  columns_.resize(std::max(columns_.size(), frame.values.size()));
  const auto slots = team.slots;
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    if (is_planned(role) || role == Role::kTiming) continue;
    Column& column = columns_[number];
    const auto& cells = frame.values[number];
    const auto is_there = [&](uint32_t slot) { return slot < cells.size() && is_told(cells[slot]); };
    const auto bits = [&](uint32_t slot) { return std::bit_cast<uint64_t>(cells[slot]); };
    // Most metrics are of one rank each, and the first two differ.
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

Equal::Seen Equal::step(const Frame& frame, const Window& window, std::span<const uint32_t> slots,
                        const Marks& astray) {
  Seen seen;
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
    // Where there are digests, norms alone do not say that all is well again.
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
  const double told = frame.value(*reduced, slots.front());
  for (const uint32_t slot : slots) {
    const double g = frame.value(*norm, slot), r = frame.value(*reduced, slot);
    const double c = cosine ? frame.value(*cosine, slot) : kAbsent;
    // A part that is missing leaves nothing to compare; one that is wrong alone others see.
    if (!is_told(g) || !is_told(r) || !std::isfinite(g)) return {};
    if (std::bit_cast<uint64_t>(r) != std::bit_cast<uint64_t>(told)) return {};
    has_cosine &= is_told(c) && std::isfinite(c);
    sum += g * c;
    parts += std::abs(g * c);
    largest = std::max(largest, g);
  }
  const auto n = static_cast<double>(slots.size());
  sum /= n;
  parts /= n;
  if (!std::isfinite(told)) {
    // Parts as large as ever do not add up to infinity. Where the loss is scaled, sums overflow now and then.
    const bool usual = finite_ >= kSumSteps && largest <= 100 * usual_;
    if (!usual || scale) return {};
    return Wrong{.expected = usual_, .told = told, .overflowed = true};
  }
  ++finite_;
  usual_ = std::max(largest, usual_ * 0.99);
  if (!has_cosine || parts <= 0) return {};
  const double error = std::abs(sum - told) / std::max(parts, std::abs(told));
  if (error <= kRounding || error <= 4 * worst_) {
    ++run_;
    worst_ = std::max(worst_ * 0.999, error);
    return {};
  }
  if (run_ >= kSumSteps) return Wrong{.expected = sum, .told = told};
  // It never held so well, or is no equality here.
  run_ = 0;
  worst_ = error < 0.01 ? std::max(worst_, error) : worst_;
  return {};
}

}  // namespace culprit::core::numerics
