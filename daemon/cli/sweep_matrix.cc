#include "cli/sweep_matrix.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit::cli {
namespace {

using sweep::PairAnswer;
using sweep::SweepFinding;

constexpr size_t kPercentMost = 16;  // hosts whose matrix has numbers
constexpr size_t kMatrixMost = 64;   // hosts whose matrix is whole

}  // namespace

SweepMatrix::SweepMatrix(const app::sweeping::SweepResult& result)
    : r_(result), links_(sweep::links_of(result.runs)), usual_(result.verdict.usual.rate.value_or(0)) {
  const size_t n = r_.ranks.size();
  for (uint32_t i = 0; i < n; ++i)
    if (rows_.size() < kMatrixMost && (n <= kMatrixMost || is_named(i))) rows_.push_back(i);
}

bool SweepMatrix::has_numbers() const { return r_.ranks.size() <= kPercentMost; }

const char* SweepMatrix::legend() const {
  return has_numbers()
             ? "% of the usual rate, row sends to column; . not measured, x unreachable, ! wrong bytes"
             : "tenths of the usual rate, row sends to column, = is 9 or more; . not measured, "
               "x unreachable, ! wrong bytes";
}

bool SweepMatrix::is_named(uint32_t member) const {
  return std::ranges::any_of(r_.verdict.findings, [&](const SweepFinding& f) {
    return std::ranges::find(f.members, member) != f.members.end();
  });
}

SweepCell SweepMatrix::cell(uint32_t from, uint32_t to) const {
  if (from == to) return {has_numbers() ? "-" : "\\", Ink::kDim};
  const auto at = links_.find({std::min(from, to), std::max(from, to)});
  if (at == links_.end()) return {".", Ink::kDim};
  if (at->second.wrong > 0) return {"!", Ink::kAlarm};
  double best = -1;
  bool reached = false, failed = false;
  for (const sweep::PairRun* run : at->second.runs) {
    const sweep::Flow& flow = from < to ? run->to_b : run->to_a;
    if (flow.measured) best = std::max(best, flow.rate);
    reached |= run->answer == PairAnswer::kMeasured;
    failed |= run->answer == PairAnswer::kNotReached;
  }
  if (!reached) return failed ? SweepCell{"x", Ink::kAlarm} : SweepCell{".", Ink::kDim};
  if (best < 0 || usual_ <= 0) return {".", Ink::kDim};
  const double share = best / usual_;
  const Ink ink = share < sweep::kSlowRate      ? Ink::kAlarm
                  : share < sweep::kSuspectRate ? Ink::kCaution
                                                : Ink::kPlain;
  if (has_numbers()) return {fmt::format("{:.0f}", std::min(100 * share, 999.0)), ink};
  return {share >= 0.9 ? "=" : fmt::format("{}", static_cast<int>(share * 10)), ink};
}

}  // namespace culprit::cli
