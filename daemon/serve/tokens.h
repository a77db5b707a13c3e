// The tokens of requests over TCP, and the role of each. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::serve {

// Permissions of a request; each role includes the previous one.
enum class Role : unsigned char { kNone, kRead, kOperate };

struct Token {
  std::string secret;
  Role role = Role::kOperate;
  std::string name;  // for the log; a token without a name has its number in the file, such as "1"
  bool operator==(const Token&) const = default;
};

class Tokens {
 public:
  // Parses http.token_file: one token per line, `TOKEN [read|operate] [NAME]`. A bare TOKEN may operate. A
  // line that starts with '#' is a comment. An error has the line number and never a token.
  static Result<Tokens> parse(std::string_view text);
  bool empty() const { return tokens_.empty(); }
  bool operator==(const Tokens&) const = default;
  // The token of "Bearer TOKEN"; null: unknown. Compares with all tokens in constant time. The pointer is
  // valid while this object is unchanged.
  const Token* find(std::string_view authorization) const;

 private:
  std::vector<Token> tokens_;
};

}  // namespace culprit::serve
