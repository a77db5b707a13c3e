// A QR code of a text, for a terminal: ISO/IEC 18004, bytes, error correction level L. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::cli {

struct QrCode {
  size_t size = 0;         // modules of a side
  std::vector<bool> dark;  // row by row
  bool at(size_t x, size_t y) const { return dark[y * size + x]; }
};

constexpr size_t kQrBytes = 271;  // of version 10; larger ones do not fit into a terminal
// Nothing: the text is longer.
std::optional<QrCode> qr_code(std::string_view text);
// Black on white whatever the terminal's colours are, two rows of modules a line, with its margin.
std::string qr_text(const QrCode& code);

// Reed-Solomon codewords of QR codes for `data`, of this number.
std::vector<unsigned char> qr_correction(const std::vector<unsigned char>& data, size_t count);

}  // namespace culprit::cli
