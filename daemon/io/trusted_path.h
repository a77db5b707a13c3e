// Opens a path only if no untrusted user can decide where it leads, like sshd's StrictModes. Each component
// is opened relative to its parent, so a concurrent change cannot bypass the check. A link is followed only
// if it belongs to root or the trusted user. Blocking; any thread.
//
// Who else may have write access along the path:
// - kOwner: no one. Each component belongs to root or the trusted user; not writable by group or others.
//   A sticky folder may be writable by all: its checked entries still need such an owner.
// - kGroup: owners of folders, and groups, as admins share /etc/culprit/rules.d; never all users.
// - kWatched: as kGroup. In a folder writable by all, a component may also belong to the owner of the opened
//   file, as for logs in /tmp/run. The opened folder itself may have any mode.
// Modes are ignored on a read-only mount. In a user namespace without the host's root, root's files show the
// overflow uid, which is then trusted like root.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace culprit::io {

enum class Writers : uint8_t { kOwner, kGroup, kWatched };

// The caller closes the returned descriptor. A relative path begins in the current folder. `trusted_uid`:
// trusted like root. Errors are one sentence without the path. kDenied names the component, who could change
// it and the remedy. kInvalid: wrong file type. kIo, kNotFound: the system's reason.
Result<int> open_trusted_file(const std::string& path, uid_t trusted_uid, Writers writers = Writers::kOwner);
Result<int> open_trusted_folder(const std::string& path, uid_t trusted_uid,
                                Writers writers = Writers::kOwner);
// Checks a program that is later run by this path: only root and the trusted user can change it. Needs no
// read permission for the program.
Status check_trusted_program(const std::string& path, uid_t trusted_uid);

}  // namespace culprit::io
