// A file with a secret: a private key, a token. Only root, the daemon's user and the daemon's own group may
// have read access. Only root and the daemon's user may be able to change or replace the file
// (trusted_path.h). Blocking; any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace culprit::io {

// Owner, group and mode of a file.
struct FileRights {
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
};
// A process's effective uid and gid, and its supplementary groups.
struct ProcessRights {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
};
ProcessRights own_rights();

// Error kDenied: names who else may read or change the file, and the command that fixes it. As root, any
// owner and group are allowed: `culpritd --check` runs as root, and the file belongs to the service's user.
Status check_secret(const std::string& path, const FileRights& file, const ProcessRights& process);

// Returns the content, at most `bytes_max` bytes, after check_secret() on the opened file.
Result<std::string> read_secret(const std::string& path, size_t bytes_max);

}  // namespace culprit::io
