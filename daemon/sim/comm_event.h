// Transient events of a simulated communication trace: a part that is slow in a few steps, a process that
// stops once; and their healthy counterparts: all ranks pause, or a pause moves from rank to rank. Plain
// functions; any thread.
#pragma once

#include <cstdint>

#include "sim/comm_fault.h"

namespace culprit::sim {

bool is_event(const CommFault& fault);
// Whether the event is a pause of fixed length, which has no severity.
bool is_pause(const CommFault& fault);
// Chooses the steps of the event, and its effect in each.
void choose_event(CommFault& fault, const CommSite& site, Random random);
// Adds pauses, which `severity` does not scale.
void add_pauses(const CommFault& fault, const CommSite& site, uint32_t step, CommEffects& effects);

}  // namespace culprit::sim
