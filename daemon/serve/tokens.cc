#include "serve/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "serve/target.h"

namespace culprit::serve {
namespace {

constexpr size_t kTokens = 1000;
// A header line has 16 KiB for all.
constexpr size_t kSecretBytes = 4096;
constexpr size_t kTokenNameBytes = 100;

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> out;
  for (size_t at = line.find_first_not_of(kBlanks); at != line.npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    out.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return out;
}

bool visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

std::optional<Role> role_of(std::string_view word) {
  if (word == "read") return Role::kRead;
  if (word == "operate") return Role::kOperate;
  return std::nullopt;
}

// Why a line is no token; empty: it is one.
std::string read_line(const std::vector<std::string_view>& words, Token& out) {
  if (words[0].size() > kSecretBytes) return fmt::format("its token is longer than {} bytes", kSecretBytes);
  if (!visible(words[0])) return "its token is not made of visible ASCII characters";
  if (words.size() > 3) return "it has more than a token, a role and a name";
  out.secret = words[0];
  if (words.size() == 1) return "";
  const auto role = role_of(words[1]);
  if (!role) return "its second word is neither read nor operate";
  out.role = *role;
  if (words.size() == 2) return "";
  if (words[2].size() > kTokenNameBytes)
    return fmt::format("its name is longer than {} bytes", kTokenNameBytes);
  if (!visible(words[2])) return "its name is not made of visible ASCII characters";
  out.name = words[2];
  return "";
}

}  // namespace

Result<Tokens> Tokens::parse(std::string_view text) {
  Tokens out;
  size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const auto words = words_of(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    const auto refuse = [&](const std::string& why) {
      return fail(ErrorCode::kInvalid, fmt::format("line {}: {}", number, why));
    };
    Token token;
    if (const std::string why = read_line(words, token); !why.empty()) return refuse(why);
    for (const Token& other : out.tokens_)
      if (other.secret == token.secret) return refuse("its token stands in an earlier line too");
    if (out.tokens_.size() == kTokens) return refuse(fmt::format("there are more than {} tokens", kTokens));
    if (token.name.empty()) token.name = std::to_string(out.tokens_.size() + 1);
    out.tokens_.push_back(std::move(token));
  }
  return out;
}

const Token* Tokens::find(std::string_view authorization) const {
  const Token* out = nullptr;
  for (const Token& token : tokens_)
    if (bearer_matches(authorization, token.secret)) out = &token;
  return out;
}

}  // namespace culprit::serve
