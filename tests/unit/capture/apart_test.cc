#include "capture/apart.h"

#include <signal.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>

using namespace culprit;
using namespace culprit::capture;

namespace {

constexpr TimeNs kWithin = 10 * kNsPerSecond;

// A thread whose frames are what the reader's process may do.
Result<Stacks> own_rights(std::string_view text) {
  Stacks out;
  StackedThread& thread = out.threads.emplace_back();
  thread.name = text;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Cap") || line.starts_with("Uid:") || line.starts_with("NoNewPrivs:"))
      if (!line.starts_with("CapBnd")) thread.frames.push_back(line);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(apart)

BOOST_AUTO_TEST_CASE(a_text_is_read_without_capabilities_and_never_by_root) {
  const auto read = read_apart(own_rights, "the text", kWithin);
  BOOST_REQUIRE(read.has_value());
  BOOST_REQUIRE(read->threads.size() == 1u);
  BOOST_TEST(read->threads[0].name == "the text");
  BOOST_REQUIRE(read->threads[0].frames.size() == 6u);
  for (const std::string& line : read->threads[0].frames) {
    if (line.starts_with("Cap")) BOOST_TEST(line.ends_with("0000000000000000"), line);
    if (line.starts_with("Uid:")) BOOST_TEST(line.find("\t0") == line.npos, line);
    if (line.starts_with("NoNewPrivs:")) BOOST_TEST(line.ends_with("1"), line);
  }
}

BOOST_AUTO_TEST_CASE(a_reader_that_dies_or_never_ends_is_an_error_of_its_text) {
  const auto dies = [](std::string_view) -> Result<Stacks> {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
    return Stacks{};
  };
  BOOST_TEST(read_apart(dies, "", kWithin).error().text == "its text ended the reader by signal 11");
  const auto waits = [](std::string_view) -> Result<Stacks> {
    for (;;) ::pause();
  };
  BOOST_TEST(read_apart(waits, "", kNsPerSecond / 10).error().text == "its text took too long to read");
}

BOOST_AUTO_TEST_CASE(what_a_reader_gives_is_as_without_a_child_within_the_limits) {
  const auto refuses = [](std::string_view text) -> Result<Stacks> {
    return fail(ErrorCode::kInvalid, "no thread in " + std::string(text));
  };
  BOOST_TEST(read_apart(refuses, "it", kWithin).error().text == "no thread in it");
  const auto many = [](std::string_view) -> Result<Stacks> {
    Stacks out;
    out.dropped = 5;
    for (size_t i = 0; i < kToolThreads + 3; ++i)
      out.threads.push_back({std::string(2 * kFrameBytes, 'n'), i, i == 1,
                             std::vector<std::string>(kToolFrames + 1, std::string(2 * kFrameBytes, 'f'))});
    return out;
  };
  const auto read = read_apart(many, "", kWithin);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->threads.size() == kToolThreads);
  BOOST_TEST(read->dropped == 8u);
  BOOST_TEST(read->threads[1].holds_gil);
  BOOST_TEST(read->threads[2].tid == 2u);
  BOOST_TEST(read->threads[0].name.size() == kFrameBytes);
  BOOST_TEST(read->threads[0].frames.size() == kToolFrames);
  BOOST_TEST(read->threads[0].frames[0].size() == kFrameBytes);
}

BOOST_AUTO_TEST_SUITE_END()
