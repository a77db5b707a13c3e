#include "model/json_writer.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

using namespace culprit;

BOOST_AUTO_TEST_SUITE(json_writer)

BOOST_AUTO_TEST_CASE(what_it_writes_reads_back_as_the_same_values) {
  JsonWriter w;
  const std::vector<int> numbers{1, -2, 3};
  w.object([&] {
    w.field("text", "a \"b\" \\ c");
    w.field("number", uint64_t{18446744073709551615u});
    w.field("half", 0.5);
    w.field("yes", true);
    w.field("nothing", std::optional<int>());
    w.time("time", kNoTime);
    w.text_or_null("empty", "");
    w.values("numbers", numbers);
    w.raw("raw", "{\"a\":[]}");
    w.member("inner", [&] { w.object([] {}); });
  });
  const std::string text = w.finish();
  const auto json = nlohmann::json::parse(text);
  BOOST_TEST(json["text"] == "a \"b\" \\ c");
  BOOST_TEST(json["number"] == 18446744073709551615u);
  BOOST_TEST(json["half"] == 0.5);
  BOOST_TEST(json["yes"] == true);
  BOOST_TEST(json["nothing"].is_null());
  BOOST_TEST(json["time"].is_null());
  BOOST_TEST(json["empty"].is_null());
  BOOST_TEST(json["numbers"] == (std::vector<int>{1, -2, 3}));
  BOOST_TEST(json["raw"]["a"].is_array());
  BOOST_TEST(json["inner"].empty());
  BOOST_TEST(w.finish().empty());
}

BOOST_AUTO_TEST_CASE(any_bytes_become_one_line_of_valid_json) {
  const std::string samples[] = {std::string("\0\1\x1f\x7f", 4), "\xff\xfe broken",
                                 "\xc2\x85 next line",           "\xe2\x80\xa8\xe2\x80\xa9 separators",
                                 "tab\tline\nreturn\r",          "é 字 🎉"};
  for (const std::string& sample : samples) {
    JsonWriter w;
    w.object([&] { w.field("text", sample); });
    const std::string text = w.finish();
    BOOST_TEST(nlohmann::json::accept(text), text);
    BOOST_TEST(text.find('\n') == std::string::npos);
    BOOST_TEST(text.find("\xe2\x80\xa8") == std::string::npos);
    BOOST_TEST(text.find("\xc2\x85") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_json_lacks_become_null) {
  for (const double value : std::vector<double>{std::nan(""), INFINITY, -INFINITY}) {
    JsonWriter w;
    w.object([&] { w.field("x", value); });
    BOOST_TEST(w.finish() == "{\"x\":null}");
  }
}

BOOST_AUTO_TEST_SUITE_END()
