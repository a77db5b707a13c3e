// Which program of the system shows the text of a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace culprit::app {

// "zstd", "gzip" or "xz" for a file that one of them compressed, whatever its name; "" for others; nullopt:
// no regular file, or unreadable. Reads the first bytes; any thread.
std::optional<std::string_view> decompressor_of(const std::string& path);

}  // namespace culprit::app
