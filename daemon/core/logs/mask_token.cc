#include "core/logs/mask_token.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace culprit::logs {
namespace {

enum : uint8_t {
  kDigit = 1,
  kLetter = 2,    // ASCII letters and every byte beyond ASCII: words of other languages are words
  kHex = 4,       // letters a to f
  kPathByte = 8,  // allowed inside a path
  kJoin = 16,     // between two holes: both are one value (addresses, dates, versions, ratios)
  kTie = 32,      // between a hole and a word: both are one identifier
  kOpen = 64,     // a path may begin after it
  kClose = 128,   // allowed after a number without being part of it
};

constexpr std::array<uint8_t, 256> make_classes() {
  std::array<uint8_t, 256> t{};
  for (int c = 0; c < 256; ++c) {
    if (c >= '0' && c <= '9') t[c] = kDigit | kPathByte;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 128) t[c] = kLetter | kPathByte;
    if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) t[c] |= kHex;
  }
  for (const char c : std::string_view("/._-+@%~#$&*?!")) t[static_cast<uint8_t>(c)] |= kPathByte;
  for (const char c : std::string_view(".:-_/+,\\@#~")) t[static_cast<uint8_t>(c)] |= kJoin;
  for (const char c : std::string_view("-_.~")) t[static_cast<uint8_t>(c)] |= kTie;
  for (const char c : std::string_view("([{<\"'`=:,;|]")) t[static_cast<uint8_t>(c)] |= kOpen;
  for (const char c : std::string_view(",:;)]}.")) t[static_cast<uint8_t>(c)] |= kClose;
  return t;
}
constexpr std::array<uint8_t, 256> kClasses = make_classes();

uint8_t class_of(char c) { return kClasses[static_cast<uint8_t>(c)]; }
bool is(char c, uint8_t classes) { return (class_of(c) & classes) != 0; }

constexpr size_t kNoHole = ~size_t{0};
// An InfiniBand hardware address has 19; a bound, because each group of a token may begin an address.
constexpr int kAddressColons = 19;

class Masker {
 public:
  Masker(std::string_view token, TokenBuffer& out)
      : begin_(token.data()), p_(begin_), end_(begin_ + token.size()), out_(out) {
    for (const char c : token) {  // a loop, since tokens are too short for memchr to be faster
      slash_ |= c == '/';
      backslash_ |= c == '\\';
    }
  }

  Masked run() {
    out_.clear();
    while (p_ < end_) {
      if (is(*p_, kDigit | kLetter))
        alnum();
      else
        separator();
    }
    return holes_ ? Masked::kHoles : changed_ ? Masked::kLiteral : Masked::kSame;
  }

 private:
  bool at_start() const { return p_ == begin_ || is(p_[-1], kOpen); }

  // The bytes since the last hole: only separators.
  std::string_view since_hole() const { return out_.view().substr(hole_end_); }

  void hole() {
    // Two holes with one or two separators between are one value; longer separators ("....") are layout.
    if (hole_end_ != kNoHole) {
      const std::string_view between = since_hole();
      bool joins = between.size() <= 2;
      for (const char c : between) joins = joins && is(c, kJoin);
      if (joins) {
        // Two numbers in one identifier make a name ("rdd_2_2", "host129.206.196.21"), including the word
        // before. A word with one number is a numbered object ("rank12", "blk_-123").
        bool tied = true;
        for (const char c : between) tied = tied && is(c, kTie);
        if (tied) {
          out_.truncate(name_);
          out_.put(kHole);
          hole_end_ = out_.size();
        } else {
          out_.truncate(hole_end_);
          name_ = hole_end_ - kHole.size();
        }
        return;
      }
    }
    out_.put(kHole);
    hole_end_ = out_.size();
    holes_ = true;
  }

  void word(const char* to) {
    out_.put({p_, static_cast<size_t>(to - p_)});
    p_ = to;
    hole_end_ = kNoHole;
  }

  void alnum() {
    const bool fresh = at_start();
    if (!named_) name_ = out_.size();
    named_ = true;
    if (fresh && ((slash_ && (url() || relative_path())) || drive() || relative_backslash_path())) return;
    const char* q = p_;
    const char* digit = nullptr;
    bool hex = true;
    int switches = 0;
    for (uint8_t last = class_of(*p_) & kDigit; q < end_ && is(*q, kDigit | kLetter); ++q) {
      const uint8_t now = class_of(*q) & kDigit;
      if (now && !digit) digit = q;
      switches += now != last;
      hex = hex && (now || is(*q, kHex));
      last = now;
    }
    if (q < end_ && *q == ':' && q - p_ <= 4 && hex && colon_hex()) return;
    if (!digit) return letters(q);
    // A word of two letters or more before a number stays, since it names the numbered object ("rank12",
    // "mlx5core"). A single letter has no meaning, and alternating letters and digits are a random id. Six
    // hexadecimal characters are an address or a digest rather than a word.
    const auto length = static_cast<size_t>(q - p_);
    const bool whole = digit - p_ < 2 || switches >= 3 || (hex && (length >= kHexIdBytes || switches > 1));
    if (!whole) word(digit);
    hole();
    p_ = q;
  }

  void letters(const char* to) {
    if (hole_end_ != kNoHole && tied(to)) {
      out_.truncate(hole_end_);
      p_ = to;
      return;
    }
    word(to);
  }

  // Whether the letters up to `to` belong to the identifier with the last hole: "node-17.example.com",
  // "task_0_m_0001", "3f-ab". A capital letter after a full stop begins a sentence.
  bool tied(const char* to) const {
    const std::string_view between = since_hole();
    if (between.empty()) return true;
    if (between.size() != 1) return false;
    if (between[0] == ':') {
      bool hex = to - p_ <= 4;  // a group of an IPv6 address or of a MAC
      for (const char* c = p_; c < to; ++c) hex = hex && is(*c, kHex);
      return hex;
    }
    return is(between[0], kTie) && !(between[0] == '.' && *p_ >= 'A' && *p_ <= 'Z');
  }

  // Matches hexadecimal groups of at most four between three colons or more, or two ("fe80::1") before a
  // number, with a digit: MAC, IPv6, PCI and WWN addresses. A port and an interface belong to the address.
  bool colon_hex() {
    int colons = 0;
    bool digit = false, pair = false, number = true;  // number: the last group is decimal
    const char* q = p_;
    for (const char* group = q; q < end_; ++q) {
      if (*q == ':') {
        if (colons == kAddressColons) return false;
        pair = pair || (q > begin_ && q[-1] == ':');
        ++colons;
        group = q + 1;
        number = true;
        continue;
      }
      if (!is(*q, kDigit | kHex)) break;
      digit = digit || is(*q, kDigit);
      number = number && is(*q, kDigit);
      if (q - group >= 5 || (q - group == 4 && (!number || colons < 3))) return false;
    }
    if (colons < 2 || (colons == 2 && !(pair && number && q[-1] != ':'))) return false;
    if (!digit || (q < end_ && is(*q, kLetter))) return false;
    if (q[-1] == ':') --q;
    if (q + 1 < end_ && *q == '%' && is(q[1], kLetter))
      for (++q; q < end_ && is(*q, kLetter | kDigit | kTie);) ++q;
    p_ = q;
    hole();
    return true;
  }

  const char* path_end(const char* q, bool colons) const {
    const char* from = q;
    for (; q < end_ && (is(*q, kPathByte) || (colons && (*q == ':' || *q == '='))); ++q)
      colons = colons || *q == '?';  // the query of a URL ("/items?since=3") extends to its end
    while (q > from && (q[-1] == '.' || q[-1] == '?' || q[-1] == '!' || q[-1] == ':'))
      --q;  // punctuation of the sentence
    return q;
  }

  bool url() {
    const char* q = p_;
    while (q < end_ && (is(*q, kLetter | kDigit) || *q == '+' || *q == '-' || *q == '.')) ++q;
    if (end_ - q < 4 || std::memcmp(q, "://", 3) != 0) return false;
    p_ = path_end(q + 3, true);
    hole();
    return true;
  }

  bool drive() {
    if (end_ - p_ < 4 || p_[1] != ':' || p_[2] != '\\') return false;
    p_ = backslash_path_end(p_ + 3);
    hole();
    return true;
  }

  const char* backslash_path_end(const char* q) const {
    const char* from = q;
    while (q < end_ && (is(*q, kPathByte) || *q == '\\')) ++q;
    while (q > from && (q[-1] == '.' || q[-1] == '?' || q[-1] == '!')) --q;
    return q;
  }

  // "HKLM\System\Setup": a path without a drive. After a backslash, a small letter may be an escape sequence
  // of a text ("a\nb\tc").
  bool relative_backslash_path() {
    if (!backslash_) return false;
    int names = 0;
    const char* q = p_;
    for (; q < end_ && (is(*q, kLetter | kDigit | kTie) || *q == '\\'); ++q) {
      if (*q != '\\') continue;
      if (q + 1 == end_ || q[1] < 'A' || q[1] > 'Z') break;
      ++names;
    }
    if (names < 2) return false;
    p_ = backslash_path_end(q);
    hole();
    return true;
  }

  // "a/b/c" with a file extension or three slashes is a path; "I/O" and "read/write" are words.
  bool relative_path() {
    const char* q = path_end(p_, false);
    int slashes = 0;
    const char* dot = nullptr;
    for (const char* c = p_; c < q; ++c) {
      if (*c == '/') {
        ++slashes;
        dot = nullptr;
      } else if (*c == '.') {
        dot = c;
      }
    }
    const bool extension = dot && dot > p_ && q - dot >= 2 && q - dot <= 6 && is(dot[1], kLetter);
    if (slashes == 0 || !(extension || slashes >= 3)) return false;
    p_ = q;
    hole();
    return true;
  }

  bool absolute_path() {
    if (!at_start()) return false;
    const char* q = p_;
    if (*q == '.' || *q == '~') ++q;
    if (q < end_ && *q == '.') ++q;
    if (end_ - q < 2 || *q != '/' || !(is(q[1], kLetter | kDigit) || q[1] == '.' || q[1] == '_'))
      return false;
    p_ = path_end(q, false);
    hole();
    return true;
  }

  void separator() {
    const char c = *p_;
    const auto left = static_cast<size_t>(end_ - p_);
    if ((c == '/' || c == '.' || c == '~') && slash_ && absolute_path()) return;
    if (c == '<' && left >= 3 && p_[1] == '*' && p_[2] == '>') {
      p_ += 3;
      return hole();
    }
    if (c == '\x1b' && left >= 2 && p_[1] == '[') return escape();
    if (c == ':' && left >= 3 && p_[1] == ':' && at_start() && is(p_[2], kDigit | kHex) && colon_hex()) {
      named_ = true;
      name_ = out_.size() - kHole.size();
      return;
    }
    // Empty brackets alone are a missing value; after a name they are a call.
    if (left >= 2 && at_start() && closes(c, p_[1])) {
      out_.put(c);
      hole_end_ = kNoHole;
      hole();
      ++p_;
      return;
    }
    if (sign()) {
      ++p_;
      return;
    }
    named_ = named_ && is(c, kTie);
    out_.put(c);
    ++p_;
  }

  static bool closes(char open, char close) {
    return (open == '(' && close == ')') || (open == '[' && close == ']') || (open == '{' && close == '}');
  }

  // The sign or leading point of a number belongs to its hole.
  bool sign() const {
    if ((*p_ != '-' && *p_ != '+' && *p_ != '.') || end_ - p_ < 2 || !is(p_[1], kDigit)) return false;
    return p_ == begin_ || !(is(p_[-1], kDigit | kLetter) || std::strchr(".)]}>", p_[-1]));
  }

  // Removes a terminal's colour sequence, which has no meaning and adjoins the next word.
  void escape() {
    p_ += 2;
    while (p_ < end_ && (is(*p_, kDigit) || *p_ == ';')) ++p_;
    if (p_ < end_) ++p_;
    changed_ = true;
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  TokenBuffer& out_;
  size_t hole_end_ = kNoHole;  // end of the last hole in out_, while only separators follow
  size_t name_ = 0;            // begin of the current identifier in out_
  bool named_ = false;         // only ties followed so far
  bool slash_ = false;
  bool backslash_ = false;
  bool holes_ = false;
  bool changed_ = false;
};

// A faster path for the usual tokens with digits: numbers with at most a unit or exponent, joined by single
// separators (dates, times, addresses, versions), with brackets or a comma. Equal to the result of Masker.
bool plain_number(std::string_view token, TokenBuffer& out) {
  const char* p = token.data();
  const char* const end = p + token.size();
  while (p < end && (*p == '(' || *p == '[')) ++p;
  const auto lead = static_cast<size_t>(p - token.data());
  if (end - p > 1 && (*p == '-' || *p == '+')) ++p;
  if (p == end || !is(*p, kDigit)) return false;
  while (p < end && (is(*p, kDigit | kLetter) || (end - p > 1 && is(*p, kJoin) && is(p[1], kDigit)))) ++p;
  for (const char* c = p; c < end; ++c)
    if (!is(*c, kClose)) return false;
  out.clear();
  for (size_t i = 0; i < lead; ++i) out.put(token[i]);
  out.put('<');
  out.put('*');
  out.put('>');
  for (; p < end; ++p) out.put(*p);
  return true;
}

}  // namespace

Masked mask_token(std::string_view token, TokenBuffer& out) {
  if (plain_number(token, out)) return Masked::kHoles;
  return Masker(token, out).run();
}

}  // namespace culprit::logs
