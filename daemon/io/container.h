// The container of a process, by what the kernel shows of it to every user: its control group, and whether it
// is in a process or user namespace of its own. Blocking reads of /proc, some microseconds; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/principal.h"

namespace culprit::io {

// The id of the container in the text of /proc/PID/cgroup; empty: none. Names of Kubernetes (containerd,
// CRI-O, Docker), Docker, Podman, and containerd alone.
std::string_view container_in(std::string_view cgroup);

// Whether /proc/PID/status names several process namespaces.
bool is_in_own_pids(std::string_view status);

// Who the process is. A user that is neither root nor ours is that user anywhere. `pidfd`: of the process,
// so that another one with the same number is not asked; -1: not known. Root whose process is not seen, or
// ended, is the unknown container: it has not proven to be outside of one.
Principal principal_of(uint32_t uid, uint32_t pid, int pidfd = -1, const std::string& proc = "/proc");

// Who connected a unix socket; nothing: the kernel does not say.
std::optional<Principal> peer_of(int descriptor);

// The container whose output a file is, by its path: below /var/log/pods, /var/log/containers, and the
// folders of Docker and Podman. Nothing: the path names none.
std::optional<Principal> container_of_log(std::string_view path);

}  // namespace culprit::io
