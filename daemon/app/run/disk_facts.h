// What the file systems say when a command ended for want of space: bytes and inodes that are free below the
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
  uint64_t bytes = 0, bytes_free = 0;    // free: for a user without rights
  uint64_t inodes = 0, inodes_free = 0;  // 0 of 0: the file system counts none
};
// Nothing: the path does not exist.
using AskRoom = std::function<std::optional<Room>(const std::string& path)>;
std::optional<Room> room_of(const std::string& path);

// Lines with a time each, one a file system; empty where no line of `tail` says that space or a quota ended.
// `tail`: the last lines of the command. `folder`: where it ran; it answers for lines that name no path.
std::string disk_lines(std::string_view tail, const std::string& folder, TimeNs now, const AskRoom& ask);
// The same of the real file systems, in a thread that is left behind where a server does not answer in time.
std::string disk_lines_within(TimeNs within, const std::string& tail, const std::string& folder, TimeNs now);

}  // namespace culprit::app
