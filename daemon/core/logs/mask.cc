// The scan: whitespace and the bytes that can begin a variable part ("special") are found 64 bytes at a time;
// only tokens with special bytes are looked into (mask_token.cc). What lies between two tokens with holes is
// a literal stretch, hashed at once; so the hash is one over the canonical text, cut at its holes.
#include "core/logs/mask.h"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/mask_token.h"

namespace culprit::logs {
namespace {

// Between a progress bar and its bracket stand only the counts (" 123456789/987654321 ").
constexpr size_t kCountsBytes = 40;
constexpr size_t kWords = limits::kMessageBytes / 64;

struct Bits {
  uint64_t space = 0;    // space, tab and the other blank controls
  uint64_t special = 0;  // digits, '/', '<', escape, an empty pair of brackets
  bool irregular = false;
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

#if defined(__SSE2__)
uint64_t mask_of(__m128i v) { return static_cast<uint32_t>(_mm_movemask_epi8(v)); }

// Bytes in [low, low + span].
__m128i in_range(__m128i v, char low, char span) {
  const __m128i moved = _mm_sub_epi8(v, _mm_set1_epi8(low));
  return _mm_cmpeq_epi8(_mm_min_epu8(moved, _mm_set1_epi8(span)), moved);
}

Bits classify64(const char* p) {
  uint64_t blank = 0, plain = 0, special = 0, open = 0, close = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
    const __m128i low = _mm_or_si128(v, _mm_set1_epi8(0x20));  // '[' as '{', ']' as '}'
    const auto eq = [](__m128i a, char c) { return _mm_cmpeq_epi8(a, _mm_set1_epi8(c)); };
    const __m128i rare = _mm_or_si128(eq(v, '<'), eq(v, '\x1b'));
    plain |= mask_of(eq(v, ' ')) << (16 * i);
    blank |= mask_of(in_range(v, '\t', 4)) << (16 * i);
    special |= mask_of(_mm_or_si128(in_range(v, '/', 10), rare)) << (16 * i);
    open |= mask_of(_mm_or_si128(eq(v, '('), eq(low, '{'))) << (16 * i);
    close |= mask_of(_mm_or_si128(eq(v, ')'), eq(low, '}'))) << (16 * i);
  }
  // A pair that is cut by the block's edge is seen too: a closer as the first byte counts.
  return {plain | blank, special | (close & (open << 1 | 1)), blank != 0 || (plain & (plain << 1)) != 0};
}
#else
Bits classify64(const char* p) {
  Bits bits;
  for (int i = 0; i < 64; ++i) {
    const char c = p[i];
    const uint64_t bit = uint64_t{1} << i;
    if (is_space(c)) bits.space |= bit;
    if ((c >= '/' && c <= '9') || c == '<' || c == '\x1b') bits.special |= bit;
    const bool close = c == ')' || c == ']' || c == '}';
    if (close && (i == 0 || p[i - 1] == '(' || p[i - 1] == '[' || p[i - 1] == '{')) bits.special |= bit;
    if (is_space(c) && (c != ' ' || (i > 0 && p[i - 1] == ' '))) bits.irregular = true;
  }
  return bits;
}
#endif

// A scale that a formatter chose: "93.0 B" on one line and "1.2 GB" on the next are one template.
bool is_unit(std::string_view word) {
  constexpr std::string_view kUnits[] = {"B",   "kB",  "KB",  "MB",  "GB", "TB", "PB", "KiB",
                                         "MiB", "GiB", "TiB", "PiB", "ns", "us", "ms", "s"};
  for (const std::string_view unit : kUnits)
    if (word == unit) return true;
  return false;
}

bool is_month(const char* p) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  for (size_t i = 0; i < kMonths.size(); i += 3)
    if (std::memcmp(p, kMonths.data() + i, 3) == 0) return true;
  return false;
}

bool is_weekday(const char* p) {
  constexpr std::string_view kDays = "MonTueWedThuFriSatSun";
  for (size_t i = 0; i < kDays.size(); i += 3)
    if (std::memcmp(p, kDays.data() + i, 3) == 0) return true;
  return false;
}

template <class Sink>
class Scan {
 public:
  Scan(std::string_view message, Sink& sink) : sink_(sink) {
    cut_ = message.size() > limits::kMessageBytes;
    if (cut_) message = message.substr(0, limits::kMessageBytes);
    begin_ = message.data();
    size_ = message.size();
    load();
  }

  void run() {
    size_t at = 0;       // what lies before is dealt with
    size_t stretch = 0;  // where the literal stretch began
    for (size_t bit = next_special(0); bit < size_; bit = next_special(at)) {
      const size_t from = token_begin(bit, at);
      at = token_end(bit);
      const Masked kind = mask_token({begin_ + from, at - from}, token_);
      if (kind == Masked::kSame) continue;
      if (kind == Masked::kLiteral) {
        spill(stretch, from);
        append(token_.view());
      } else {
        const size_t literal_end = before_date(stretch, from);
        literal(stretch, literal_end);
        at = extend(at);
        masked();
      }
      stretch = at;
      if (++tokens_ >= limits::kMessageTokens) break;
    }
    if (tokens_ >= limits::kMessageTokens || cut_) {
      if (tokens_ < limits::kMessageTokens) literal(stretch, size_);
      token_.clear();
      token_.put(kHole);
      masked();
    } else {
      literal(stretch, size_);
    }
    flush_masked();
  }

 private:
  void load() {
    const size_t words = (size_ + 63) / 64;
    for (size_t w = 0; w < words; ++w) {
      const size_t left = size_ - 64 * w;
      if (left >= 64) {
        bits_[w] = classify64(begin_ + 64 * w);
      } else {
        char tail[64];
        std::memset(tail, ' ', sizeof tail);
        std::memcpy(tail, begin_ + 64 * w, left);
        bits_[w] = classify64(tail);
        irregular_ |= irregular_tail(tail, left);
        continue;
      }
      irregular_ |= bits_[w].irregular || (w > 0 && (bits_[w].space & 1) && (bits_[w - 1].space >> 63));
    }
  }

  bool irregular_tail(const char* tail, size_t left) const {
    for (size_t i = 0; i < left; ++i)
      if (is_space(tail[i]) && (tail[i] != ' ' || i == 0 || tail[i - 1] == ' ')) return true;
    return false;
  }

  size_t next_special(size_t at) const {
    if (at >= size_) return size_;
    size_t w = at / 64;
    uint64_t word = bits_[w].special & (~uint64_t{0} << (at % 64));
    while (word == 0) {
      if (64 * ++w >= size_) return size_;
      word = bits_[w].special;
    }
    return 64 * w + static_cast<size_t>(std::countr_zero(word));
  }

  size_t token_begin(size_t bit, size_t floor) const {
    size_t w = bit / 64;
    uint64_t word = bits_[w].space & ~(~uint64_t{0} << (bit % 64));
    while (word == 0) {
      if (w == 0 || 64 * w <= floor) return floor;
      word = bits_[--w].space;
    }
    const size_t begin = 64 * w + 64 - static_cast<size_t>(std::countl_zero(word));
    return begin < floor ? floor : begin;
  }

  size_t token_end(size_t bit) const {
    size_t w = bit / 64;
    uint64_t word = bits_[w].space & (~uint64_t{0} << (bit % 64));
    while (word == 0) {
      if (64 * ++w >= size_) return size_;
      word = bits_[w].space;
    }
    const size_t end = 64 * w + static_cast<size_t>(std::countr_zero(word));
    return end < size_ ? end : size_;
  }

  // A month's name before a number ("Jun 18 02:08:12", "Sun Jun 18"), and the day's before it, are of the
  // date.
  size_t before_date(size_t stretch, size_t from) const {
    if (from < stretch + 4 || begin_[from - 1] != ' ') return from;
    size_t word = from - 1;
    if (word > stretch && begin_[word - 1] == ' ') --word;  // "Jun  8"
    if (word < stretch + 3 || !is_month(begin_ + word - 3)) return from;
    size_t start = word - 3;
    if (start > 0 && !is_space(begin_[start - 1])) return from;
    size_t day = start;
    if (day > stretch && begin_[day - 1] == ' ') --day;
    if (day > stretch && begin_[day - 1] == ',') --day;  // "Sun, Jun 18"
    if (day >= stretch + 3 && is_weekday(begin_ + day - 3) && (day == 3 || is_space(begin_[day - 4])))
      start = day - 3;
    return start;
  }

  // What belongs to the hole that the token ends with though whitespace stands between: a unit, the rest of a
  // progress bar. Gives where the next token may begin.
  size_t extend(size_t at) {
    const std::string_view text = token_.view();
    if (text.size() >= 5 && text.find("<*>%|") != std::string_view::npos) return bar(at);
    if (!text.ends_with(kHole) || at + 1 >= size_ || is_space(begin_[at + 1])) return at;
    const size_t end = token_end(at + 1);
    size_t unit = at + 1;
    while (unit < end && ((begin_[unit] | 0x20) >= 'a' && (begin_[unit] | 0x20) <= 'z')) ++unit;
    if (!is_unit({begin_ + at + 1, unit - at - 1})) return at;
    for (size_t i = unit; i < end; ++i)
      if (!std::strchr(",.;:)]}", begin_[i])) return at;
    token_.put({begin_ + unit, end - unit});
    return end;
  }

  // tqdm's "12%|█▎   | 1/8 [01:53<13:12, 113.21s/it]": the bar, the counts and the bracket are one value
  // each, whatever they show at the start and at the end.
  size_t bar(size_t at) {
    const std::string_view rest(begin_, size_);
    token_.truncate(token_.view().find("<*>%|") + 5);
    const size_t percent = rest.rfind("%|", at);
    const size_t close = rest.find('|', percent + 2);
    token_.put("<*>|");
    if (close == std::string_view::npos) return size_;  // cut off while it was drawn
    const size_t bracket = rest.find('[', close);
    const size_t end = bracket == std::string_view::npos ? bracket : rest.find(']', bracket);
    if (end == std::string_view::npos || bracket - close > kCountsBytes) return close + 1;
    masked();
    token_.clear();
    token_.put(kHole);
    masked();
    token_.clear();
    token_.put("[<*>]");
    return next_bar(end + 1);
  }

  // A bar that is redrawn without a new line says the same again.
  size_t next_bar(size_t at) const {
    const std::string_view rest(begin_, size_);
    while (true) {
      size_t i = at;
      while (i < size_ && is_space(begin_[i])) ++i;
      size_t j = i;
      while (j < size_ && begin_[j] >= '0' && begin_[j] <= '9') ++j;
      if (i == j || !rest.substr(j).starts_with("%|")) return at;
      const size_t close = rest.find('|', j + 2);
      const size_t bracket = close == std::string_view::npos ? close : rest.find('[', close);
      const size_t end = bracket == std::string_view::npos ? bracket : rest.find(']', bracket);
      if (end == std::string_view::npos || bracket - close > kCountsBytes) return at;
      at = end + 1;
    }
  }

  void spill(size_t from, size_t to) {
    size_t i = from;
    while (i < to) {
      while (i < to && is_space(begin_[i])) ++i;
      size_t j = i;
      while (j < to && !is_space(begin_[j])) ++j;
      if (j > i) append({begin_ + i, j - i});
      i = j;
    }
  }

  void append(std::string_view token) {
    if (token.empty()) return;
    if (spilled_.size() > 0) spilled_.put(' ');
    spilled_.put(token);
  }

  void literal(size_t from, size_t to) {
    if (spilled_.size() > 0 || irregular_) {
      spill(from, to);
      if (spilled_.size() == 0) return;
      flush_masked();
      sink_.literal(spilled_.view());
      spilled_.clear();
      return;
    }
    if (from < to && begin_[from] == ' ') ++from;
    if (from < to && begin_[to - 1] == ' ') --to;
    if (from >= to) return;
    flush_masked();
    sink_.literal({begin_ + from, to - from});
  }

  // Neighbours that are all hole fold: "1 2 3", "[1, 2, 3]" and a date beside a time are one value, however
  // many.
  void masked() {
    const std::string_view next = token_.view();
    const std::string_view held = held_.view();
    const size_t comma = held.ends_with(',') ? 1 : 0;
    const size_t core = next.rfind(kHole) + kHole.size();
    if (repeats(held.substr(0, held.size() - comma), next.substr(0, core))) {
      held_.truncate(held_.size() - comma);
      held_.put(next.substr(core));
      return;
    }
    if (next.starts_with(kHole) && held.substr(0, held.size() - comma).ends_with(kHole)) {
      held_.truncate(held_.size() - comma);
      held_.put(next.substr(kHole.size()));
      return;
    }
    flush_masked();
    held_.put(next);
  }

  // Whether `core` ("<*>", "rank<*>") is what `held` ends with, alone or behind an opening bracket or a key.
  static bool repeats(std::string_view held, std::string_view core) {
    if (!held.ends_with(core)) return false;
    return held.size() == core.size() ||
           std::strchr("([{=:'\"", held[held.size() - core.size() - 1]) != nullptr;
  }

  void flush_masked() {
    if (held_.size() == 0) return;
    sink_.masked(held_.view());
    held_.clear();
  }

  Sink& sink_;
  const char* begin_ = nullptr;
  size_t size_ = 0;
  size_t tokens_ = 0;
  bool cut_ = false;
  bool irregular_ = false;
  std::array<Bits, kWords + 1> bits_;
  TokenBuffer token_, held_, spilled_;
};

struct HashSink {
  uint64_t hash = 0;
  void literal(std::string_view text) { hash = mix64(hash, hash64(text)); }
  void masked(std::string_view text) {
    // The bare hole is the usual one; its constant is arbitrary.
    hash = mix64(hash, text.size() == kHole.size() ? 0x3c2a3e : hash64(text, 1));
  }
};

struct TextSink {
  std::string text;
  void literal(std::string_view part) {
    if (!text.empty()) text += ' ';
    text += part;
  }
  void masked(std::string_view part) { literal(part); }
};

}  // namespace

uint64_t form_hash(std::string_view message) {
  HashSink sink;
  Scan<HashSink>(message, sink).run();
  return sink.hash;
}

std::string form_text(std::string_view message) {
  TextSink sink;
  sink.text.reserve(message.size() < limits::kMessageBytes ? message.size() : limits::kMessageBytes);
  Scan<TextSink>(message, sink).run();
  return std::move(sink.text);
}

}  // namespace culprit::logs
