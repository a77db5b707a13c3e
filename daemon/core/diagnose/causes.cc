#include "core/diagnose/causes.h"

#include <algorithm>

namespace culprit::diagnose {
namespace {

// A fault of a lower layer may be logged this much later than its effect: kernel logs have whole seconds,
// programs report at once, and host clocks differ.
constexpr TimeNs kReportedLate = 5 * kNsPerSecond;
// As above, if the effect has the time of an earlier line, as a traceback has: the last step before it may be
// minutes old. The value is a choice, without a source.
constexpr TimeNs kReportedLateUndated = 120 * kNsPerSecond;

// The layer of a component, lowest first: the machine with its resources and mounts; the device's runtime and
// communication; libraries and the program.
int layer(Component component) {
  switch (component) {
    case Component::kGpu:
    case Component::kGpuMemory:
    case Component::kNvlink:
    case Component::kPcie:
    case Component::kNetwork:
    case Component::kHostMemory:
    case Component::kHostKernel:
    case Component::kStorage:
    case Component::kCpu:
    case Component::kDriver:
      return 0;
    case Component::kCudaRuntime:
    case Component::kNcclComm:
    case Component::kDependency:
      return 1;
    default:
      return 2;
  }
}

// -1: x is earlier, 1: x is later, 0: neither times nor lines of one file decide.
int order_in_time(const Finding& x, const Finding& y) {
  if (x.first_ns != kNoTime && y.first_ns != kNoTime && x.first_ns != y.first_ns)
    return x.first_ns < y.first_ns ? -1 : 1;
  if (x.evidence.empty() || y.evidence.empty() || x.evidence[0].file != y.evidence[0].file) return 0;
  const auto a = x.evidence[0].line, b = y.evidence[0].line;
  return !a || !b || *a == *b ? 0 : *a < *b ? -1 : 1;
}

// A fault that began after the program's own mistake ended a process is not its cause. A clock in another
// time zone differs by at least half an hour.
bool came_after(const Finding& f, const Finding& mistake) {
  constexpr TimeNs kZone = 25 * 60 * kNsPerSecond;
  const bool own = mistake.category == Category::kUser &&
                   (mistake.component == Component::kUserCode || mistake.component == Component::kUserData ||
                    mistake.component == Component::kUserConfig);
  if (!own || !mistake.ends_process || mistake.role != FindingRole::kRoot || f.ends_process) return false;
  if (f.first_ns == kNoTime || mistake.first_ns == kNoTime) return false;
  const TimeNs later = f.first_ns - mistake.first_ns;
  return later >= kNsPerSecond && later < kZone;
}

}  // namespace

bool explains(const Finding& cause, const Finding& other) {
  if (cause.role != FindingRole::kRoot || (cause.general && !other.general)) return false;
  if (other.fatal && !cause.fatal) return false;
  if (layer(cause.component) >= layer(other.component)) return false;
  const bool timed = cause.first_ns != kNoTime && other.first_ns != kNoTime;
  const TimeNs late = other.dated ? kReportedLate : kReportedLateUndated;
  return order_in_time(cause, other) <= 0 || (timed && cause.first_ns - other.first_ns <= late);
}

std::vector<const Finding*> order_faults(const std::vector<Finding>& findings) {
  std::vector<const Finding*> faults;
  for (const Finding& f : findings)
    if (f.kind == FindingKind::kFault) faults.push_back(&f);
  // Roots before cascades, specific rules before catch-alls, fatal before others, then the earliest.
  // Findings without times are in the order of their lines.
  std::stable_sort(faults.begin(), faults.end(), [](const Finding* x, const Finding* y) {
    if (x->role != y->role) return x->role == FindingRole::kRoot;
    if (x->general != y->general) return y->general;
    if (x->fatal != y->fatal) return x->fatal;
    return x->first_ns < y->first_ns;
  });
  for (auto at = faults.begin(); at != faults.end(); ++at)
    if (explains(**at, *faults[0])) std::rotate(faults.begin(), at, at + 1);
  for (auto at = faults.begin(); at != faults.end(); ++at)
    if (came_after(*faults[0], **at)) std::rotate(faults.begin(), at, at + 1);
  return faults;
}

}  // namespace culprit::diagnose
