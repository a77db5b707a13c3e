#include "model/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/bytes.h"

namespace culprit {
namespace {

constexpr std::string_view kMagic = "CPAD";
constexpr uint16_t kVersion = 1;
constexpr size_t kBody = 8, kChecksum = 56;
constexpr std::array<std::string_view, kAdviceKinds + 1> kKinds = {
    "", "rollback", "skip_batches", "lower_lr", "clip", "check_rank", "save_now", "stop"};
constexpr std::array<std::string_view, kAdviceOutcomes> kOutcomes = {"taken", "refused", "achieved",
                                                                     "not_applied"};

uint64_t fnv1a(std::string_view bytes) {
  uint64_t value = 0xcbf29ce484222325ull;
  for (const char one : bytes) value = (value ^ static_cast<uint8_t>(one)) * 0x100000001b3ull;
  return value;
}

bool is_whole(double value) { return value >= 0 && value <= 9e15 && std::floor(value) == value; }

}  // namespace

std::string_view to_string(AdviceKind kind) {
  const auto at = static_cast<size_t>(kind);
  return at < kKinds.size() ? kKinds[at] : "";
}

std::optional<AdviceKind> advice_kind(std::string_view word) {
  const auto at = std::ranges::find(kKinds, word);
  if (word.empty() || at == kKinds.end()) return std::nullopt;
  return static_cast<AdviceKind>(at - kKinds.begin());
}

std::string_view to_string(AdviceOutcome outcome) {
  const auto at = static_cast<size_t>(outcome);
  return at < kOutcomes.size() ? kOutcomes[at] : "";
}

std::optional<AdviceOutcome> advice_outcome(std::string_view word) {
  const auto at = std::ranges::find(kOutcomes, word);
  if (at == kOutcomes.end()) return std::nullopt;
  return static_cast<AdviceOutcome>(at - kOutcomes.begin());
}

Status check_advice(const Advice& advice) {
  const auto wrong = [&](std::string_view what) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: {}", to_string(advice.kind), what));
  };
  const double x = advice.argument;
  if (advice.id == 0 || advice.id > kAdviceIdMax) return wrong("its id is 0 or too large");
  if (advice.effective_step < 0 || advice.effective_step > kAdviceStepMax) return wrong("no such step");
  if (!std::isfinite(x)) return wrong("its value is no finite number");
  switch (advice.kind) {
    case AdviceKind::kRollback:
      return is_whole(x) ? Status{} : wrong("its value is a step");
    case AdviceKind::kSkipBatches:
      return is_whole(x) && x >= 1 ? Status{} : wrong("its value is a number of batches");
    case AdviceKind::kLowerLr:
      return x > 0 && x < 1 ? Status{} : wrong("its value is a factor between 0 and 1");
    case AdviceKind::kClip:
      return x > 0 ? Status{} : wrong("its value is a norm above 0");
    case AdviceKind::kCheckRank:
      return is_whole(x) ? Status{} : wrong("its value is a rank");
    case AdviceKind::kSaveNow:
    case AdviceKind::kStop:
      return x == 0 ? Status{} : wrong("it has no value");
  }
  return fail(ErrorCode::kInvalid, "no such kind of advice");
}

std::string encode_advice(const Advice& advice, TimeNs made_ns, uint64_t sequence) {
  std::string out;
  out.reserve(kAdviceBytes);
  put(out, sequence);
  out += kMagic;
  put(out, kVersion);
  put(out, static_cast<uint16_t>(advice.kind));
  put(out, advice.id);
  put(out, advice.argument);
  put(out, advice.effective_step);
  put(out, static_cast<uint64_t>(made_ns));
  put(out, advice.lasts_ms);
  put(out, static_cast<uint32_t>(advice.reason));
  put(out, fnv1a(std::string_view(out).substr(kBody)));
  return out;
}

std::optional<AdviceRecord> decode_advice(std::string_view bytes) {
  if (bytes.size() != kAdviceBytes) return std::nullopt;
  Cursor in(bytes);
  AdviceRecord out;
  out.sequence = in.get<uint64_t>();
  if (out.sequence == 0 || (out.sequence & 1) != 0) return std::nullopt;
  if (in.read_bytes(kMagic.size()) != kMagic || in.get<uint16_t>() != kVersion) return std::nullopt;
  const auto kind = in.get<uint16_t>();
  if (kind == 0 || kind > kAdviceKinds) return std::nullopt;
  out.advice.kind = static_cast<AdviceKind>(kind);
  out.advice.id = in.get<uint64_t>();
  out.advice.argument = in.get<double>();
  out.advice.effective_step = in.get<int64_t>();
  const auto made = in.get<uint64_t>();
  out.advice.lasts_ms = in.get<uint32_t>();
  const auto reason = in.get<uint32_t>();
  const bool sound = in.get<uint64_t>() == fnv1a(bytes.substr(kBody, kChecksum - kBody));
  if (!sound || made > kAdviceIdMax || reason >= kAdviceReasons) return std::nullopt;
  out.made_ns = static_cast<TimeNs>(made);
  out.advice.reason = static_cast<AdviceReason>(reason);
  if (!check_advice(out.advice)) return std::nullopt;
  return out;
}

std::string advice_file_name(uint32_t uid, std::string_view job) {
  return fmt::format("{}-{:016x}", uid, fnv1a(job));
}

}  // namespace culprit
