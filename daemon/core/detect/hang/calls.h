// Calls of collectives: whether two of them are the same on all ranks, and their words. Pure.
#pragma once

#include <string>

#include "core/detect/hang/observation.h"

namespace culprit::hang {

// Whether a plain name is of an operation between two ranks, whose ends call different ones by right.
bool is_pair(const std::string& plain);
// Whether its name says that it is a barrier.
bool names_barrier(const ObservedCall& call);
// A barrier, or the all-reduce of one element that stands for one.
bool is_barrier(const ObservedCall& call);
// The call without what may differ by right between ranks; empty: nothing to compare.
std::string call_key(const ObservedCall& call);
// Whether two ranks of a group may not call these under one number.
bool differ(const ObservedCall& a, const ObservedCall& b);
// "ALLREDUCE of 4096 elements at train.py:120 in step".
std::string shown_call(const ObservedCall& call);
// "ALLREDUCE #13".
std::string shown_op(const ObservedCall& call);

}  // namespace culprit::hang
