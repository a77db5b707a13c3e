// Converts UTF-16 to UTF-8: PowerShell redirects output as UTF-16, and Windows tools log in UTF-16. Pure;
// untrusted bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace culprit {

enum class WideOrder : uint8_t { kNone, kLittle, kBig };

// Detects UTF-16 by its byte order mark, or by a NUL in every second byte (ASCII text). kNone: not UTF-16.
WideOrder wide_order(std::string_view bytes);

// Offset of UTF-16 text after lines of other text, such as a Windows tool's output appended to a log. Returns
// the size if there is none.
size_t wide_tail(std::string_view bytes);

// Decodes text that arrives in pieces, cut anywhere. One thread.
class WideText {
 public:
  // Whether the piece is UTF-16: it begins a UTF-16 text or continues one. UTF-8 after it ends the text.
  bool takes(std::string_view piece);
  // Appends the piece as UTF-8, without byte order marks. Invalid units become U+FFFD.
  void decode(std::string_view piece, std::string& out);

 private:
  void add_unit(uint16_t unit, std::string& out);

  WideOrder order_ = WideOrder::kNone;
  std::optional<unsigned char> half_;  // the first byte of a unit
  uint16_t high_ = 0;                  // the first unit of a pair; 0: none
};

}  // namespace culprit
