#include "core/detect/logs/unheard.h"

#include <algorithm>

namespace culprit::detect {
namespace {

// A hang without a named rank: right slightly more often than wrong.
constexpr double kHangAlone = 0.6;

bool names(const Unheard& unheard, const std::optional<std::string>& host) {
  return host && unheard.contains(*host);
}

// Whether the finding rests on a comparison in which missing lines or records look like a fault.
bool rests_on_absence(const Finding& f) {
  if (!f.rule.empty()) return false;
  if (f.detector == DetectorKind::kComm || f.detector == DetectorKind::kFlight)
    return f.symptom == Symptom::kHang;
  return f.kind == FindingKind::kSupport && f.detector != DetectorKind::kNumerics &&
         f.detector != DetectorKind::kStacks;
}

}  // namespace

void leave_out(const Unheard& unheard, std::vector<Finding>& findings) {
  if (unheard.empty()) return;
  std::erase_if(findings, [&](Finding& f) {
    if (!rests_on_absence(f) || f.subjects.empty()) return false;
    const size_t left_out = std::erase_if(f.subjects, [&](const FindingSubject& s) {
      return names(unheard, s.host) || names(unheard, s.peer);
    });
    if (left_out == 0 || !f.subjects.empty()) return false;
    if (f.kind != FindingKind::kFault) return true;
    f.title = "Ranks wait for others that are not heard of";
    f.by_no_device = true;
    f.confidence = std::min(f.confidence, kHangAlone);
    f.category = Category::kUnknown;
    f.component = Component::kUnknown;
    f.why.emplace_back("the agent of the ranks that did not come is away: whether they hang is not known");
    return false;
  });
}

void leave_out(const Unheard& unheard, Hang& hang) {
  std::erase_if(hang.suspects, [&](const Suspect& s) { return names(unheard, s.host); });
}

}  // namespace culprit::detect
