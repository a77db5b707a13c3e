// The tokens that requests over TCP carry, and what each permits. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::serve {

// What a request may do; each includes the one before.
enum class Role : unsigned char { kNone, kRead, kOperate };

struct Token {
  std::string secret;
  Role role = Role::kOperate;
  std::string name;  // for the log; "1" without a name: its number in the file
  bool operator==(const Token&) const = default;
};

class Tokens {
 public:
  // The text of http.token_file: one token a line, `TOKEN [read|operate] [NAME]`. A bare TOKEN may operate.
  // A line that starts with '#' is a comment. An error names the line and never a token.
  static Result<Tokens> parse(std::string_view text);
  bool empty() const { return tokens_.empty(); }
  bool operator==(const Tokens&) const = default;
  // The token of "Bearer TOKEN"; null: none of them. Compares all tokens in constant time. Valid as long as
  // this object is unchanged.
  const Token* find(std::string_view authorization) const;

 private:
  std::vector<Token> tokens_;
};

}  // namespace culprit::serve
