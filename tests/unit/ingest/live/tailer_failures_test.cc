#include <sys/syscall.h>

#include <boost/test/data/test_case.hpp>
#include <cerrno>

#include "tail_fixture.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;

// Kills before anything of a log is stored, and reads that fail. tests/fault fails every call.
namespace {

uint64_t reads_until_failure = 0;  // 0: none fails

TimeNs wall_now() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::string lines(int first, int count) {
  std::string out;
  for (int i = first; i < first + count; ++i)
    out += "line " + std::to_string(100'000 + i) + std::string(60, '.') + "\n";
  return out;
}

}  // namespace

// The tailer's reads come here: the linker prefers a program's own definition.
extern "C" ssize_t pread(int descriptor, void* out, size_t size, off_t offset) {
  if (reads_until_failure > 0 && --reads_until_failure == 0) {
    errno = EIO;
    return -1;
  }
  return ::syscall(SYS_pread64, descriptor, out, size, offset);
}

BOOST_AUTO_TEST_SUITE(tailer_failures)

BOOST_DATA_TEST_CASE(rotated_files_without_a_stored_byte_are_read_after_a_kill,
                     boost::unit_test::data::make({"a.log", "a*"}), pattern) {
  TailFolderFixture f(pattern);
  f.options.stored_until_ns = wall_now() - kNsPerSecond;
  f.restart();
  std::string written;
  for (int turn = 0; turn < 3; ++turn) {
    if (turn > 1) f.rename("a.log.1", "a.log.2");
    if (turn > 0) f.rename("a.log", "a.log.1");
    f.append("a.log", lines(10 * turn, 10));
    written += lines(10 * turn, 10);
    f.round(kNsPerSecond, false);
  }
  f.restart();
  f.settle();
  BOOST_CHECK(f.evidence("a.log") == written);
  BOOST_CHECK_EQUAL(f.sources(), 1);
  BOOST_CHECK_EQUAL(f.gaps("a.log"), 0);
}

BOOST_AUTO_TEST_CASE(files_that_were_rotated_before_the_last_stored_frame_are_left_alone) {
  TailFolderFixture f("a.log");
  f.append("a.log", lines(0, 10));
  f.rename("a.log", "a.log.1");
  f.append("a.log", lines(10, 10));
  f.options.stored_until_ns = wall_now() + kNsPerSecond;
  f.restart();
  f.settle();
  BOOST_CHECK(f.evidence("a.log") == lines(10, 10));
}

BOOST_AUTO_TEST_CASE(a_source_is_declared_with_the_identity_of_its_file) {
  TailFolderFixture f("a.log");
  f.append("a.log", lines(0, 10));
  const TailOutcome first = f.round(kNsPerSecond, true, 0);
  BOOST_REQUIRE_EQUAL(first.batch.opened.size(), 1);
  BOOST_REQUIRE_EQUAL(first.batch.pieces.size(), 1);
  const Piece& piece = first.batch.pieces.front();
  BOOST_CHECK(piece.bytes.empty());
  BOOST_REQUIRE(piece.place.has_value());
  BOOST_CHECK_GT(piece.place->fingerprint_bytes, 0);
  // It is enough to find the file after a kill, also compressed.
  f.rename("a.log", "a.log.1");
  f.compress("a.log.1");
  f.append("a.log", lines(10, 10));
  f.restart();
  f.settle();
  BOOST_CHECK(f.evidence("a.log") == lines(0, 20));
  BOOST_CHECK_EQUAL(f.gaps("a.log"), 0);
}

BOOST_DATA_TEST_CASE(a_failing_read_loses_and_doubles_no_line,
                     boost::unit_test::data::make({"rename", "copytruncate", "compress"}), how) {
  for (uint64_t nth = 1;; ++nth) {
    TailFolderFixture f("a.log");
    f.append("a.log", lines(0, 10));
    f.settle();
    reads_until_failure = nth;
    for (int turn = 1; turn <= 2; ++turn) {
      const std::string part = "a.log.2026112" + std::to_string(turn);
      if (std::string_view(how) == "copytruncate") {
        f.copy("a.log", part);
        f.truncate("a.log");
      } else {
        f.rename("a.log", part);
      }
      f.append("a.log", lines(10 * turn, 10));
      if (turn == 1) f.restart();
      if (std::string_view(how) == "compress") f.compress(part);
      for (int i = 0; i < 3; ++i) f.round();
    }
    const bool failed = std::exchange(reads_until_failure, 0) == 0;
    f.settle();
    f.round(11 * kNsPerSecond);  // the pause after a failure
    f.settle();
    BOOST_TEST_CONTEXT(how << ", read " << nth) {
      BOOST_CHECK(f.evidence("a.log") == lines(0, 30));
      BOOST_CHECK_EQUAL(f.sources(), 1);
    }
    if (!failed) break;
    BOOST_REQUIRE_LT(nth, 1000);
  }
}

// More parts than are remembered, all compressed: only their times say that the numbers grow.
BOOST_AUTO_TEST_CASE(compressed_parts_whose_numbers_grow_are_read_once) {
  TailFolderFixture f("a.log");
  constexpr int kParts = kPastPlaces + 5;
  for (int turn = 0; turn <= kParts; ++turn) {
    f.append("a.log", lines(10 * turn, 10));
    if (turn < kParts - 2) f.settle();  // the last ones: while no daemon runs
    if (turn == kParts) break;
    const std::string part = "a.log." + std::to_string(turn + 1);
    f.rename("a.log", part);
    f.compress(part);
  }
  f.restart();
  f.settle();
  BOOST_CHECK(f.evidence("a.log") == lines(0, 10 * (kParts + 1)));
  BOOST_CHECK_EQUAL(f.gaps("a.log"), 0);
}

BOOST_AUTO_TEST_SUITE_END()
