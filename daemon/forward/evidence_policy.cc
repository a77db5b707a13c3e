#include "forward/evidence_policy.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace culprit::forward {
namespace {

// Limit of time spans around findings whose frames are not yet sent. Excess spans are merged into one.
constexpr size_t kSpans = 1024;

}  // namespace

bool Selection::selects(TimeNs packed_ns, bool declares) const {
  if (all || declares) return true;
  return std::any_of(spans.begin(), spans.end(),
                     [&](const Span& span) { return span.from_ns <= packed_ns && packed_ns <= span.to_ns; });
}

void EvidencePolicy::around(TimeNs from_ns, TimeNs to_ns) {
  constexpr TimeNs kEver = std::numeric_limits<TimeNs>::max();
  // Untrusted numbers.
  want(std::max<TimeNs>(0, from_ns) - options_.around_ns,
       to_ns > kEver - options_.around_ns ? kEver : to_ns + options_.around_ns);
}

void EvidencePolicy::want(TimeNs from_ns, TimeNs to_ns) {
  Selection::Span added{from_ns, to_ns};
  std::erase_if(spans_, [&](const Selection::Span& span) {
    if (span.to_ns < added.from_ns || added.to_ns < span.from_ns) return false;
    added.from_ns = std::min(added.from_ns, span.from_ns);
    added.to_ns = std::max(added.to_ns, span.to_ns);
    return true;
  });
  const auto after = std::find_if(spans_.begin(), spans_.end(),
                                  [&](const Selection::Span& span) { return span.from_ns > added.from_ns; });
  spans_.insert(after, added);
  if (spans_.size() <= kSpans) return;
  spans_[1].from_ns = spans_[0].from_ns;  // covers more than requested, never less
  spans_.erase(spans_.begin());
}

Selection EvidencePolicy::selection(TimeNs wall_ns) const {
  constexpr TimeNs kEver = std::numeric_limits<TimeNs>::max();
  switch (options_.mode) {
    case EvidenceMode::kAll:
      return {true, {}, kEver};
    case EvidenceMode::kNone:
      return {false, {}, kEver};
    case EvidenceMode::kFindings:
      break;
  }
  // A finding is reported some time after its cause, so frames before its span need no further wait.
  TimeNs until = wall_ns - 2 * options_.around_ns;
  for (const Selection::Span& span : spans_)
    if (span.from_ns <= wall_ns) until = std::max(until, span.from_ns);
  return {false, spans_, until};
}

void EvidencePolicy::decided(TimeNs packed_ns) {
  std::erase_if(spans_, [&](const Selection::Span& span) { return span.to_ns < packed_ns; });
}

uint64_t EvidencePolicy::allowance(TimeNs mono_ns) {
  if (options_.bytes_per_second == 0) return std::numeric_limits<uint64_t>::max();
  CULPRIT_CHECK(paid_ns_ == kNoTime || mono_ns >= paid_ns_);
  const auto rate = static_cast<double>(options_.bytes_per_second);
  if (paid_ns_ != kNoTime) owed_ -= rate * static_cast<double>(mono_ns - paid_ns_) / double{kNsPerSecond};
  paid_ns_ = mono_ns;
  owed_ = std::max(owed_, 0.0);
  // The unused budget of up to one second may be sent at once.
  return owed_ < rate ? static_cast<uint64_t>(rate - owed_) : 0;
}

}  // namespace culprit::forward
