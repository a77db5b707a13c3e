// Compares faults: which are one issue, which of two is graver, and which changes are news for a person.
// Pure; any thread.
#pragma once

#include <string>

#include "model/alert.h"

namespace culprit::alert {

// Equal for all revisions of one fault in one run; 16 hex digits.
std::string issue_key(const Fault& fault);
// Whether a host must be isolated, or more than a user's claim supports the fault. Storms of other issues do
// not hold it.
bool is_grave(const Fault& fault);
// Whether a person must be notified of the first fault before the second.
bool graver(const Fault& a, const Fault& b);
// Whether a person would read the two as different news, apart from attempts of the job.
bool differs(const Fault& a, const Fault& b);
Brief brief_of(const Fault& fault);
// "title NCCL timeout -> GPU lost; where node-1 -> node-2; confidence 60 % -> 90 %"; empty: none of these
// changed.
std::string change_of(const Brief& before, const Fault& now);

}  // namespace culprit::alert
