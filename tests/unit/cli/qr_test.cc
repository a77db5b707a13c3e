// QR codes: a reader that follows the standard gets the text back.
#include "cli/qr.h"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace culprit::cli;

namespace {

using Bytes = std::vector<unsigned char>;

// The field by its powers of 2, unlike the writer.
struct Field {
  Field() {
    unsigned value = 1;
    for (unsigned i = 0; i < 255; ++i) {
      power[i] = static_cast<unsigned char>(value);
      log[value] = i;
      value <<= 1;
      if (value > 255) value ^= 0x11d;
    }
  }
  unsigned char times(unsigned char a, unsigned exponent) const {
    return a ? power[(log[a] + exponent) % 255] : 0;
  }
  unsigned char power[255] = {};
  unsigned log[256] = {};
};

// A sound codeword is 0 at each root of the generator.
bool sound(const Bytes& codeword, size_t correction) {
  static const Field field;
  for (unsigned root = 0; root < correction; ++root) {
    unsigned char sum = 0;
    for (const unsigned char byte : codeword) sum = field.times(sum, root) ^ byte;
    if (sum != 0) return false;
  }
  return true;
}

struct Layout {
  size_t blocks, correction;
  std::vector<size_t> centres;
};
const Layout kLayouts[] = {
    {1, 7, {}},       {1, 10, {6, 18}},     {1, 15, {6, 22}},     {1, 20, {6, 26}},     {1, 26, {6, 30}},
    {2, 18, {6, 34}}, {2, 20, {6, 22, 38}}, {2, 24, {6, 24, 42}}, {2, 30, {6, 26, 46}}, {4, 18, {6, 28, 50}}};

// Format words of level L by table C.1.
constexpr unsigned kFormats[] = {0x77c4, 0x72f3, 0x7daa, 0x789d, 0x662f, 0x6318, 0x6c41, 0x6976};

bool is_data(size_t x, size_t y, size_t n, const Layout& layout) {
  if (x == 6 || y == 6) return false;
  if ((x < 9 && y < 9) || (x + 8 >= n && y < 9) || (x < 9 && y + 8 >= n)) return false;
  if (n >= 45 && ((x < 6 && y + 11 >= n) || (y < 6 && x + 11 >= n))) return false;
  const size_t last = layout.centres.empty() ? 0 : layout.centres.back();
  for (const size_t cy : layout.centres)
    for (const size_t cx : layout.centres) {
      if ((cx == 6 && cy == 6) || (cx == 6 && cy == last) || (cx == last && cy == 6)) continue;
      if (x + 2 >= cx && x <= cx + 2 && y + 2 >= cy && y <= cy + 2) return false;
    }
  return true;
}

bool mask_inverts(unsigned mask, size_t x, size_t y) {
  const size_t i = y, j = x;  // as in table 10
  const bool conditions[] = {(i + j) % 2 == 0,
                             i % 2 == 0,
                             j % 3 == 0,
                             (i + j) % 3 == 0,
                             (i / 2 + j / 3) % 2 == 0,
                             (i * j) % 2 + (i * j) % 3 == 0,
                             ((i * j) % 2 + (i * j) % 3) % 2 == 0,
                             ((i + j) % 2 + (i * j) % 3) % 2 == 0};
  return conditions[mask];
}

unsigned format_of(const QrCode& code) {
  unsigned out = 0;
  const size_t n = code.size;
  for (size_t i = 0; i < 8; ++i) out |= static_cast<unsigned>(code.at(n - 1 - i, 8)) << i;
  for (size_t i = 8; i < 15; ++i) out |= static_cast<unsigned>(code.at(8, n - 15 + i)) << i;
  return out;
}

std::string read(const QrCode& code) {
  const size_t n = code.size, version = (n - 17) / 4;
  const Layout& layout = kLayouts[version - 1];
  const auto* const format = std::find(std::begin(kFormats), std::end(kFormats), format_of(code));
  BOOST_REQUIRE(format != std::end(kFormats));
  const auto mask = static_cast<unsigned>(format - std::begin(kFormats));
  Bytes words;
  size_t bits = 0;
  bool up = true;
  for (size_t column = n - 1; column != 0; column = column == 8 ? 5 : column < 3 ? 0 : column - 2, up = !up)
    for (size_t step = 0; step < n; ++step)
      for (const size_t x : {column, column - 1}) {
        const size_t y = up ? n - 1 - step : step;
        if (!is_data(x, y, n, layout)) continue;
        if (bits % 8 == 0) words.push_back(0);
        const bool bit = code.at(x, y) != mask_inverts(mask, x, y);
        words.back() |= static_cast<unsigned char>(bit << (7 - bits % 8));
        ++bits;
      }
  if (bits % 8 != 0) words.pop_back();
  const size_t per_block = words.size() / layout.blocks, longer = words.size() % layout.blocks;
  std::vector<Bytes> blocks(layout.blocks);
  size_t at = 0;
  const size_t data = per_block - layout.correction;
  for (size_t i = 0; i < data + 1; ++i)
    for (size_t b = 0; b < layout.blocks; ++b)
      if (i < data || b >= layout.blocks - longer) blocks[b].push_back(words[at++]);
  Bytes all;
  for (const Bytes& block : blocks) all.insert(all.end(), block.begin(), block.end());
  for (size_t i = 0; i < layout.correction; ++i)
    for (Bytes& block : blocks) block.push_back(words[at++]);
  for (const Bytes& block : blocks) BOOST_CHECK(sound(block, layout.correction));
  size_t next = 0;
  const auto take = [&](size_t count) {
    size_t out = 0;
    for (size_t i = 0; i < count; ++i, ++next) out = 2 * out + ((all[next / 8] >> (7 - next % 8)) & 1);
    return out;
  };
  BOOST_CHECK_EQUAL(take(4), 4);  // bytes
  std::string text(take(version < 10 ? 8 : 16), '\0');
  for (char& c : text) c = static_cast<char>(take(8));
  return text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(qr)

BOOST_AUTO_TEST_CASE(the_codewords_of_the_standards_example) {
  const Bytes data = {0x10, 0x20, 0x0c, 0x56, 0x61, 0x80, 0xec, 0x11,
                      0xec, 0x11, 0xec, 0x11, 0xec, 0x11, 0xec, 0x11};
  const Bytes expected = {0xa5, 0x24, 0xd4, 0xc1, 0xed, 0x36, 0xc7, 0x87, 0x2c, 0x55};
  BOOST_TEST(qr_correction(data, 10) == expected);
}

BOOST_AUTO_TEST_CASE(a_reader_gets_every_length_back) {
  std::set<size_t> sizes;
  for (size_t length = 1; length <= kQrBytes; ++length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>('!' + (i * 7 + length) % 90);
    const auto code = qr_code(text);
    BOOST_REQUIRE(code);
    sizes.insert(code->size);
    BOOST_TEST_CHECKPOINT(length);
    BOOST_CHECK_EQUAL(read(*code), text);
  }
  BOOST_CHECK_EQUAL(sizes.size(), 10);
  BOOST_CHECK(!qr_code(std::string(kQrBytes + 1, 'x')));
}

BOOST_AUTO_TEST_CASE(a_terminal_shows_it_with_its_margin_in_its_own_colours) {
  const auto code = qr_code("https://culprit.example/#once=00");
  BOOST_REQUIRE(code);
  const std::string text = qr_text(*code);
  BOOST_CHECK_EQUAL(std::count(text.begin(), text.end(), '\n'), (code->size + 8 + 1) / 2);
  BOOST_CHECK(text.starts_with("\x1b[38;5;16;48;5;231m    "));
  BOOST_CHECK(text.ends_with("\x1b[0m\n"));
}

BOOST_AUTO_TEST_SUITE_END()
