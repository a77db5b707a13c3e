// The file of tokens.
#include "serve/tokens.h"

#include <boost/test/unit_test.hpp>

namespace culprit::serve {
namespace {

BOOST_AUTO_TEST_CASE(a_file_of_tokens_has_one_a_line_with_role_and_name) {
  const auto tokens = Tokens::parse("# who\n\n  aaa\r\nbbb\tread  grafana\nccc operate\n#ddd\n");
  BOOST_REQUIRE(tokens);
  const struct {
    const char* secret;
    Role role;
    const char* name;
  } known[] = {{"aaa", Role::kOperate, "1"}, {"bbb", Role::kRead, "grafana"}, {"ccc", Role::kOperate, "3"}};
  for (const auto& k : known) {
    const Token* token = tokens->find(std::string("Bearer ") + k.secret);
    BOOST_REQUIRE(token);
    BOOST_CHECK(token->role == k.role);
    BOOST_CHECK_EQUAL(token->name, k.name);
  }
  for (const char* other : {"Bearer ddd", "Bearer #ddd", "Bearer ", "Bearer bbb read", "aaa", ""})
    BOOST_CHECK(!tokens->find(other));
}

BOOST_AUTO_TEST_CASE(a_file_without_tokens_knows_none) {
  for (const char* text : {"", "\n\n", "# nothing\n", " \t\r\n"}) {
    const auto tokens = Tokens::parse(text);
    BOOST_REQUIRE(tokens);
    BOOST_CHECK(tokens->empty());
    BOOST_CHECK(!tokens->find("Bearer "));
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_line_is_named_and_no_token_is_shown) {
  const std::pair<std::string, const char*> cases[] = {
      {"s3cret\ns3cret read\n", "line 2: its token stands in an earlier line too"},
      {"s3cret reed\n", "line 1: its second word is neither read nor operate"},
      {"s3cret read name more\n", "line 1: it has more than a token, a role and a name"},
      {"s3cret\x01\n", "line 1: its token is not made of visible ASCII characters"},
      {"s3cret read \xc3\xa4\n", "line 1: its name is not made of visible ASCII characters"},
      {"s3cret read " + std::string(101, 'x'), "line 1: its name is longer than 100 bytes"},
      {"s3cret" + std::string(5000, 'x'), "line 1: its token is longer than 4096 bytes"}};
  for (const auto& [text, says] : cases) {
    const auto tokens = Tokens::parse(text);
    BOOST_REQUIRE(!tokens);
    BOOST_CHECK_EQUAL(tokens.error().text, says);
    BOOST_CHECK_EQUAL(tokens.error().text.find("s3cret"), std::string::npos);
  }
}

}  // namespace
}  // namespace culprit::serve
