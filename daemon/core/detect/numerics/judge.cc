#include "core/detect/numerics/judge.h"

#include <fmt/format.h>

namespace culprit::numerics {

namespace {

constexpr int64_t kAtOnce = 8;  // maximum difference, in steps, between dates of one onset
// Number of separate occurrences on one rank alone that exclude bad samples as the cause.
constexpr uint32_t kAgain = 3;

Case begin(Cause cause, const Frame& frame) {
  Case made;
  made.cause = cause;
  made.step = made.detected_at = made.last_step = frame.step;
  made.first_ns = frame.first_ns;
  made.last_ns = frame.last_ns;
  return made;
}

void goes_on(Case& known, const Frame& frame) {
  known.last_step = frame.step;
  known.last_ns = std::max(known.last_ns, frame.last_ns);
}

// Whether anomaly `then` is a consequence of fault `before`. Any anomaly can follow from corruption, a climb
// from its first cause, and NaN/Inf from the preceding fault.
bool follows(Cause then, Cause before) {
  if (then == before || is_corruption(before)) return true;
  if (then == Cause::kUnstable) return before == Cause::kAllBatch || before == Cause::kPlanned;
  return then == Cause::kOverflow &&
         (before == Cause::kAllBatch || before == Cause::kUnstable || before == Cause::kSpoilt);
}

}  // namespace

void Judge::restart() {
  peers_ = Peers(layout_);
  teams_.clear();
  astray_.clear();
  together_ = GlobalShift();
  overflow_ = Overflow();
  for (Case& known : cases_.all()) known.open = false;
}

void Judge::see_odd(const ReplicaCheck& equal, const ReplicaCheck::Odd& odd, const Frame& frame,
                    const Window& window) {
  Case* known = cases_.open(Cause::kReplica, odd.slots);
  if (known != nullptr) return goes_on(*known, frame);
  std::vector<std::string> metrics;
  for (const uint32_t number : odd.digests) metrics.push_back("digest " + window.digest_names()[number].text);
  for (const uint32_t number : odd.columns) metrics.push_back(window.names()[number].text);
  Case made = begin(Cause::kReplica, frame);
  made.slots = odd.slots;
  made.shared = odd.tie;
  made.equal_step = equal.equal_step();
  const bool slight = odd.digests.empty() && odd.columns.size() == 1 && odd.apart < 1e-5;
  made.confidence = odd.tie ? 0.7 : slight ? 0.8 : 0.97;
  made.why.push_back(fmt::format("at step {} {} no longer equal on all replicas{}", frame.step,
                                 metrics.size() == 1
                                     ? metrics[0] + " is"
                                     : fmt::format("{} and {} more are", metrics[0], metrics.size() - 1),
                                 odd.tie ? ", and as many hold the one as the other" : ""));
  metrics.resize(std::min(metrics.size(), kMetricsReported));
  made.metrics = std::move(metrics);
  if (made.equal_step) made.why.push_back(fmt::format("they were equal until step {}", *made.equal_step));
  cases_.add(std::move(made));
  if (odd.tie) return;
  for (const uint32_t slot : odd.slots) astray_[slot] = 1;
}

void Judge::see_healed(const std::vector<uint32_t>& slots, const Frame& frame) {
  for (const uint32_t slot : slots) {
    astray_[slot] = 0;
    for (Case& known : cases_.all()) {
      if (!known.open || known.cause != Cause::kReplica) continue;
      if (std::find(known.slots.begin(), known.slots.end(), slot) == known.slots.end()) continue;
      known.open = false;
      known.why.push_back(fmt::format("the replicas are equal again at step {}", frame.step));
    }
  }
}

bool Judge::see_not_finite(const Peers::Group& group, const Frame& frame, const Window& window) {
  std::vector<uint32_t> slots, reported;
  std::vector<std::string> metrics;
  std::vector<uint8_t> odd(window.slots());
  bool scaled = false, forward = false;
  std::string first;
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    scaled |= window.names()[number].role == Role::kLossScale;
  }
  size_t voters = 0;
  for (const uint32_t slot : group.slots) voters += frame.is_seen(slot) && !astray_[slot];
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    const Role role = window.names()[number].role;
    // With loss scaling, occasional overflows of gradients are expected.
    if (is_planned(role) || role == Role::kTiming || (scaled && role == Role::kGradPart)) continue;
    if (scaled && (role == Role::kGradNorm || role == Role::kGradCos)) continue;
    reported.clear();
    const bool is_forward = role != Role::kGradNorm && role != Role::kGradPart && role != Role::kGradCos;
    for (const uint32_t slot : group.slots) {
      const double value = frame.value(number, slot);
      if (!astray_[slot] && is_reported(value) && !std::isfinite(value)) reported.push_back(slot);
    }
    if (reported.empty() || reported.size() * 2 > voters || voters < 2) continue;
    for (const uint32_t slot : reported) odd[slot] = 1;
    const std::string& name = window.names()[number].text;
    if (first.empty() || role == Role::kLoss) first = name;
    forward |= is_forward;
    if (metrics.size() < kMetricsReported) metrics.push_back(name);
  }
  for (const uint32_t slot : group.slots) {
    if (odd[slot]) slots.push_back(slot);
  }
  if (slots.empty()) return false;
  for (const Cause cause : {Cause::kNotFinite, Cause::kSpoilt}) {
    Case* known = cases_.open(cause, slots);
    if (known == nullptr) continue;
    if (cause == Cause::kSpoilt) recur(*known, frame);
    goes_on(*known, frame);
    return true;
  }
  // With sound parameters, the cause is a sample or a device with a single error. Samples with a fully masked
  // target, for example, lead to a division by zero. Metrics do not distinguish sample and device; samples
  // are the more frequent cause.
  Case made = begin(Cause::kSpoilt, frame);
  made.slots = std::move(slots);
  made.metrics = std::move(metrics);
  made.confidence = forward ? 0.6 : 0.55;
  made.why.push_back(fmt::format("{} stopped being finite at step {} on {} of {} replicas first", first,
                                 frame.step, made.slots.size(), voters));
  made.why.push_back("parameters were finite before it: it came in with a sample, or a device erred once");
  cases_.add(std::move(made));
  return true;
}

// Bad samples occur on changing ranks, so repeated NaN/Inf on one rank alone is the rank's fault.
void Judge::recur(Case& known, const Frame& frame) {
  if (frame.step - known.last_step <= kAtOnce || ++known.spells < kAgain || known.slots.size() != 1) return;
  const auto& all = cases_.all();
  const bool alone = std::none_of(all.begin(), all.end(), [&](const Case& other) {
    return other.cause == Cause::kSpoilt && other.slots != known.slots;
  });
  if (!alone) return;
  known.cause = Cause::kNotFinite;
  known.confidence = 0.6;
  known.why.push_back(
      fmt::format("it came back {} times until step {}, on this rank alone", known.spells - 1, frame.step));
}

void Judge::see_sum(const ReplicaCheck& equal, const Sum::Wrong& wrong, const Frame& frame,
                    const Window& window) {
  if (Case* known = cases_.open(Cause::kSum, {})) return goes_on(*known, frame);
  Case made = begin(Cause::kSum, frame);
  for (uint32_t number = 0; number < frame.values.size(); ++number) {
    if (window.names()[number].role == Role::kReduced) made.metrics.push_back(window.names()[number].text);
  }
  made.confidence = wrong.overflowed ? 0.8 : 0.95;
  made.equal_step = equal.equal_step();
  made.why.push_back(
      wrong.overflowed
          ? fmt::format("the reduced gradient of step {} is not finite, and all that went into it is",
                        frame.step)
          : fmt::format(
                "the reduced gradient of step {} has norm {:.6g}, and the replicas' own add up to {:.6g}",
                frame.step, wrong.reported, wrong.expected));
  cases_.add(std::move(made));
}

void Judge::see_apart(const OutlierRank::Alarm& alarm, const Frame& frame, const Window& window) {
  const std::string& metric = window.names()[alarm.column].text;
  const Role role = window.names()[alarm.column].role;
  // Hard samples raise the loss; a faulty part of the model hardly does.
  const bool is_data =
      role == Role::kLoss || role == Role::kEntropy || alarm.loss_score >= 0.4 * alarm.evidence;
  for (const Cause cause : {Cause::kReplica, Cause::kApart, Cause::kBatch}) {
    Case* known = cases_.open(cause, {alarm.slot});
    if (known == nullptr) continue;
    goes_on(*known, frame);
    const bool is_reported =
        std::find(known->metrics.begin(), known->metrics.end(), metric) != known->metrics.end();
    if (!is_reported && known->metrics.size() < kMetricsReported) known->metrics.push_back(metric);
    // A second metric confirms the case.
    if (!is_reported) known->confidence = std::min(0.95, known->confidence + 0.1);
    return;
  }
  // Simultaneous changes of samples on several or all ranks are one fault.
  for (Case& known : cases_.all()) {
    if (!alarm.shifted || !known.open || std::abs(known.step - alarm.since) > kAtOnce) continue;
    if (known.cause != Cause::kBatch && known.cause != Cause::kAllBatch) continue;
    const auto at = std::lower_bound(known.slots.begin(), known.slots.end(), alarm.slot);
    if (at == known.slots.end() || *at != alarm.slot) known.slots.insert(at, alarm.slot);
    known.cause = Cause::kBatch;
    known.detected_at = frame.step;
    return goes_on(known, frame);
  }
  // Attention entropy depends mainly on samples, so alone it is no evidence. Unstable training also makes
  // ranks differ.
  if (role == Role::kEntropy || is_unstable(frame)) return;
  Case made = begin(is_data ? Cause::kBatch : Cause::kApart, frame);
  made.step = alarm.since;
  made.slots = {alarm.slot};
  made.metrics = {metric};
  made.confidence = is_data ? 0.6 : 0.75;
  if (alarm.single) {
    made.confidence = 0.6;
    made.why.push_back(
        fmt::format("{} of rank {} was farther {} its peers' at step {} than anything before "
                    "makes likely",
                    metric, window.rank(alarm.slot), alarm.above ? "above" : "below", frame.step));
    made.why.push_back("its loss was as its peers', so its samples were too");
    cases_.add(std::move(made));
    return;
  }
  made.why.push_back(
      fmt::format("{} of rank {} stands {} that of its peers again and again from step {} on, as it "
                  "never did before",
                  metric, window.rank(alarm.slot), alarm.above ? "above" : "below", alarm.since));
  made.why.push_back(is_data ? "its loss does too, as with other samples"
                             : "its loss does not, so its samples are "
                               "as its peers'");
  cases_.add(std::move(made));
}

bool Judge::is_unstable(const Frame& frame) const {
  return together_.is_loose() ||
         std::any_of(cases_.all().begin(), cases_.all().end(), [&](const Case& known) {
           return known.open && known.cause == Cause::kUnstable && known.step <= frame.step;
         });
}

// Attributes NaN/Inf right after a leap of the learning rate to this leap. Planned changes and bad samples
// reported since the leap belong to the same fault.
bool Judge::blame_rate(Alarm& alarm) {
  const auto leap = together_.leap_before(alarm.since);
  if (alarm.cause != Cause::kOverflow || !leap) return false;
  alarm.cause = Cause::kUnstable;
  alarm.title = GlobalShift::title_of(*leap) +
                fmt::format("; {} is not finite from step {} on", alarm.metrics.at(0), alarm.since);
  alarm.why = fmt::format("{} went from {:g} to {:g} at step {}, and {}", leap->metric, leap->from, leap->to,
                          leap->step, alarm.why);
  alarm.metrics.insert(alarm.metrics.begin(), leap->metric);
  for (Case& known : cases_.all()) {
    if (!known.open || known.slots.size() > 0 || known.step < leap->step) continue;
    if (known.cause != Cause::kPlanned && known.cause != Cause::kUnstable && known.cause != Cause::kAllBatch)
      continue;
    known.cause = Cause::kUnstable;
    known.title = alarm.title;
    known.metrics = alarm.metrics;
    known.metrics.resize(std::min(known.metrics.size(), kMetricsReported));
    known.confidence = alarm.confidence;
    if (known.why.back() != alarm.why) known.why.push_back(alarm.why);
    return true;
  }
  return false;
}

void Judge::see_together(Alarm alarm, const Frame& frame) {
  if (blame_rate(alarm)) return;
  for (Case& known : cases_.all()) {
    const bool is_loose = known.cause == Cause::kUnstable && alarm.cause == Cause::kAllBatch;
    if (!known.open || frame.step - known.last_step > (is_loose ? 4 : 1) * kAftermath) continue;
    if (!is_loose && !follows(alarm.cause, known.cause)) continue;
    goes_on(known, frame);
    // Report the consequence once.
    if (alarm.cause == Cause::kOverflow && known.why.back() != alarm.why)
      known.why.push_back(std::move(alarm.why));
    return;
  }
  Case made = begin(alarm.cause, frame);
  made.step = alarm.since;
  made.metrics = std::move(alarm.metrics);
  made.metrics.resize(std::min(made.metrics.size(), kMetricsReported));
  made.confidence = alarm.confidence;
  made.title = std::move(alarm.title);
  made.why.push_back(std::move(alarm.why));
  cases_.add(std::move(made));
}

void Judge::judge_team(size_t index, const Frame& frame, const Window& window) {
  const Peers::Group& group = peers_.groups()[index];
  if (group.slots.empty()) return;
  Team& team = teams_[index];
  if (together_.is_restarted()) team.apart = OutlierRank();
  team.apart.set_share(frame.values.size() * teams_.size());
  for (const OutlierRank::Alarm& alarm : team.apart.step(frame, window, group.slots, astray_)) {
    see_apart(alarm, frame, window);
  }
  for (size_t place = 0; place < group.slots.size(); ++place) {
    const uint32_t slot = group.slots[place];
    odd_[slot] = astray_[slot] ? 1.0F : team.apart.odd(place);
  }
  const ReplicaCheck::ReplicaDiffs seen = team.equal.step(frame, window, group.slots, astray_);
  see_healed(seen.healed, frame);
  if (seen.odd) return see_odd(team.equal, *seen.odd, frame, window);
  // In unstable training, single ranks overflow first, so no rank is accused.
  if (!is_unstable(frame) && see_not_finite(group, frame, window)) return;
  std::vector<uint32_t> sound;
  for (const uint32_t slot : group.slots) {
    if (!astray_[slot]) sound.push_back(slot);
  }
  if (sound.size() != group.slots.size()) return;
  if (const auto wrong = team.sum.step(frame, window, group.slots))
    see_sum(team.equal, *wrong, frame, window);
}

void Judge::step(const Frame& frame, const Window& window) {
  peers_.add(frame, window);
  teams_.resize(peers_.groups().size());
  astray_.resize(window.slots());
  odd_.assign(window.slots(), 0);
  for (Case& known : cases_.all()) {
    if (!known.open || known.cause != Cause::kReplica) continue;
    for (const uint32_t slot : known.slots) {
      if (astray_[slot] && frame.is_seen(slot)) goes_on(known, frame);
    }
  }
  std::vector<Alarm> alarms = together_.step(frame, window, astray_);
  for (size_t index = 0; index < teams_.size(); ++index) judge_team(index, frame, window);
  for (Alarm& alarm : alarms) see_together(std::move(alarm), frame);
  if (auto lost = overflow_.step(frame, window, astray_)) see_together(std::move(*lost), frame);
}

}  // namespace culprit::numerics
