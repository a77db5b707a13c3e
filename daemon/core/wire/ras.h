// Serialises a state of NCCL's RAS for a block of inputs. Input is untrusted: the reader fails for lists
// beyond the limits of a state. Pure; any thread.
#pragma once

#include <string>

#include "core/detect/ras/ras_states.h"
#include "core/logs/packed.h"

namespace culprit::wire {

std::string pack_ras(const ras::RasInput& input);
ras::RasInput unpack_ras(PackedReader& in);

}  // namespace culprit::wire
