// Differences between the ranks of a communicator in a RAS answer. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "model/ras.h"

namespace culprit::ras {

// The communicator as stored in a state: differing counts and phases, missing ranks, errors; possibly without
// a fault. Lists are cut to limits::kRasListed; the largest group of each list has no rank names.
RasCommState condense(const RasComm& comm, const std::vector<std::string>& functions);
// Whether the state contains any fault; else the communicator is healthy.
bool shows_fault(const RasCommState& comm);

// Independent of rank order. `digest_counts`: the counts only.
uint64_t digest_counts(const RasComm& comm);
uint64_t digest_of(const RasComm& comm);

}  // namespace culprit::ras
