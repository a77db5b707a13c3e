#include "app/confirm/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "app/confirm/rule_text.h"
#include "base/text.h"
#include "core/logs/header.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"

namespace culprit::app {
namespace {

constexpr std::string_view kAnyHole = "<_>";
constexpr std::string_view kNameless = "000";  // stands for a name
constexpr size_t kMessageBytes = 1000;
constexpr size_t kOccurrences = 200;  // more occurrences hardly add variation
constexpr size_t kWordLetters = 3;
// A number after one of these words distinguishes faults.
constexpr std::array<std::string_view, 12> kCodes = {"code",   "errno",    "error",  "err",
                                                     "status", "signal",   "xid",    "sxid",
                                                     "rc",     "exitcode", "reason", "syndrome"};
constexpr std::array<std::string_view, 12> kLevels = {"trace",    "debug",   "info",  "notice",
                                                      "warn",     "warning", "error", "err",
                                                      "critical", "fatal",   "alert", "severe"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string lower(std::string_view text) {
  std::string out(text.size(), '\0');
  lower_ascii(text, out.data());
  return out;
}

std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::string_view token : split(text, ' '))
    if (!token.empty()) out.push_back(token);
  return out;
}

// A word, with the white space before it.
struct Token {
  std::string blank, text;
};

// The word before a token's digits, or else the previous token: "[Errno", "code".
bool is_code(std::string_view before, std::string_view token) {
  const size_t digit = std::find_if(token.begin(), token.end(), is_digit) - token.begin();
  std::string name = lower(token.substr(0, digit));
  if (std::none_of(name.begin(), name.end(), is_letter)) name = lower(before);
  std::erase_if(name, [](char c) { return !is_letter(c); });
  const size_t digits = std::count_if(token.begin(), token.end(), is_digit);
  return digits > 0 && digits <= 5 && std::find(kCodes.begin(), kCodes.end(), name) != kCodes.end();
}

std::string escaped_token(std::string_view text) {
  std::string out;
  for (char c : text) out.append(c == '<' ? 2 : 1, c);
  return out;
}

// Replaces each name by a number, longest name first, so that a template gets a hole there.
std::string without_names(std::string text, const std::set<std::string>& all) {
  std::vector<std::string> names(all.begin(), all.end());
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (const std::string& name : names)
    for (size_t at = 0; name.size() >= kWordLetters && (at = text.find(name, at)) != text.npos;) {
      const size_t end = at + name.size();
      const bool whole = (at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]));
      if (whole) text.replace(at, name.size(), kNameless);
      at += whole ? kNameless.size() : name.size();
    }
  return text;
}

// The tokens of a line as for a template. Codes keep their numbers.
std::vector<Token> open_tokens(const std::string& raw, const std::set<std::string>& names) {
  const std::string line = without_names(raw, names);
  const std::vector<std::string_view> given = tokens_of(line);
  const std::string whole = template_of(line);
  const std::vector<std::string_view> open = tokens_of(whole);
  std::vector<Token> out;
  const char* end = whole.data();
  for (size_t i = 0; i < open.size(); ++i) {
    const bool keep = i < given.size() && open[i].find(kAnyHole) != open[i].npos &&
                      is_code(i > 0 ? given[i - 1] : std::string_view(), given[i]);
    out.push_back({std::string(end, open[i].data()), keep ? escaped_token(given[i]) : std::string(open[i])});
    end = open[i].data() + open[i].size();
  }
  return out;
}

// The common start and end of two tokens, with a hole between.
std::string merged(const std::string& a, const std::string& b) {
  if (a == b) return a;
  size_t front = 0, back = 0;
  const size_t most = std::min(a.size(), b.size());
  while (front < most && a[front] == b[front]) ++front;
  while (back < most - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  // Cuts only at whole words, and not within a hole or an escape.
  while (front > 0 && (is_letter(a[front - 1]) || is_digit(a[front - 1]) || a[front - 1] == '<')) --front;
  while (back > 0 && (is_letter(a[a.size() - back]) || is_digit(a[a.size() - back]) ||
                      a[a.size() - back] == '>' || a[a.size() - back] == '<'))
    --back;
  const std::string begin = a.substr(0, front), end = a.substr(a.size() - back);
  const auto broken = [](const std::string& part) { return part.find_first_of("<>") != part.npos; };
  return (broken(begin) ? "" : begin) + std::string(kAnyHole) + (broken(end) ? "" : end);
}

bool is_open(const std::string& token) {
  std::string rest = token;
  for (size_t at; (at = rest.find(kAnyHole)) != rest.npos;) rest.erase(at, kAnyHole.size());
  return std::none_of(rest.begin(), rest.end(), [](char c) { return is_letter(c) || is_digit(c); }) &&
         rest.size() != token.size();
}

// A level at the start of a line, as "ERROR", "[WARN]" or "E:".
bool is_level(const std::string& token) {
  std::string word = lower(token);
  std::erase_if(word, [](char c) { return !is_letter(c); });
  return std::find(kLevels.begin(), kLevels.end(), word) != kLevels.end() && token.find('<') == token.npos;
}

}  // namespace

struct Fires::Impl {
  std::unique_ptr<re2::RE2> regex;
};
Fires::Fires(const std::string& pattern) : impl_(std::make_unique<Impl>()) {
  if (const auto regex = rules::template_to_regex(pattern))
    impl_->regex = std::make_unique<re2::RE2>(*regex, rules::regex_options());
}
Fires::~Fires() = default;
Fires::Fires(Fires&&) noexcept = default;
bool Fires::in(std::string_view message) const {
  return impl_->regex && impl_->regex->ok() &&
         re2::RE2::PartialMatch(re2::StringPiece(message.data(), message.size()), *impl_->regex);
}

std::string pattern_of(std::span<const std::string> occurrences, const std::set<std::string>& names) {
  std::vector<Token> all;
  for (const std::string& line : occurrences.first(std::min(occurrences.size(), kOccurrences))) {
    const std::vector<Token> tokens = open_tokens(line, names);
    if (all.empty()) all = tokens;
    if (tokens.size() != all.size()) continue;  // another wording; the proof decides about its share
    for (size_t i = 0; i < all.size(); ++i) all[i].text = merged(all[i].text, tokens[i].text);
  }
  while (!all.empty() && is_open(all.back().text)) all.pop_back();
  while (!all.empty() && (is_open(all.front().text) || is_level(all.front().text))) all.erase(all.begin());
  std::string out;
  for (const Token& token : all) out += (out.empty() ? "" : token.blank) + token.text;
  // Holes at the very ends carry no information.
  while (out.ends_with(kAnyHole)) out.resize(out.size() - kAnyHole.size());
  while (out.starts_with(kAnyHole)) out.erase(0, kAnyHole.size());
  out = std::string(trim(out));
  const auto regex = rules::template_to_regex(out);
  return regex && !out.empty() && !rules::analyse(*regex)->literals.empty() ? out : "";
}

std::string message_of(const std::string& record) {
  std::string_view line;
  for (std::string_view one : split(record, '\n'))
    if (!trim(one).empty()) line = one;
  line = line.substr(0, kMessageBytes);
  logs::HeaderParser headers({});
  return std::string(trim(line.substr(headers.parse(line).message)));
}

std::string rule_template(std::string_view mined) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t hole = mined.find(kMask, at);
    out += escaped_token(mined.substr(at, hole == mined.npos ? hole : hole - at));
    if (hole == mined.npos) return out;
    out += kAnyHole;
    at = hole + kMask.size();
  }
}

std::string sample_line(std::string_view mined) {
  std::string out(mined);
  for (size_t at; (at = out.find(kMask)) != out.npos;) out.replace(at, kMask.size(), "0");
  return out;
}

std::set<std::string> words_of_text(std::string_view text) {
  std::set<std::string> out;
  std::string word;
  bool hole = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (c == '<') hole = true;
    if (is_letter(c) && !hole) {
      word += static_cast<char>(std::tolower(c));
      continue;
    }
    if (c == '>' || c == ' ') hole = false;
    if (word.size() >= kWordLetters) out.insert(word);
    word.clear();
  }
  return out;
}

double alike(const std::set<std::string>& a, const std::set<std::string>& b) {
  if (a.empty() || b.empty()) return 0;
  const auto both =
      std::count_if(a.begin(), a.end(), [&](const std::string& word) { return b.contains(word); });
  return static_cast<double>(both) / static_cast<double>(a.size() + b.size() - static_cast<size_t>(both));
}

std::string spoken(std::string_view pattern) {
  std::string out;
  for (std::string_view token : tokens_of(pattern)) {
    const bool open = token.find('<') != token.npos || std::any_of(token.begin(), token.end(), is_digit);
    const bool word = std::count_if(token.begin(), token.end(), is_letter) >= 2;
    if (!open && word) out += (out.empty() ? "" : " ") + std::string(token);
  }
  while (!out.empty() && !is_letter(out.back())) out.pop_back();
  return shorten(out, 90);
}

}  // namespace culprit::app
