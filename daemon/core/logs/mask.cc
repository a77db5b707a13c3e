// Scans a message: finds whitespace and bytes that can begin a variable part ("special"), 64 bytes at a time.
// Only tokens with special bytes are parsed (mask_token.cc). The text between two tokens with holes is a
// literal stretch, hashed at once. The hash thus covers the canonical text, cut at its holes.
#include "core/logs/mask.h"

#include <array>
#include <bit>
#include <cstring>

// Inlined: the stretches are short, and a function call costs as much as their hash.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/mask_bytes.h"
#include "core/logs/mask_token.h"

namespace culprit::logs {
namespace {

// Maximum text between a progress bar and its bracket, which has only the counts (" 123456789/987654321 ").
constexpr size_t kCountsBytes = 40;
constexpr size_t kUnitBytes = 8;  // the longest unit plus one
constexpr size_t kWords = limits::kMessageBytes / 64;

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
    size_t at = 0;       // end of the processed text
    size_t stretch = 0;  // begin of the literal stretch
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
    uint64_t before = 0;
    for (size_t w = 0; w < words; ++w) {
      const size_t left = size_ - 64 * w;
      if (left >= 64) {
        bits_[w] = classify64(begin_ + 64 * w);
      } else {
        char tail[64];
        std::memset(tail, ' ', sizeof tail);
        std::memcpy(tail, begin_ + 64 * w, left);
        bits_[w] = classify64(tail);
      }
      bits_[w].irregular |= bits_[w].space & before;
      before = bits_[w].space >> 63;
    }
  }

  // Whether whitespace in [from, to) is anything but single spaces.
  bool irregular(size_t from, size_t to) const {
    const size_t first = from / 64, last = (to - 1) / 64;
    for (size_t w = first; w <= last; ++w) {
      uint64_t word = bits_[w].irregular;
      if (w == first) word &= ~uint64_t{0} << (from % 64);
      if (w == last) word &= ~uint64_t{0} >> (63 - (to - 1) % 64);
      if (word != 0) return true;
    }
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

  // Begin of a date whose number is at `from`, with the names of month and day ("Jun 18 02:08:12", "Sun Jun
  // 18").
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

  // Extends the hole at the end of the token over whitespace to a unit or the rest of a progress bar. Returns
  // the earliest begin of the next token.
  size_t extend(size_t at) {
    const std::string_view text = token_.view();
    if (text.size() > kHole.size() + 1 && text.find("<*>%|") != std::string_view::npos) return bar(at);
    if (!text.ends_with(kHole) || at + 1 >= size_ || is_space(begin_[at + 1])) return at;
    const size_t end = token_end(at + 1);
    size_t unit = at + 1;
    while (unit < end && unit < at + 1 + kUnitBytes &&
           ((begin_[unit] | 0x20) >= 'a' && (begin_[unit] | 0x20) <= 'z'))
      ++unit;
    if (!is_unit({begin_ + at + 1, unit - at - 1})) return at;
    for (size_t i = unit; i < end; ++i)
      if (!std::strchr(",.;:)]}", begin_[i])) return at;
    token_.put({begin_ + unit, end - unit});
    return end;
  }

  // tqdm's "12%|█▎   | 1/8 [01:53<13:12, 113.21s/it]": the bar, the counts and the bracket are one value
  // each, at any progress.
  size_t bar(size_t at) {
    const std::string_view rest(begin_, size_);
    token_.truncate(token_.view().find("<*>%|") + 5);
    const size_t percent = rest.rfind("%|", at);
    const size_t close = rest.find('|', percent + 2);
    token_.put("<*>|");
    if (close == std::string_view::npos) return size_;  // truncated while the bar was written
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

  // Skips repetitions of the bar that were written without a newline.
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
    while (from < to && is_space(begin_[from])) ++from;
    while (from < to && is_space(begin_[to - 1])) --to;
    if (spilled_.size() > 0 || (from < to && irregular(from, to))) {
      spill(from, to);
      flush_masked();
      sink_.literal(spilled_.view());
      spilled_.clear();
      return;
    }
    if (from >= to) return;
    flush_masked();
    sink_.literal({begin_ + from, to - from});
  }

  // Joins adjacent holes: "1 2 3", "[1, 2, 3]" and a date before a time are one value, for any number of
  // parts.
  void masked() {
    const std::string_view next = token_.view();
    const bool bare = next.size() == kHole.size();
    if (bare && held_.size() == 0) {
      bare_ = true;
      return;
    }
    if (bare_) {
      if (bare) return;
      bare_ = false;
      held_.put(kHole);
    }
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

  // Whether `held` ends with `core` ("<*>", "rank<*>"), at its beginning or after an opening bracket or a
  // key.
  static bool repeats(std::string_view held, std::string_view core) {
    if (!held.ends_with(core)) return false;
    return held.size() == core.size() ||
           std::strchr("([{=:'\"", held[held.size() - core.size() - 1]) != nullptr;
  }

  void flush_masked() {
    if (bare_) {
      sink_.masked(kHole);
      bare_ = false;
      return;
    }
    if (held_.size() == 0) return;
    sink_.masked(held_.view());
    held_.clear();
  }

  Sink& sink_;
  const char* begin_ = nullptr;
  size_t size_ = 0;
  size_t tokens_ = 0;
  bool cut_ = false;
  std::array<Bits, kWords + 1> bits_;
  TokenBuffer token_, held_, spilled_;
  bool bare_ = false;  // a bare hole is pending (the usual case), and held_ is empty
};

struct HashSink {
  uint64_t hash = 0;
  void literal(std::string_view text) { hash = mix64(hash, XXH3_64bits(text.data(), text.size())); }
  void masked(std::string_view text) {
    // The constant is arbitrary; it saves a hash for the usual bare hole.
    hash = mix64(hash, text.size() == kHole.size() ? 0x3c2a3e : ~XXH3_64bits(text.data(), text.size()));
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
