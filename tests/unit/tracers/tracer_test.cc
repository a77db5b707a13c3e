// Tests of sdk/tracer, the common part of the tracers. One process has one tracer, so its cases run in
// sequence here.
#include "tracer.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "tracer_fixtures.h"

namespace culprit::testing {
namespace {

BOOST_AUTO_TEST_CASE(names_of_groups_tell_their_kind) {
  const std::pair<const char*, int> cases[] = {
      {"default_pg", CULPRIT_WORLD},
      {"default_pg:0", CULPRIT_WORLD},
      {"mesh_dp", CULPRIT_DP},
      {"mesh_dp_shard", CULPRIT_DP},
      {"mesh_dp_replicate", CULPRIT_DP},
      {"mesh_dp_shard_cp", CULPRIT_GROUP_UNKNOWN},  // two dimensions
      {"mesh_tp", CULPRIT_TP},
      {"TP", CULPRIT_TP},
      {"tp_0", CULPRIT_TP},
      {"pp:3", CULPRIT_PP},
      {"cp", CULPRIT_CP},
      {"ep", CULPRIT_EP},
      {"edp", CULPRIT_EDP},
      {"fsdp", CULPRIT_DP},
      {"TENSOR_MODEL_PARALLEL_GROUP", CULPRIT_TP},
      {"PIPELINE_MODEL_PARALLEL_GROUP", CULPRIT_PP},
      {"DATA_PARALLEL_GROUP_WITH_CP", CULPRIT_DP},
      {"CONTEXT_PARALLEL_GROUP", CULPRIT_CP},
      {"EXPERT_MODEL_PARALLEL_GROUP", CULPRIT_EP},
      {"EXPERT_DATA_PARALLEL_GROUP", CULPRIT_EDP},
      {"MODEL_PARALLEL_GROUP", CULPRIT_GROUP_UNKNOWN},
      {"EMBEDDING_GROUP", CULPRIT_GROUP_UNKNOWN},
      {"dptp", CULPRIT_GROUP_UNKNOWN},
      {"", CULPRIT_GROUP_UNKNOWN},
  };
  for (const auto& [name, kind] : cases) BOOST_TEST(tracer_group_of(name) == kind, name);
  BOOST_TEST(tracer_group_of(nullptr) == CULPRIT_GROUP_UNKNOWN);
}

culprit_record numbered(uint64_t seq) {
  culprit_record record = culprit_record_of(CULPRIT_ALL_REDUCE, CULPRIT_DP);
  record.start_ns = 1 + seq;
  record.end_ns = 2 + seq;
  record.seq = seq;
  record.rank = 5;
  return record;
}

BOOST_AUTO_TEST_CASE(without_a_daemon_all_threads_records_go_to_one_file) {
  Folder folder;
  const std::string traces = folder.path() + "/made";
  setenv("CULPRIT_COMM_DIR", traces.c_str(), 1);
  setenv("CULPRIT_JOB", "llama", 1);
  unsetenv("CULPRIT_RINGS");
  const tracer_options options = {"test", 5, CULPRIT_UNKNOWN, 1024};
  const uint64_t before_ns = culprit_now_ns();
  const culprit_record early = numbered(0);
  BOOST_TEST(tracer_push(&early) == 0);  // before the tracer exists
  tracer_start(&options);
  const uint64_t after_ns = culprit_now_ns();
  uint64_t taken = 0;
  std::vector<std::thread> threads;
  std::array<uint64_t, 4> of_thread{};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&of_thread, t] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        const culprit_record record = numbered(static_cast<uint64_t>(t) * 100'000 + i);
        of_thread[static_cast<size_t>(t)] += static_cast<uint64_t>(tracer_push(&record));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const uint64_t n : of_thread) taken += n;
  tracer_finish();
  tracer_finish();  // once is sufficient
  BOOST_TEST(tracer_dropped() == 1 + 80'000 - taken);

  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(traces)) path = entry.path().string();
  // Another process with this pid, in a restarted container, has another name.
  const std::string named = "-" + std::to_string(getpid()) + "-test-";
  const size_t at = path.find(named);
  BOOST_REQUIRE_MESSAGE(at != std::string::npos && path.ends_with(".comm"), path);
  const uint64_t start_ns = std::stoull(path.substr(at + named.size()));
  BOOST_TEST(start_ns >= before_ns);
  BOOST_TEST(start_ns <= after_ns);
  const std::string bytes = bytes_of(path);
  BOOST_TEST(bytes.substr(0, 8) == "CULPCOMM");
  BOOST_TEST(std::string(bytes.c_str() + 80) == "llama");
  const auto records = comm_file_records(path);
  BOOST_TEST(records.size() == taken);
  std::array<uint64_t, 4> last{};
  for (const culprit_record& record : records) {
    const size_t t = record.seq / 100'000;
    BOOST_REQUIRE(t < 4u);
    if (record.start_ns <= last[t] || record.end_ns != record.start_ns + 1) BOOST_ERROR("out of order");
    last[t] = record.start_ns;
  }
}

BOOST_AUTO_TEST_CASE(steps_are_what_was_set_last) {
  BOOST_TEST(tracer_step() == CULPRIT_UNKNOWN);
  tracer_set_step(12);
  BOOST_TEST(tracer_step() == 12u);
}

BOOST_AUTO_TEST_CASE(the_launcher_says_who_a_process_is) {
  struct Case {
    const char* what;
    std::vector<std::pair<const char*, const char*>> environment;
    uint32_t rank, size, device;
  };
  const uint32_t none = CULPRIT_UNKNOWN;
  const Case cases[] = {
      {"torchrun",
       {{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "0,1"}},
       9,
       16,
       1},
      {"a list of devices",
       {{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "6,7"}},
       9,
       16,
       7},
      {"one device each",
       {{"RANK", "9"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "5"}},
       9,
       16,
       5},
      {"devices by name",
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "GPU-8f2,GPU-77a"}},
       1,
       2,
       1},
      {"no launcher", {}, none, none, none},
      {"no launcher, several devices", {{"CUDA_VISIBLE_DEVICES", "6,7"}}, none, none, none},
      {"no number",
       {{"RANK", "x"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "6,7"}},
       none,
       none,
       none},
      {"a rank beyond all",
       {{"RANK", "16"}, {"WORLD_SIZE", "16"}, {"LOCAL_RANK", "1"}, {"CUDA_VISIBLE_DEVICES", "6,7"}},
       none,
       none,
       none},
      {"no launcher, one device", {{"CUDA_VISIBLE_DEVICES", "5"}}, none, none, 5},
  };
  for (const Case& c : cases) BOOST_TEST_CONTEXT(c.what) {
      for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES",
                               "ROCR_VISIBLE_DEVICES", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"})
        unsetenv(name);
      for (const auto& [name, value] : c.environment) setenv(name, value, 1);
      const tracer_launch launch = tracer_launched();
      BOOST_TEST(launch.rank == c.rank);
      BOOST_TEST(launch.size == c.size);
      BOOST_TEST(launch.device == c.device);
    }
}

}  // namespace
}  // namespace culprit::testing
