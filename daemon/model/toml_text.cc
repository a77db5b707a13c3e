#include "model/toml_text.h"

#include <cstddef>

#include "base/limits.h"

namespace culprit {
namespace {

// Position of the last character of the string that begins at `at`.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const char three[] = {quote, quote, quote};
  const std::string_view mark = text.substr(at).starts_with(std::string_view(three, 3))
                                    ? std::string_view(three, 3)
                                    : std::string_view(three, 1);
  for (at += mark.size(); at < text.size(); ++at) {
    if (text[at] == '\\' && quote == '"')
      ++at;
    else if (text[at] == '\n' && mark.size() == 1)
      return at - 1;  // unclosed string: the parser rejects it
    else if (text.substr(at).starts_with(mark))
      return at + mark.size() - 1;
  }
  return at;
}

}  // namespace

bool toml_nested_too_deeply(std::string_view text) {
  size_t dots = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_string(text, at);
    } else if (c == '#') {
      at = text.find('\n', at);
      if (at == text.npos) return false;
      dots = 0;
    } else if (c == '.') {
      if (++dots > limits::kNesting) return true;
    } else if (c == '\n' || c == '=' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']') {
      dots = 0;
    }
  }
  return false;
}

}  // namespace culprit
