#include "app/checkpoint/look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../../core/checkpoint/writers.h"

using namespace culprit;
using namespace culprit::app;
using namespace culprit::checkpoint::writers;
namespace fs = std::filesystem;

namespace {

// A folder on disk whose files are an hour old.
struct Place {
  fs::path root, run;
  CheckpointOptions options;

  Place() {
    char name[] = "/tmp/culprit-unit-checkpoint.XXXXXX";
    root = ::mkdtemp(name);
    run = root / "run";
    fs::create_directories(run);
    options.now = kLater;
    options.bytes = true;
    options.state_folder = (root / "state").string();
  }
  Place(const Place&) = delete;
  ~Place() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
  void put(const std::string& path, const std::string& bytes) {
    fs::create_directories((run / path).parent_path());
    std::ofstream(run / path, std::ios::binary) << bytes;
    settle();
  }
  void add(const std::string& folder, const std::map<std::string, std::string>& files) {
    for (const auto& [path, bytes] : files) {
      fs::create_directories((run / folder / path).parent_path());
      std::ofstream(run / folder / path, std::ios::binary) << bytes;
    }
    settle();
  }
  // Everything was written at one moment, long ago.
  void settle() {
    const timespec times[2] = {{kWritten / kNsPerSecond, 0}, {kWritten / kNsPerSecond, 0}};
    for (const auto& entry : fs::recursive_directory_iterator(root))
      ::utimensat(AT_FDCWD, entry.path().c_str(), times, AT_SYMLINK_NOFOLLOW);
  }
  void flip(const std::string& path, size_t at) {
    std::string bytes = content(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    put(path, bytes);
  }
  void cut(const std::string& path, size_t size) { put(path, content(path).substr(0, size)); }
  std::string content(const std::string& path) const {
    std::ostringstream out;
    out << std::ifstream(run / path, std::ios::binary).rdbuf();
    return out.str();
  }
  // Names, and what they hold.
  std::string everything() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(run)) {
      const std::string name = fs::relative(entry.path(), run).string();
      all.push_back(name + (entry.is_symlink()     ? " -> " + fs::read_symlink(entry.path()).string()
                            : entry.is_directory() ? "/"
                                                   : "\n" + content(name)));
    }
    std::sort(all.begin(), all.end());
    std::string out;
    for (const std::string& line : all) out += line + "\n";
    return out;
  }
  CheckpointLook look() const {
    auto seen = look_at_checkpoints(run.string(), options);
    BOOST_REQUIRE(seen.has_value());
    BOOST_REQUIRE_EQUAL(seen->series.size(), 1);
    return std::move(*seen);
  }
};

std::string states(const CheckpointLook& look) {
  std::string out;
  for (const auto& judged : look.series[0].checkpoints)
    out += judged.found.path + ":" + std::string(checkpoint::to_string(judged.checked.state)) + " ";
  return out;
}

struct Megatron : Place {
  Megatron() {
    for (const std::string name : {"iter_0000100", "iter_0000200", "iter_0000300"})
      add(name, megatron_ranks());
    put("latest_checkpointed_iteration.txt", "300");
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_look)

BOOST_AUTO_TEST_CASE(a_look_changes_nothing) {
  Megatron place;
  place.cut("iter_0000300/mp_rank_01/model_optim_rng.pt", 100);
  const std::string before = place.everything();
  BOOST_TEST(states(place.look()) == "iter_0000100:whole iter_0000200:whole iter_0000300:torn ");
  BOOST_TEST(newest_whole_checkpoint(place.run.string(), place.options).has_value());
  BOOST_TEST(place.everything() == before);
}

BOOST_AUTO_TEST_CASE(the_newest_whole_one_is_verified) {
  Megatron place;
  place.flip("iter_0000300/mp_rank_01/model_optim_rng.pt", 300);
  place.cut("iter_0000200/mp_rank_01/model_optim_rng.pt", 300);
  const auto newest = newest_whole_checkpoint(place.run.string(), place.options);
  BOOST_REQUIRE(newest.has_value());
  BOOST_TEST(newest->path == fs::canonical(place.run / "iter_0000100").string());
  BOOST_TEST(*newest->step == 100);
  BOOST_TEST(newest->skipped.size() == 2);
  const auto before = newest_whole_checkpoint(place.run.string(), place.options, 100);
  BOOST_REQUIRE(!before.has_value());
  BOOST_TEST((before.error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_CASE(an_older_one_is_asked_for_by_its_step) {
  Megatron place;
  const auto newest = newest_whole_checkpoint(place.run.string(), place.options, 300);
  BOOST_REQUIRE(newest.has_value());
  BOOST_TEST(*newest->step == 200);
}

BOOST_AUTO_TEST_CASE(a_changed_byte_without_a_checksum_is_seen_at_the_second_look) {
  Place place;
  place.put("w_1.safetensors", safetensors());
  BOOST_TEST(states(place.look()) == "w_1.safetensors:whole ");
  place.flip("w_1.safetensors", 300);
  BOOST_TEST(states(place.look()) == "w_1.safetensors:damaged ");
  // It stays so: what is damaged does not become what is known.
  BOOST_TEST(states(place.look()) == "w_1.safetensors:damaged ");
  place.options.state_folder.clear();
  BOOST_TEST(states(place.look()) == "w_1.safetensors:whole ");
}

BOOST_AUTO_TEST_CASE(a_look_at_one_file_forgets_nothing_of_its_neighbours) {
  Place place;
  place.put("w_1.safetensors", safetensors());
  place.put("w_2.safetensors", safetensors());
  place.look();
  place.cut("w_2.safetensors", 30);
  const auto one = look_at_checkpoints((place.run / "w_2.safetensors").string(), place.options);
  BOOST_REQUIRE(one.has_value());
  BOOST_TEST(states(*one) == "w_2.safetensors:torn ");
  BOOST_TEST(one->series[0].findings.at(0).text == "none of 1 checkpoint is whole");
  place.flip("w_1.safetensors", 300);
  BOOST_TEST(states(place.look()) == "w_1.safetensors:damaged w_2.safetensors:torn ");
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_a_checkpoint_has_a_memory) {
  Place place;
  place.add("", orbax());
  BOOST_TEST(states(place.look()) == ":whole ");
  place.cut("default/d/0f1e2d", 100);
  BOOST_TEST(states(place.look()) == ":torn ");
}

BOOST_AUTO_TEST_CASE(the_last_whole_one_is_gone) {
  Place place;
  place.add("step_1", dcp());
  place.look();
  place.cut("step_1/__0_0.distcp", 10);
  const CheckpointLook seen = place.look();
  BOOST_REQUIRE_EQUAL(seen.series[0].findings.size(), 1);
  BOOST_TEST(seen.series[0].findings[0].text == "no checkpoint is whole any more; 1 was whole before");
}

BOOST_AUTO_TEST_CASE(fall_back_renames_and_rewrites) {
  Megatron place;
  place.cut("iter_0000300/mp_rank_01/model_optim_rng.pt", 100);
  place.cut("iter_0000100/mp_rank_01/model_optim_rng.pt", 100);
  const CheckpointLook seen = place.look();
  std::vector<std::string> done;
  BOOST_REQUIRE(fall_back(seen, seen.series[0], done).has_value());
  BOOST_TEST(done.size() == 2);
  BOOST_TEST(place.content("latest_checkpointed_iteration.txt") == "200");
  BOOST_TEST(place.content("latest_checkpointed_iteration.txt.before") == "300");
  BOOST_TEST(fs::is_directory(place.run / "iter_0000300.torn"));
  BOOST_TEST(!fs::exists(place.run / "iter_0000300"));
  BOOST_TEST(fs::is_directory(place.run / "iter_0000100"));  // no start takes an older one
  place.settle();
  BOOST_TEST(states(place.look()) == "iter_0000100:torn iter_0000200:whole ");
  // Again there is nothing to do.
  done.clear();
  const CheckpointLook again = place.look();
  BOOST_TEST(fall_back(again, again.series[0], done).has_value());
  BOOST_TEST(done.empty());
}

BOOST_AUTO_TEST_CASE(fall_back_replaces_nothing_and_turns_links) {
  Place place;
  place.put("step=1.ckpt", torch_zip());
  place.put("step=2.ckpt", torch_zip());
  place.cut("step=2.ckpt", 70);
  place.put("step=2.ckpt.torn", "of an earlier time");
  fs::create_symlink("step=2.ckpt", place.run / "last.ckpt");
  place.settle();
  const CheckpointLook seen = place.look();
  std::vector<std::string> done;
  BOOST_REQUIRE(fall_back(seen, seen.series[0], done).has_value());
  BOOST_TEST(fs::read_symlink(place.run / "last.ckpt").string() == "step=1.ckpt");
  BOOST_TEST(fs::read_symlink(place.run / "last.ckpt.before").string() == "step=2.ckpt");
  BOOST_TEST(place.content("step=2.ckpt.torn") == "of an earlier time");
  BOOST_TEST(place.content("step=2.ckpt.2.torn") == torch_zip().substr(0, 70));
}

BOOST_AUTO_TEST_CASE(fall_back_without_a_whole_one_changes_nothing) {
  Place place;
  place.add("step_1", dcp());
  place.cut("step_1/__0_0.distcp", 10);
  const std::string before = place.everything();
  const CheckpointLook seen = place.look();
  std::vector<std::string> done;
  BOOST_TEST(!fall_back(seen, seen.series[0], done).has_value());
  BOOST_TEST(place.everything() == before);
}

BOOST_AUTO_TEST_CASE(what_a_link_points_to_is_not_read) {
  Place place;
  place.add("checkpoint-7", trainer(7));
  std::ofstream(place.root / "elsewhere", std::ios::binary) << safetensors();
  fs::remove(place.run / "checkpoint-7/model.safetensors");
  fs::create_symlink(place.root / "elsewhere", place.run / "checkpoint-7/model.safetensors");
  place.settle();
  BOOST_TEST(states(place.look()) != "checkpoint-7:whole ");
}

BOOST_AUTO_TEST_CASE(a_pipe_in_place_of_a_file_does_not_block) {
  Place place;
  place.add("step_1", dcp());
  fs::remove(place.run / "step_1/.metadata");
  BOOST_REQUIRE(::mkfifo((place.run / "step_1/.metadata").c_str(), 0600) == 0);
  BOOST_REQUIRE(::mkfifo((place.run / "latest").c_str(), 0600) == 0);
  BOOST_TEST(states(place.look()) == "step_1:unread ");
}

BOOST_AUTO_TEST_CASE(one_file_one_checkpoint_and_folders_above) {
  Place place;
  place.put("a/b/model_1.pt", torch_zip());
  place.add("a/c/step_1", dcp());
  auto seen = look_at_checkpoints(place.run.string(), place.options);
  BOOST_REQUIRE(seen.has_value());
  BOOST_TEST(seen->series.size() == 2);
  seen = look_at_checkpoints((place.run / "a/b/model_1.pt").string(), place.options);
  BOOST_REQUIRE(seen.has_value());
  BOOST_TEST(seen->series.at(0).checkpoints.at(0).found.path == "model_1.pt");
  seen = look_at_checkpoints((place.run / "a/c/step_1").string(), place.options);
  BOOST_REQUIRE(seen.has_value());
  BOOST_TEST(states(*seen) == ":whole ");
  BOOST_TEST(!look_at_checkpoints((place.run / "nowhere").string(), place.options).has_value());
}

BOOST_AUTO_TEST_CASE(reading_past_the_cache_gives_the_same) {
  Megatron place;
  place.flip("iter_0000300/mp_rank_01/model_optim_rng.pt", 300);
  place.options.direct = true;
  const std::string seen = states(place.look());
  if (seen.find("unread") != seen.npos) {
    BOOST_TEST_MESSAGE("the file system has no O_DIRECT");
    return;
  }
  BOOST_TEST(seen == "iter_0000100:whole iter_0000200:whole iter_0000300:damaged ");
}

BOOST_AUTO_TEST_SUITE_END()
