// Collective calls: comparison between ranks, and their display text. Pure.
#pragma once

#include <string>

#include "core/detect/hang/observation.h"

namespace culprit::hang {

// Whether `plain` names a point-to-point operation: its two ends legitimately call different operations.
bool is_pair(const std::string& plain);
// Whether the operation's name says that it is a barrier.
bool names_barrier(const ObservedCall& call);
// A barrier, or the one-element all-reduce that implements a barrier.
bool is_barrier(const ObservedCall& call);
// The call without the parts that may legitimately differ between ranks; empty: nothing to compare.
std::string call_key(const ObservedCall& call);
// Whether two ranks of a group making these calls under one number is an error.
bool differ(const ObservedCall& a, const ObservedCall& b);
// "ALLREDUCE of 4096 elements at train.py:120 in step".
std::string shown_call(const ObservedCall& call);
// "ALLREDUCE #13".
std::string shown_op(const ObservedCall& call);

}  // namespace culprit::hang
