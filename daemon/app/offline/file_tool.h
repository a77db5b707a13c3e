// Selects the system program that shows the text of a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace culprit::app {

// "zstd", "gzip" or "xz" for a compressed file, regardless of its name; "" for others; nullopt: no regular
// file, or unreadable. Reads the first bytes; any thread.
std::optional<std::string_view> decompressor_of(const std::string& path);

}  // namespace culprit::app
