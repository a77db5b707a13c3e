// A file with a secret: a private key, a token. It is read only if no one but root, the daemon's user and the
// daemon's own group can read it, and only root and the daemon's user can change or replace it
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
// Of a process: its effective uid and gid, and its other groups.
struct ProcessRights {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};
};
ProcessRights own_rights();

// Error kDenied: who else may read or change the file, and the command that mends it. As root, any owner and
// group are allowed: `culpritd --check` runs as root, and the file belongs to the service's user.
Status check_secret(const std::string& path, const FileRights& file, const ProcessRights& process);

// The content, of at most `bytes_max`, after check_secret() on the opened file.
Result<std::string> read_secret(const std::string& path, size_t bytes_max);

}  // namespace culprit::io
