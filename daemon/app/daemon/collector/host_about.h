// The archive's data on a disconnected host: the only code that writes and reads the text of
// store::HostRow::about. Plain values; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace culprit::app {

// Unknown fields are empty.
struct HostAbout {
  std::optional<std::string> program, address;
  std::optional<TimeNs> clock_ahead_ns;
  std::string left;  // the reason of the disconnection
  std::optional<uint64_t> dropped_bytes, dropped_records;
};
std::string to_json(const HostAbout& about);
HostAbout host_about(std::string_view text);

}  // namespace culprit::app
