// A state of NCCL's RAS as bytes, for a block of inputs. A reader's bytes are untrusted: it fails for lists
// beyond the limits of a state. Pure; any thread.
#pragma once

#include <string>

#include "core/logs/packed.h"
#include "core/ras_states.h"

namespace culprit::wire {

std::string pack_ras(const core::RasInput& input);
core::RasInput unpack_ras(PackedReader& in);

}  // namespace culprit::wire
