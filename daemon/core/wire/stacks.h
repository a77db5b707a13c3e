// Serialises the stacks of a process for a block of core/wire/inputs.h. Pure. Input is untrusted: a parsed
// dump is bounded and all its indices are valid, or the reader fails.
#pragma once

#include <string>

#include "core/logs/packed.h"
#include "model/stack.h"

namespace culprit::wire {

// Threads and frames beyond the size limit of a dump are omitted, starting from the last.
std::string pack_stacks(const StackDump& dump);
StackDump unpack_stacks(PackedReader& in);

}  // namespace culprit::wire
