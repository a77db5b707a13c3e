#include "cli/redact_fold.h"

#include <cstdint>

#include "base/ascii.h"

namespace culprit::cli {
namespace {

// The number formed by `digits` hex digits at `at`; -1: other characters.
int hex_number(std::string_view text, size_t at, size_t digits) {
  if (at + digits > text.size()) return -1;
  int out = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int value = hex_value(text[at + i]);
    if (value < 0) return -1;
    out = out * 16 + value;
  }
  return out;
}

// Length of a control sequence at the start of the text; 0: none.
size_t terminal_sequence(std::string_view text) {
  if (text.size() < 2) return 0;
  size_t at = 2;
  if (text[1] == '[') {
    while (at < text.size() && text[at] >= 0x20 && text[at] <= 0x3f) ++at;
    return at < text.size() && text[at] >= 0x40 && text[at] <= 0x7e ? at + 1 : 0;
  }
  if (text[1] != ']') return 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '\a') return at + 1;
    if (text[at] == '\x1b') return at + 1 < text.size() && text[at + 1] == '\\' ? at + 2 : 0;
  }
  return 0;
}

std::string without_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t size = text[at] == '\x1b' ? terminal_sequence(text.substr(at)) : 0;
    if (size == 0) out += text[at];
    at += size == 0 ? 1 : size;
  }
  return out;
}

bool is_unseen(int code) {
  return code == 0xad || (code >= 0x200b && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x2069) || code == 0xfeff;
}

bool is_name_letter(int code) {
  return code > 0 && code < 0x80 &&
         (alpha(static_cast<char>(code)) || digit(static_cast<char>(code)) || code == '_' || code == '-');
}

// "C:\lib\x64" names a folder: a two-digit escape counts only within a word.
bool is_within_word(std::string_view text, size_t end) {
  return end < text.size() && (alpha(text[end]) || text.substr(end, 2) == "\\x");
}

// "%4d" is a format: an escape in an address is within a word or begins a word of a query.
bool is_in_address(std::string_view text, size_t at) {
  const char before = at > 0 ? text[at - 1] : '&';
  const bool joined =
      alpha(before) || digit(before) || before == '_' || before == '&' || before == '?' || before == '/';
  return joined && at + 3 < text.size() && (alpha(text[at + 3]) || text[at + 3] == '%');
}

std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    size_t size = 0;
    int code = -1;
    if (text[at] == '%' && is_in_address(text, at)) {
      code = hex_number(text, at + 1, 2), size = 3;
    } else if (text[at] == '\\' && next == 'u') {
      code = hex_number(text, at + 2, 4), size = 6;
    } else if (text[at] == '\\' && next == 'x' && is_within_word(text, at + 4)) {
      code = hex_number(text, at + 2, 2), size = 4;
    }
    const bool unseen = next == 'u' && text[at] == '\\' && is_unseen(code);
    if (is_name_letter(code))
      out += static_cast<char>(code);
    else if (!unseen)
      out += text[at], size = 1;
    at += size;
  }
  return out;
}

// Latin letters that look like two-byte UTF-8 letters.
struct LookAlike {
  std::string_view letter;
  char latin;
};
constexpr LookAlike kLookAlikes[] = {
    {"\u0430", 'a'}, {"\u0435", 'e'}, {"\u043e", 'o'}, {"\u0440", 'p'}, {"\u0441", 'c'}, {"\u0443", 'y'},
    {"\u0445", 'x'}, {"\u0455", 's'}, {"\u0456", 'i'}, {"\u0458", 'j'}, {"\u0501", 'd'}, {"\u04bb", 'h'},
    {"\u051b", 'q'}, {"\u051d", 'w'}, {"\u04cf", 'l'}, {"\u043a", 'k'}, {"\u043c", 'm'}, {"\u0442", 't'},
    {"\u0410", 'A'}, {"\u0412", 'B'}, {"\u0415", 'E'}, {"\u041a", 'K'}, {"\u041c", 'M'}, {"\u041d", 'H'},
    {"\u041e", 'O'}, {"\u0420", 'P'}, {"\u0421", 'C'}, {"\u0422", 'T'}, {"\u0423", 'Y'}, {"\u0425", 'X'},
    {"\u0405", 'S'}, {"\u0406", 'I'}, {"\u0408", 'J'}, {"\u03b1", 'a'}, {"\u03bf", 'o'}, {"\u03c1", 'p'},
    {"\u03bd", 'v'}, {"\u03b9", 'i'}, {"\u03ba", 'k'}, {"\u0391", 'A'}, {"\u0392", 'B'}, {"\u0395", 'E'},
    {"\u0396", 'Z'}, {"\u0397", 'H'}, {"\u0399", 'I'}, {"\u039a", 'K'}, {"\u039c", 'M'}, {"\u039d", 'N'},
    {"\u039f", 'O'}, {"\u03a1", 'P'}, {"\u03a4", 'T'}, {"\u03a5", 'Y'}, {"\u03a7", 'X'}};

char latin_of(std::string_view letter) {
  for (const LookAlike& one : kLookAlikes)
    if (one.letter == letter) return one.latin;
  return '\0';
}

bool is_lead_of_two(char c) { return (static_cast<unsigned char>(c) & 0xe0) == 0xc0; }

// A word in one script remains unchanged: only mixed scripts disguise a Latin word.
std::string in_one_script(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    std::string latin;
    bool has_latin = false, has_other = false, all = true;
    size_t end = at;
    while (end < text.size()) {
      const char c = text[end];
      if (alpha(c) || digit(c) || c == '_') {
        has_latin = has_latin || alpha(c);
        latin += c;
        ++end;
      } else if (is_lead_of_two(c) && end + 1 < text.size()) {
        const char like = latin_of(text.substr(end, 2));
        all = all && like != '\0';
        has_other = true;
        latin += like;
        end += 2;
      } else {
        break;
      }
    }
    if (end == at) end = at + 1, all = false;
    if (has_latin && has_other && all)
      out += latin;
    else
      out += text.substr(at, end - at);
    at = end;
  }
  return out;
}

std::string without_full_width(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : uint32_t{0};
    };
    const bool three = (byte(0) & 0xf0) == 0xe0 && (byte(1) & 0xc0) == 0x80 && (byte(2) & 0xc0) == 0x80;
    const uint32_t code = three ? (byte(0) & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f) : 0;
    if (code >= 0xff01 && code <= 0xff5e) {
      out += static_cast<char>(code - 0xff01 + 0x21);
      at += 3;
    } else {
      out += text[at++];
    }
  }
  return out;
}

}  // namespace

std::string folded(std::string_view line) {
  std::string out(line);
  if (line.find('\x1b') != line.npos) out = without_terminal(out);
  if (line.find_first_of("%\\") != line.npos) out = without_escapes(out);
  bool ascii = true;
  for (const char c : line) ascii = ascii && static_cast<unsigned char>(c) < 0x80;
  return ascii ? out : in_one_script(without_full_width(out));
}

}  // namespace culprit::cli
