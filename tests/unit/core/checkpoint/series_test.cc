#include "core/checkpoint/series.h"

#include <boost/test/unit_test.hpp>

#include "writers.h"

using namespace culprit;
using namespace culprit::checkpoint;
using namespace culprit::checkpoint::writers;

namespace {

struct Look {
  std::vector<Judged> checkpoints;
  std::vector<Finding> findings;
};

Look look(Disk& disk, SeriesFacts facts = {}, TimeNs now = kLater) {
  CheckOptions options;
  options.now = now;
  options.bytes = true;
  const Tree tree = disk.tree();
  const auto series = find_series(tree, "run");
  BOOST_REQUIRE_EQUAL(series.size(), 1);
  Look out;
  for (const Found& found : series[0].checkpoints)
    out.checkpoints.push_back({found, check(found, tree, disk, options)});
  auto compared = compare(out.checkpoints, tree, options);
  out.findings = judge(out.checkpoints, read_pointers(tree, disk, series[0]), facts, std::move(compared));
  return out;
}

bool has(const Look& look, Remark remark, bool alarm) {
  return std::any_of(look.findings.begin(), look.findings.end(),
                     [&](const Finding& f) { return f.remark == remark && f.alarm == alarm; });
}

Disk megatron() {
  Disk disk;
  disk.add("iter_0000100", megatron_ranks());
  disk.add("iter_0000200", megatron_ranks());
  disk.put("latest_checkpointed_iteration.txt", "200");
  return disk;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_series)

BOOST_AUTO_TEST_CASE(a_pointer_to_a_missing_checkpoint_is_an_alarm) {
  Disk disk = megatron();
  disk.put("latest_checkpointed_iteration.txt", "300");
  const Look seen = look(disk);
  BOOST_REQUIRE_EQUAL(seen.findings.size(), 1);
  BOOST_TEST(has(seen, Remark::kPointerAhead, true));
  BOOST_TEST(seen.findings[0].text ==
             "latest_checkpointed_iteration.txt names iter_0000300, which is not there");
}

BOOST_AUTO_TEST_CASE(a_pointer_behind_is_a_note_and_a_missing_one_an_alarm) {
  Disk disk = megatron();
  disk.put("latest_checkpointed_iteration.txt", "100");
  BOOST_TEST(has(look(disk), Remark::kPointerBehind, false));
  disk.files.erase("latest_checkpointed_iteration.txt");
  BOOST_TEST(has(look(disk), Remark::kPointerMissing, true));
}

BOOST_AUTO_TEST_CASE(fewer_ranks_with_the_same_sizes_are_torn) {
  Disk disk = megatron();
  disk.files.erase("iter_0000200/mp_rank_03/model_optim_rng.pt");
  const Look seen = look(disk);
  BOOST_TEST(has(seen, Remark::kFewerRanks, false));
  BOOST_TEST(to_string(seen.checkpoints[1].checked.state) == "torn");
  BOOST_TEST(seen.checkpoints[1].checked.problems[0].file == "iter_0000200/mp_rank_03/model_optim_rng.pt");
}

BOOST_AUTO_TEST_CASE(fewer_ranks_that_took_over_the_data_are_whole) {
  Disk disk;
  disk.add("global_step100", deepspeed(4));
  disk.put("latest", "global_step200");
  disk.put("global_step200/mp_rank_00_model_states.pt", torch_zip(50));
  for (const std::string r : {"0", "1"})
    disk.put("global_step200/bf16_zero_pp_rank_" + r + "_mp_rank_00_optim_states.pt", torch_zip(5, 1600));
  const Look seen = look(disk);
  BOOST_TEST(has(seen, Remark::kFewerRanks, false));
  BOOST_TEST(to_string(seen.checkpoints[1].checked.state) == "whole");
}

BOOST_AUTO_TEST_CASE(a_hole_among_the_ranks_needs_no_older_checkpoint) {
  Disk disk;
  disk.add("global_step100", deepspeed(4));
  disk.files.erase("global_step100/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
  disk.put("latest", "global_step100");
  const Look seen = look(disk);
  BOOST_TEST(to_string(seen.checkpoints[0].checked.state) == "torn");
  BOOST_TEST(seen.checkpoints[0].checked.problems[0].file ==
             "global_step100/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
}

BOOST_AUTO_TEST_CASE(a_smaller_shard_is_told) {
  Disk disk = megatron();
  disk.put("iter_0000200/mp_rank_02/model_optim_rng.pt", torch_zip(1, 20));
  const Look seen = look(disk);
  BOOST_TEST(has(seen, Remark::kSmaller, false));
  BOOST_TEST(to_string(seen.checkpoints[1].checked.state) == "whole");
}

BOOST_AUTO_TEST_CASE(none_whole_is_an_alarm_unless_the_first_is_being_written) {
  Disk disk;
  disk.put("checkpoint-5/trainer_state.json", "");
  BOOST_TEST(has(look(disk), Remark::kNoneWhole, true));
  BOOST_TEST(!has(look(disk, {}, kWritten + kNsPerSecond), Remark::kNoneWhole, true));
  // The last whole one was removed: an alarm also while the next is being written.
  const Look fell = look(disk, {.resumed_from = {}, .whole_before = 1}, kWritten + kNsPerSecond);
  BOOST_TEST(has(fell, Remark::kNoneWhole, true));
}

BOOST_AUTO_TEST_CASE(resumed_from_0_although_a_newer_one_is_whole) {
  Disk disk = megatron();
  const Look seen = look(disk, {.resumed_from = 0});
  BOOST_REQUIRE_EQUAL(seen.findings.size(), 1);
  BOOST_TEST(has(seen, Remark::kResumedBehind, true));
  BOOST_TEST(seen.findings[0].text ==
             "the job resumed from step 0 although step 200 is whole in iter_0000200");
  BOOST_TEST(look(disk, {.resumed_from = 200}).findings.empty());
}

BOOST_AUTO_TEST_CASE(markers_of_unfinished_writes) {
  struct Row {
    std::string name;
    std::map<std::string, std::string> files;
    std::string mark;
  };
  const std::vector<Row> rows = {
      {"epoch=1.ckpt", {{"", torch_zip()}}, "epoch=1-unfinished"},
      {"epoch=1.ckpt", {{"", torch_zip()}}, "epoch=1.ckpt.incomplete"},
      {"step_200", dcp(), "step_200/__9_0.distcp.tmp"},
      {"checkpoint-200", trainer(200), "checkpoint-200/x.incomplete"},
  };
  for (const Row& row : rows) {
    Disk disk;
    for (const auto& [path, bytes] : row.files)
      disk.put(path.empty() ? row.name : row.name + "/" + path, bytes);
    BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "whole");
    disk.put(row.mark, "");
    const Look seen = look(disk);
    BOOST_TEST(to_string(seen.checkpoints[0].checked.state) == "torn");
    BOOST_TEST(to_string(seen.checkpoints[0].checked.problems[0].fault) == "unfinished");
  }
}

BOOST_AUTO_TEST_CASE(orbax_commits_by_name_and_on_object_stores_by_a_file) {
  Disk disk;
  disk.add("100", orbax());
  disk.add("200.orbax-checkpoint-tmp-17", orbax());
  Look seen = look(disk);
  BOOST_TEST(to_string(seen.checkpoints[0].checked.state) == "whole");
  BOOST_TEST(to_string(seen.checkpoints[1].checked.state) == "torn");
  Disk object_store;
  object_store.add("100", orbax());
  object_store.put("100/commit_success.txt", "");
  object_store.add("200", orbax());
  seen = look(object_store);
  BOOST_TEST(to_string(seen.checkpoints[0].checked.state) == "whole");
  BOOST_TEST(to_string(seen.checkpoints[1].checked.state) == "torn");
}

BOOST_AUTO_TEST_CASE(a_folder_written_over_is_torn_until_its_index_is_new) {
  Disk disk;
  disk.add("step_100", dcp());
  disk.files["step_100/__0_0.distcp"].modified_ns = kWritten + 30 * kNsPerSecond;
  const Look seen = look(disk);
  BOOST_TEST(to_string(seen.checkpoints[0].checked.state) == "torn");
  BOOST_TEST(to_string(seen.checkpoints[0].checked.problems[0].fault) == "overwritten");
  disk.files["step_100/.metadata"].modified_ns = kWritten + 31 * kNsPerSecond;
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "whole");
}

BOOST_AUTO_TEST_CASE(a_manifest_of_sha256_is_checked) {
  Disk disk;
  disk.add("iter_0000100", megatron_dist());
  // Of "{}" and of nothing.
  disk.put("iter_0000100/run_config.json", "{}");
  disk.put("iter_0000100/integrity.json",
           R"({"algorithm":"sha256","files":{"run_config.json":)"
           R"("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"}})");
  disk.put("latest_checkpointed_iteration.txt", "100");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "whole");
  disk.put("iter_0000100/run_config.json", "[]");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "damaged");
  disk.files.erase("iter_0000100/run_config.json");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "torn");
}

BOOST_AUTO_TEST_CASE(a_web_page_and_a_pointer_of_lfs_are_no_weights) {
  Disk disk;
  disk.put("a.safetensors", "<!DOCTYPE html><html><body>Sign in</body></html>");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "damaged");
  disk.put("a.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "torn");
}

BOOST_AUTO_TEST_CASE(trainer_checkpoints_of_weights_alone_are_whole) {
  Disk disk;
  auto files = trainer(7);
  for (const char* name : {"optimizer.pt", "scheduler.pt", "rng_state.pth"}) files.erase(name);
  disk.add("checkpoint-7", files);
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "whole");
  files.erase("trainer_state.json");
  Disk newest;
  newest.add("checkpoint-7", files);
  BOOST_TEST(to_string(look(newest).checkpoints[0].checked.state) == "torn");
}

BOOST_AUTO_TEST_CASE(deepspeed_inside_a_trainer_folder) {
  Disk disk;
  auto files = trainer(7);
  for (const char* name : {"optimizer.pt", "scheduler.pt"}) files.erase(name);
  disk.add("checkpoint-7", files);
  disk.add("checkpoint-7/global_step7", deepspeed(2));
  disk.put("checkpoint-7/latest", "global_step7");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "whole");
  disk.put("checkpoint-7/latest", "global_step8");
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "torn");
}

BOOST_AUTO_TEST_CASE(random_numbers_of_one_hosts_ranks_begin_anywhere) {
  Disk disk;
  auto files = trainer(7);
  files.erase("rng_state.pth");
  for (const std::string rank : {"8", "9", "10", "11"})
    files["rng_state_" + rank + ".pth"] = torch_zip(3, 30);
  disk.add("checkpoint-7", files);
  BOOST_TEST(to_string(look(disk).checkpoints[0].checked.state) == "whole");
  disk.files.erase("checkpoint-7/rng_state_10.pth");
  const Look seen = look(disk);
  BOOST_TEST(to_string(seen.checkpoints[0].checked.state) == "torn");
  BOOST_TEST(seen.checkpoints[0].checked.problems[0].file == "checkpoint-7/rng_state_10.pth");
}

BOOST_AUTO_TEST_CASE(a_pipeline_layer_that_the_one_before_has_is_missing) {
  Disk disk;
  for (const std::string step : {"100", "200"})
    for (const std::string layer : {"01", "03", "04"})
      disk.put("global_step" + step + "/layer_" + layer + "-model_00-model_states.pt", torch_zip());
  disk.put("latest", "global_step200");
  BOOST_TEST(look(disk).findings.empty());
  disk.files.erase("global_step200/layer_04-model_00-model_states.pt");
  BOOST_TEST(to_string(look(disk).checkpoints[1].checked.state) == "torn");
}

BOOST_AUTO_TEST_CASE(what_is_not_moved_into_place_is_no_checkpoint) {
  Disk disk;
  disk.add("checkpoint-7", trainer(7));
  disk.add("tmp-checkpoint-8", trainer(8));
  disk.add("checkpoint-9.torn", trainer(9));
  BOOST_TEST(look(disk).checkpoints.size() == 1);
}

BOOST_AUTO_TEST_CASE(steps_of_names) {
  const std::vector<std::pair<std::string, std::optional<int64_t>>> rows = {
      {"iter_0012000", 12000},         {"checkpoint-500", 500},     {"global_step7", 7},
      {"epoch=3-step=90.ckpt", 90},    {"model_0042.pt", 42},       {"last.ckpt", {}},
      {"epoch=3-loss=1.5.ckpt", {}},   {"ckpt_step_11_rank_3", 11}, {"8", 8},
      {"step99999999999999999999", {}}};
  for (const auto& [name, step] : rows) BOOST_TEST((step_of(name) == step), name);
}

BOOST_AUTO_TEST_CASE(fall_back_leaves_what_is_being_written_and_needs_a_whole_one) {
  Disk disk = megatron();
  disk.files["iter_0000200/mp_rank_01/model_optim_rng.pt"].bytes.resize(50);
  Look seen = look(disk, {}, kWritten + kNsPerSecond);
  auto plan = plan_fall_back(seen.checkpoints, {});
  BOOST_TEST((!plan && plan.error().code == ErrorCode::kBusy));
  disk.files["iter_0000100/mp_rank_01/model_optim_rng.pt"].bytes.resize(50);
  plan = plan_fall_back(look(disk).checkpoints, {});
  BOOST_TEST((!plan && plan.error().code == ErrorCode::kNotFound));
}

BOOST_AUTO_TEST_CASE(links_are_not_followed) {
  Disk disk;
  disk.add("checkpoint-7", trainer(7));
  disk.files["checkpoint-7/model.safetensors"].target = "/etc/passwd";
  const Look seen = look(disk);
  BOOST_TEST(to_string(seen.checkpoints[0].checked.state) != "whole");
}

BOOST_AUTO_TEST_SUITE_END()
