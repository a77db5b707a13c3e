// Properties of simulated hangs, read from their files without the product's readers. Each test writes into a
// folder of its own below the temporary one.
#include "sim/hang_job.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <unistd.h>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace culprit;
using namespace culprit::sim;
namespace fs = std::filesystem;
using HangJson = nlohmann::json;

std::string text_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct MadeHang {
  fs::path path;
  std::map<std::string, std::string> files;  // of the job, by path
  HangJson truth;

  explicit MadeHang(const HangJobOptions& options) {
    static int count = 0;
    path = fs::temp_directory_path() /
           ("culprit-hang-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::remove_all(path);
    const Status status = simulate_hang(options, path.string());
    BOOST_REQUIRE_MESSAGE(status, (status ? "" : status.error().text));
    for (const auto& entry : fs::recursive_directory_iterator(path / "job"))
      if (entry.is_regular_file())
        files[fs::relative(entry.path(), path / "job").string()] = text_of_file(entry.path());
    truth = HangJson::parse(text_of_file(path / "truth.json"));
  }
  ~MadeHang() { fs::remove_all(path); }
  MadeHang(const MadeHang&) = delete;
  MadeHang& operator=(const MadeHang&) = delete;

  uint64_t count(std::string_view prefix) const {
    uint64_t n = 0;
    for (const auto& [name, text] : files) n += name.starts_with(prefix) ? 1 : 0;
    return n;
  }
  HangJson dump(uint32_t rank) const {
    const auto at = files.find("flight/nccl_trace_rank_" + std::to_string(rank));
    return at == files.end() ? HangJson{} : HangJson::parse(at->second);
  }
  // The entry of the truth's operation in the dump of a rank; null: the rank did not call it.
  HangJson entry(uint32_t rank) const {
    const HangJson whole = dump(rank);
    const bool p2p = truth["op"] == "send" || truth["op"] == "recv";
    for (const HangJson& one : whole.value("entries", HangJson::array()))
      if (one["process_group"][0] == truth["group"]["name"] &&
          one[p2p ? "p2p_seq_id" : "collective_seq_id"] == truth["seq"])
        return one;
    return {};
  }
  bool is_at_fault(uint32_t rank) const {
    const std::set<uint32_t> ranks = truth["ranks"];
    return ranks.count(rank) != 0;
  }
};

HangJobOptions hang_of(std::string kind, uint64_t seed) {
  HangJobOptions o;
  o.kind = std::move(kind);
  o.seed = seed;
  return o;
}

// Seeds whose jobs write forms that are read here.
std::vector<uint64_t> seeds_with(const char* key, const char* value) {
  std::vector<uint64_t> out;
  for (uint64_t seed = 1; seed < 60 && out.size() < 4; ++seed) {
    HangJobOptions o = hang_of("loader", seed);
    o.capture = 0;
    if (MadeHang(o).truth[key] == value) out.push_back(seed);
  }
  return out;
}
const std::vector<uint64_t>& json_dump_seeds() {
  static const std::vector<uint64_t> kSeeds = seeds_with("dump_form", "json");
  return kSeeds;
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_hang_and_another_seed_another) {
  const MadeHang one(hang_of("size", 5)), same(hang_of("size", 5)), other(hang_of("size", 6));
  BOOST_TEST((one.files == same.files));
  BOOST_TEST(one.truth == same.truth);
  BOOST_TEST((one.files != other.files));
}

BOOST_AUTO_TEST_CASE(only_the_sources_asked_for_are_written) {
  const std::map<std::string, std::string> prefixes = {
      {"watchdog", "logs/"}, {"flight", "flight/"}, {"ras", "ras_"}, {"stacks", "stacks/"}};
  for (const auto& [source, prefix] : prefixes) {
    HangJobOptions o = hang_of("lock", 3);
    o.sources = {source};
    const MadeHang made(o);
    BOOST_TEST(made.count("job.toml") == 1u);
    BOOST_TEST(made.count(prefix) > 0u, source);
    BOOST_TEST(made.count(prefix) + 1 == made.files.size(), source);
  }
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_not_captured_has_no_dump_and_no_stack) {
  HangJobOptions o = hang_of("loader", json_dump_seeds().front());
  o.capture = 0.5;
  const MadeHang half(o);
  const uint64_t captured = half.truth["captured"];
  BOOST_TEST(captured > 16u);
  BOOST_TEST(captured < 48u);
  if (half.count("flight/") > 0) BOOST_TEST(half.count("flight/") == captured);
  BOOST_TEST(half.count("stacks/") == captured);
}

BOOST_AUTO_TEST_CASE(a_rank_stuck_on_its_host_has_not_called_what_its_peers_wait_in) {
  for (const char* kind : {"loader", "lock", "gc", "tokenize", "save"})
    for (uint64_t seed : json_dump_seeds()) {
      const MadeHang made(hang_of(kind, seed));
      if (made.count("flight/") == 0 || made.truth["op"] == "send" || made.truth["op"] == "recv") continue;
      for (uint32_t rank : made.truth["group"]["ranks"]) {
        const HangJson entry = made.entry(rank);
        BOOST_TEST(entry.is_null() == made.is_at_fault(rank), kind << " " << seed << " rank " << rank);
        if (!entry.is_null()) BOOST_TEST(entry["state"] != "completed");
      }
    }
}

BOOST_AUTO_TEST_CASE(a_stuck_device_alone_does_not_complete_what_its_peers_complete) {
  for (uint64_t seed : json_dump_seeds()) {
    const MadeHang made(hang_of("device", seed));
    if (made.count("flight/") == 0) continue;
    for (uint32_t rank : made.truth["group"]["ranks"]) {
      const HangJson entry = made.entry(rank);
      if (!entry.is_null()) BOOST_TEST((entry["state"] == "completed") != made.is_at_fault(rank));
    }
    for (uint32_t rank : made.truth["ranks"]) BOOST_TEST(!made.entry(rank).is_null());
  }
}

BOOST_AUTO_TEST_CASE(a_kernel_or_a_network_that_is_stuck_leaves_the_operation_open_on_all_members) {
  for (const char* kind : {"kernel", "network"})
    for (uint64_t seed : json_dump_seeds()) {
      const MadeHang made(hang_of(kind, seed));
      if (made.count("flight/") == 0 || made.truth["op"] == "send" || made.truth["op"] == "recv") continue;
      for (uint32_t rank : made.truth["group"]["ranks"]) {
        BOOST_REQUIRE(!made.entry(rank).is_null());
        BOOST_TEST(made.entry(rank)["state"] != "completed", kind << " " << seed << " rank " << rank);
      }
    }
}

BOOST_AUTO_TEST_CASE(a_mismatch_shows_in_the_operation_or_the_size_of_the_rank_at_fault_alone) {
  for (uint64_t seed : json_dump_seeds())
    for (const auto& [kind, key] : {std::pair{"collective", "profiling_name"}, {"size", "input_sizes"}}) {
      const MadeHang made(hang_of(kind, seed));
      if (made.count("flight/") == 0) continue;
      std::set<std::string> at_fault, others;
      for (uint32_t rank : made.truth["group"]["ranks"])
        (made.is_at_fault(rank) ? at_fault : others).insert(made.entry(rank)[key].dump());
      BOOST_TEST(at_fault.size() == 1u);
      BOOST_TEST(others.size() == 1u);
      BOOST_TEST((at_fault != others));
    }
}

BOOST_AUTO_TEST_CASE(only_ranks_that_wait_print_a_time_out) {
  uint32_t looked_at = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const MadeHang made(hang_of("loader", seed));
    std::set<std::string> printed;
    for (const auto& [name, text] : made.files)
      if (name.starts_with("logs/") && text.find("Watchdog caught") != std::string::npos)
        printed.insert(name);
    const uint32_t rank = made.truth["ranks"][0];
    const std::string own =
        "logs/" + made.truth["hosts"][0].get<std::string>() + "/rank_" + std::to_string(rank) + ".log";
    if (made.files.count(own) == 0) continue;  // one log per host
    ++looked_at;
    BOOST_TEST(printed.count(own) == 0u);
    BOOST_TEST(printed.size() == made.truth["waiting"].get<uint64_t>());
  }
  BOOST_TEST(looked_at > 2u);
}

BOOST_AUTO_TEST_CASE(a_dead_process_answers_in_no_source) {
  for (uint64_t seed : seeds_with("ras_form", "json")) {
    const MadeHang made(hang_of("killed", seed));
    const std::string rank = std::to_string(made.truth["ranks"][0].get<uint32_t>());
    BOOST_TEST(made.files.count("flight/nccl_trace_rank_" + rank) == 0u);
    for (const auto& [name, text] : made.files)
      if (name.starts_with("stacks/")) BOOST_TEST(name.find("rank_" + rank + ".") == std::string::npos);
    for (const char* name : {"ras_1.json", "ras_2.json"}) {
      const HangJson answer = HangJson::parse(made.files.at(name));
      BOOST_TEST(answer["communicators_count"] == answer["communicators"].size());
      uint64_t missing = 0;
      for (const HangJson& one : answer["communicators"]) {
        BOOST_TEST(one["ranks"].size() + one["missing_ranks"].size() == one["size"].get<uint64_t>());
        missing += one["missing_ranks_count"].get<uint64_t>();
      }
      BOOST_TEST(missing > 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(counts_of_ras_stand_still_and_are_equal_where_all_ranks_called_the_same) {
  for (uint64_t seed : seeds_with("ras_form", "json")) {
    const MadeHang made(hang_of("network", seed));
    const HangJson first = HangJson::parse(made.files.at("ras_1.json")),
                   second = HangJson::parse(made.files.at("ras_2.json"));
    BOOST_TEST(first["communicators"] == second["communicators"]);
  }
}

BOOST_AUTO_TEST_CASE(the_stack_of_a_rank_stuck_on_its_host_is_that_of_no_other) {
  const std::map<std::string, std::string> functions = {
      {"loader", "_try_get_data"}, {"lock", "acquire"}, {"gc", "collect_cycles"}, {"tokenize", "tokenize"}};
  for (uint64_t seed : seeds_with("stack_form", "py-spy json"))
    for (const auto& [kind, function] : functions) {
      const MadeHang made(hang_of(kind, seed));
      const std::string own = "rank_" + std::to_string(made.truth["ranks"][0].get<uint32_t>()) + ".json";
      for (const auto& [name, text] : made.files) {
        if (!name.starts_with("stacks/")) continue;
        const bool has = text.find("\"" + function + "\"") != std::string::npos;
        BOOST_TEST(has == name.ends_with("/" + own), kind << " " << name);
      }
    }
}

BOOST_AUTO_TEST_CASE(every_kind_has_a_class_and_ranks_unless_no_single_rank_is_at_fault) {
  for (const NamedChoice& kind : hang_kinds()) {
    HangJobOptions o = hang_of(std::string(kind.name), 8);
    o.sources = {"ras"};
    const MadeHang made(o);
    BOOST_TEST(made.truth["kind"] == kind.name);
    BOOST_TEST(!made.truth["class"].get<std::string>().empty());
    const bool nobody = kind.name == "network" || kind.name == "storage";
    BOOST_TEST(made.truth["ranks"].empty() == nobody, kind.name);
    BOOST_TEST(made.truth["hosts"].empty() == (kind.name == "storage"), kind.name);
    if (kind.name == "network") BOOST_TEST(made.truth["hosts"].size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(a_hang_that_cannot_be_is_refused_with_its_reason) {
  const auto refused = [](auto change, std::string_view reason) {
    HangJobOptions o;
    change(o);
    const Status status = simulate_hang(o, "/nonexistent/never");
    BOOST_REQUIRE(!status);
    BOOST_TEST(status.error().text.find(reason) != std::string::npos, status.error().text);
  };
  refused([](HangJobOptions& o) { o.kind = "gremlin"; }, "gremlin");
  refused([](HangJobOptions& o) { o.sources = {"crystal"}; }, "crystal");
  refused([](HangJobOptions& o) { o.capture = 2; }, "capture");
  refused([](HangJobOptions& o) { o.kind = "network", o.ranks = 8; }, "one host");
  refused([](HangJobOptions& o) { o.ranks = 70'000; }, "70000");
  refused([](HangJobOptions& o) { o.ranks = 60; }, "ranks-per-host");
  refused([](HangJobOptions& o) { o.tp = 7; }, "tp x pp x dp");
}

}  // namespace
