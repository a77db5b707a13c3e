#include "core/logs/placement.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "core/logs/file_name.h"
#include "core/logs/host_name.h"

namespace culprit::logs {
namespace {

// "host rank local", "-" for unknown ones.
std::string reported(const Placement& placement, std::string_view path) {
  const PathOwner owner = placement.owner(path);
  return owner.host.value_or("-") + " " + (owner.rank ? std::to_string(*owner.rank) : "-") + " " +
         (owner.local ? std::to_string(*owner.local) : "-");
}

Placement made(std::string host = "", std::string rank = "") {
  auto placement = Placement::create({std::move(host), std::move(rank)});
  BOOST_REQUIRE(placement.has_value());
  return std::move(*placement);
}

BOOST_AUTO_TEST_CASE(paths_of_launchers_tell_who_wrote) {
  constexpr std::pair<std::string_view, std::string_view> kCases[] = {
      {"node-3/run_x8s/attempt_0/3/stdout.log", "node-3 - 3"},
      {"none_abc123/attempt_1/5/stderr.log", "- - 5"},
      {"12345_node17_3.out", "node17 3 -"},
      {"12345_node17.cluster.local_3.out", "node17.cluster.local 3 -"},
      {"12345.node17.3.out", "node17 3 -"},
      {"slurm-12345-node17.out", "node17 - -"},
      {"slurm-12345-node-17.out", "node-17 - -"},
      {"worker-0/process_log/debug/plog/plog-59420_20250124110314898.log", "worker-0 - -"},
      {"worker-0/process_log/debug/device-11/device-1382_20250806223914702.log", "worker-0 - 11"},
      {"node-3.log", "node-3 - -"},
      {"node-3.log.1", "node-3 - -"},
      {"node17/rank3.log", "node17 3 -"},
      {"host-a.out", "host-a - -"},
      {"gpu-node-12/train.log", "gpu-node-12 - -"},
      {"rank_131.log", "- 131 -"},
      {"worker_3.log", "worker_3 - -"},
      {"node-0/local_rank_3.log", "node-0 - 3"},
      {"x4616c3s4b0n0.hostmgmt2616.example.gov.log", "x4616c3s4b0n0.hostmgmt2616.example.gov - -"},
      {"10.0.3.7/train.log", "10.0.3.7 - -"},
      {"hosts/alpha/train.log", "alpha - -"},
      {"stacks/alpha/rank_3.json", "alpha 3 -"},
      {"llama-7f9c6d5b4-x2x1z/train.log", "llama-7f9c6d5b4-x2x1z - -"},
      {"nccl.node17.12345", "node17 - -"}};
  const Placement placement = made();
  for (const auto& [path, expected] : kCases) BOOST_TEST(reported(placement, path) == expected, path);
}

BOOST_AUTO_TEST_CASE(names_of_a_jobs_artefacts_are_no_hosts) {
  const Placement placement = made();
  for (std::string_view path : {"train.log",
                                "logs/train.log",
                                "stdout.log",
                                "out.txt",
                                "2022.09.22-22-04-31.log",
                                "result_0.txt",
                                "slurm-1809577.out",
                                "attempt_0/x.log",
                                "run3/out.log",
                                "checkpoint/log.txt",
                                "checkpoint-500/log.txt",
                                "meg_gpt2_base_n16_dp1_tp4_pp16-1809577.out",
                                "messages-2",
                                "part-00001.log",
                                "epoch3/x.log",
                                "version_2/x.log",
                                "llama-70b/out.log",
                                "v1.2.3/x.log",
                                "fl-32422cd2/m.log",
                                "job-17.log",
                                "",
                                "/",
                                "a//b"})
    BOOST_TEST(reported(placement, path) == "- - -", path);
}

BOOST_AUTO_TEST_CASE(the_one_folder_of_a_letter_and_a_number_is_no_host) {
  const auto hosts = [](const std::vector<std::string>& paths) {
    std::string out;
    for (const PathOwner& owner : made().owners(paths)) out += owner.host.value_or("-") + " ";
    return out;
  };
  BOOST_TEST(hosts({"j1/rank0.log", "j1/rank1.log"}) == "- - ");
  BOOST_TEST(hosts({"j1/rank0.log", "j2/rank1.log"}) == "j1 j2 ");
  BOOST_TEST(hosts({"node1/rank0.log", "node1/rank1.log"}) == "node1 node1 ");
}

BOOST_AUTO_TEST_CASE(a_name_that_the_job_lists_is_a_host_in_any_form) {
  const auto hosts = [](const std::vector<std::string>& known) {
    std::string out;
    for (const PathOwner& owner :
         made().owners({"gpu-f12/dmesg.log", "logs/gpu-f13.log", "gpu-f1/x.log"}, known))
      out += owner.host.value_or("-") + (owner.guessed ? "? " : " ");
    return out;
  };
  BOOST_TEST(hosts({"gpu-f12", "gpu-f13", "gpu-f14"}).starts_with("gpu-f12 gpu-f13 "));
  BOOST_TEST(!hosts({}).starts_with("gpu-f12 "));
}

BOOST_AUTO_TEST_CASE(the_form_of_a_name_tells_a_host) {
  for (std::string_view name :
       {"node-3", "r7i4n4", "worker_3", "gpu12", "x4616c3s4b0n0", "ip-10-0-3-7", "nid006549", "hgx-h100-12",
        "10.0.3.7", "node17.cluster.local", "host-a", "llama-worker-0"})
    BOOST_TEST((host_form(name) != HostForm::kNone), name);
  for (std::string_view name : {"train",
                                "step3",
                                "mlx5_0",
                                "eth0",
                                "enp1s0f0",
                                "nvme0n1",
                                "E30008",
                                "EI0002",
                                "adam_beta1",
                                "fp16",
                                "3node",
                                "a07b11d",
                                "torch.distributed.DistBackendError",
                                "python3.8",
                                "model-00001-of-00030",
                                "1.2.3.4.5",
                                "256.1.1.1",
                                "node",
                                "",
                                "-",
                                ".",
                                "node..local",
                                "a b-3",
                                "slurm-123456"})
    BOOST_TEST((host_form(name) == HostForm::kNone), name);
}

BOOST_AUTO_TEST_CASE(the_users_patterns_win_in_both_spellings) {
  for (std::string pattern : {R"(worker_(?P<host>\d+)\.log)", R"(worker_(?<host>\d+)\.log)"}) {
    const Placement placement = made(pattern);
    BOOST_TEST(placement.has_host_pattern());
    BOOST_TEST(!placement.has_rank_pattern());
    BOOST_TEST(reported(placement, "node-3/worker_12.log") == "12 - -");
    BOOST_TEST(reported(placement, "node-3/other.log") == "- - -");
  }
  const Placement placement = made("", "_r(?<rank>[0-9]+)");
  BOOST_TEST(reported(placement, "node-3/x_r77.log") == "node-3 77 -");
  BOOST_TEST(reported(placement, "node-3/rank_5.log") == "node-3 - -");
}

BOOST_AUTO_TEST_CASE(text_that_only_looks_like_a_group_is_kept) {
  const Placement placement = made(R"([(?<]x\(?<(?P<host>\w+))");
  BOOST_TEST(reported(placement, "<x<abc") == "abc - -");
}

BOOST_AUTO_TEST_CASE(a_file_name_loses_its_kinds_and_generations_however_many_they_are) {
  BOOST_TEST(file_stem("rank_3.log") == "rank_3");
  BOOST_TEST(file_stem("rank_3.log.1") == "rank_3");
  BOOST_TEST(file_stem("rank.3.log") == "rank.3");
  BOOST_TEST(file_stem("10.0.2.14.log") == "10.0.2.14");
  BOOST_TEST(file_stem("node.7") == "node.7");
  std::string many = "a.log";
  for (int i = 0; i < 100; ++i) many += ".1";
  BOOST_TEST(file_stem(many) == "a");
}

BOOST_AUTO_TEST_CASE(a_bad_pattern_is_refused_with_its_text_and_the_reason) {
  const auto broken = Placement::create({"(?P<host>x", ""});
  BOOST_REQUIRE(!broken);
  BOOST_TEST(broken.error().text == "host pattern '(?P<host>x': missing ): (?P<host>x");
  const auto nameless = Placement::create({"", "r([0-9]+)"});
  BOOST_REQUIRE(!nameless);
  BOOST_TEST(nameless.error().text ==
             "rank pattern 'r([0-9]+)': no group is named 'rank', as in (?P<rank>...)");
  const auto huge = Placement::create({std::string(5000, 'x'), ""});
  BOOST_REQUIRE(!huge);
  BOOST_TEST((huge.error().code == ErrorCode::kLimit));
}

}  // namespace
}  // namespace culprit::logs
