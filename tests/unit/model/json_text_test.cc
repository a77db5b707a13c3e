#include "model/json_text.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/limits.h"
#include "model/toml_text.h"
#include "model/topology.h"

using namespace culprit;

BOOST_AUTO_TEST_SUITE(json_text)

namespace {

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string dotted(size_t parts) {
  std::string out = "a";
  for (size_t i = 1; i < parts; ++i) out += ".a";
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nesting_is_bounded_before_anything_is_parsed) {
  BOOST_TEST(parse_json(nested(limits::kNesting)).is_array());
  for (const size_t depth : {limits::kNesting + 1, size_t{100'000}, size_t{10'000'000}}) {
    BOOST_TEST(parse_json(nested(depth)).is_discarded());
    BOOST_TEST(parse_ordered_json(nested(depth)).is_discarded());
    BOOST_TEST(parse_json(std::string(depth, '[')).is_discarded());
  }
  // Brackets in texts, and many values next to each other.
  const std::string text = "\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"";
  BOOST_TEST(parse_json("{\"a\":" + text + "}")["a"].get<std::string>().size() == 201u);
  std::string wide = "[[]";
  for (int i = 0; i < 1000; ++i) wide += ",[{}]";
  BOOST_TEST(parse_json(wide + "]").size() == 1001u);
  BOOST_TEST((parse_json("").is_discarded() && parse_json("{\"a\":").is_discarded()));
  BOOST_TEST(parse_ordered_json(R"({"b":1,"a":2})").begin().key() == "b");
}

BOOST_AUTO_TEST_CASE(toml_keys_of_many_parts_are_refused) {
  const std::string deep = dotted(200'000);
  for (const std::string& text : {deep + " = 1\n", "[" + deep + "]\n", "a = { " + deep + " = 1 }\n",
                                  "\"a\"" + deep.substr(1) + " = 1\n"}) {
    BOOST_TEST(toml_nested_too_deeply(text));
    const auto read = parse_job_file(text, "job.toml");
    BOOST_REQUIRE(!read);
    BOOST_TEST(read.error().text == "job.toml: a key has too many parts");
  }
  const std::string dots(1000, '.');
  for (const std::string& text :
       {"a = \"" + dots + "\"\n", "a = '''\n" + dots + "'''\n", "# " + dots + "\n[a.b]\n",
        std::string("a = [1.5, 2.5]\n"), "a = \"\\\"" + dots + "\"\n", dotted(limits::kNesting) + " = 1\n"})
    BOOST_TEST(!toml_nested_too_deeply(text), text);
}

BOOST_AUTO_TEST_SUITE_END()
