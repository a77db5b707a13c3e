#include "core/rules/source_text.h"

#include <algorithm>
#include <vector>

namespace culprit::rules {
namespace {

constexpr size_t kLineShown = 300;  // bytes; longer lines are not hand-written

// Bytes of the line end at `at`; 0: none. Line ends as in Lua: \n, \r, and the pairs \r\n and \n\r.
size_t line_end(std::string_view text, size_t at) {
  const auto is_end = [&](size_t i) { return i < text.size() && (text[i] == '\n' || text[i] == '\r'); };
  if (!is_end(at)) return 0;
  return is_end(at + 1) && text[at + 1] != text[at] ? 2 : 1;
}

struct Token {
  enum Kind : uint8_t { kEnd, kName, kString, kOther } kind = kEnd;
  std::string_view text;
  uint32_t line = 0, column = 0;
};

// The part of Lua's lexer that separates names, texts and braces.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token next() {
    skip_blanks();
    Token token{Token::kEnd, {}, line_, static_cast<uint32_t>(at_ - line_start_ + 1)};
    if (at_ >= text_.size()) return token;
    const size_t begin = at_;
    const char c = text_[at_];
    if (is_word(c)) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
      token.kind = Token::kName;
    } else if (c == '"' || c == '\'') {
      quoted(c);
      token.kind = Token::kString;
    } else if (c == '[' && long_level() >= 0) {
      long_bracket();
      token.kind = Token::kString;
    } else {
      ++at_;
      token.kind = Token::kOther;
    }
    token.text = text_.substr(begin, at_ - begin);
    return token;
  }

 private:
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  void step() {
    const size_t end = line_end(text_, at_);
    at_ += std::max<size_t>(end, 1);
    if (end == 0) return;
    ++line_;
    line_start_ = at_;
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (static_cast<unsigned char>(text_[at_]) <= ' ') {
        step();
      } else if (text_.substr(at_, 2) == "--") {
        at_ += 2;
        if (at_ < text_.size() && text_[at_] == '[' && long_level() >= 0)
          long_bracket();
        else
          while (at_ < text_.size() && line_end(text_, at_) == 0) ++at_;
      } else {
        return;
      }
    }
  }

  void quoted(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote && line_end(text_, at_) == 0) {
      if (text_[at_] == '\\') step();
      if (at_ < text_.size()) step();
    }
    if (at_ < text_.size()) step();
  }

  // The level of a long bracket: 0 for "[[", 1 for "[=["; -1 for other brackets.
  int long_level() const {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] == '=') ++end;
    return end < text_.size() && text_[end] == '[' ? static_cast<int>(end - at_ - 1) : -1;
  }

  void long_bracket() {
    const std::string close = "]" + std::string(static_cast<size_t>(long_level()), '=') + "]";
    const size_t found = text_.find(close, at_ + close.size());
    const size_t end = found == text_.npos ? text_.size() : found + close.size();
    while (at_ < end) step();
  }

  std::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  uint32_t line_ = 1;
};

}  // namespace

std::optional<TextPlace> find_field(std::string_view text, uint32_t line, std::string_view path, bool value) {
  Lexer lexer(text);
  Token token = lexer.next();
  while (token.kind != Token::kEnd && token.line < line) token = lexer.next();
  // Finds the call: its name, then the table.
  Token before;
  while (token.kind != Token::kEnd &&
         !(token.text == "{" && (before.text == "rule" || before.text == "override"))) {
    if (before.kind == Token::kName && (before.text == "rule" || before.text == "override") &&
        token.text != "(")
      return std::nullopt;
    if (token.text != "(") before = token;
    token = lexer.next();
  }
  std::vector<std::string> names;  // names of the open tables within the rule's table
  Token name;
  for (token = lexer.next(); token.kind != Token::kEnd; token = lexer.next()) {
    if (token.text == "{") {
      names.emplace_back(name.text);
      name = {};
    } else if (token.text == "}") {
      if (names.empty()) return std::nullopt;
      names.pop_back();
    } else if (token.kind == Token::kName) {
      name = token;
    } else if (token.text == "=" && name.kind == Token::kName) {
      std::string full;
      for (const std::string& n : names) full += n + ".";
      full += name.text;
      if (full != path) continue;
      const Token at = value ? lexer.next() : name;
      return TextPlace{at.line, at.column,
                       static_cast<uint32_t>(at.text.substr(0, at.text.find('\n')).size())};
    } else {
      name = {};
    }
  }
  return std::nullopt;
}

std::string line_at(std::string_view text, uint32_t line) {
  size_t begin = 0;
  for (uint32_t i = 1; i < line; ++i) {
    begin = text.find_first_of("\r\n", begin);
    if (begin == text.npos) return {};
    begin += line_end(text, begin);
  }
  text.remove_prefix(begin);
  return std::string(text.substr(0, std::min(text.find_first_of("\r\n"), kLineShown)));
}

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace culprit::rules
