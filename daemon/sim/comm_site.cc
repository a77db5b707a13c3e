#include "sim/comm_site.h"

#include <fmt/format.h>

#include "base/limits.h"
#include "sim/random.h"

namespace culprit::sim {
namespace {

Status check_shape(const CommSite& s) {
  const uint64_t product = uint64_t{s.tp} * s.cp * s.dp * s.pp;
  if (product != s.world)
    return fail(ErrorCode::kInvalid, fmt::format("world: {} is not tp {} x cp {} x dp {} x pp {}", s.world,
                                                 s.tp, s.cp, s.dp, s.pp));
  if ((s.cp * s.dp) % s.ep != 0)
    return fail(ErrorCode::kInvalid, fmt::format("ep: {} does not divide cp x dp = {}", s.ep, s.cp * s.dp));
  if (s.virtual_stages > 1 && s.pp < 3)
    return fail(ErrorCode::kInvalid, "virtual stages: they need a pipeline of 3 stages or more");
  if (s.virtual_stages > 1 && s.micro_batches % s.pp != 0)
    return fail(ErrorCode::kInvalid,
                fmt::format("micro-batches: {} is no multiple of pp {}, which virtual stages need",
                            s.micro_batches, s.pp));
  return {};
}

Status check_options(const CommJobOptions& o) {
  const auto within = [](const char* name, uint64_t value, uint64_t low, uint64_t high) -> Status {
    if (value >= low && value <= high) return {};
    return fail(ErrorCode::kInvalid, fmt::format("{}: {} is not in {}..{}", name, value, low, high));
  };
  for (const Status& status :
       {within("world", o.world, 2, limits::kCommRanks), within("ranks per host", o.ranks_per_host, 1, 64),
        within("hosts per switch", o.hosts_per_switch, 1, 4096), within("steps", o.steps, 1, 100'000),
        within("ep", o.ep, 1, 4096), within("cp", o.cp, 1, 4096), within("tp", o.tp, 0, 64),
        within("pp", o.pp, 0, 256), within("virtual stages", o.virtual_stages, 0, 16),
        within("layers", o.layers, 0, 128), within("micro-batches", o.micro_batches, 0, 1024)})
    if (!status) return status;
  if (o.severity != 0 && !(o.severity >= 1 && o.severity <= 1000))
    return fail(ErrorCode::kInvalid, "severity: it is a factor between 1 and 1000");
  return {};
}

// Chooses sizes that the options leave open: tensor parallel within a host, some pipeline parallel, the
// rest data parallel.
void choose_parallel(CommSite& s, const CommJobOptions& o, Random random) {
  const uint32_t rest = s.world / std::max(1u, s.cp);
  s.tp = o.tp;
  s.pp = o.pp;
  // If a given size does not fit, check_shape reports the error.
  for (uint32_t tp = 1u << random.below(4); s.tp == 0; tp /= 2)
    if (tp == 1 || (tp <= s.ranks_per_host && rest % (tp * std::max(1u, s.pp)) == 0 && rest / tp >= s.ep))
      s.tp = tp;
  for (uint32_t pp = 1u << random.below(4); s.pp == 0; pp /= 2)
    if (pp == 1 || (rest % (s.tp * pp) == 0 && (rest / (s.tp * pp)) * s.cp % s.ep == 0)) s.pp = pp;
  s.dp = o.dp != 0 ? o.dp : std::max(1u, rest / (s.tp * s.pp));
}

// About 90 records per rank and step, as in the logs of Holmes, unless the options differ.
void choose_schedule(CommSite& s, const CommJobOptions& o, Random random) {
  s.virtual_stages = o.virtual_stages != 0 ? o.virtual_stages : s.pp > 2 && random.chance(35) ? 2 : 1;
  s.blocks = o.layers != 0 ? o.layers : static_cast<uint32_t>(random.range(1, s.virtual_stages > 1 ? 2 : 3));
  const uint32_t in_block = (s.tp > 1) + (s.cp > 1) + 2 * (s.ep > 1);
  const uint32_t of_batch = s.virtual_stages * (2 * s.blocks * in_block + 4 * (s.pp > 1));
  s.micro_batches = o.micro_batches;
  if (s.micro_batches == 0) s.micro_batches = std::clamp(75 / std::max(1u, of_batch), 2u, 16u);
  if (o.micro_batches == 0 && s.virtual_stages > 1)
    s.micro_batches = std::max(1u, s.micro_batches / s.pp) * s.pp;
  s.buckets = std::max(s.blocks, static_cast<uint32_t>(random.range(2, 6)));
  s.async_sends = s.virtual_stages > 1 || random.chance(40);
  s.sequence_parallel = random.chance(60);
  s.sharded = random.chance(70);
  s.fused = random.chance(70);
  s.broadcast = random.chance(50);
  s.device_times = random.chance(70);
}

// Parameters fitted with tests/eval/comm_fit.py to shared/data/comm. Compute between operations spreads by
// .0165 around its median over steps. One duration in 1,000 is beyond four spreads, by .2 more on average.
// The whole steps of a rank spread by .004. Spreads of log2 are 1.443 times as large. The seed scales each
// by half to twice.
void choose_times(CommSite& s, Random random) {
  const auto around = [&](uint64_t value) { return scaled(value, exp2_unit(random.range(-kUnit, kUnit))); };
  s.block_ns = around(18'000'000) / s.blocks;
  s.expert_ns = s.ep > 1 ? around(9'000'000) / s.blocks : 0;
  s.embed_ns = s.block_ns * s.blocks * static_cast<uint64_t>(random.range(2, 15)) / 100;
  s.head_ns = s.block_ns * s.blocks * static_cast<uint64_t>(random.range(5, 45)) / 100;
  s.optimizer_ns = around(12'000'000);
  s.loader_ns = around(3'000'000);
  s.layer_bytes = around(48 << 20) / s.blocks;
  s.token_bytes = around(24 << 20);
  s.bucket_bytes = around(160 << 20) / s.buckets;
  s.nic_ns_per_mib = static_cast<uint64_t>(random.range(24'000, 90'000));   // 44 down to 12 GB/s
  s.nvlink_ns_per_mib = static_cast<uint64_t>(random.range(2'800, 7'000));  // 375 down to 150 GB/s
  s.hop_ns = static_cast<uint64_t>(random.range(2'500, 9'000));
  s.noise = static_cast<int64_t>(around(1'560));
  s.lottery = static_cast<int64_t>(around(400));
  s.sequence = random.chance(50) ? static_cast<int64_t>(around(4'000)) : 0;
  s.expert = static_cast<int64_t>(around(9'000));
  s.tail_per_100k = static_cast<uint32_t>(around(100));
}

void choose_pauses(CommSite& s, const CommJobOptions& o, Random random) {
  if (o.plain) return;
  if (random.chance(50)) s.gc_every = static_cast<uint32_t>(random.range(20, 200)) * s.world / 16 + 4;
  s.gc_ns = static_cast<uint64_t>(random.range(20, 120)) * 1'000'000;
  if (random.chance(35)) s.checkpoint_every = static_cast<uint32_t>(random.range(4, 20));
  s.checkpoint_ns = static_cast<uint64_t>(random.range(200, 3'000)) * 1'000'000;
  if (random.chance(25)) s.evaluation_every = static_cast<uint32_t>(random.range(4, 20));
  if (random.chance(40)) s.warm_up = random.range(kUnit * 3 / 2, kUnit * 5);
}

uint32_t number_of(const CommSite& s, CommGroup kind, uint32_t rank) {
  const uint32_t tp = rank % s.tp, inner = s.cp * s.dp, at = rank / s.tp % inner, pp = s.stage_of(rank);
  switch (kind) {
    case CommGroup::kDp:
      return pp * s.tp + tp;
    case CommGroup::kTp:
      return rank / s.tp;
    case CommGroup::kPp:
      return at * s.tp + tp;
    case CommGroup::kEp:
      return (pp * (inner / s.ep) + at / s.ep) * s.tp + tp;
    case CommGroup::kCp:
      return (pp * s.dp + at / s.cp) * s.tp + tp;
    case CommGroup::kEdp:
      return (pp * s.ep + at % s.ep) * s.tp + tp;
    default:
      return 0;
  }
}

// A ring crosses each link once, so the slowest link decides. The ranks of a group on one host share its
// crossing, each with its own card. Switches above the leaves are oversubscribed.
void fill_links(CommSite& s, CommGroups& groups, int64_t oversubscribed) {
  for (uint32_t n = 0; n + 1 < groups.first.size(); ++n) {
    const uint32_t* first = &groups.members[groups.first[n]];
    const uint32_t size = groups.size(n);
    const uint32_t one = s.host_of(first[0]), other = s.host_of(first[size - 1]);
    uint32_t non_log = 0;
    while (non_log < size && s.host_of(first[non_log]) == one) ++non_log;
    const bool crosses = one / s.hosts_per_switch != other / s.hosts_per_switch;
    const uint64_t nic = scaled(s.nic_ns_per_mib, crosses ? oversubscribed : kUnit) / non_log;
    groups.spans.push_back(one != other);
    groups.ns_per_mib.push_back(one != other ? std::max(nic, s.nvlink_ns_per_mib) : s.nvlink_ns_per_mib);
  }
}

void fill_groups(CommSite& s, int64_t oversubscribed) {
  for (uint8_t kind = 1; kind < kCommGroups; ++kind) {
    CommGroups& groups = s.groups[kind];
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < s.world; ++rank) {
      groups.of_rank.push_back(number_of(s, static_cast<CommGroup>(kind), rank));
      count = std::max(count, groups.of_rank.back() + 1);
    }
    groups.first.assign(count + 1, 0);
    for (const uint32_t n : groups.of_rank) ++groups.first[n + 1];
    for (uint32_t n = 0; n < count; ++n) groups.first[n + 1] += groups.first[n];
    std::vector<uint32_t> at(groups.first.begin(), groups.first.end() - 1);
    groups.members.resize(s.world);
    for (uint32_t rank = 0; rank < s.world; ++rank) groups.members[at[groups.of_rank[rank]]++] = rank;
    fill_links(s, groups, oversubscribed);
  }
}

void name_hosts(CommSite& s, Random random) {
  const uint64_t scheme = random.below(5), base = random.below(2'000);
  for (uint32_t i = 0; i < s.hosts; ++i) {
    const uint64_t n = base + i;
    switch (scheme) {
      case 0:
        s.host_names.push_back(fmt::format("node-{}", i));
        break;
      case 1:
        s.host_names.push_back(fmt::format("r{}i{}n{}", n / 64, n / 8 % 8, n % 8));
        break;
      case 2:
        s.host_names.push_back(fmt::format("ip-10-{}-{}-{}", n / 8192 % 32, n / 128 % 64, n % 128 + 4));
        break;
      case 3:
        s.host_names.push_back(fmt::format("nid{:06}", n));
        break;
      default:
        s.host_names.push_back(fmt::format("hgx-h100-{:03}", n));
    }
  }
}

}  // namespace

Result<CommSite> make_comm_site(const CommJobOptions& o) {
  if (Status status = check_options(o); !status) return tl::unexpected(status.error());
  CommSite s;
  const Random random(mix64(o.seed, 0x6d6d6f63));
  s.seed = random.fork(1).next();
  s.id_seed = random.fork(2).next();
  s.world = o.world;
  s.cp = o.cp;
  s.ep = o.ep;
  s.ranks_per_host = std::min(o.ranks_per_host, o.world);
  s.hosts = (s.world + s.ranks_per_host - 1) / s.ranks_per_host;
  // A small cluster also gets several leaves, so that they can be compared.
  s.hosts_per_switch = std::clamp(s.hosts / 4, 1u, o.hosts_per_switch);
  s.steps = o.steps;
  s.first_step = static_cast<uint32_t>(random.fork(3).below(3)) * 400;
  s.job = fmt::format("train-{:04}", random.fork(4).below(10'000));
  if (s.world % s.cp != 0) return fail(ErrorCode::kInvalid, "cp: it does not divide world");
  choose_parallel(s, o, random.fork(5));
  choose_schedule(s, o, random.fork(6));
  if (Status status = check_shape(s); !status) return tl::unexpected(status.error());
  choose_times(s, random.fork(7));
  choose_pauses(s, o, random.fork(8));
  name_hosts(s, random.fork(9));
  fill_groups(s, random.fork(10).range(kUnit, kUnit * 3 / 2));
  return s;
}

}  // namespace culprit::sim
