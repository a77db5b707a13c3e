// Copies the message once, classifies its bytes 64 at a time, and parses only runs with digits. Proofs of the
// rules refer to Masker in mask_token.cc.
#include "core/logs/mask_skeleton.h"
#include "base/ascii.h"

#include <algorithm>
#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/logs/mask_bytes.h"
#include "core/logs/mask_token.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace culprit::logs {
namespace {

constexpr size_t kMaskedBytes =
    1024;                     // bytes of a message; longer ones are rare and are masked without a key
constexpr size_t kStep = 16;  // size of a copy; buffers have space for a whole step after the text

bool is_hex_letter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'f'; }

// Without initial values: a message uses few of them.
struct Kinds {
  uint64_t digit, run;  // run: digits and letters, with all bytes beyond ASCII
  uint64_t space, slash, colon, dot;
  uint64_t rare;  // backslash, escape, '|'
};

#if defined(__SSE2__)
void classify_sse2(const char* text, size_t words, Kinds* out) {
  for (size_t w = 0; w < words; ++w) {
    Kinds kinds{};
    for (int i = 0; i < 4; ++i) {
      const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + 64 * w) + i);
      const __m128i low = _mm_or_si128(v, _mm_set1_epi8(0x20));  // '\\' as '|'
      const auto eq = [](__m128i bytes, char c) { return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(c)); };
      const __m128i digit = in_range(v, '0', 9);
      // Only the sign bit matters: it is set beyond ASCII.
      const __m128i run = _mm_or_si128(_mm_or_si128(in_range(low, 'a', 25), digit), v);
      kinds.digit |= mask_of(digit) << (16 * i);
      kinds.run |= mask_of(run) << (16 * i);
      kinds.space |= mask_of(_mm_or_si128(eq(v, ' '), in_range(v, '\t', 4))) << (16 * i);
      kinds.slash |= mask_of(eq(v, '/')) << (16 * i);
      kinds.colon |= mask_of(eq(v, ':')) << (16 * i);
      kinds.dot |= mask_of(eq(v, '.')) << (16 * i);
      kinds.rare |= mask_of(_mm_or_si128(eq(low, '|'), eq(v, '\x1b'))) << (16 * i);
    }
    out[w] = kinds;
  }
}

#define CULPRIT_AVX2 __attribute__((target("avx2")))
CULPRIT_AVX2 uint64_t wide_mask(__m256i v) { return static_cast<uint32_t>(_mm256_movemask_epi8(v)); }
CULPRIT_AVX2 __m256i wide_equal(__m256i v, char c) { return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c)); }
CULPRIT_AVX2 __m256i wide_range(__m256i v, char low, char span) {
  const __m256i moved = _mm256_sub_epi8(v, _mm256_set1_epi8(low));
  return _mm256_cmpeq_epi8(_mm256_min_epu8(moved, _mm256_set1_epi8(span)), moved);
}

CULPRIT_AVX2 void classify_avx2(const char* text, size_t words, Kinds* out) {
  for (size_t w = 0; w < words; ++w) {
    Kinds kinds{};
    for (int i = 0; i < 2; ++i) {
      const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + 64 * w) + i);
      const __m256i low = _mm256_or_si256(v, _mm256_set1_epi8(0x20));
      const __m256i digit = wide_range(v, '0', 9);
      const __m256i run = _mm256_or_si256(_mm256_or_si256(wide_range(low, 'a', 25), digit), v);
      kinds.digit |= wide_mask(digit) << (32 * i);
      kinds.run |= wide_mask(run) << (32 * i);
      kinds.space |= wide_mask(_mm256_or_si256(wide_equal(v, ' '), wide_range(v, '\t', 4))) << (32 * i);
      kinds.slash |= wide_mask(wide_equal(v, '/')) << (32 * i);
      kinds.colon |= wide_mask(wide_equal(v, ':')) << (32 * i);
      kinds.dot |= wide_mask(wide_equal(v, '.')) << (32 * i);
      kinds.rare |= wide_mask(_mm256_or_si256(wide_equal(low, '|'), wide_equal(v, '\x1b'))) << (32 * i);
    }
    out[w] = kinds;
  }
}
#undef CULPRIT_AVX2

// Classifies `words` times 64 bytes.
void classify(const char* text, size_t words, Kinds* out) {
  static const auto chosen = __builtin_cpu_supports("avx2") ? classify_avx2 : classify_sse2;
  chosen(text, words, out);
}

// Writes kStep bytes with each digit as '0'.
void fold_digits(const char* from, char* to) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m128i digit = in_range(v, '0', 9), zero = _mm_and_si128(digit, _mm_set1_epi8('0'));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_or_si128(_mm_andnot_si128(digit, v), zero));
}
#else
void classify(const char* text, size_t words, Kinds* out) {
  for (size_t w = 0; w < words; ++w) {
    Kinds kinds{};
    for (int i = 0; i < 64; ++i) {
      const char c = text[64 * w + static_cast<size_t>(i)];
      const uint64_t bit = uint64_t{1} << i;
      if (digit(c)) kinds.digit |= bit;
      if (digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c & 0x80)) kinds.run |= bit;
      if (is_space(c)) kinds.space |= bit;
      if (c == '/') kinds.slash |= bit;
      if (c == ':') kinds.colon |= bit;
      if (c == '.') kinds.dot |= bit;
      if (c == '\\' || c == '|' || c == '\x1b') kinds.rare |= bit;
    }
    out[w] = kinds;
  }
}

void fold_digits(const char* from, char* to) {
  for (size_t i = 0; i < kStep; ++i) to[i] = digit(from[i]) ? '0' : from[i];
}
#endif

class Skeleton {
 public:
  explicit Skeleton(std::string_view message) : size_(message.size()), words_((size_ + 63) / 64) {
    std::memcpy(text_, message.data(), size_);
    std::memset(text_ + size_, ' ', 64);
    classify(text_, words_, kinds_);
    kinds_[words_] = {};  // ends every run
    kinds_[words_].space = 1;
  }

  uint64_t key() {
    for (size_t w = 0; w < words_; ++w)
      if (kinds_[w].rare != 0 && barred(w)) return 0;
    next_exact();
    for (size_t w = 0; w < words_; ++w) {
      uint64_t digits = kinds_[w].digit;
      while (true) {
        if (at_ >= 64 * (w + 1)) break;
        if (at_ > 64 * w) digits &= ~uint64_t{0} << (at_ % 64);
        if (digits == 0) break;
        number(64 * w + static_cast<size_t>(std::countr_zero(digits)));
      }
    }
    copy(size_);
    const uint64_t hash = XXH3_64bits(out_, put_);
    return hash != 0 ? hash : 1;
  }

 private:
  // After an escape or a backslash, words have other limits; the mask of a bar depends on its length.
  bool barred(size_t w) const {
    for (uint64_t rest = kinds_[w].rare; rest != 0; rest &= rest - 1) {
      const size_t at = 64 * w + static_cast<size_t>(std::countr_zero(rest));
      if (text_[at] != '|' || (at > 0 && text_[at - 1] == '%')) return true;
    }
    return false;
  }

  // Finds the next token whose lengths matter: a path ("x.c-12" may end in an extension of six bytes), or
  // groups between colons (an address has at most four characters in each, and three colons or a pair).
  void next_exact() {
    size_t from = exact_to_;
    exact_from_ = exact_to_ = ~size_t{0};
    for (size_t w = from / 64; w < words_; ++w) {
      if (from >= 64 * (w + 1)) continue;
      uint64_t marks = kinds_[w].slash | kinds_[w].colon;
      if (from > 64 * w) marks &= ~uint64_t{0} << (from - 64 * w);
      while (marks != 0) {
        const size_t at = 64 * w + static_cast<size_t>(std::countr_zero(marks));
        const size_t end = token_end(at);
        const bool alone = text_[at] == ':' && end == at + 1;  // usual case "sampler:": the token's only mark
        if (const size_t begin = alone ? 0 : token_begin(at); !alone && exact(begin, end)) {
          exact_from_ = begin;
          exact_to_ = end;
          return;
        }
        from = end;
        if (end >= 64 * (w + 1)) break;
        marks &= ~uint64_t{0} << (end - 64 * w);
      }
    }
  }

  bool exact(size_t begin, size_t end) const {
    if (count(begin, end, &Kinds::slash) == 0) {
      const int colons = count(begin, end, &Kinds::colon);
      return colons >= 3 || (colons == 2 && std::string_view(text_ + begin, end - begin).find("::") !=
                                                std::string_view::npos);
    }
    return count(begin, end, &Kinds::dot) > 0 || count(begin, end, &Kinds::colon) > 0;
  }

  // The number of bytes of a kind in [begin, end).
  int count(size_t begin, size_t end, uint64_t Kinds::*kind) const {
    int out = 0;
    for (size_t w = begin / 64; 64 * w < end; ++w) {
      uint64_t bits = kinds_[w].*kind;
      if (begin > 64 * w) bits &= ~uint64_t{0} << (begin - 64 * w);
      if (end < 64 * (w + 1)) bits &= ~(~uint64_t{0} << (end - 64 * w));
      out += std::popcount(bits);
    }
    return out;
  }

  size_t token_begin(size_t at) const {
    size_t w = at / 64;
    uint64_t spaces = kinds_[w].space & ~(~uint64_t{0} << at % 64);
    while (spaces == 0) {
      if (w == 0) return 0;
      spaces = kinds_[--w].space;
    }
    return 64 * w + 64 - static_cast<size_t>(std::countl_zero(spaces));
  }
  size_t token_end(size_t at) const {
    size_t w = at / 64;
    uint64_t spaces = kinds_[w].space & (~uint64_t{0} << at % 64);
    while (spaces == 0) spaces = kinds_[++w].space;
    return std::min(size_, 64 * w + static_cast<size_t>(std::countr_zero(spaces)));
  }

  // Adds the run of letters and digits with its first digit at `first`, or the whole token if its lengths
  // matter.
  void number(size_t first) {
    while (first >= exact_to_) next_exact();
    if (first >= exact_from_) {
      copy(exact_from_);
      for (size_t done = 0; at_ + done < exact_to_; done += kStep)
        fold_digits(text_ + at_ + done, out_ + put_ + done);
      put_ += exact_to_ - at_;
      at_ = exact_to_;
      return;
    }
    const size_t end = run_end(first), w = first / 64, bit = first % 64;
    if (((bit != 0 ? kinds_[w].run >> (bit - 1) : w != 0 ? kinds_[w - 1].run >> 63 : 0) & 1) == 0) {
      // A run that begins with a digit is a hole, whatever follows ("13GiB", "0x7f64f37424ee").
      copy(first);
      out_[put_++] = '0';
    } else {
      size_t begin = first;
      while (begin > 0 && (kinds_[(begin - 1) / 64].run >> (begin - 1) % 64 & 1) != 0) --begin;
      copy(begin);
      word({text_ + begin, end - begin}, first - begin);
    }
    at_ = end;
  }

  size_t run_end(size_t at) const {
    size_t w = at / 64;
    const auto ones = static_cast<size_t>(std::countr_one(kinds_[w].run >> at % 64));
    if (at % 64 + ones < 64) return at + ones;
    while (~kinds_[++w].run == 0) {
    }
    return 64 * w + static_cast<size_t>(std::countr_one(kinds_[w].run));
  }

  // Adds a run that begins with `letters` letters.
  void word(std::string_view run, size_t letters) {
    const bool hex = std::all_of(run.begin(), run.end(), [](char c) { return digit(c) || is_hex_letter(c); });
    // One letter and a number, or a hexadecimal id, are one hole.
    if (letters < 2 || (hex && run.size() >= kHexIdBytes)) {
      out_[put_++] = 'a';
      out_[put_++] = '0';
      return;
    }
    // The length matters only for hexadecimal characters, which may be an address.
    for (size_t i = 0; i < run.size(); ++i) {
      if (!digit(run[i]))
        out_[put_++] = run[i];
      else if (hex || !digit(run[i - 1]))
        out_[put_++] = '0';
    }
  }

  // Copies the text up to `to` in whole steps; excess bytes are overwritten or not read.
  void copy(size_t to) {
    for (size_t done = 0; at_ + done < to; done += kStep)
      std::memcpy(out_ + put_ + done, text_ + at_ + done, kStep);
    put_ += to - at_;
    at_ = to;
  }

  size_t size_, words_;
  size_t at_ = 0;   // end of the text that is already in the key
  size_t put_ = 0;  // at most at_
  size_t exact_from_ = 0, exact_to_ = 0;
  Kinds kinds_[kMaskedBytes / 64 + 1];
  char text_[kMaskedBytes + 64];
  char out_[kMaskedBytes + 64];
};

}  // namespace

uint64_t form_key(std::string_view message) {
  if (message.size() > kMaskedBytes) return 0;
  return Skeleton(message).key();
}

}  // namespace culprit::logs
