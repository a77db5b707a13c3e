// Opens a path so that no untrusted user decides where it leads, as sshd's StrictModes does. Each component
// is opened from its parent and never by the whole path, so a concurrent change cannot deceive the check. A
// link is followed only if it belongs to root or the trusted user. Blocking; any thread.
//
// Who else may write on the way:
// - kOwner: no one. Each component belongs to root or the trusted user, and neither group nor others may
//   write to it. A folder with the sticky bit may be open to all: what is in it still has such an owner.
// - kGroup: users in folders of theirs, and groups, as admins share /etc/culprit/rules.d. Never any user.
// - kWatched: as kGroup; a component in a folder that any user may write to may also belong to the owner of
//   what is opened, as logs in /tmp/run do. The opened folder itself may have any mode.
// On a read-only mount modes do not count. In a user namespace without root of the host, root's files seem to
// belong to the overflow uid, which is then trusted as root is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace culprit::io {

enum class Writers : uint8_t { kOwner, kGroup, kWatched };

// The caller closes the returned descriptor. A relative path begins in the current folder. `trusted_uid`:
// trusted as root is. Errors are one sentence without the path: kDenied names the component, who could change
// it and the remedy; kInvalid: another type of file; kIo, kNotFound: the system's reason.
Result<int> open_trusted_file(const std::string& path, uid_t trusted_uid, Writers writers = Writers::kOwner);
Result<int> open_trusted_folder(const std::string& path, uid_t trusted_uid,
                                Writers writers = Writers::kOwner);
// Of a program that is run by this path afterwards: only root and the trusted user can change what runs.
// Needs no right to read it.
Status check_trusted_program(const std::string& path, uid_t trusted_uid);

}  // namespace culprit::io
