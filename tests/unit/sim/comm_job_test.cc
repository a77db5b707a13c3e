// Properties of simulated communication traces. Each test writes into a folder of its own below the temporary
// one.
#include "sim/comm_job.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include <unistd.h>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "model/comm.h"

namespace {

using namespace culprit;
using namespace culprit::sim;
namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Made {
  fs::path path;
  std::map<std::string, std::string> files;  // of the job, by name
  std::vector<CommRecord> records;
  nlohmann::json truth;

  explicit Made(const CommJobOptions& options) {
    static int count = 0;
    path = fs::temp_directory_path() /
           ("culprit-comm-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::remove_all(path);
    const Status status = simulate_comm(options, path.string());
    BOOST_REQUIRE_MESSAGE(status, (status ? "" : status.error().text));
    for (const auto& entry : fs::directory_iterator(path / "job"))
      files[entry.path().filename().string()] = slurp(entry.path());
    for (const auto& [name, bytes] : files) {
      if (!name.ends_with(".comm")) continue;
      BOOST_REQUIRE(parse_comm_header(bytes));
      for (size_t at = kCommHeaderBytes; at + kCommRecordBytes <= bytes.size(); at += kCommRecordBytes)
        records.push_back(get_at<CommRecord>(bytes, at));
    }
    truth = nlohmann::json::parse(slurp(path / "truth.json"));
  }
  ~Made() { fs::remove_all(path); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
};

struct Shape {
  uint32_t world, tp, pp, cp, ep, chunks;
};
const Shape kShapes[] = {{8, 1, 1, 1, 1, 1},  {16, 2, 2, 1, 1, 1}, {32, 4, 4, 1, 1, 2},
                         {64, 2, 2, 2, 4, 1}, {48, 2, 3, 1, 2, 2}, {128, 4, 4, 2, 4, 2}};

CommJobOptions plain(const Shape& shape, uint64_t seed = 1) {
  CommJobOptions o;
  std::tie(o.world, o.tp, o.pp, o.cp, o.ep, o.virtual_stages) =
      std::tie(shape.world, shape.tp, shape.pp, shape.cp, shape.ep, shape.chunks);
  o.steps = 3;
  o.seed = seed;
  o.plain = true;
  return o;
}

BOOST_AUTO_TEST_CASE(no_one_leaves_a_synchronising_collective_before_the_last_has_entered) {
  for (const Shape& shape : kShapes) {
    const Made made(plain(shape, shape.world));
    std::map<std::pair<uint64_t, uint64_t>, std::vector<CommRecord>> operations;
    for (const CommRecord& one : made.records)
      if (!is_p2p(one.op) && one.op != CommOp::kJoin) operations[{one.comm, one.seq}].push_back(one);
    BOOST_TEST(operations.size() > 6u);
    for (const auto& [key, all] : operations) {
      BOOST_TEST(all.size() == all[0].comm_size);  // the number of an operation is equal on all ranks
      uint64_t entered = 0, left = ~uint64_t{0};
      for (const CommRecord& one : all) {
        BOOST_TEST(static_cast<int>(one.op) == static_cast<int>(all[0].op));
        entered = std::max(entered, one.start_ns);
        left = std::min(left, one.end_ns);
      }
      if (is_synchronising(all[0].op)) BOOST_TEST(entered <= left);
    }
  }
}

BOOST_AUTO_TEST_CASE(every_send_has_its_receive_which_ends_after_it_began) {
  for (const Shape& shape : kShapes) {
    const Made made(plain(shape));
    std::map<std::tuple<uint64_t, uint32_t, uint32_t, uint64_t>, std::pair<uint64_t, uint64_t>> pairs;
    for (const CommRecord& one : made.records) {
      if (one.op == CommOp::kSend) pairs[{one.comm, one.rank, one.peer, one.seq}].first = one.start_ns;
      if (one.op == CommOp::kRecv) pairs[{one.comm, one.peer, one.rank, one.seq}].second = one.end_ns;
    }
    BOOST_TEST((pairs.empty() == (shape.pp == 1)));
    for (const auto& [key, times] : pairs) {
      BOOST_TEST(times.first > 0u);
      BOOST_TEST(times.second > times.first);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_bytes_and_another_others) {
  CommJobOptions o = plain(kShapes[2], 5);
  o.plain = false;
  o.faults = {"nic"};
  const Made one(o), same(o);
  BOOST_TEST((one.files == same.files));
  BOOST_TEST(one.truth == same.truth);
  o.seed = 6;
  BOOST_TEST((Made(o).files != one.files));
}

BOOST_AUTO_TEST_CASE(the_cost_of_a_fault_is_the_step_with_it_less_the_same_step_without) {
  for (const char* fault : {"gpu", "host", "nic", "nvlink", "link", "switch"}) {
    CommJobOptions o = plain({64, 4, 2, 1, 1, 1}, 11);
    o.faults = {fault};
    o.onset = "1";
    const Made made(o);
    const auto &with = made.truth["step_ms"], &without = made.truth["without_ms"];
    BOOST_TEST(with[0] == without[0]);
    const auto& reported = made.truth["faults"][0];
    BOOST_TEST(reported["steps"].size() == 2u);
    for (size_t i = 1; i < 3; ++i) {
      const double cost = with[i].get<double>() - without[i].get<double>();
      BOOST_TEST(std::abs(reported["cost_ms"][i - 1].get<double>() - cost) < 0.01);
      if (reported["named"] == "yes") BOOST_TEST(with[i].get<double>() < 3.3 * without[i].get<double>());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_healthy_and_an_uneven_job_name_no_rank) {
  for (const char* fault : {"none", "gc", "imbalance-sequence", "imbalance-stage", "imbalance-expert"}) {
    CommJobOptions o = plain(kShapes[3]);
    o.faults = {fault};
    const Made made(o);
    BOOST_TEST((made.truth["step_ms"] == made.truth["without_ms"]));
    for (const auto& one : made.truth["faults"]) BOOST_TEST(one["named"] == "no");
  }
}

BOOST_AUTO_TEST_CASE(a_passing_event_is_listed_with_its_steps) {
  for (const char* fault : {"spike-gpu", "spike-host", "spike-link", "fluctuation-gpu", "fluctuation-link",
                            "stop-once", "pause-once", "pause-twice"}) {
    CommJobOptions o = plain({32, 2, 2, 1, 1, 1}, 12);
    o.faults = {fault};
    o.steps = 16;
    const Made made(o);
    const auto& reported = made.truth["faults"][0];
    const std::string named = reported["named"];
    BOOST_TEST((named == "listed" || named == "optional"), fault);
    const auto &with = made.truth["step_ms"], &without = made.truth["without_ms"];
    BOOST_TEST(reported["steps"].size() < 13u, fault);
    BOOST_TEST(!reported["steps"].empty(), fault);
    std::set<uint32_t> steps;
    for (const auto& step : reported["steps"]) steps.insert(step.get<uint32_t>());
    for (size_t i = 0; i < with.size(); ++i)
      if (!steps.contains(made.truth["steps"][i])) BOOST_TEST(with[i] == without[i], fault);
  }
}

BOOST_AUTO_TEST_CASE(pauses_of_a_healthy_job_are_of_all_ranks_of_rank_0_or_move) {
  for (const char* fault : {"pause-all", "pause-moves", "loader-moves", "rank0-saves"}) {
    CommJobOptions o = plain({64, 2, 2, 1, 1, 1}, 3);
    o.faults = {fault};
    o.steps = 24;
    const Made made(o);
    size_t longer = 0;
    for (size_t i = 0; i < o.steps; ++i)
      longer += made.truth["step_ms"][i].get<double>() > made.truth["without_ms"][i].get<double>() + 100;
    BOOST_TEST(longer >= 1u, fault);
    BOOST_TEST(longer <= 6u, fault);
    for (const auto& one : made.truth["faults"]) BOOST_TEST(one["named"] == "no", fault);
  }
}

BOOST_AUTO_TEST_CASE(clocks_of_hosts_differ_by_an_offset_that_common_exits_show) {
  CommJobOptions o = plain({32, 2, 2, 1, 1, 1}, 9);
  o.plain = false;
  const Made made(o);
  std::map<uint64_t, std::map<uint32_t, uint64_t>> exits;  // of the world's collectives, by number and rank
  for (const CommRecord& one : made.records)
    if (one.comm_size == 32 && one.op == CommOp::kAllReduce) exits[one.seq][one.rank] = one.end_ns;
  std::set<int64_t> differences;
  for (auto& [seq, by_rank] : exits)
    if (by_rank.count(0) != 0 && by_rank.count(31) != 0)
      differences.insert(static_cast<int64_t>(by_rank[31] - by_rank[0]));
  BOOST_REQUIRE(differences.size() > 1u);
  // 40 parts in a million of at most a minute, and the time to leave.
  BOOST_TEST(*differences.rbegin() - *differences.begin() < 2'500'000);
}

BOOST_AUTO_TEST_CASE(a_hang_leaves_operations_without_an_end_and_no_steps_behind) {
  for (const char* fault : {"hang-host", "hang-device"}) {
    CommJobOptions o = plain(kShapes[1]);
    o.faults = {fault};
    o.onset = "1";
    const Made made(o);
    BOOST_TEST(made.truth["hangs"] == true);
    std::set<uint32_t> open;
    for (const CommRecord& one : made.records)
      if (one.end_ns == 0) open.insert(one.rank);
    BOOST_TEST(!open.empty());
    const uint32_t culprit = made.truth["faults"][0]["ranks"][0];
    if (o.faults[0] == "hang-device") BOOST_TEST(open.count(culprit) == 1u);
    BOOST_TEST(made.truth["steps"].size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused_with_its_reason) {
  const auto refused = [](auto change, std::string_view reason) {
    CommJobOptions o = plain(kShapes[1]);
    change(o);
    const Status status = simulate_comm(o, "/nonexistent/never");
    BOOST_REQUIRE(!status);
    BOOST_TEST(status.error().text.find(reason) != std::string::npos);
  };
  refused([](CommJobOptions& o) { o.tp = 3; }, "is not tp");
  refused([](CommJobOptions& o) { o.world = 7, o.tp = 2, o.pp = 0; }, "is not tp");
  refused([](CommJobOptions& o) { o.world = 7, o.tp = 0, o.pp = 2; }, "is not tp");
  refused([](CommJobOptions& o) { o.ep = 3; }, "ep: 3");
  refused([](CommJobOptions& o) { o.virtual_stages = 2; }, "pipeline of 3");
  refused([](CommJobOptions& o) { o.faults = {"gremlin"}; }, "gremlin");
  refused([](CommJobOptions& o) { o.onset = "late", o.faults = {"gpu"}; }, "late");
  refused([](CommJobOptions& o) { o.severity = -1; }, "severity");
}

}  // namespace
