// Which faults are one issue, which of two is graver, and what of a fault is news for a person. Pure; any
// thread.
#pragma once

#include <string>

#include "model/alert.h"

namespace culprit::alert {

// The same for all revisions of one fault in one run; 16 hex digits.
std::string issue_key(const Fault& fault);
// A host is to be isolated, or more than a user's word stands for it. No storm of others holds it.
bool is_grave(const Fault& fault);
// Which one a person has to hear of first.
bool graver(const Fault& a, const Fault& b);
// Whether a person would read the two as different news.
bool differs(const Fault& a, const Fault& b);
Brief brief_of(const Fault& fault);
// "title NCCL timeout -> GPU lost; where node-1 -> node-2; confidence 60 % -> 90 %"; empty: nothing of these.
std::string change_of(const Brief& before, const Fault& now);

}  // namespace culprit::alert
