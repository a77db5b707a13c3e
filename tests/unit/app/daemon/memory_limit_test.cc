#include "app/daemon/self/memory_limit.h"

#include <boost/test/unit_test.hpp>

#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint64_t kMiB = 1 << 20;

struct Case {
  const char* own;  // /proc/self/cgroup
  std::vector<std::pair<const char*, const char*>> files;
  uint64_t bytes;  // 0: no limit of a group
};

const std::vector<Case> kCases = {
    {"0::/system.slice/culpritd.service\n",
     {{"system.slice/culpritd.service/memory.max", "536870912\n"}, {"system.slice/memory.max", "max\n"}},
     512 * kMiB},
    {"0::/system.slice/culpritd.service\n",
     {{"system.slice/culpritd.service/memory.max", "max\n"}, {"system.slice/memory.max", "268435456\n"}},
     256 * kMiB},
    {"0::/\n", {{"memory.max", "134217728\n"}}, 128 * kMiB},
    {"0::/system.slice/culpritd.service\n", {{"system.slice/culpritd.service/memory.max", "max\n"}}, 0},
    {"5:cpu,memory:/pod/c1\n0::/\n",
     {{"memory/pod/c1/memory.limit_in_bytes", "67108864\n"},
      {"memory/memory.limit_in_bytes", "9223372036854771712\n"}},
     64 * kMiB},
    {"5:memory:/not/seen/here\n", {{"memory/memory.limit_in_bytes", "67108864\n"}}, 64 * kMiB},
    {"5:memory\nnonsense\n", {}, 0},
    {"", {}, 0},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_limits)

BOOST_AUTO_TEST_CASE(the_lowest_limit_of_the_control_group_and_those_above_counts) {
  for (const Case& c : kCases) {
    const test::Folder folder;
    folder.write("proc/self/cgroup", c.own);
    for (const auto& [name, text] : c.files) folder.write(std::string("groups/") + name, text);
    const MemoryLimit limit =
        memory_limit((folder.path / "proc").string(), (folder.path / "groups").string());
    BOOST_TEST(limit.of_group == (c.bytes > 0), c.own);
    if (c.bytes > 0) BOOST_TEST(limit.bytes == c.bytes, c.own);
    BOOST_TEST(limit.bytes > 0u);
  }
}

BOOST_AUTO_TEST_CASE(engines_get_half_of_a_group_and_a_sixteenth_of_a_machine) {
  BOOST_TEST(engine_memory(0, {512 * kMiB, true}) == 256 * kMiB);
  BOOST_TEST(engine_memory(0, {64 * 1024 * kMiB, false}) == 4 * 1024 * kMiB);
  BOOST_TEST(engine_memory(100 * kMiB, {512 * kMiB, true}) == 100 * kMiB);
  BOOST_TEST(engine_memory(0, {4 * kMiB, true}) == 16 * kMiB);
}

BOOST_AUTO_TEST_CASE(kills_for_memory_are_read_from_vmstat) {
  const test::Folder folder;
  BOOST_TEST(oom_kills(folder.path.string()) == 0u);
  folder.write("vmstat", "nr_free_pages 5\noom_kill 3\noom_kill_other 9\n");
  BOOST_TEST(oom_kills(folder.path.string()) == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
