// One line of a request, from a pipe: whatever the sender does, the reader ends.
#include "io/request_line.h"

#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "io/descriptors.h"

using namespace culprit;

namespace {

std::string line_of(const std::string& sent, size_t most, bool closes = true) {
  std::array<int, 2> ends{};
  BOOST_REQUIRE(::pipe(ends.data()) == 0);
  const io::Descriptor in(ends[0]);
  io::Descriptor out(ends[1]);
  BOOST_REQUIRE(::write(out.get(), sent.data(), sent.size()) == static_cast<ssize_t>(sent.size()));
  if (closes) out = io::Descriptor();
  return io::read_request_line(in.get(), most, closes ? 10 * kNsPerSecond : 20 * kNsPerMs);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(request_line)

BOOST_AUTO_TEST_CASE(a_request_ends_at_its_newline_its_end_or_a_limit) {
  BOOST_TEST(line_of("{\"a\":1}\nmore\n", 100) == "{\"a\":1}");
  BOOST_TEST(line_of("{\"a\":1}", 100) == "{\"a\":1}");
  BOOST_TEST(line_of("{\"a\":1}", 100, false) == "{\"a\":1}");
  BOOST_TEST(line_of("\nmore", 100) == "");
  BOOST_TEST(line_of("", 100) == "");
  BOOST_TEST(line_of("0123456789\n", 4) == "0123");
}

BOOST_AUTO_TEST_SUITE_END()
