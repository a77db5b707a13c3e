#include "base/wide_text.h"

#include <algorithm>

#include "base/text.h"

namespace culprit {
namespace {

using namespace std::string_view_literals;

constexpr size_t kProbeBytes = 256;
constexpr size_t kProbeLeast = 16;  // fewer bytes may be a few NULs within other text
constexpr uint32_t kReplacement = 0xfffd;

void append_utf8(uint32_t c, std::string& out) {
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) return add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
  if (c < 0x10000) return add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
  add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f)), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
}

WideOrder order_of_mark(std::string_view bytes) {
  // UTF-32 begins with the same two bytes.
  if (bytes.starts_with("\xff\xfe"sv) && !bytes.starts_with("\xff\xfe\0\0"sv)) return WideOrder::kLittle;
  return bytes.starts_with("\xfe\xff"sv) ? WideOrder::kBig : WideOrder::kNone;
}

}  // namespace

WideOrder wide_order(std::string_view bytes) {
  if (const WideOrder marked = order_of_mark(bytes); marked != WideOrder::kNone) return marked;
  const std::string_view probe = bytes.substr(0, std::min(bytes.size(), kProbeBytes) & ~size_t{1});
  if (probe.size() < kProbeLeast || (probe[0] != '\0') == (probe[1] != '\0')) return WideOrder::kNone;
  size_t nuls[2] = {};
  for (size_t i = 0; i < probe.size(); ++i) nuls[i % 2] += probe[i] == '\0';
  const size_t most = probe.size() / 2 - probe.size() / 10;  // at least four in five units are ASCII
  if (nuls[0] == 0 && nuls[1] >= most) return WideOrder::kLittle;
  return nuls[1] == 0 && nuls[0] >= most ? WideOrder::kBig : WideOrder::kNone;
}

size_t wide_tail(std::string_view bytes) {
  const size_t nul = bytes.find('\0');
  if (nul == bytes.npos || nul == 0) return bytes.size();
  const size_t newline = bytes.rfind('\n', nul - 1);
  if (newline == bytes.npos) return bytes.size();
  return wide_order(bytes.substr(newline + 1)) == WideOrder::kNone ? bytes.size() : newline + 1;
}

bool WideText::takes(std::string_view piece) {
  const auto begin = [&](WideOrder order) {
    order_ = order;
    half_.reset();
    high_ = 0;
    return order != WideOrder::kNone;
  };
  if (order_ == WideOrder::kNone) return begin(wide_order(piece));
  if (const WideOrder marked = order_of_mark(piece); marked != WideOrder::kNone && !half_)
    return begin(marked);
  // A few characters without a NUL prove nothing: UTF-16 and UTF-8 are both possible.
  const bool narrow = piece.size() > kProbeLeast && piece.find('\0') == piece.npos && to_utf8(piece) == piece;
  return narrow ? begin(WideOrder::kNone) : true;
}

void WideText::decode(std::string_view piece, std::string& out) {
  out.reserve(out.size() + piece.size());
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (!half_) {
      half_ = byte;
      continue;
    }
    const unsigned low = order_ == WideOrder::kLittle ? *half_ : byte;
    const unsigned high = order_ == WideOrder::kLittle ? byte : *half_;
    half_.reset();
    add_unit(static_cast<uint16_t>(high << 8 | low), out);
  }
}

void WideText::add_unit(uint16_t unit, std::string& out) {
  const bool low = unit >= 0xdc00 && unit < 0xe000;
  if (high_ != 0 && low) {
    append_utf8(0x10000 + ((high_ & 0x3ffu) << 10) + (unit & 0x3ffu), out);
    high_ = 0;
    return;
  }
  if (high_ != 0) append_utf8(kReplacement, out);
  high_ = 0;
  if (unit >= 0xd800 && unit < 0xdc00)
    high_ = unit;
  else if (low)
    append_utf8(kReplacement, out);
  else if (unit != 0xfeff)
    append_utf8(unit, out);
}

}  // namespace culprit
