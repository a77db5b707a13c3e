// Text in UTF-16 as UTF-8. PowerShell redirects to it, and tools of Windows log in it. Pure; untrusted bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit {

enum class WideOrder : uint8_t { kNone, kLittle, kBig };

// By the byte order mark, or since every second byte is NUL as in ASCII text. kNone: it is no UTF-16.
WideOrder wide_order(std::string_view bytes);

// Offset of UTF-16 behind lines of other text, as where a tool of Windows appends to a log; the size: none.
size_t wide_tail(std::string_view bytes);

// Decodes text that arrives in pieces, cut anywhere. One thread.
class WideText {
 public:
  // Whether the piece is UTF-16: it begins such a text, or continues one. UTF-8 that follows ends the text.
  bool takes(std::string_view piece);
  // Appends the piece as UTF-8, without byte order marks; what is no character becomes U+FFFD.
  void decode(std::string_view piece, std::string& out);

 private:
  void add_unit(uint16_t unit, std::string& out);

  WideOrder order_ = WideOrder::kNone;
  std::optional<unsigned char> half_;  // the first byte of a unit
  uint16_t high_ = 0;                  // the first unit of a pair; 0: none
};

}  // namespace culprit
