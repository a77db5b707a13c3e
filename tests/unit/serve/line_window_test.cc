// The lines around a line.
#include "serve/line_window.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace culprit::serve {
namespace {

nlohmann::json window_of(uint64_t line, uint64_t around, const std::string& text, size_t step) {
  LineWindow window(line, around);
  for (size_t at = 0; at < text.size(); at += step)
    window.add(std::string_view(text).substr(at, step), false);
  return nlohmann::json::parse(window.finish());
}

BOOST_AUTO_TEST_CASE(lines_around_a_line_are_the_same_however_the_bytes_come) {
  const std::string text = "one\ntwo\n\nfour\nfive";
  for (const size_t step : {1u, 2u, 3u, 100u}) {
    const auto middle = window_of(3, 1, text, step);
    BOOST_CHECK_EQUAL(middle["first"], 2);
    BOOST_CHECK_EQUAL(middle["lines"].dump(), R"(["two","","four"])");
    BOOST_CHECK_EQUAL(middle["from_byte"], 4);
    BOOST_CHECK_EQUAL(middle["to_byte"], 14);
    BOOST_CHECK(middle["sure"]);
    BOOST_CHECK_EQUAL(window_of(1, 1, text, step)["lines"].dump(), R"(["one","two"])");
    const auto last = window_of(5, 1, text, step);
    BOOST_CHECK_EQUAL(last["lines"].dump(), R"(["four","five"])");
    BOOST_CHECK_EQUAL(last["to_byte"], text.size());
    BOOST_CHECK_EQUAL(window_of(99, 2, text, step)["lines"].dump(), "[]");
  }
}

BOOST_AUTO_TEST_CASE(a_long_line_is_cut_and_counted) {
  const std::string text = std::string(5000, 'x') + "\nend\n";
  const auto got = window_of(1, 1, text, 700);
  BOOST_CHECK_EQUAL(got["lines"][0].get<std::string>().size(), LineWindow::kLineBytes);
  BOOST_CHECK_EQUAL(got["cut"].dump(), "[3000,0]");
}

BOOST_AUTO_TEST_CASE(lost_bytes_make_the_numbers_unsure_only_before_the_window_ends) {
  LineWindow before(2, 0), after(1, 0);
  before.add("a\n", false);
  before.add("b\n", true);
  BOOST_CHECK(!nlohmann::json::parse(before.finish())["sure"]);
  after.add("a\n", false);
  BOOST_CHECK(after.done());
  after.add("b\n", true);
  BOOST_CHECK(nlohmann::json::parse(after.finish())["sure"]);
}

BOOST_AUTO_TEST_CASE(hostile_numbers_do_no_harm) {
  LineWindow last(UINT64_MAX, UINT64_MAX);
  last.add("a\nb\n", false);
  BOOST_CHECK(!last.done());
  BOOST_CHECK_EQUAL(nlohmann::json::parse(last.finish())["lines"].size(), 0u);
  LineWindow first(0, UINT64_MAX);
  for (int i = 0; i < 1000; ++i) first.add("a\n", false);
  BOOST_CHECK_EQUAL(nlohmann::json::parse(first.finish())["lines"].size(), LineWindow::kAroundMax + 1);
}

}  // namespace
}  // namespace culprit::serve
