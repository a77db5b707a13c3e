// Values of columns as text. Pure.
#pragma once

#include <charconv>
#include <optional>
#include <string>

namespace culprit::store::postgres {

// As encode(…, 'hex').
std::string to_hex(const std::string& bytes);
// Nothing: it is no such text.
std::optional<std::string> from_hex(const std::string& text);

// UTF-8 without zero bytes, which PostgreSQL's text cannot have; shortened to some `limit` bytes.
std::string sound_text(const std::string& text, size_t limit = std::string::npos);

// False: it is no number of this type.
template <class Number>
bool read_number(const std::string& text, Number& out) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && stop == text.data() + text.size();
}

}  // namespace culprit::store::postgres
