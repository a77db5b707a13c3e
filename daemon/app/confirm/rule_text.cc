#include "app/confirm/rule_text.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "core/logs/mask.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"

namespace culprit::app {
namespace {

constexpr size_t kTemplateBytes = 400;  // maximum length: messages differ at their start
constexpr std::string_view kHole = "<_>";

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) out.append(c == '<' ? 2 : 1, c);
  return out;
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::string_view word : split(text, ' '))
    if (!word.empty()) out.push_back(word);
  return out;
}

// The word with the holes of its masked form; unchanged if they do not match.
std::string with_holes(std::string_view word, std::string_view form) {
  std::string out, regex;
  for (size_t at = 0;;) {
    const size_t hole = form.find(kMask, at);
    const std::string_view literal = form.substr(at, hole == form.npos ? form.npos : hole - at);
    out += escaped(literal);
    regex += re2::RE2::QuoteMeta(re2::StringPiece(literal.data(), literal.size()));
    if (hole == form.npos) break;
    if (!out.ends_with(kHole)) out += kHole;
    regex += ".+";
    at = hole + kMask.size();
  }
  return re2::RE2::FullMatch(re2::StringPiece(word.data(), word.size()),
                             re2::RE2(regex, rules::regex_options()))
             ? out
             : escaped(word);
}

bool supports(const std::string& pattern, std::string_view message) {
  const auto regex = rules::template_to_regex(pattern);
  return regex && !rules::analyse(*regex)->literals.empty() &&
         re2::RE2::PartialMatch(re2::StringPiece(message.data(), message.size()),
                                re2::RE2(*regex, rules::regex_options()));
}

}  // namespace

std::string template_of(std::string_view message) {
  if (message.size() > kTemplateBytes)
    message = message.substr(0, std::min(message.rfind(' ', kTemplateBytes), kTemplateBytes));
  const std::string form = logs::form_text(message);
  const std::vector<std::string_view> parts = words(message), forms = words(form);
  std::string out;
  const char* end = message.data();
  for (size_t i = 0; i < parts.size(); ++i) {
    out.append(end, parts[i].data());  // the original white space
    end = parts[i].data() + parts[i].size();
    const bool number = parts[i].find_first_of("0123456789") != parts[i].npos;
    out += parts.size() == forms.size() ? with_holes(parts[i], forms[i])
           : number                     ? std::string(kHole)
                                        : escaped(parts[i]);
  }
  if (supports(out, message)) return out;
  out = escaped(message);
  return supports(out, message) ? out : "";
}

std::string lua_text(std::string_view text) {
  const bool utf8 = to_utf8(text) == text;  // otherwise each byte is escaped separately
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (c == '\n')
      out += "\\n";
    else if (byte < ' ' || byte == 0x7f || (byte >= 0x80 && !utf8))
      out += fmt::format("\\{:03}", byte);
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace culprit::app
