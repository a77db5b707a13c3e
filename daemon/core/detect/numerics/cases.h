// Faults found in a job's metrics, with one entry per fault over all its steps. Owned by one detector; one
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "base/time.h"

namespace culprit::numerics {

enum class Cause : uint8_t {
  kReplica,    // a replica differs from its peers in values that all replicas share
  kSum,        // the reduced gradient is not the mean of the local gradients
  kNotFinite,  // one rank's values are not finite, and its peers' values are
  // one rank's local metrics are outliers in one part of the model; hard samples would affect the loss
  kApart,
  kAudit,     // a recomputation on another device gave a different result
  kSpoilt,    // values of one rank became NaN or infinite while its parameters were sound
  kBatch,     // samples of some ranks
  kAllBatch,  // samples of all ranks
  kUnstable,  // the optimiser
  kOverflow,  // values of most ranks are not finite, for any reason
  kPlanned,   // a change that the loop announced or made itself
};
constexpr bool is_corruption(Cause cause) { return cause <= Cause::kAudit; }

// Recomputed steps with the same result.
struct Agreed {
  uint64_t times = 0;
  int64_t first = 0, last = 0;  // steps
};

struct Case {
  Cause cause = Cause::kReplica;
  int64_t step = 0, detected_at = 0, last_step = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  std::vector<uint32_t> slots;  // ascending; empty: unknown, or all ranks
  bool proved = false;          // by a check of the device
  bool undone = false;  // all that proves it: no wrong result was taken, so nothing is to be rolled back
  bool shared = false;  // one of the slots, unknown which
  uint32_t spells = 1;  // occurrences, separated by sound steps
  std::string title;    // empty: derived from the cause
  std::vector<std::string> metrics;
  double confidence = 0;
  std::optional<int64_t> equal_step;  // last step at which replicas were equal
  std::vector<std::string> why;
  Agreed same, elsewhere;  // on the suspected device; on another device
  bool open = true;
};

// An anomaly of all ranks at once.
struct Alarm {
  Cause cause = Cause::kAllBatch;
  int64_t since = 0;
  std::vector<std::string> metrics = {};
  double confidence = 0;
  std::string why = {};
  std::string title = {};
};

constexpr size_t kMetricsReported = 16;  // per fault; limited for human readers
// Steps after a fault in which further symptoms count as its consequences.
constexpr int64_t kAftermath = 64;

class Cases {
 public:
  // The open case of this cause and these slots; null: none.
  Case* open(Cause cause, const std::vector<uint32_t>& slots) {
    for (auto at = all_.rbegin(); at != all_.rend(); ++at) {
      if (at->open && at->cause == cause && at->slots == slots) return &*at;
    }
    return nullptr;
  }
  // Adds a case. It replaces an open case of the same rank: one proved by an earlier check, or one from local
  // metrics before the replica differed. Values that are not finite on a proved rank become part of its case.
  // Null: over the limit.
  Case* add(Case made) {
    for (Case& known : all_) {
      if (known.open && known.proved && is_spoilt_by(known, made)) {
        for (const std::string& metric : made.metrics)
          if (known.metrics.size() < kMetricsReported) known.metrics.push_back(metric);
        known.last_step = std::max(known.last_step, made.last_step);
        return &known;
      }
      if (!known.open || !becomes(known, made)) continue;
      take_over(known, made);
      known = std::move(made);
      return &known;
    }
    if (all_.size() >= limits::kNumericFaults) {
      ++refused_;
      return nullptr;
    }
    all_.push_back(std::move(made));
    return &all_.back();
  }
  std::vector<Case>& all() { return all_; }
  const std::vector<Case>& all() const { return all_; }
  uint64_t refused() const { return refused_; }

  // Whether `made` is the NaN or infinity that the rank of `known` computed.
  static bool is_spoilt_by(const Case& known, const Case& made) {
    return made.cause == Cause::kSpoilt && made.slots == known.slots && made.step >= known.step &&
           made.step - known.last_step <= kAftermath;
  }

 private:
  static bool becomes(const Case& known, const Case& made) {
    if (made.slots.size() != 1 || made.shared) return false;
    const bool same = std::find(known.slots.begin(), known.slots.end(), made.slots[0]) != known.slots.end();
    if (known.cause == Cause::kAudit) return same && made.cause < Cause::kAudit;
    return known.cause == Cause::kApart && made.cause == Cause::kReplica && same &&
           made.last_step - known.last_step <= kAftermath;
  }
  static void take_over(const Case& known, Case& made) {
    made.step = std::min(made.step, known.step);
    made.detected_at = known.detected_at;
    made.last_step = std::max(made.last_step, known.last_step);
    made.first_ns = known.first_ns;
    made.proved = known.proved;
    made.confidence = std::max(made.confidence, known.confidence);
    // Order of reasons: proofs, replicas, local metrics.
    made.why.insert(known.cause == Cause::kAudit ? made.why.begin() : made.why.end(), known.why.begin(),
                    known.why.end());
    for (const std::string& metric : known.metrics)
      if (made.metrics.size() < kMetricsReported) made.metrics.push_back(metric);
    made.same = known.same;
    made.elsewhere = known.elsewhere;
  }

  std::vector<Case> all_;
  uint64_t refused_ = 0;
};

}  // namespace culprit::numerics
