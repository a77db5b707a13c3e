#include "check/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "io/descriptors.h"

namespace culprit::check {

std::optional<std::string> read_text(const std::string& path, size_t most) {
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.is_open()) return std::nullopt;
  std::string out(most, '\0');
  size_t size = 0;
  while (size < most) {
    const ssize_t n = ::read(file.get(), out.data() + size, most - size);
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  out.resize(size);
  return out;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return std::nullopt;
  const std::string_view word = trim(*text);
  uint64_t out = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), out);
  if (read.ec != std::errc()) return std::nullopt;  // "max", "Unknown"
  return out;
}

}  // namespace culprit::check
