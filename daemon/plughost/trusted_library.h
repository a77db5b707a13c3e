// Opens a plugin's library if only trusted users can change it: the file and each folder of its path, as it
// is written and as it resolves, belong to root or the daemon's user, and neither group nor others may write
// to them (a folder with the sticky bit is as good). Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace culprit::plughost {

// `path` is absolute. Returns the descriptor, which the caller closes. The error is a sentence without the
// path that says who else could change what.
Result<int> open_trusted_library(const std::string& path, uid_t trusted_uid);

}  // namespace culprit::plughost
