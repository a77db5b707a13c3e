// Little-endian numbers in bytes, for our own formats. A Cursor never reads past its end: it becomes bad and
// returns zeros from then on.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace culprit {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they stand in memory");

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get_at(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool bad() const { return bad_; }
  bool at_end() const { return rest_.empty(); }

  template <class T>
  T get() {
    const std::string_view bytes = read_bytes(sizeof(T));
    return bytes.empty() ? T{} : get_at<T>(bytes, 0);
  }
  // `size` bytes; empty if fewer are left.
  std::string_view read_bytes(size_t size) {
    if (size > rest_.size()) {
      bad_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

 private:
  std::string_view rest_;
  bool bad_ = false;
};

}  // namespace culprit
