// Any bytes as a wording on the first line, and a text on the other lines. An accepted template is a regex
// that RE2 accepts, its holes have names, and a line that a template or a regex matches has one of its
// literals.
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text.h"
#include "core/rules/matcher.h"
#include "core/rules/pattern.h"

namespace {

using namespace culprit;
using namespace culprit::rules;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

void check(const std::string& wording, std::string_view lines) {
  const re2::RE2 regex(wording, regex_options());
  const auto known = analyse(wording);
  const std::vector<std::string> literals = known ? known->literals : std::vector<std::string>();
  require(regex.ok() || literals.empty());
  for (const std::string& literal : literals)
    require(literal.size() >= kLiteralMin && literal == lower(literal) && literal.find('\0') == literal.npos);
  if (!regex.ok() || literals.empty()) return;
  for (std::string_view line : split(lines, '\n')) {
    if (!re2::RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), regex)) continue;
    const std::string low = lower(line);
    require(std::any_of(literals.begin(), literals.end(),
                        [&](const std::string& l) { return low.find(l) != low.npos; }));
  }
  Rule rule;
  rule.any.push_back({wording, false, wording, literals, known->also});
  require(Matcher::create({&rule, 1}).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), std::min<size_t>(size, 4000));
  const std::string wording(all.substr(0, all.find('\n')));
  const std::string_view lines = all.substr(std::min(all.size(), wording.size() + 1));
  check(wording, lines);
  const auto regex = template_to_regex(wording);
  if (!regex) {
    require(!regex.error().text.empty());
    return 0;
  }
  require(re2::RE2(*regex, regex_options()).ok());
  if (const auto known = analyse(*regex))
    for (const std::string& name : known->holes) require(wording.find("<" + name + ">") != wording.npos);
  check(*regex, lines);
  return 0;
}
