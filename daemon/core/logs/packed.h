// A compact encoding of numbers and texts, for blocks that are compressed later: small numbers need one byte.
// The reader accepts untrusted bytes: it never reads beyond the end, and returns 0 or empty after a failure.
// Values; one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace culprit {

class PackedWriter {
 public:
  void byte(uint8_t value) { out_ += static_cast<char>(value); }
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    byte(static_cast<uint8_t>(value));
  }
  // Short for values near 0; exact for all values.
  void signed_number(int64_t value) {
    number((static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
  }
  void put_word(uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(value >> (8 * i)));
  }
  void raw(std::string_view bytes) { out_ += bytes; }
  void text(std::string_view bytes) {
    number(bytes.size());
    raw(bytes);
  }
  size_t size() const { return out_.size(); }
  void clear() { out_.clear(); }
  const std::string& bytes() const { return out_; }
  std::string finish() { return std::move(out_); }

 private:
  std::string out_;
};

class PackedReader {
 public:
  explicit PackedReader(std::string_view bytes = {}) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }
  size_t left() const { return rest_.size(); }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  uint8_t byte() {
    if (rest_.empty()) return fail(), uint8_t{0};
    const auto value = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return value;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t b = byte();
      if (shift == 63 && b > 1) break;
      value |= uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return ok_ ? value : 0;
    }
    return fail(), 0;
  }
  // Fails for numbers above `max`.
  uint64_t number(uint64_t max) {
    const uint64_t value = number();
    if (value > max) return fail(), 0;
    return value;
  }
  int64_t signed_number() {
    const uint64_t value = number();
    return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }
  uint64_t get_word() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value |= uint64_t{byte()} << (8 * i);
    return value;
  }
  std::string_view raw(size_t size) {
    if (size > rest_.size()) return fail(), std::string_view();
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  std::string_view text(size_t max) { return raw(static_cast<size_t>(number(max))); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace culprit
