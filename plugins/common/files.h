// Small files of sysfs and procfs, read whole. Plain functions; any thread. They block as long as the kernel
// does: what may hang is read in a child (queries.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace health {

constexpr size_t kFileBytesMax = 1 << 20;

// Without the newline at its end. Nothing: it cannot be read. What is beyond `bytes_max` is left out.
std::optional<std::string> read_text(const std::string& path, size_t bytes_max = kFileBytesMax);

// The number at the beginning of the text, decimal or 0x; "8.0 GT/s PCIe" has none with `number`.
std::optional<uint64_t> number(std::string_view text);
std::optional<uint64_t> read_number(const std::string& path);
std::optional<double> real(std::string_view text);

// Names in a folder, sorted, without those that begin with a dot; empty if it cannot be read.
std::vector<std::string> list(const std::string& folder);

bool exists(const std::string& path);
// The last part of what a link points to; empty: no link.
std::string link_name(const std::string& path);

// Parts of the text, which must outlive them.
std::vector<std::string_view> split(std::string_view text, char separator);
std::vector<std::string_view> words(std::string_view text);
std::vector<std::string_view> split(std::string&& text, char separator) = delete;
std::vector<std::string_view> words(std::string&& text) = delete;

// As printf.
[[gnu::format(printf, 1, 2)]] std::string format(const char* format, ...);

}  // namespace health
