// Masks one token of a message (bytes between whitespace). Only for mask.cc; pure, any thread. Masking
// follows shapes (digits, separators, slashes), never the words of one program.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/limits.h"

namespace culprit::logs {

constexpr std::string_view kHole = "<*>";
// Hexadecimal characters with a digit are an id, not a numbered word, from this number on.
constexpr size_t kHexIdBytes = 6;

// Text of bounded length without allocation. The worst token is "1=1=1=...": its mask has four bytes for two.
class TokenBuffer {
 public:
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  void truncate(size_t size) { size_ = size; }
  void put(char c) {
    if (size_ < sizeof data_) data_[size_++] = c;
  }
  void put(std::string_view text) {
    const size_t n = text.size() < sizeof data_ - size_ ? text.size() : sizeof data_ - size_;
    std::memcpy(data_ + size_, text.data(), n);
    size_ += n;
  }
  std::string_view view() const { return {data_, size_}; }

 private:
  size_t size_ = 0;
  char data_[2 * limits::kMessageBytes + 64];  // uninitialised: clearing costs more than masking
};

enum class Masked {
  kSame,     // the token has no variable part; `out` is undefined
  kLiteral,  // no hole, but `out` differs from the token (escape sequences are gone)
  kHoles,    // `out` holds at least one "<*>"
};

Masked mask_token(std::string_view token, TokenBuffer& out);

}  // namespace culprit::logs
