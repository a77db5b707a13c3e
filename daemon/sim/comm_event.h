// Passing events of a simulated communication trace: a part that is slow in a few steps only, a process that
// stands still once, and their healthy twins, in which all ranks pause or a pause moves from rank to rank.
// Plain functions; any thread.
#pragma once

#include <cstdint>

#include "sim/comm_fault.h"

namespace culprit::sim {

bool is_event(const CommFault& fault);
// Whether the event is a pause of fixed length, to which no severity applies.
bool is_pause(const CommFault& fault);
// Chooses the steps, and the effect in each of them.
void choose_event(CommFault& fault, const CommSite& site, Random random);
// Adds what is no slowdown by `severity`: pauses.
void add_pauses(const CommFault& fault, const CommSite& site, uint32_t step, CommEffects& effects);

}  // namespace culprit::sim
