#include "app/checkpoint/copyable.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;

constexpr TimeNs kMuchLater = TimeNs{4'000'000'000} * kNsPerSecond;

struct CopyableFixture {
  CopyableFixture() {
    folder = fs::temp_directory_path() / ("copyable." + std::to_string(::getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder / "step-7");
    write("step-7/model.safetensors.index.json",
          R"({"metadata": {}, "weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
    write("step-7/model-1.safetensors", shard("a"));
  }
  ~CopyableFixture() { fs::remove_all(folder); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  static std::string shard(const std::string& tensor) {
    const std::string header =
        "{\"" + tensor + R"(": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]}})";
    std::string out;
    put(out, uint64_t{header.size()});
    return out + header + "abc";
  }

  fs::path folder;
};

BOOST_FIXTURE_TEST_CASE(a_checkpoint_with_a_missing_shard_is_copied_as_a_part_only, CopyableFixture) {
  const auto whole = find_copyable(folder.string(), false, kMuchLater);
  BOOST_REQUIRE(whole);
  BOOST_TEST(whole->empty());
  const auto part = find_copyable(folder.string(), true, kMuchLater);
  BOOST_REQUIRE(part);
  BOOST_REQUIRE(part->size() == 1u);
  BOOST_TEST((*part)[0].path == "step-7");
  BOOST_TEST((*part)[0].files.size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_short_shard_is_copied_in_no_case, CopyableFixture) {
  write("step-7/model-2.safetensors", shard("b").substr(0, 70));
  const auto part = find_copyable(folder.string(), true, kMuchLater);
  BOOST_REQUIRE(part);
  BOOST_TEST(part->empty());
}

BOOST_FIXTURE_TEST_CASE(links_are_no_files_of_a_copy, CopyableFixture) {
  write("step-7/model-2.safetensors", shard("b"));
  fs::create_symlink("/etc/passwd", folder / "step-7/secret");
  const auto found = find_copyable(folder.string(), false, kMuchLater);
  BOOST_REQUIRE(found);
  for (const Copyable& one : *found)
    for (const std::string& file : one.files) BOOST_TEST(file.find("secret") == std::string::npos);
}

}  // namespace
}  // namespace culprit::app
