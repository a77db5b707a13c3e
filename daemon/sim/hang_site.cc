#include "sim/hang_site.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"

namespace culprit::sim {
namespace {

constexpr uint64_t kHangSecond = 1'000'000'000;
constexpr uint32_t kHangRanksMax = 65'536;

// Chooses tensor and pipeline parallel sizes whose product divides the world and leaves at least 4
// replicas.
Status choose_hang_parallel(HangSite& s, const HangJobOptions& o, Random random) {
  const uint32_t tensor[] = {1, 2, 4, 8, 8}, stages[] = {1, 2, 4, 8, 16};
  for (int attempt = 0; attempt < 200; ++attempt) {
    s.tp = o.tp != 0 ? o.tp : tensor[random.below(5)];
    s.pp = o.pp != 0 ? o.pp : stages[random.below(5)];
    if (s.world % (uint64_t{s.tp} * s.pp) != 0) continue;
    s.dp = s.world / (s.tp * s.pp);
    if (s.dp >= 4) return {};
  }
  return fail(ErrorCode::kInvalid,
              fmt::format("ranks: {} is not tp x pp x dp with at least 4 replicas", s.world));
}

void name_hang_hosts(HangSite& s, Random random) {
  const uint64_t style = random.below(4), first = random.below(500);
  for (uint32_t i = 0; i < s.hosts; ++i) {
    const uint64_t n = first + i;
    switch (style) {
      case 0:
        s.host_names.push_back(fmt::format("gpu-{:04}", n));
        break;
      case 1:
        s.host_names.push_back(fmt::format("r{}n{}", n / 32, n % 32));
        break;
      case 2:
        s.host_names.push_back(fmt::format("ip-10-1-{}-{}", n / 250, n % 250 + 4));
        break;
      default:
        s.host_names.push_back(fmt::format("nid{:06}", n));
    }
  }
}

void choose_hang_software(HangSite& s, const HangJobOptions& o, Random random) {
  const uint32_t releases[] = {201, 203, 205, 206, 206};
  const auto wants = [&](std::string_view source) {
    return o.sources.empty() || std::find(o.sources.begin(), o.sources.end(), source) != o.sources.end();
  };
  const uint64_t drawn = random.below(5);
  // The Flight Recorder exists from torch 2.3 on; a job without other evidence must have one.
  s.torch = releases[wants("watchdog") ? drawn : std::max<uint64_t>(drawn, 1)];
  s.timeout_ns = (s.torch == 201 ? 1'800 : 600) * kHangSecond;
  s.sync_p2p = random.chance(50);
  s.host_logs = s.torch != 201 && (s.world > 1'024 || random.chance(40));
  s.json_dumps = s.world <= 2'048 && random.chance(30);
  s.started_times = random.chance(30);
  s.ras_json = random.chance(65);
  s.remote_error = random.chance(40);
  s.storage_lines = random.chance(60);
  s.launcher = static_cast<HangLauncher>(random.below(3));
  s.stack_form = static_cast<StackForm>(random.below(5));
  const std::array<std::array<std::string, kHangGroups>, 3> styles = {{
      {"default_pg", "DATA_PARALLEL_GROUP", "TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP"},
      {"default_pg", "mesh_dp", "mesh_tp", "mesh_pp"},
      {"default_pg", "undefined", "undefined", "undefined"},
  }};
  s.description = styles[random.below(3)];
  const char* packages[] = {"pretrain", "trainer", "llm_train", "finetune"};
  s.user_package = packages[random.below(4)];
  s.data_path = random.chance(50) ? "/mnt/ckpt" : "/shared/runs";
}

}  // namespace

uint32_t HangSite::group_count(HangGroup kind) const { return world / group_size(kind); }

uint32_t HangSite::group_size(HangGroup kind) const {
  switch (kind) {
    case HangGroup::kWorld:
      return world;
    case HangGroup::kData:
      return dp;
    case HangGroup::kTensor:
      return tp;
    case HangGroup::kPipeline:
      break;
  }
  return pp;
}

uint32_t HangSite::group_of(HangGroup kind, uint32_t rank) const {
  switch (kind) {
    case HangGroup::kWorld:
      return 0;
    case HangGroup::kData:
      return rank % tp + tp * stage_of(rank);
    case HangGroup::kTensor:
      return rank / tp;
    case HangGroup::kPipeline:
      break;
  }
  return rank % (tp * dp);
}

uint32_t HangSite::member(HangGroup kind, uint32_t group, uint32_t index) const {
  switch (kind) {
    case HangGroup::kWorld:
      return index;
    case HangGroup::kData:
      return group % tp + tp * (index + dp * (group / tp));
    case HangGroup::kTensor:
      return group * tp + index;
    case HangGroup::kPipeline:
      break;
  }
  return group + tp * dp * index;
}

uint32_t HangSite::index_in(HangGroup kind, uint32_t rank) const {
  switch (kind) {
    case HangGroup::kWorld:
      return rank;
    case HangGroup::kData:
      return replica_of(rank);
    case HangGroup::kTensor:
      return rank % tp;
    case HangGroup::kPipeline:
      break;
  }
  return stage_of(rank);
}

uint32_t HangSite::group_name(HangGroup kind, uint32_t group) const {
  if (kind == HangGroup::kWorld) return 0;
  uint32_t name = 1;
  for (HangGroup other : {HangGroup::kData, HangGroup::kTensor, HangGroup::kPipeline}) {
    if (other == kind) break;
    name += group_count(other);
  }
  return name + group;
}

uint64_t HangSite::group_hash(HangGroup kind, uint32_t group) const {
  return mix64(seed, static_cast<uint64_t>(kind) << 32 | group);
}

Result<HangSite> make_hang_site(const HangJobOptions& o) {
  if (o.ranks < 8 || o.ranks > kHangRanksMax)
    return fail(ErrorCode::kInvalid,
                fmt::format("ranks: {} is not between 8 and {}", o.ranks, kHangRanksMax));
  if (o.ranks_per_host == 0 || o.ranks % o.ranks_per_host != 0)
    return fail(ErrorCode::kInvalid, "ranks-per-host: it does not divide ranks");
  HangSite s;
  const Random random(mix64(o.seed, 0x676e6168));
  s.seed = random.fork(1).next();
  s.world = o.ranks;
  s.ranks_per_host = o.ranks_per_host;
  s.hosts = s.world / s.ranks_per_host;
  if (Status status = choose_hang_parallel(s, o, random.fork(2)); !status)
    return tl::unexpected(status.error());
  Random draw = random.fork(3);
  s.layers = static_cast<uint32_t>(draw.range(1, s.tp == 1 ? 1 : 3));
  s.micro_batches = static_cast<uint32_t>(draw.range(1, 3));
  s.buckets = static_cast<uint32_t>(draw.range(1, 3));
  s.steps_done = static_cast<uint32_t>(draw.range(20, 90'000));
  s.step_ns = static_cast<uint64_t>(draw.range(2'000, 25'000)) * 1'000'000;
  // January to November 2026, by the second.
  s.start_ns = (1'767'225'600 + draw.below(28'000'000)) * kHangSecond + draw.below(kHangSecond);
  s.token_elements = uint64_t{1'024} << draw.below(14);
  s.bucket_elements = 1'000'000 + draw.below(200'000'000);
  s.job = fmt::format("train-{:05}", draw.below(100'000));
  name_hang_hosts(s, random.fork(4));
  choose_hang_software(s, o, random.fork(5));
  return s;
}

}  // namespace culprit::sim
