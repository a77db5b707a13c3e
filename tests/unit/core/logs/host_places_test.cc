// Ordinary host names of vendors and clouds in every place of formats.md section 2: name by place.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "core/logs/header.h"
#include "core/logs/placement.h"

namespace culprit::logs {
namespace {

struct Family {
  const char* name;
  std::vector<std::string> hosts;
};

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {"DGX", {"dgx-h100-001", "dgx-h100-002", "dgx-h100-003", "dgx-h100-012"}},
      {"HGX", {"hgx-a100-1", "hgx-a100-3", "hgx-a100-4", "hgx-a100-7"}},
      {"DGX, short", {"dgx109", "dgx110", "dgx111", "dgx7"}},
      {"EC2", {"ip-10-0-2-114", "ip-10-0-2-115", "ip-10-0-2-7", "ip-10-0-3-7"}},
      {"EC2, domain", {"ip-10-0-2-114.ec2.internal", "ip-10-0-2-7.ec2.internal", "ip-10-0-3-7.ec2.internal"}},
      {"EC2, instance", {"i-0abc123def4567890", "i-0abc123def4567891", "i-0fff23def45678922"}},
      {"ParallelCluster", {"queue1-dy-p5en-1", "queue1-dy-p5en-2", "queue1-st-p5en-1"}},
      {"GKE", {"gke-cluster-pool-1-abcd", "gke-cluster-pool-1-x7zq", "gke-cluster-pool-1-9kkb"}},
      {"GKE, hash", {"gke-train-a3-pool-5c5a6a6d-abcd", "gke-train-a3-pool-5c5a6a6d-x7zq"}},
      {"GCE", {"a3-highgpu-8g-0", "a3-highgpu-8g-1", "a3-highgpu-8g-2", "a3-highgpu-8g-3"}},
      {"TPU", {"t1v-n-0a1b2c3d-w-0", "t1v-n-0a1b2c3d-w-1", "t1v-n-0a1b2c3d-w-2"}},
      {"AKS", {"aks-nodepool1-12345678-vmss000001", "aks-nodepool1-12345678-vmss00000a"}},
      {"interface", {"node0123-ib0", "node0124-ib0", "node0125-ib0"}},
      {"node", {"node-17", "node-18", "node-19", "node-20"}},
      {"node from 0", {"node-0", "node-1", "node-2", "node-3"}},
      {"node, zeros", {"node001", "node002", "node003"}},
      {"GPU node", {"gpu-node-11", "gpu-node-12", "gpu-node-13"}},
      {"SGI", {"r11i6n2", "r12i6n2", "r13i6n2"}},
      {"Cray", {"nid001234", "nid001235", "nid006549"}},
      {"Cray EX", {"x1000c0s0b0n0", "x1000c1s0b0n0", "x1000c2s0b0n1"}},
      {"two letters", {"an14", "an15", "an16"}},
      {"rack and slot", {"c12-34", "c12-35", "c13-01", "c14-22"}},
      {"rack and slot, zeros", {"c401-001", "c402-001", "c402-002"}},
      {"letters and numbers", {"as01r1b01", "as01r2b01", "as01r2b02"}},
      {"chip in front", {"gb200-rack1-01", "gb200-rack1-02", "gb200-rack2-01"}},
      {"domain", {"node7.cluster.local", "node8.cluster.local", "node9.cluster.local"}},
      {"university", {"gpu07.hpc.example.edu", "gpu08.hpc.example.edu"}},
      {"IPv4", {"10.0.2.114", "10.0.2.7", "10.0.3.7"}},
      {"IPv6", {"fd00:10:0:2::72", "fd00:10:0:2::73", "2001:db8::7"}},
      {"PyTorchJob", {"trainer-worker-0", "trainer-worker-1", "trainer-worker-2"}},
      {"deployment", {"llama-7f9c6d5b4-x2x1z", "llama-7f9c6d5b4-kq7wz"}},
      {"indexed job", {"pretrain-0-x2xkz", "pretrain-1-kq7wz", "pretrain-2-zz4fd"}},
  };
  return kFamilies;
}

// Where a path has the host; `tasks` of each host have a file, numbered over the job ({g}) or the host ({t}).
struct Place {
  const char* name;
  const char* path;
  uint32_t tasks = 1;
  char expected = '-';  // g: the rank, t: the local device
};

constexpr Place kPlaces[] = {
    {"%x_%j_%N", "train_48211_{h}.out"},
    {"%x_%j_%N, name with '-'", "llama-70b_48211_{h}.out"},
    {"%x-%j-%N", "train-48211-{h}.out"},
    {"%x-%j-%N, long", "llama-70b-pt-1048211-{h}.err"},
    {"slurm-%j-%N", "slurm-48211-{h}.out"},
    {"%j_%N_%t", "48211_{h}_{g}.out", 2, 'g'},
    {"%x_%j_%N_%t", "pretrain_gpt_48211_{h}_{g}.out", 2, 'g'},
    {"%x-%j-%N-%t", "train-48211-{h}-{g}.out", 2, 'g'},
    {"%j.%N.%t", "48211.{h}.{g}.out", 2, 'g'},
    {"%N.log", "{h}.log"},
    {"%N.log, rotated", "{h}.log.1"},
    {"folder", "{h}/train.log"},
    {"folder below others", "logs/2026-11-21/{h}/stdout.log"},
    {"folder and rank", "{h}/rank_{g}.log", 2, 'g'},
    {"folder and local rank", "{h}/local_rank_{t}.log", 2, 't'},
    {"torchrun", "{h}/none_x8s/attempt_0/{t}/stdout.log", 2, 't'},
    {"log.<host>.<rank>", "log.{h}.{g}", 2, 'g'},
    {"log.<host>", "log.{h}"},
    {"plog", "{h}/process_log/debug/plog/plog-59420_20250124110314898.log"},
    {"host and rank", "{h}_rank{g}.log", 2, 'g'},
    {"name, host and rank", "train_{h}_rank_{g}.log", 2, 'g'},
    {"stacks", "stacks/{h}/rank_{g}.json", 2, 'g'},
    {"pods of Kubernetes", "pods/default_{h}_1f6e3c1a-7d0e-4c3b-9a54-0f3a5d1c2b3e/pytorch/0.log"},
};

std::string number(std::optional<uint32_t> n) { return n ? std::to_string(*n) : "-"; }

BOOST_AUTO_TEST_CASE(a_path_tells_host_and_rank_whatever_the_hosts_are_called) {
  auto placement = Placement::create({});
  BOOST_REQUIRE(placement.has_value());
  size_t combinations = 0;
  for (const Family& family : families()) {
    for (const Place& place : kPlaces) {
      std::vector<std::string> paths, expected;
      for (uint32_t h = 0; h < family.hosts.size(); ++h)
        for (uint32_t t = 0; t < place.tasks; ++t) {
          const uint32_t g = h * place.tasks + t;
          paths.push_back(fmt::format(fmt::runtime(place.path), fmt::arg("h", family.hosts[h]),
                                      fmt::arg("t", t), fmt::arg("g", g)));
          expected.push_back(fmt::format("{} {} {}", family.hosts[h], place.expected == 'g' ? number(g) : "-",
                                         place.expected == 't' ? number(t) : "-"));
        }
      const std::vector<PathOwner> owners = placement->owners(paths);
      for (size_t i = 0; i < paths.size(); ++i) {
        const PathOwner& o = owners[i];
        const std::string host = o.guessed ? "guessed " + *o.host : o.host.value_or("-");
        const std::string got = fmt::format("{} {} {}", host, number(o.rank), number(o.local));
        BOOST_TEST(got == expected[i],
                   fmt::format("{}, {}: {} gives {}", family.name, place.name, paths[i], got));
      }
      ++combinations;
    }
  }
  BOOST_TEST(combinations >= 300u);
}

struct Prefix {
  const char* name;
  const char* text;
};

// What a line may have before its message; the message begins behind it.
constexpr Prefix kPrefixes[] = {
    {"launcher", "{h}: "},
    {"host and device", "[{h}:0] "},
    {"host and device, colon", "[{h}:0]: "},
    {"compose", "{h} | "},
    {"compose, aligned", "{h}   | "},
    {"pod", "[pod/{h}] "},
    {"pod and container", "[pod/{h}/pytorch] "},
    {"syslog", "Nov 21 02:12:09 {h} kernel: "},
    {"syslog, process", "Nov 21 02:12:09 {h} sshd[17]: "},
    {"journald", "2026-11-21T02:12:09.123456+00:00 {h} kernel: "},
    {"journald, process", "2026-11-21T02:12:09.123456+00:00 {h} slurmd[17]: "},
    {"srun and host", "3: {h}: "},
};

BOOST_AUTO_TEST_CASE(a_lines_prefix_tells_the_host_whatever_it_is_called) {
  size_t combinations = 0;
  for (const Family& family : families())
    for (const Prefix& prefix : kPrefixes)
      for (const std::string& host : family.hosts) {
        const std::string line =
            fmt::format(fmt::runtime(prefix.text), fmt::arg("h", host)) + "loaded a shard";
        HeaderParser parser({{}, kNoTime});
        const Header header = parser.parse(line);
        BOOST_TEST(header.host == host,
                   fmt::format("{}, {}: {} gives '{}'", family.name, prefix.name, line, header.host));
        BOOST_TEST(line.substr(header.message).find("loaded a shard") == 0u, line);
        ++combinations;
      }
  BOOST_TEST(combinations >= 300u);
}

BOOST_AUTO_TEST_CASE(ranks_of_launchers_stand_before_a_line) {
  const std::pair<const char*, uint32_t> kCases[] = {{"[rank131]: loaded", 131},
                                                     {"[Rank 131] loaded", 131},
                                                     {"131: loaded", 131},
                                                     {"[1,131]<stdout>: loaded", 131},
                                                     {"[1,131]<stderr>: loaded", 131}};
  for (const auto& [line, rank] : kCases) {
    HeaderParser parser({{}, kNoTime});
    BOOST_TEST(parser.parse(line).rank == rank, line);
  }
}

BOOST_AUTO_TEST_CASE(words_of_a_job_are_no_hosts_in_any_place) {
  const std::vector<std::vector<std::string>> kWords = {{"train", "eval"},
                                                        {"stdout", "stderr"},
                                                        {"error", "log"},
                                                        {"worker", "master"},
                                                        {"attempt", "step"},
                                                        {"attempt_0", "attempt_1"},
                                                        {"step-100", "step-200"},
                                                        {"v1", "v2"},
                                                        {"bert-large", "bert-base"},
                                                        {"llama-70b", "llama-8b"},
                                                        {"fp8-run", "fp16-run"},
                                                        {"gpt3-175b", "gpt3-6b"},
                                                        {"run1", "run2"},
                                                        {"exp12", "exp13"},
                                                        {"epoch3", "epoch4"},
                                                        {"version_2", "version_3"},
                                                        {"mixtral-8x7b", "mixtral-8x22b"},
                                                        {"lr3e-4", "lr1e-4"},
                                                        {"tp4-pp8", "tp8-pp4"},
                                                        {"seq2048", "seq4096"},
                                                        {"checkpoint-500", "checkpoint-1000"},
                                                        {"2026-11-20", "2026-11-21"},
                                                        {"part-00001", "part-00002"},
                                                        {"seed42", "seed43"},
                                                        {"cuda-12.1", "cuda-12.2"},
                                                        {"stage2", "stage3"},
                                                        {"fold0", "fold1"},
                                                        {"resnet50", "resnet101"},
                                                        {"qwen2-72b", "qwen2-7b"},
                                                        {"a100-80gb", "a100-40gb"}};
  auto placement = Placement::create({});
  BOOST_REQUIRE(placement.has_value());
  for (const char* place : {"{h}.log", "{h}/train.log", "logs/{h}/stdout.log", "train_48211_{h}.out",
                            "train_{h}.log", "{h}_rank0.log", "slurm-48211-{h}.out", "log.{h}"})
    for (const std::vector<std::string>& words : kWords) {
      std::vector<std::string> paths;
      for (const std::string& word : words)
        paths.push_back(fmt::format(fmt::runtime(place), fmt::arg("h", word)));
      for (const PathOwner& owner : placement->owners(paths))
        BOOST_TEST((!owner.host || owner.guessed), paths[0] << ": " << owner.host.value_or("-"));
    }
  for (const std::vector<std::string>& words : kWords)
    for (const char* prefix : {"{h}: ", "[{h}:0] ", "{h} | "}) {
      HeaderParser parser({{}, kNoTime});
      const std::string line = fmt::format(fmt::runtime(prefix), fmt::arg("h", words[0])) + "loaded a shard";
      BOOST_TEST(parser.parse(line).host.empty(), line);
    }
}

}  // namespace
}  // namespace culprit::logs
