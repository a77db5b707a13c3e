// Opens the fixed folder of a glob so that no untrusted user decides where it leads, as sshd's StrictModes
// does. Each component of the path is opened from its parent and never by the whole path, so a concurrent
// change cannot deceive the check. Blocking; any thread.
//
// - A link is followed only if it belongs to root or the daemon's user.
// - A component in a folder that any user may write to needs the sticky bit on that folder, and must then
//   belong to root, the daemon's user or the owner of the opened folder: else any user could replace it.
// Folders of users and of groups are trusted with what is in them: /home/alice/logs, /scratch/project/logs.
// The opened folder itself may have any mode: its files are checked one by one.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/status.h"

namespace culprit::ingest {

// `path` is absolute. `daemon_uid`: trusted as root is. Returns the descriptor of the folder, which the
// caller closes. Errors are one sentence without the path: kDenied names the component, its owner and the
// remedy; kIo, kNotFound: the system's reason.
Result<int> open_trusted_folder(const std::string& path, uid_t daemon_uid);

}  // namespace culprit::ingest
