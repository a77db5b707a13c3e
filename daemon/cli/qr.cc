#include "cli/qr.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace culprit::cli {
namespace {

using Bytes = std::vector<unsigned char>;

// Versions 1 to 10 of level L, by table 9 and annex E of the standard.
struct Version {
  size_t codewords, correction, blocks;  // all codewords; correction codewords per block; number of blocks
  size_t centres[3];                     // centres of alignment patterns; 0: none
  size_t data() const { return codewords - correction * blocks; }
};
constexpr Version kVersions[] = {{26, 7, 1, {}},
                                 {44, 10, 1, {6, 18}},
                                 {70, 15, 1, {6, 22}},
                                 {100, 20, 1, {6, 26}},
                                 {134, 26, 1, {6, 30}},
                                 {172, 18, 2, {6, 34}},
                                 {196, 20, 2, {6, 22, 38}},
                                 {242, 24, 2, {6, 24, 42}},
                                 {292, 30, 2, {6, 26, 46}},
                                 {346, 18, 4, {6, 28, 50}}};

// Product in the field of 256 elements with the polynomial 0x11d.
unsigned char product(unsigned char a, unsigned char b) {
  unsigned out = 0;
  for (int i = 7; i >= 0; --i) {
    out = (out << 1) ^ ((out >> 7) * 0x11d);
    if ((b >> i) & 1) out ^= a;
  }
  return static_cast<unsigned char>(out);
}

// `data` followed by its remainder modulo `polynomial` of `degree`: the check bits of a short code.
unsigned with_remainder(unsigned data, unsigned polynomial, int degree) {
  unsigned rest = data;
  for (int i = 0; i < degree; ++i) rest = (rest << 1) ^ ((rest >> (degree - 1)) * polynomial);
  return data << degree | rest;
}

Bytes data_of(std::string_view text, size_t version) {
  const size_t most = kVersions[version - 1].data();
  Bytes out;
  size_t used = 0;
  const auto add = [&](size_t value, int bits) {
    for (int i = bits - 1; i >= 0; --i, ++used) {
      if (used % 8 == 0) out.push_back(0);
      out.back() |= static_cast<unsigned char>(((value >> i) & 1) << (7 - used % 8));
    }
  };
  add(4, 4);  // bytes
  add(text.size(), version < 10 ? 8 : 16);
  for (const char c : text) add(static_cast<unsigned char>(c), 8);
  add(0, 4);  // terminator; both capacities include it
  for (unsigned char fill = 0xec; out.size() < most; fill ^= 0xec ^ 0x11) out.push_back(fill);
  return out;
}

// The codewords of all blocks, interleaved.
Bytes interleaved(const Bytes& data, const Version& v) {
  const size_t shorter = v.blocks - v.codewords % v.blocks, length = v.codewords / v.blocks - v.correction;
  std::vector<Bytes> parts, corrections;
  auto at = data.begin();
  for (size_t i = 0; i < v.blocks; ++i) {
    const auto end = at + static_cast<std::ptrdiff_t>(length + (i >= shorter));
    parts.emplace_back(at, end);
    corrections.push_back(qr_correction(parts.back(), v.correction));
    at = end;
  }
  Bytes out;
  for (size_t i = 0; i <= length; ++i)
    for (const Bytes& part : parts)
      if (i < part.size()) out.push_back(part[i]);
  for (size_t i = 0; i < v.correction; ++i)
    for (const Bytes& part : corrections) out.push_back(part[i]);
  return out;
}

bool inverts(int mask, size_t x, size_t y) {
  switch (mask) {
    case 0:
      return (x + y) % 2 == 0;
    case 1:
      return y % 2 == 0;
    case 2:
      return x % 3 == 0;
    case 3:
      return (x + y) % 3 == 0;
    case 4:
      return (x / 3 + y / 2) % 2 == 0;
    case 5:
      return x * y % 2 + x * y % 3 == 0;
    case 6:
      return (x * y % 2 + x * y % 3) % 2 == 0;
    default:
      return ((x + y) % 2 + x * y % 3) % 2 == 0;
  }
}

class Drawing {
 public:
  explicit Drawing(size_t version) : version_(version) {
    code_.size = 17 + 4 * version;
    code_.dark.resize(code_.size * code_.size);
    fixed_.resize(code_.dark.size());
    patterns();
  }

  void write(const Bytes& codewords) {
    size_t bit = 0;
    for (size_t pair = 0; pair < (code_.size - 1) / 2; ++pair) {
      const size_t column = code_.size - 1 - 2 * pair;
      const size_t right = column <= 6 ? column - 1 : column;  // column 6 is the timing pattern
      for (size_t step = 0; step < code_.size; ++step)
        for (size_t j = 0; j < 2; ++j) {
          const size_t x = right - j, y = ((right + 1) & 2) == 0 ? code_.size - 1 - step : step;
          if (fixed_[y * code_.size + x] || bit >= 8 * codewords.size()) continue;
          code_.dark[y * code_.size + x] = (codewords[bit / 8] >> (7 - bit % 8)) & 1;
          ++bit;
        }
    }
  }

  QrCode masked(int mask) {
    format(mask);
    QrCode out = code_;
    for (size_t y = 0; y < out.size; ++y)
      for (size_t x = 0; x < out.size; ++x)
        if (!fixed_[y * out.size + x] && inverts(mask, x, y)) out.dark[y * out.size + x].flip();
    return out;
  }

 private:
  void set(size_t x, size_t y, bool dark) {
    code_.dark[y * code_.size + x] = dark;
    fixed_[y * code_.size + x] = true;
  }

  void patterns() {
    const size_t n = code_.size;
    for (size_t i = 0; i < n; ++i) {
      set(6, i, i % 2 == 0);
      set(i, 6, i % 2 == 0);
    }
    finder(3, 3), finder(n - 4, 3), finder(3, n - 4);
    const auto& centres = kVersions[version_ - 1].centres;
    const size_t last = centres[2] ? centres[2] : centres[1];
    for (const size_t y : centres)
      for (const size_t x : centres) {
        const bool corner = (x == 6 && y == 6) || (x == 6 && y == last) || (x == last && y == 6);
        if (x && y && !corner) alignment(x, y);
      }
    format(0);
    if (version_ < 7) return;
    const unsigned bits = with_remainder(static_cast<unsigned>(version_), 0x1f25, 12);
    for (size_t i = 0; i < 18; ++i) {
      const bool dark = (bits >> i) & 1;
      set(n - 11 + i % 3, i / 3, dark);
      set(i / 3, n - 11 + i % 3, dark);
    }
  }

  // A finder pattern with its light border, as far as within the code.
  void finder(size_t centre_x, size_t centre_y) {
    for (int dy = -4; dy <= 4; ++dy)
      for (int dx = -4; dx <= 4; ++dx) {
        const int x = static_cast<int>(centre_x) + dx, y = static_cast<int>(centre_y) + dy;
        const int n = static_cast<int>(code_.size), ring = std::max(std::abs(dx), std::abs(dy));
        if (x >= 0 && x < n && y >= 0 && y < n)
          set(static_cast<size_t>(x), static_cast<size_t>(y), ring != 2 && ring != 4);
      }
  }

  void alignment(size_t centre_x, size_t centre_y) {
    for (int dy = -2; dy <= 2; ++dy)
      for (int dx = -2; dx <= 2; ++dx)
        set(centre_x + static_cast<size_t>(dx), centre_y + static_cast<size_t>(dy),
            std::max(std::abs(dx), std::abs(dy)) != 1);
  }

  // Writes level L and the mask, twice.
  void format(int mask) {
    const unsigned bits = with_remainder(1u << 3 | static_cast<unsigned>(mask), 0x537, 10) ^ 0x5412;
    const size_t n = code_.size;
    const auto bit = [&](size_t i) { return ((bits >> i) & 1) != 0; };
    for (size_t i = 0; i < 6; ++i) set(8, i, bit(i));
    set(8, 7, bit(6)), set(8, 8, bit(7)), set(7, 8, bit(8));
    for (size_t i = 9; i < 15; ++i) set(14 - i, 8, bit(i));
    for (size_t i = 0; i < 8; ++i) set(n - 1 - i, 8, bit(i));
    for (size_t i = 8; i < 15; ++i) set(8, n - 15 + i, bit(i));
    set(8, n - 8, true);
  }

  size_t version_;
  QrCode code_;
  std::vector<bool> fixed_;  // modules that carry no data
};

// Penalty of a line of modules: runs of one colour, and sequences similar to a finder pattern.
size_t penalty_of(const std::vector<bool>& line) {
  size_t out = 0, run = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    run = i > 0 && line[i] == line[i - 1] ? run + 1 : 1;
    if (run == 5) out += 3;
    if (run > 5) ++out;
  }
  constexpr bool kFinder[] = {true, false, true, true, true, false, true};
  const auto light = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (i < line.size() && line[i]) return false;
    return true;
  };
  for (size_t i = 0; i + 7 <= line.size(); ++i) {
    if (!std::equal(std::begin(kFinder), std::end(kFinder), line.begin() + static_cast<std::ptrdiff_t>(i)))
      continue;
    if (light(i >= 4 ? i - 4 : 0, i) || light(i + 7, i + 11)) out += 40;
  }
  return out;
}

size_t penalty_of(const QrCode& code) {
  size_t out = 0, dark = 0;
  for (size_t i = 0; i < code.size; ++i) {
    std::vector<bool> row, column;
    for (size_t j = 0; j < code.size; ++j) {
      row.push_back(code.at(j, i));
      column.push_back(code.at(i, j));
      dark += code.at(j, i);
      if (i == 0 || j == 0) continue;
      const bool same = code.at(j, i) == code.at(j - 1, i) && code.at(j, i) == code.at(j, i - 1) &&
                        code.at(j, i) == code.at(j - 1, i - 1);
      out += same ? 3 : 0;
    }
    out += penalty_of(row) + penalty_of(column);
  }
  const size_t percent = 100 * dark / code.dark.size();
  return out + 10 * ((percent > 50 ? percent - 50 : 50 - percent) / 5);
}

}  // namespace

std::vector<unsigned char> qr_correction(const std::vector<unsigned char>& data, size_t count) {
  Bytes divisor(count);  // without the highest term
  divisor.back() = 1;
  unsigned char root = 1;
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      divisor[j] = product(divisor[j], root);
      if (j + 1 < count) divisor[j] ^= divisor[j + 1];
    }
    root = product(root, 2);
  }
  Bytes rest(count);
  for (const unsigned char byte : data) {
    const unsigned char factor = byte ^ rest.front();
    std::rotate(rest.begin(), rest.begin() + 1, rest.end());
    rest.back() = 0;
    for (size_t i = 0; i < count; ++i) rest[i] ^= product(divisor[i], factor);
  }
  return rest;
}

std::optional<QrCode> qr_code(std::string_view text) {
  for (size_t version = 1; version <= std::size(kVersions); ++version) {
    const Version& v = kVersions[version - 1];
    if (text.size() + (version < 10 ? 2 : 3) > v.data()) continue;
    Drawing drawing(version);
    drawing.write(interleaved(data_of(text, version), v));
    std::optional<QrCode> best;
    for (int mask = 0; mask < 8; ++mask) {
      QrCode code = drawing.masked(mask);
      if (!best || penalty_of(code) < penalty_of(*best)) best = std::move(code);
    }
    return best;
  }
  return std::nullopt;
}

std::string qr_text(const QrCode& code) {
  constexpr size_t kMargin = 4;
  constexpr const char* kBlackOnWhite = "\x1b[38;5;16;48;5;231m";
  constexpr const char* kHalves[] = {" ", "▄", "▀", "█"};  // glyphs of a pair of modules: upper row, lower
                                                           // row
  const auto dark = [&](size_t x, size_t y) {
    return x >= kMargin && y >= kMargin && x < code.size + kMargin && y < code.size + kMargin &&
           code.at(x - kMargin, y - kMargin);
  };
  std::string out;
  for (size_t y = 0; y < code.size + 2 * kMargin; y += 2) {
    out += kBlackOnWhite;
    for (size_t x = 0; x < code.size + 2 * kMargin; ++x) out += kHalves[2 * dark(x, y) + dark(x, y + 1)];
    out += "\x1b[0m\n";
  }
  return out;
}

}  // namespace culprit::cli
