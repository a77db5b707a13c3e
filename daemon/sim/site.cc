#include "sim/site.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace culprit::sim {

namespace {

constexpr std::array<std::string_view, 8> kUsers = {"mlops", "wangl",  "svc-train", "ubuntu",
                                                    "jdoe",  "nlp-ci", "hpc1042",   "team7"};
constexpr std::array<std::string_view, 8> kModels = {"llama-70b", "gpt3-175b", "moe-8x22b", "glm-32b",
                                                     "bert-xl",   "qwen-14b",  "vit-22b",   "mixed-13b"};
constexpr std::array<std::string_view, 6> kRoots = {"/lustre/fs01/projects/lm", "/mnt/nfs/train",
                                                    "/gpfs/scratch/llm",        "/data/shared/runs",
                                                    "/mnt/weka/experiments",    "/fsx/work"};

// A host name in one of the forms that sites use; `n` is the host's number in the cluster.
std::string host_name(const Site& site, uint64_t n, uint32_t index) {
  if (site.layout == "workers") return fmt::format("worker_{}", index);
  if (site.layout == "ascend-plog" || site.layout == "compose") return fmt::format("worker-{}", index);
  if (site.layout == "k8s") return fmt::format("{}-worker-{}", site.model, index);
  switch (site.name_scheme % 8) {
    case 0:
      return fmt::format("node-{}", n);
    case 1:
      return fmt::format("r{}i{}n{}", n / 64 % 20, n / 8 % 8, n % 8);
    case 2:
      return fmt::format("gpu-{}{:02}", static_cast<char>('a' + n / 48 % 26), n % 48);
    case 3:
      return fmt::format("ip-10-{}-{}-{}", n / 4096 % 16, n / 128 % 32, n % 128 + 4);
    case 4:
      return fmt::format("x{}c{}s{}b0n{}", 1000 + n / 64, n / 8 % 8, n / 2 % 4, n % 2);
    case 5:
      return fmt::format("nid{:06}", n);
    case 6:
      return fmt::format("dgx{:03}", n);
    default:
      return fmt::format("hgx-h100-{:03}", n);
  }
}

void choose_parallel(Site& site, Random& random) {
  const auto fits = [&](uint32_t n) { return n > 0 && site.ranks % n == 0; };
  site.tp = fits(site.ranks_per_host) && random.chance(70) ? std::min(site.ranks_per_host, 8u) : 1;
  if (!fits(site.tp)) site.tp = 1;
  site.pp = 1;
  for (const uint32_t pp : {4u, 2u}) {
    if (site.ranks % (site.tp * pp) == 0 && random.chance(50)) {
      site.pp = pp;
      break;
    }
  }
  site.dp = site.ranks / (site.tp * site.pp);
}

void choose_launcher(Site& site, Random& random) {
  if (site.layout == "slurm" || site.layout == "srun-l")
    site.launcher = Launcher::kSlurm;
  else if (site.layout == "mpirun")
    site.launcher = Launcher::kMpirun;
  else if (site.layout == "k8s")
    site.launcher = Launcher::kKubernetes;
  else if (site.layout == "torchrun" || site.layout == "default-files")
    site.launcher = Launcher::kTorchrun;
  else if (site.accel != Accel::kNvidia)
    site.launcher = random.chance(50) ? Launcher::kSlurm : Launcher::kKubernetes;
  else
    site.launcher = random.chance(50) ? Launcher::kTorchrun : Launcher::kSlurm;
}

}  // namespace

Site make_site(const LogJobOptions& options) {
  Site site;
  Random random = Random(options.seed).fork(0x51);
  site.hosts = options.hosts;
  site.ranks_per_host = options.ranks_per_host;
  site.ranks = options.hosts * options.ranks_per_host;
  site.iterations = options.iterations;
  site.layout = options.layout;
  site.framework = options.framework;
  if (site.framework.empty()) {
    const auto& all = log_frameworks();
    site.framework = site.layout == "ascend-plog" ? "mindspore" : all[random.below(all.size())].name;
  }
  site.accel = site.framework == "mindspore" ? Accel::kAscend
               : site.framework == "maxtext" ? Accel::kTpu
                                             : Accel::kNvidia;
  choose_launcher(site, random);
  choose_parallel(site, random);
  site.name_scheme = static_cast<uint32_t>(random.below(8));
  site.python_style = static_cast<uint32_t>(random.below(5));
  site.new_torch = random.chance(60);
  site.kernel_logs = random.chance(65) && site.layout != "k8s" && site.layout != "compose";
  if (site.layout == "syslog" || site.layout == "journald" || site.layout == "host-dirs")
    site.kernel_logs = true;
  const bool needs = site.layout == "ranks" || site.layout == "srun-l" || site.layout == "rank-stream" ||
                     site.layout == "mpirun";
  site.job_file = needs || random.chance(30);
  site.padded_labels = random.chance(50);
  site.user = kUsers[random.below(kUsers.size())];
  site.model = kModels[random.below(kModels.size())];
  site.root = kRoots[random.below(kRoots.size())];
  site.revision = fmt::format("{:07x}", random.next() >> 36);
  site.layers = static_cast<uint32_t>(random.range(3, 12) * 8);
  site.batch = 64u << random.below(5);
  site.iteration_us = static_cast<uint64_t>(random.range(900, 9000)) * 1000;
  site.log_every = random.chance(75) ? 1 : 5;
  site.checkpoint_every = std::max<uint32_t>(4, site.iterations / static_cast<uint32_t>(random.range(3, 7)));
  site.evaluate_every = std::max<uint32_t>(5, site.iterations / static_cast<uint32_t>(random.range(2, 5)));
  site.monitor_s = static_cast<uint32_t>(random.range(15, 60));
  site.chatter_per_host = static_cast<uint32_t>(random.range(1, 6));
  site.random = random.fork(1);
  return site;
}

Run make_run(const Site& site, uint64_t seed, uint32_t index) {
  Run run;
  Random random = Random(seed).fork(0x1000 + index);
  // A morning of 2024 to 2026.
  run.start_ns = (1'704'067'200 + random.range(0, 80'000'000)) * kNsPerSecond + random.range(0, 999'999'999);
  run.job_number = 100'000 + random.below(4'000'000);
  run.port = static_cast<uint32_t>(random.range(6000, 29999));
  run.first_iteration = Random(seed).fork(7).chance(30) ? 1000 * Random(seed).fork(8).range(1, 40) : 0;
  const uint64_t first = random.below(500);
  const uint64_t stride = 1 + random.below(2);
  for (uint32_t i = 0; i < site.hosts; ++i) {
    RunHost host;
    const uint64_t n = first + i * stride;
    host.name = host_name(site, n, i);
    host.ip = fmt::format("10.{}.{}.{}", 16 + site.name_scheme, n / 200 % 250, n % 200 + 11);
    host.skew_ns = random.range(-40'000'000, 40'000'000);
    host.delay_ns =
        random.range(0, 1'500'000'000) + (random.chance(5) ? random.range(3, 15) * kNsPerSecond : 0);
    host.chatty = static_cast<uint32_t>(random.range(70, 130));
    host.pid = static_cast<uint32_t>(random.range(2000, 900'000));
    host.boot_ns = run.start_ns - random.range(3600, 60 * 86400) * kNsPerSecond;
    run.hosts.push_back(std::move(host));
  }
  run.fault_host = static_cast<uint32_t>(random.below(site.hosts));
  run.fault_local = static_cast<uint32_t>(random.below(site.ranks_per_host));
  run.random = random.fork(2);
  return run;
}

uint32_t pid_of(const Run& run, uint32_t host, uint32_t local) { return run.hosts[host].pid + local * 2; }

std::string bus_of(uint32_t local) {
  constexpr std::array<const char*, 8> kBuses = {"0000:1b:00", "0000:43:00", "0000:52:00", "0000:61:00",
                                                 "0000:9d:00", "0000:c3:00", "0000:d1:00", "0000:df:00"};
  return kBuses[local % kBuses.size()];
}

}  // namespace culprit::sim
