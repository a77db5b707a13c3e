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

constexpr size_t kQrBytes = 271;  // capacity of version 10; larger codes do not fit into a terminal
// Nothing: the text is too long.
std::optional<QrCode> qr_code(std::string_view text);
// Black on white regardless of the terminal's colours, two rows of modules per line, with the margin.
std::string qr_text(const QrCode& code);

// The `count` Reed-Solomon codewords of a QR code for `data`.
std::vector<unsigned char> qr_correction(const std::vector<unsigned char>& data, size_t count);

}  // namespace culprit::cli
