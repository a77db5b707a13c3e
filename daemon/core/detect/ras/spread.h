// What differs between the ranks of a communicator in a RAS answer. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "model/ras.h"

namespace culprit::ras {

// The communicator as a state keeps it, or one without a fault: counts and phases that differ, missing ranks,
// errors. Lists are cut to limits::kRasListed; the largest group of each list names none.
RasCommState condense(const RasComm& comm, const std::vector<std::string>& functions);
// Whether the state shows anything: else its communicator is in order.
bool shows_fault(const RasCommState& comm);

// Independent of the order of ranks. `digest_counts`: of the counts alone.
uint64_t digest_counts(const RasComm& comm);
uint64_t digest_of(const RasComm& comm);

}  // namespace culprit::ras
