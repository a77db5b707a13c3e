// The parts of a check: a fault is found, a sound host passes, and what cannot be tested has no answer.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/clock.h"
#include "check/devices.h"
#include "check/disk.h"
#include "check/memory.h"
#include "folder.h"

using namespace culprit;
using namespace culprit::check;

namespace {

namespace fs = std::filesystem;

MemoryTest memory_of(uint64_t bytes) { return {bytes, steady_now() + 60 * kNsPerSecond, 7, bytes, {}}; }

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A device below a bridge, as /sys shows it.
struct Sys {
  check::testing::Folder folder;
  fs::path device = folder.path / "devices/pci0000:00/0000:00:01.0/0000:01:00.0";
  Sys() {
    put("class", "0x030200\n");
    put("current_link_speed", "2.5 GT/s PCIe\n");
    put("max_link_speed", "32.0 GT/s PCIe\n");
    put("current_link_width", "16\n");
    put("max_link_width", "16\n");
    put("config", std::string("\xde\x10\x30\x23", 4));
    put("../max_link_width", "16\n");
    put("../max_link_speed", "32.0 GT/s PCIe\n");
    fs::create_directories(folder.path / "bus/pci/devices");
    fs::create_directory_symlink(device, folder.path / "bus/pci/devices/0000:01:00.0");
  }
  void put(const std::string& name, const std::string& text) { write_text(device / name, text); }
  std::string root() const { return folder.path.string(); }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(parts_of_a_host_check)

BOOST_AUTO_TEST_CASE(sound_memory_passes) {
  const Part part = test_memory(memory_of(8 << 20));
  BOOST_TEST((part.answer == Answer::kPassed), part.text);
  BOOST_TEST(part.figure > 0);
}

// A bit that is stuck, two addresses that are one, and a bit that falls over once.
BOOST_AUTO_TEST_CASE(memory_that_lies_fails) {
  int fills = 0;
  const std::vector<std::function<void(std::span<uint64_t>)>> faults = {
      [](std::span<uint64_t> words) { words[4097] |= 1; },
      [](std::span<uint64_t> words) { words[4097] &= ~(uint64_t{1} << 63); },
      [](std::span<uint64_t> words) { words[1] = words[2]; },
      [&](std::span<uint64_t> words) { words[9] ^= fills++ == 4 ? 1u << 20 : 0u; }};
  for (size_t i = 0; i < faults.size(); ++i) {
    MemoryTest test = memory_of(4 << 20);
    test.disturb = faults[i];
    const Part part = test_memory(test);
    BOOST_TEST((part.answer == Answer::kFailed), i << ": " << part.text);
    BOOST_TEST(part.text.starts_with("1 of 524288 words differ"), part.text);
  }
}

BOOST_AUTO_TEST_CASE(memory_that_is_short_or_slow_has_no_answer) {
  MemoryTest little = memory_of(8 << 20);
  little.available = 1000;
  MemoryTest late = memory_of(8 << 20);
  late.until_ns = steady_now();
  for (const MemoryTest& test : {little, late}) BOOST_TEST((test_memory(test).answer == Answer::kNoAnswer));
}

BOOST_AUTO_TEST_CASE(memory_within_the_control_group_s_limit_is_used) {
  check::testing::Folder folder;
  write_text(folder.path / "proc/meminfo", "MemTotal: 100 kB\nMemAvailable:   4096000 kB\n");
  write_text(folder.path / "proc/self/cgroup", "0::/a.slice/b.service\n");
  const std::string proc = (folder.path / "proc").string(), groups = (folder.path / "cg").string();
  BOOST_TEST(available_memory(proc, groups) == 1'048'576'000u);
  write_text(folder.path / "cg/a.slice/b.service/memory.max", "max\n");
  write_text(folder.path / "cg/a.slice/memory.max", "100000000\n");
  write_text(folder.path / "cg/a.slice/memory.current", "40000000\n");
  BOOST_TEST(available_memory(proc, groups) == 30'000'000u);
  BOOST_TEST(available_memory(folder.path.string(), groups) == 0u);
}

BOOST_AUTO_TEST_CASE(sound_disk_passes_and_leaves_nothing) {
  check::testing::Folder folder;
  const Part part = test_disk({folder.path.string(), 2 << 20, steady_now() + 60 * kNsPerSecond, 3, false});
  BOOST_TEST((part.answer == Answer::kPassed), part.text);
  BOOST_TEST(fs::is_empty(folder.path));
}

BOOST_AUTO_TEST_CASE(disk_that_lies_fails) {
  check::testing::Folder folder;
  const Part part = test_disk({folder.path.string(), 2 << 20, steady_now() + 60 * kNsPerSecond, 3, true});
  BOOST_TEST((part.answer == Answer::kFailed), part.text);
}

BOOST_AUTO_TEST_CASE(disk_without_room_folder_or_time_has_no_answer) {
  check::testing::Folder folder;
  const TimeNs until = steady_now() + 60 * kNsPerSecond;
  const std::string here = folder.path.string();
  for (const DiskTest& test :
       {DiskTest{here, uint64_t{1} << 60, until, 0, false},
        DiskTest{here + "/none", 1 << 20, until, 0, false}, DiskTest{here, 1 << 20, steady_now(), 0, false}})
    BOOST_TEST((test_disk(test).answer == Answer::kNoAnswer), test.folder);
}

BOOST_AUTO_TEST_CASE(links_at_full_width_pass_although_an_idle_accelerator_is_slow) {
  const Sys sys;
  BOOST_TEST((check_pcie(sys.root()).answer == Answer::kPassed), check_pcie(sys.root()).text);
  BOOST_TEST(count_accelerators(sys.root()) == 1u);
}

BOOST_AUTO_TEST_CASE(links_of_a_narrow_slot_pass) {
  Sys sys;
  sys.put("current_link_width", "8\n");
  sys.put("../max_link_width", "8\n");
  BOOST_TEST((check_pcie(sys.root()).answer == Answer::kPassed), check_pcie(sys.root()).text);
}

BOOST_AUTO_TEST_CASE(devices_at_fault_are_named) {
  const struct {
    const char *file, *text, *says;
    Answer answer = Answer::kFailed;
  } rows[] = {// The slot may be wired so.
              {"current_link_width", "4\n", "accelerator 0000:01:00.0 has 4 of 16 lanes", Answer::kNoAnswer},
              {"config", "\xff\xff\xff\xff", "accelerator 0000:01:00.0 does not answer on the bus"},
              {"aer_dev_fatal", "DLP 0\nTOTAL_ERR_FATAL 3\n",
               "accelerator 0000:01:00.0 had 3 fatal errors of PCIe since boot"}};
  for (const auto& row : rows) {
    Sys sys;
    sys.put(row.file, row.text);
    const Part part = check_pcie(sys.root());
    BOOST_TEST((part.answer == row.answer));
    BOOST_TEST(part.text == row.says);
  }
  Sys network;
  network.put("class", "0x020700\n");
  BOOST_TEST(check_pcie(network.root()).text == "network device 0000:01:00.0 has 2.5 of 32 GT/s");
}

BOOST_AUTO_TEST_CASE(memory_errors_since_boot_are_read) {
  check::testing::Folder folder;
  const fs::path controller = folder.path / "devices/system/edac/mc/mc0";
  BOOST_TEST((check_memory_errors(folder.path.string()).answer == Answer::kNoAnswer));
  write_text(controller / "ue_count", "0\n");
  write_text(controller / "ce_count", "12\n");
  BOOST_TEST((check_memory_errors(folder.path.string()).answer == Answer::kPassed));
  write_text(controller / "ue_count", "2\n");
  BOOST_TEST((check_memory_errors(folder.path.string()).answer == Answer::kFailed));
}

BOOST_AUTO_TEST_CASE(part_that_is_written_is_what_is_read) {
  const Part part{"memory", Answer::kFailed, "1 of 8 words differ", 12.5, "GB/s", 250 * kNsPerMs};
  const auto read = parse_part(to_line(part));
  BOOST_REQUIRE(read);
  BOOST_TEST((*read == part));
  for (const char* line : {"", "[]", "{}", R"({"part":"x","answer":"fine"})",
                           R"({"part":"","answer":"passed"})", R"({"part":"x","answer":1})"})
    BOOST_TEST(!parse_part(line), line);
  const auto hostile =
      parse_part(R"({"part":"a\u001b[2J","answer":"passed","figure":1e999,"took_s":-5,"text":")" +
                 std::string(5000, 'x') + "\"}");
  BOOST_TEST((!hostile || (hostile->text.size() <= kPartTextBytes && hostile->took_ns == 0 &&
                           hostile->name.find('\x1b') == std::string::npos)));
}

BOOST_AUTO_TEST_CASE(outcome_is_that_of_the_worst_part) {
  const Part passed{"disk", Answer::kPassed, "fine", 0, "", 0},
      unknown{"gpu", Answer::kNoAnswer, "late", 0, "", 0},
      failed{"memory", Answer::kFailed, "wrong", 0, "", 0};
  BOOST_TEST((outcome_of({}).answer == Answer::kNoAnswer));
  BOOST_TEST((outcome_of(std::vector{passed}) == Outcome{Answer::kPassed, "passed: disk"}));
  BOOST_TEST((outcome_of(std::vector{passed, unknown}) == Outcome{Answer::kNoAnswer, "gpu: late"}));
  BOOST_TEST((outcome_of(std::vector{unknown, failed, failed}) ==
              Outcome{Answer::kFailed, "memory: wrong, and 1 more"}));
}

BOOST_AUTO_TEST_SUITE_END()
