// The message is copied once, its bytes are sorted into kinds 64 at a time, and only tokens with digits are
// looked at, each as one word of bits. Why each rule is safe refers to Masker in mask_token.cc.
#include "core/logs/mask_skeleton.h"

#include <algorithm>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/logs/mask_bytes.h"

namespace culprit::logs {
namespace {

constexpr size_t kMost = 1024;  // bytes of a message; longer ones are rare and pay for their form
constexpr size_t kStep = 16;    // copies are made in steps of this size, into room behind the text

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'f'; }

struct Kinds {
  uint64_t digit, letter, space;
  uint64_t mark;  // '/' and ':'
  uint64_t rare;  // backslash, escape, '|'
};

#if defined(__SSE2__)
Kinds kinds64(const char* p) {
  Kinds out{0, 0, 0, 0, 0};
  for (int i = 0; i < 4; ++i) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
    const auto eq = [v](char c) { return _mm_cmpeq_epi8(v, _mm_set1_epi8(c)); };
    const __m128i letter = in_range(_mm_or_si128(v, _mm_set1_epi8(0x20)), 'a', 25);
    const __m128i rare = _mm_or_si128(_mm_or_si128(eq('\\'), eq('|')), eq('\x1b'));
    out.digit |= mask_of(in_range(v, '0', 9)) << (16 * i);
    out.letter |= (mask_of(letter) | mask_of(v)) << (16 * i);  // the sign bit: beyond ASCII
    out.space |= mask_of(_mm_or_si128(eq(' '), in_range(v, '\t', 4))) << (16 * i);
    out.mark |= mask_of(_mm_or_si128(eq('/'), eq(':'))) << (16 * i);
    out.rare |= mask_of(rare) << (16 * i);
  }
  return out;
}
#else
Kinds kinds64(const char* p) {
  Kinds out{0, 0, 0, 0, 0};
  for (int i = 0; i < 64; ++i) {
    const char c = p[i];
    const uint64_t bit = uint64_t{1} << i;
    if (is_digit(c)) out.digit |= bit;
    if (((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80)) out.letter |= bit;
    if (is_space(c)) out.space |= bit;
    if (c == '/' || c == ':') out.mark |= bit;
    if (c == '\\' || c == '|' || c == '\x1b') out.rare |= bit;
  }
  return out;
}
#endif

class Skeleton {
 public:
  explicit Skeleton(std::string_view message) : size_(message.size()), words_((size_ + 63) / 64) {
    std::memcpy(text_, message.data(), size_);
    std::memset(text_ + size_, ' ', 64);
    for (size_t w = 0; w < words_; ++w) kinds_[w] = kinds64(text_ + 64 * w);
    kinds_[words_] = {0, 0, ~uint64_t{0}, 0, 0};  // windows may reach one word further
  }

  uint64_t key() {
    for (size_t w = 0; w < words_; ++w)
      if (kinds_[w].rare != 0 && barred(w)) return 0;
    for (size_t bit = next_digit(0); bit < size_; bit = next_digit(at_)) {
      const size_t from = token_begin(bit), to = token_end(bit);
      if (to - from > 64) return 0;
      copy(from);
      token(from, to);
    }
    copy(size_);
    const uint64_t hash = XXH3_64bits(out_, put_);
    return hash != 0 ? hash : 1;
  }

 private:
  // Behind an escape or a backslash letters and digits have other borders; a bar is judged by its length.
  bool barred(size_t w) const {
    for (uint64_t rest = kinds_[w].rare; rest != 0; rest &= rest - 1) {
      const size_t at = 64 * w + static_cast<size_t>(std::countr_zero(rest));
      if (text_[at] != '|' || (at > 0 && text_[at - 1] == '%')) return true;
    }
    return false;
  }

  size_t next_digit(size_t at) const {
    if (at >= size_) return size_;
    size_t w = at / 64;
    uint64_t word = kinds_[w].digit & (~uint64_t{0} << (at % 64));
    while (word == 0) {
      if (++w >= words_) return size_;
      word = kinds_[w].digit;
    }
    return 64 * w + static_cast<size_t>(std::countr_zero(word));
  }

  size_t token_begin(size_t bit) const {
    size_t w = bit / 64;
    uint64_t word = kinds_[w].space & ~(~uint64_t{0} << (bit % 64));
    while (word == 0) {
      if (w == 0) return 0;
      word = kinds_[--w].space;
    }
    return 64 * w + 64 - static_cast<size_t>(std::countl_zero(word));
  }

  size_t token_end(size_t bit) const {
    size_t w = bit / 64;
    uint64_t word = kinds_[w].space & (~uint64_t{0} << (bit % 64));
    while (word == 0) word = kinds_[++w].space;  // the padding is space
    return std::min(size_, 64 * w + static_cast<size_t>(std::countr_zero(word)));
  }

  // The kind's bits from `from` on, `count` of them.
  uint64_t window(uint64_t Kinds::*kind, size_t from, size_t count) const {
    const size_t w = from / 64, shift = from % 64;
    uint64_t bits = kinds_[w].*kind >> shift;
    if (shift != 0) bits |= kinds_[w + 1].*kind << (64 - shift);
    return count < 64 ? bits & ~(~uint64_t{0} << count) : bits;
  }

  // Whether lengths count in the token: in a path ("x.c-12" may end in an extension of six bytes) and in
  // groups between colons (an address has at most four characters in each, and three colons).
  bool exact(size_t from, size_t to) const {
    const uint64_t marks = window(&Kinds::mark, from, to - from);
    if (marks == 0) return false;
    const std::string_view token(text_ + from, to - from);
    const auto colons = std::count(token.begin(), token.end(), ':');
    if (colons == std::popcount(marks)) return colons >= 3;
    return colons > 0 || token.find('.') != std::string_view::npos;
  }

  void token(size_t from, size_t to) {
    uint64_t digits = window(&Kinds::digit, from, to - from);
    if (exact(from, to)) {
      for (; at_ < to; ++at_) out_[put_++] = is_digit(text_[at_]) ? '0' : text_[at_];
      return;
    }
    const uint64_t runs = digits | window(&Kinds::letter, from, to - from);
    while (digits != 0) {
      const int bit = std::countr_zero(digits);
      const uint64_t before = runs << (63 - bit);  // its highest bit is `bit`
      const int begin = bit + 1 - std::countl_one(before);
      const int end = bit + std::countr_one(runs >> bit);
      copy(from + static_cast<size_t>(begin));
      // What begins with a digit is a hole, whatever follows ("13GiB", "0x7f64f37424ee").
      if (begin == bit)
        out_[put_++] = '0';
      else
        word(begin, bit, from + static_cast<size_t>(end));
      at_ = from + static_cast<size_t>(end);
      digits = end < 64 ? digits & (~uint64_t{0} << end) : 0;
    }
  }

  // Letters and digits from at_ to `to`, the first digit `lead` bytes behind the first letter.
  void word(int begin, int bit, size_t to) {
    const std::string_view run(text_ + at_, to - at_);
    const bool hex =
        std::all_of(run.begin(), run.end(), [](char c) { return is_digit(c) || is_hex_letter(c); });
    // One letter and a number, and eight hexadecimal characters, are a hole as a whole.
    if (bit - begin < 2 || (hex && run.size() >= 8)) {
      out_[put_++] = 'a';
      out_[put_++] = '0';
      return;
    }
    // The length decides only whether hexadecimal characters are an address.
    for (size_t i = 0; i < run.size(); ++i) {
      if (!is_digit(run[i]))
        out_[put_++] = run[i];
      else if (hex || !is_digit(run[i - 1]))
        out_[put_++] = '0';
    }
  }

  // Copies the text up to `to`, in whole steps: what is written too much is overwritten or not read.
  void copy(size_t to) {
    for (size_t done = 0; at_ + done < to; done += kStep)
      std::memcpy(out_ + put_ + done, text_ + at_ + done, kStep);
    put_ += to - at_;
    at_ = to;
  }

  size_t size_, words_;
  size_t at_ = 0;   // of the text, what lies before is in the key
  size_t put_ = 0;  // never more than at_
  Kinds kinds_[kMost / 64 + 1];
  char text_[kMost + 64];
  char out_[kMost + 64];
};

}  // namespace

uint64_t form_key(std::string_view message) {
  if (message.size() > kMost) return 0;
  return Skeleton(message).key();
}

}  // namespace culprit::logs
