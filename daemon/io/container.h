// Identifies the container of a process from data in /proc that every user may read: control group, and own
// pid or user namespace. Blocks for some microseconds; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/principal.h"

namespace culprit::io {

// The id of the container in the text of /proc/PID/cgroup; empty: none. Knows the names of Kubernetes
// (containerd, CRI-O, Docker), Docker, Podman and plain containerd.
std::string_view container_in(std::string_view cgroup);

// Whether /proc/PID/status lists several pid namespaces.
bool is_in_own_pids(std::string_view status);

// The principal of a process. A uid that is neither root nor ours is the same user in any container. `pidfd`
// of the process guards against a reused pid; -1: unknown. If root's process is hidden or ended, the result
// is the unknown container: root outside of containers is unproven.
Principal principal_of(uint32_t uid, uint32_t pid, int pidfd = -1, const std::string& proc = "/proc");

// The peer of a unix socket; nullopt: the kernel does not report it.
std::optional<Principal> peer_of(int descriptor);

// The container that a log file's path names: below /var/log/pods, /var/log/containers, and the folders of
// Docker and Podman. nullopt: the path names none.
std::optional<Principal> container_of_log(std::string_view path);

}  // namespace culprit::io
