#include "core/wire/stacks.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"

using namespace culprit;
using namespace culprit::wire;

BOOST_AUTO_TEST_SUITE(wire_stacks)

namespace {

StackDump dump_with(size_t threads, size_t frames) {
  StackDump dump;
  dump.rank = 7;
  dump.host = "node-1";
  dump.file = "trace";
  dump.tool = StackTool::kGdb;
  dump.pid = 44;
  dump.time_ns = 1'790'000'000 * kNsPerSecond;
  dump.process_state = "D";
  dump.waits_in = "fuse_wait";
  dump.words = {"", "MainThread", "never used"};
  for (size_t t = 0; t < threads; ++t) {
    StackThread& thread = dump.threads.emplace_back();
    thread.name = 1;
    thread.id = 1000 + t;
    thread.main = t == 0;
    thread.state = ThreadState::kIdle;
    for (size_t f = 0; f < frames; ++f) {
      dump.words.push_back("function_" + std::to_string(t) + "_" + std::to_string(f));
      thread.frames.push_back(
          {static_cast<uint32_t>(dump.words.size() - 1), 0, static_cast<uint32_t>(f), true});
    }
  }
  return dump;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_dump_reads_back_as_it_was) {
  const StackDump dump = dump_with(3, 20);
  const std::string packed = pack_stacks(dump);
  BOOST_TEST(packed.find("never used") == std::string::npos);
  PackedReader in(packed);
  const StackDump read = unpack_stacks(in);
  BOOST_REQUIRE((in.ok() && in.done()));
  BOOST_TEST((read.rank == dump.rank && read.host == dump.host && read.tool == dump.tool && read.pid == 44u));
  BOOST_TEST((read.time_ns == dump.time_ns && read.process_state == "D" && read.waits_in == "fuse_wait"));
  BOOST_REQUIRE(read.threads.size() == 3u);
  for (size_t t = 0; t < 3; ++t) {
    BOOST_TEST((read.threads[t].id == dump.threads[t].id && read.threads[t].main == (t == 0)));
    BOOST_REQUIRE(read.threads[t].frames.size() == 20u);
    for (size_t f = 0; f < 20; ++f)
      BOOST_TEST(read.words[read.threads[t].frames[f].function] ==
                 dump.words[dump.threads[t].frames[f].function]);
  }
}

BOOST_AUTO_TEST_CASE(a_dump_of_any_size_fits_its_part_of_a_block) {
  const std::string packed = pack_stacks(dump_with(4000, 100));
  BOOST_TEST(packed.size() < limits::kWireBytes / 8);
  PackedReader in(packed);
  const StackDump read = unpack_stacks(in);
  BOOST_TEST((in.ok() && in.done() && !read.threads.empty()));
}

BOOST_AUTO_TEST_CASE(a_cut_or_changed_dump_fails_or_stays_within_its_words) {
  const std::string packed = pack_stacks(dump_with(2, 5));
  for (size_t i = 0; i < packed.size(); ++i) {
    PackedReader cut(std::string_view(packed).substr(0, i));
    unpack_stacks(cut);
    BOOST_TEST(!cut.ok());
    std::string changed = packed;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    PackedReader in(changed);
    const StackDump read = unpack_stacks(in);
    for (const StackThread& t : read.threads)
      for (const StackFrame& f : t.frames) BOOST_REQUIRE(f.function < read.words.size());
  }
}

BOOST_AUTO_TEST_SUITE_END()
