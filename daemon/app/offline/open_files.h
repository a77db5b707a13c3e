// The number of files that may be open at the same time. Raises the process's limit as far as permitted;
// closes no files. Any thread.
#pragma once

#include <cstddef>

namespace culprit::app {

// Limits of open files: one for each rank of the largest jobs. A plain file needs a descriptor. A compressed
// one also needs a buffer of 256 KB and a window of at most its content's length.
constexpr size_t kOpen = 16'384, kOpenCompressed = 512;

// Number of descriptors that may be opened: at most slightly more than `wanted`, and the raised limit minus a
// reserve for other files.
size_t descriptors_for(size_t wanted);

}  // namespace culprit::app
