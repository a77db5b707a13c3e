// Free space of the file systems after a command ended for lack of space: free bytes and inodes below the
// paths that its last lines name. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace culprit::app {

struct Room {
  uint64_t bytes = 0, bytes_free = 0;    // free: for an unprivileged user
  uint64_t inodes = 0, inodes_free = 0;  // 0 of 0: the file system does not count inodes
};
// Nothing: the path does not exist.
using AskRoom = std::function<std::optional<Room>(const std::string& path)>;
std::optional<Room> room_of(const std::string& path);

// Lines with a time, one for each file system; empty if no line of `tail` reports exhausted space or quota.
// `tail`: the last lines of the command. `folder`: its working folder, for lines without a path.
std::string disk_lines(std::string_view tail, const std::string& folder, TimeNs now, const AskRoom& ask);
// The same for the real file systems, on a thread that is abandoned if a server does not answer in time.
std::string disk_lines_within(TimeNs within, const std::string& tail, const std::string& folder, TimeNs now);

}  // namespace culprit::app
