// The table behind fault_shapes(): kinds of fault that any site's kernel, driver and launcher print alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace culprit::logs {

// The first row of fault_shapes() whose words all stand in `text` (lower case, masked).
std::optional<uint8_t> match_fault(std::string_view text);

}  // namespace culprit::logs
