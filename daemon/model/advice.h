// Advice to a training loop: what the controller or a person suggests, the mapped record that carries it
// (docs/formats.md, "Advice"), and what the loop did with it. Plain values and pure functions, any thread. No
// input fails an assertion.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace culprit {

enum class AdviceKind : uint8_t {
  kRollback = 1,  // to a checkpoint from before step `argument`
  kSkipBatches,   // so many
  kLowerLr,       // the learning rate times `argument`
  kClip,          // gradients to the norm `argument`
  kCheckRank,     // rank `argument`
  kSaveNow,       // a checkpoint; no argument
  kStop,          // end at a good moment; no argument
};
constexpr uint16_t kAdviceKinds = static_cast<uint16_t>(AdviceKind::kStop);  // the largest
std::string_view to_string(AdviceKind kind);  // "rollback", "skip_batches", …
std::optional<AdviceKind> advice_kind(std::string_view word);

enum class AdviceReason : uint8_t { kPerson, kSlowHost, kDevice, kNumbers };
constexpr uint32_t kAdviceReasons = 4;

struct Advice {
  uint64_t id = 0;  // greater: newer; not 0
  AdviceKind kind = AdviceKind::kSaveNow;
  double argument = 0;
  int64_t effective_step = 0;  // not for earlier steps
  uint32_t lasts_ms = 600'000;
  AdviceReason reason = AdviceReason::kPerson;
  bool operator==(const Advice&) const = default;
};
constexpr uint64_t kAdviceIdMax = (uint64_t{1} << 63) - 1;
constexpr int64_t kAdviceStepMax = (int64_t{1} << 53) - 1;

// Whether the argument fits the kind, and all is within its limits. The error is one sentence.
Status check_advice(const Advice& advice);

// ---- the record

constexpr size_t kAdviceBytes = 64;
// `made_ns`: on CLOCK_BOOTTIME. `sequence`: even: the record is whole; odd: it is being written.
std::string encode_advice(const Advice& advice, TimeNs made_ns, uint64_t sequence);
struct AdviceRecord {
  Advice advice;
  TimeNs made_ns = 0;
  uint64_t sequence = 0;
};
// Nothing: torn, of another version, or nothing that encode_advice() writes.
std::optional<AdviceRecord> decode_advice(std::string_view bytes);
// The record's name in the folder "advice" of the rings: "1000-5b8f3c6a1e7d9042". `job`: without an owner.
std::string advice_file_name(uint32_t uid, std::string_view job);

// ---- what came of it

enum class AdviceOutcome : uint8_t { kTaken, kRefused, kAchieved, kNotApplied };
constexpr size_t kAdviceOutcomes = 4;
std::string_view to_string(AdviceOutcome outcome);  // "taken", "refused", "achieved", "not_applied"
std::optional<AdviceOutcome> advice_outcome(std::string_view word);

// Of one advice: the ranks that reported each outcome, and the steps.
struct AdviceSummary {
  uint64_t id = 0;
  std::string kind;  // a word, as the loop wrote it
  uint64_t taken = 0, refused = 0, achieved = 0, not_applied = 0;
  int64_t first_step = -1, last_step = -1;  // at which it was taken; equal: all ranks at one step
  std::string why;                          // of a refusal, or of not being applied
  TimeNs at_ns = kNoTime;                   // of the newest report
  bool operator==(const AdviceSummary&) const = default;
};

}  // namespace culprit
