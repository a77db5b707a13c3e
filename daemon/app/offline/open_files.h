// The number of files that may be open at a time. Raises the process's own limit as far as permitted; closes
// no files. Any thread.
#pragma once

#include <cstddef>

namespace culprit::app {

// Number of descriptors that may be opened, at most slightly more than `wanted`: the raised limit minus a
// reserve for other files.
size_t descriptors_for(size_t wanted);

}  // namespace culprit::app
