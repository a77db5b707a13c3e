// Small files of the kernel: /proc and /sys. Blocking; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace culprit::check {

// At most `most` bytes of the file; nothing: it cannot be read.
std::optional<std::string> read_text(const std::string& path, size_t most = 4096);
// A file with one whole number.
std::optional<uint64_t> read_number(const std::string& path);

}  // namespace culprit::check
