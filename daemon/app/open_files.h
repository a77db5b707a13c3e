// How many files a reading may have open at a time. Changes the process's own limit, as far as it may; never
// closes anything. Any thread.
#pragma once

#include <cstddef>

namespace culprit::app {

// Descriptors that may be taken, at most some more than `wanted`: what the shell's limit leaves to programs
// that ask, beside what is open.
size_t descriptors_for(size_t wanted);

}  // namespace culprit::app
