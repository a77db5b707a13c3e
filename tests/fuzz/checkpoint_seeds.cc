// Writes seeds of tests/fuzz/checkpoint.cc: a whole checkpoint of each format, some damaged, some hostile.
#include <cstdio>
#include <fstream>
#include <string>

#include "../unit/core/checkpoint/writers.h"
#include "checkpoint_files.h"

namespace {

using namespace culprit::checkpoint::writers;
using Files = std::map<std::string, std::string>;

std::string input(const Files& files) {
  std::string out;
  for (size_t i = 0; i < kCheckpointNames.size(); ++i) {
    const auto at = files.find(std::string(kCheckpointNames[i]));
    if (at == files.end()) continue;
    out += static_cast<char>(i);
    for (int shift = 0; shift < 24; shift += 8) out += static_cast<char>(at->second.size() >> shift);
    out += at->second;
  }
  return out;
}

Files in(const std::string& folder, const Files& files) {
  Files out;
  for (const auto& [path, bytes] : files) out[folder + "/" + path] = bytes;
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: checkpoint_seeds FOLDER\n"), 2;
  const std::string shard = torch_zip(10, 90);
  std::string hostile = dcp_index({{"__0_0.distcp", {shard}}});
  hostile.insert(2, "cposix\nsystem\n(" + text("id") + "tR0");
  std::string many = torch_zip();
  many.replace(many.size() - 14, 4, "\xff\xff\xff\xff");
  std::string orbax_manifest = ocdbt_manifest();
  Files trainer_files = in("checkpoint-1", trainer(1));
  trainer_files["checkpoint-1/rng_state_0.pth"] = torch_zip(3, 30);
  trainer_files["checkpoint-1/rng_state_7.pth"] = torch_zip(3, 30);
  Files deep{{"global_step1/mp_rank_00_model_states.pt", torch_zip(1, 60)}, {"latest", "global_step1"}};
  deep["global_step1/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt"] = torch_zip(2, 60);
  Files holes = deep;
  holes["global_step1/bf16_zero_pp_rank_999999999_mp_rank_999999999_optim_states.pt"] = torch_zip(2, 60);
  Files ranks{{"iter_0000200/mp_rank_00/model_optim_rng.pt", torch_zip(1, 60)},
              {"iter_0000200/mp_rank_01/model_optim_rng.pt", torch_zip(2, 60)},
              {"latest_checkpointed_iteration.txt", "200"}};
  const std::map<std::string, Files> seeds = {
      {"torch", {{"model_100.pt", torch_zip(1, 60)}, {"model_200.pt", torch_zip(1, 60, {false, true})}}},
      {"torch_cut", {{"model_100.pt", torch_zip(1, 60)}, {"model_200.pt", torch_zip(1, 60).substr(0, 300)}}},
      {"torch_records", {{"model_100.pt", many}}},
      {"legacy", {{"model_100.pt", torch_legacy(5)}}},
      {"legacy_cut", {{"model_100.pt", torch_legacy(5).substr(0, 330)}}},
      {"lightning", {{"step=1.ckpt", torch_zip(1, 60)}, {"step=1.ckpt-unfinished", ""}}},
      {"dcp", in("step_1", dcp())},
      {"dcp_hostile", {{"step_1/.metadata", hostile}, {"step_1/__0_0.distcp", shard}}},
      {"dcp_outside", {{"step_1/.metadata", dcp_index({{"../latest", {shard}}})}, {"latest", shard}}},
      {"safetensors", {{"w_1.safetensors", safetensors(64)}}},
      {"safetensors_lfs", {{"w_1.safetensors", "version https://git-lfs.github.com/spec/v1\n"}}},
      {"safetensors_shards", in("step_1", sharded_safetensors())},
      {"megatron", in("iter_0000100", megatron_dist())},
      {"megatron_ranks", ranks},
      {"deepspeed", deep},
      {"deepspeed_holes", holes},
      {"trainer", trainer_files},
      {"orbax",
       {{"100/_CHECKPOINT_METADATA", R"({"commit_timestamp_nsecs":1})"},
        {"100/default/_METADATA", R"({"use_ocdbt":true})"},
        {"100/default/manifest.ocdbt", orbax_manifest},
        {"100/default/d/0f", "x"}}},
      {"torchsnapshot", in("snap_1", snapshot())},
      {"torchsnapshot_json",
       {{"snap_1/.snapshot_metadata",
         R"({"manifest":{"0/model/w":{"location":"0/model/w","byte_range":[0,300]}}})"},
        {"snap_1/0/model/w", data(300, 1)}}},
  };
  // Large enough that limits::kHeldFree does not hold what they build.
  const auto hostile_index = [](char op) { return "\x80\x04(" + std::string(64 << 10, op) + "t."; };
  const std::map<std::string, Files> large = {
      {"dcp_empty_lists", {{"step_1/.metadata", hostile_index(']')}}},
      {"dcp_remembered", {{"step_1/.metadata", "\x80\x04N" + std::string(64 << 10, '\x94') + "."}}},
  };
  for (const auto& [name, files] : large)
    std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary) << input(files);
  for (const auto& [name, files] : seeds)
    std::ofstream(std::string(argv[1]) + "/" + name, std::ios::binary) << input(files);
}
