// Tests of sdk/nccl, called as by NCCL.
#include <boost/mpl/list.hpp>
#include <thread>

#include "nccl_fixtures.h"

namespace culprit::testing {
namespace {

using Versions = boost::mpl::list<V3, V4, V5, V6>;
using DeviceVersions = boost::mpl::list<V4, V5, V6>;

BOOST_AUTO_TEST_CASE_TEMPLATE(a_collective_is_one_record_from_first_start_to_last_stop, V, Versions) {
  Library library(
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"CUDA_VISIBLE_DEVICES", "4,5,6,7"}});
  Caller<V> caller(library, {});
  library.symbol<void(uint32_t)>("culprit_nccl_set_step")(17);
  const uint64_t t = culprit_now_ns();
  void* op = caller.enqueue(Coll{});
  BOOST_REQUIRE(op != nullptr);
  void* one = caller.channel(op, 0, t + 50);
  void* two = caller.channel(op, 1, t + 20);
  caller.finish(one, t + 900);
  BOOST_TEST(operations(library)[0].end_ns == 0u);  // unfinished, with a known start
  caller.finish(two, t + 1000);
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  const culprit_record& r = found[0];
  BOOST_TEST(r.op == CULPRIT_ALL_REDUCE);
  BOOST_TEST(r.comm == 0x1234u);
  BOOST_TEST(r.seq == 0u);
  BOOST_TEST(r.bytes == 2048u);
  BOOST_TEST(r.rank == 3u);
  BOOST_TEST(r.step == 17u);
  BOOST_TEST(r.comm_size == 8u);
  BOOST_TEST(r.group == CULPRIT_WORLD);
  BOOST_TEST(r.device == 7u);
  BOOST_TEST(r.flags == (V::kDeviceTimes ? CULPRIT_DEVICE_TIMES : 0));
  if (V::kDeviceTimes) {
    BOOST_TEST(r.start_ns == t + 20);
    BOOST_TEST(r.end_ns == t + 1000);
  } else {
    BOOST_TEST((r.start_ns >= t && r.end_ns >= r.start_ns && r.end_ns <= culprit_now_ns()));
  }
  caller.finalize();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_rank_joins_a_communicator_once, V, Versions) {
  Library library;
  Caller<V> caller(library, {});
  caller.enqueue(Coll{});
  caller.enqueue(Coll{});
  int joins = 0;
  for (const culprit_record& record : library.records())
    joins += record.op == CULPRIT_JOIN && record.rank == 3;
  BOOST_TEST(joins == 1);
  caller.finalize();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(collectives_of_all_functions_are_counted_together, V, Versions) {
  Library library;
  Caller<V> caller(library, {});
  std::vector<uint64_t> seqs;
  for (const char* function : {"AllReduce", "AllGather", "NewCollective", "ReduceScatter", "Broadcast"}) {
    void* op = caller.enqueue(Coll{function, 8, "ncclFloat8e4m3", 1});
    BOOST_TEST((op == nullptr) == (std::string(function) == "NewCollective"));
    caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  }
  for (const culprit_record& r : operations(library)) {
    seqs.push_back(r.seq);
    BOOST_TEST(r.bytes == 8u);
  }
  BOOST_TEST(seqs == (std::vector<uint64_t>{0, 1, 3, 4}), boost::test_tools::per_element());
  caller.finalize();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(sends_and_receives_are_counted_by_their_two_ranks, V, Versions) {
  Library library;
  Caller<V> caller(library, {});
  for (const P2p& p2p : {P2p{"Send", 4}, P2p{"Recv", 4}, P2p{"Send", 4}, P2p{"Send", 2}}) {
    void* op = caller.enqueue(p2p);
    caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  }
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 4u);
  const std::vector<std::array<uint64_t, 3>> expected = {
      {CULPRIT_SEND, 4, 0}, {CULPRIT_RECV, 4, 0}, {CULPRIT_SEND, 4, 1}, {CULPRIT_SEND, 2, 0}};
  for (size_t i = 0; i < 4; ++i) {
    BOOST_TEST(found[i].op == expected[i][0]);
    BOOST_TEST(found[i].peer == expected[i][1]);
    BOOST_TEST(found[i].seq == expected[i][2]);
    BOOST_TEST(found[i].bytes == 400u);
  }
  caller.finalize();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(unknown_events_succeed_with_no_handle, V, Versions) {
  Library library;
  Caller<V> caller(library, {});
  for (const uint64_t type : {0u, 1u, 8u, 16u, 32u, 128u, 256u, 512u, 1024u, 2048u, 4096u, 3u, 255u}) {
    typename V::Descriptor event;
    std::memset(&event, 0xa5, sizeof event);
    event.type = static_cast<decltype(event.type)>(type);
    event.parent = nullptr;
    BOOST_TEST(caller.start(event) == nullptr);
  }
  caller.stop(nullptr);
  caller.stamp(nullptr, 5);
  BOOST_TEST(caller.channel(nullptr, 0, 5) == nullptr);
  caller.finalize();
  BOOST_TEST(operations(library).empty());
}

BOOST_AUTO_TEST_CASE(v4_does_not_believe_the_channels_of_sends) {
  // NCCL 2.28 and later leaves uninitialised memory there.
  for (const uint8_t channels : {0, 1, 7, 200}) {
    Library library;
    Caller<V4> caller(library, {});
    const uint64_t t = culprit_now_ns();
    void* op = caller.enqueue(P2p{"Send", 4, 100, "ncclFloat32", channels});
    caller.finish(caller.channel(op, 0, t), t + 10);
    caller.finish(caller.channel(op, 1, t + 1), t + 30);  // began after the end of the first
    const auto found = operations(library);
    BOOST_REQUIRE_EQUAL(found.size(), 1u);
    BOOST_TEST(found[0].start_ns == t);
    BOOST_TEST(found[0].end_ns == t + 30);
    caller.finalize();
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(late_and_double_stops_change_nothing, V, DeviceVersions) {
  Library library;
  Caller<V> caller(library, {});
  const uint64_t t = culprit_now_ns();
  void* op = caller.enqueue(Coll{"AllReduce", 1, "ncclInt8", 1});
  void* channel = caller.channel(op, 0, t);
  caller.finish(channel, t + 10);
  const size_t before = library.records().size();
  caller.finish(channel, t + 99);
  caller.stop(op);
  BOOST_TEST(caller.channel(op, 1, t + 50) == nullptr);
  BOOST_TEST(library.records().size() == before);
  BOOST_TEST(operations(library)[0].end_ns == t + 10);
  caller.finalize();
  BOOST_TEST(log_lines().back().find("3 late") != std::string::npos, log_lines().back());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_stop_without_a_stamp_takes_the_hosts_time, V, DeviceVersions) {
  Library library;
  Caller<V> caller(library, {});
  const uint64_t t = culprit_now_ns();
  caller.stop(caller.channel(caller.enqueue(Coll{"AllReduce", 1, "ncclInt8", 1}), 0, t));
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_TEST(found[0].flags == 0);
  BOOST_TEST((found[0].end_ns >= t && found[0].end_ns <= culprit_now_ns()));
  caller.finalize();
}

BOOST_AUTO_TEST_CASE_TEMPLATE(channels_that_never_report_leave_the_end_of_the_others, V, DeviceVersions) {
  Library library;
  Caller<V> caller(library, {});
  const uint64_t t = culprit_now_ns();
  void* half = caller.enqueue(Coll{"AllReduce", 1, "ncclInt8", 4});
  caller.finish(caller.channel(half, 0, t), t + 10);
  caller.channel(half, 1, t + 1);
  void* stuck = caller.enqueue(Coll{});
  caller.channel(stuck, 0, t + 20);
  void* never = caller.enqueue(Coll{});
  caller.finalize();
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 2u);  // an operation that never began on the device has no record
  BOOST_TEST(found[0].end_ns == t + 10);
  BOOST_TEST(found[1].end_ns == 0u);  // as in a hang
  BOOST_TEST(log_lines().back().find("3 operations followed, 3 lost") != std::string::npos,
             log_lines().back());
  caller.stop(never);  // after the teardown
  BOOST_TEST(caller.channel(stuck, 1, t + 30) == nullptr);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slab_that_went_round_forgets_what_never_ended, V, DeviceVersions) {
  Library library;
  Caller<V> caller(library, {});
  const uint64_t t = culprit_now_ns();
  void* old = caller.enqueue(Coll{});
  caller.channel(old, 0, t);
  for (int i = 0; i < 16384; ++i) BOOST_REQUIRE(caller.enqueue(Coll{}) != nullptr);
  BOOST_TEST(caller.channel(old, 1, t + 1) == nullptr);
  caller.finalize();
  BOOST_TEST(log_lines().back().find("16385 operations followed, 16385 lost") != std::string::npos);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_clock_of_another_epoch_is_moved_to_the_hosts, V, DeviceVersions) {
  Library library;
  Caller<V> caller(library, {});
  const uint64_t uptime = 5'000'000'000;  // since the GPU's own start
  const uint64_t before = culprit_now_ns();
  void* op = caller.enqueue(Coll{"AllReduce", 1, "ncclInt8", 1});
  caller.finish(caller.channel(op, 0, uptime), uptime + 700);
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_TEST((found[0].start_ns >= before && found[0].start_ns <= culprit_now_ns()));
  BOOST_TEST(found[0].end_ns - found[0].start_ns == 700u);
  caller.finalize();
}

BOOST_AUTO_TEST_CASE(many_communicators_are_distinguished_and_too_many_dropped) {
  Library library({{"RANK", "3"}, {"WORLD_SIZE", "8"}});
  std::vector<Caller<V5>> callers;
  for (uint64_t i = 0; i < 1100; ++i) callers.emplace_back(library, Comm{1000 + i, "x", 8, 3});
  const uint64_t t = culprit_now_ns();
  for (const auto& caller : callers) {
    void* op = caller.enqueue(Coll{"AllGather", 1, "ncclInt8", 1});
    caller.finish(caller.channel(op, 0, t), t + 5);
  }
  const auto found = operations(library);
  BOOST_TEST(found.size() == 1024u);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].comm != 1000 + i || found[i].seq != 0) BOOST_ERROR("mixed up at " << i);
  }
  for (const auto& caller : callers) caller.finalize();
  Caller<V5> again(library, Comm{7, "x", 8, 3});  // there is room again
  BOOST_TEST(again.enqueue(Coll{}) != nullptr);
  again.finalize();
}

BOOST_AUTO_TEST_CASE(operations_of_a_fused_batch_share_stamps_and_stay_apart) {
  Library library;
  Caller<V6> caller(library, {});
  const uint64_t t = culprit_now_ns();
  std::vector<void*> ops, channels;
  for (int i = 0; i < 32; ++i) ops.push_back(caller.enqueue(Coll{}));
  for (void* op : ops)
    for (const uint8_t c : {0, 1}) channels.push_back(caller.channel(op, c, t));
  for (void* channel : channels) caller.finish(channel, t + 80);
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 32u);
  for (size_t i = 0; i < 32; ++i)
    BOOST_TEST((found[i].seq == i && found[i].start_ns == t && found[i].end_ns == t + 80));
  caller.finalize();
}

BOOST_AUTO_TEST_CASE(proxy_threads_report_what_user_threads_enqueue) {
  Library library;
  constexpr int kComms = 4, kOps = 400;
  std::vector<std::thread> users;
  for (int c = 0; c < kComms; ++c)
    users.emplace_back([&library, c] {
      Caller<V5> caller(library, Comm{static_cast<uint64_t>(c + 1), "dp", 8, 3});
      std::vector<void*> ops;
      for (int i = 0; i < kOps; ++i) ops.push_back(caller.enqueue(Coll{}));
      std::thread proxy([&] {
        const uint64_t t = culprit_now_ns();
        for (void* op : ops) {
          void* one = caller.channel(op, 0, t);
          void* two = caller.channel(op, 1, t);
          caller.finish(two, t + 3);
          caller.finish(one, t + 4);
        }
      });
      for (int i = 0; i < kOps; ++i) caller.enqueue(Coll{"Broadcast"});  // at the same time
      proxy.join();
      caller.finalize();
    });
  for (std::thread& user : users) user.join();
  size_t ended = 0;
  for (const culprit_record& record : library.records())
    ended += record.op == CULPRIT_ALL_REDUCE && record.end_ns - record.start_ns == 4;
  BOOST_TEST(ended == kComms * kOps);
}

BOOST_AUTO_TEST_CASE(communicators_that_end_do_not_disturb_others) {
  Library library;
  Caller<V5> lasting(library, {});
  std::thread others([&] {
    for (uint64_t i = 0; i < 300; ++i) {
      Caller<V5> caller(library, Comm{100 + i, "x", 8, 3});
      caller.enqueue(Coll{});
      caller.finalize();
    }
  });
  constexpr size_t kOps = 1500;
  for (size_t i = 0; i < kOps; ++i) {
    void* op = lasting.enqueue(Coll{"AllReduce", 1, "ncclInt8", 1});
    lasting.finish(lasting.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  }
  others.join();
  size_t ended = 0;
  for (const culprit_record& record : operations(library)) ended += record.end_ns != 0;
  BOOST_TEST(ended == kOps);
  lasting.finalize();
}

struct Numbers {
  const char* what;
  std::map<std::string, std::string> environment;
  Comm comm;
  uint32_t rank, peer;  // of the job; the peer of a send to rank 1 of the communicator
};

BOOST_AUTO_TEST_CASE(ranks_of_communicators_become_ranks_of_the_job) {
  const uint32_t none = CULPRIT_UNKNOWN;
  const Numbers cases[] = {
      {"all ranks in order", {{"RANK", "3"}, {"WORLD_SIZE", "8"}}, {1, nullptr, 8, 3}, 3, 1},
      {"a group of some", {{"RANK", "6"}, {"WORLD_SIZE", "8"}}, {1, "tp", 4, 2}, 6, none},
      {"stages of a pipeline", {{"RANK", "5"}, {"WORLD_SIZE", "8"}}, {1, "mesh_pp", 2, 1}, 5, 5},
      {"stages in an order of their own", {{"RANK", "5"}, {"WORLD_SIZE", "8"}}, {1, "pp", 2, 0}, 5, none},
      {"no launcher", {}, {1, nullptr, 8, 2}, 2, 1},
      {"a process with all GPUs of its host", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, {1, nullptr, 8, 5}, 5, 1},
      {"srun", {{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}}, {1, nullptr, 8, 7}, 7, 1},
  };
  for (const Numbers& c : cases) BOOST_TEST_CONTEXT(c.what) {
      Library library(c.environment);
      Caller<V5> caller(library, c.comm);
      void* op = caller.enqueue(P2p{"Send", 1});
      BOOST_TEST((op == nullptr) == (c.peer == none));
      caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
      const auto all = library.records();
      BOOST_REQUIRE(!all.empty());
      BOOST_TEST(all[0].rank == c.rank);
      if (op) BOOST_TEST(all.back().peer == c.peer);
      caller.finalize();
    }
}

BOOST_AUTO_TEST_CASE(a_program_may_say_which_ranks_a_group_holds) {
  Library library({{"RANK", "6"}, {"WORLD_SIZE", "8"}});
  const auto group = library.symbol<int(uint8_t, const uint32_t*, uint32_t)>("culprit_nccl_group");
  const uint32_t ranks[] = {0, 2, 6, 4}, others[] = {1, 3, 7, 5}, wild[] = {0xffffffff};
  BOOST_TEST(group(CULPRIT_TP, ranks, 4) == 1);
  BOOST_TEST(group(CULPRIT_TP, others, 4) == 1);
  BOOST_TEST(group(CULPRIT_TP, wild, 1) == 0);
  BOOST_TEST(group(CULPRIT_TP, nullptr, 4) == 0);
  BOOST_TEST(group(99, ranks, 4) == 0);
  Caller<V5> caller(library, {5, nullptr, 4, 2});
  void* op = caller.enqueue(P2p{"Recv", 3});
  caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  const auto found = operations(library);
  BOOST_REQUIRE_EQUAL(found.size(), 1u);
  BOOST_TEST(found[0].peer == 4u);
  BOOST_TEST(found[0].group == CULPRIT_TP);
  caller.finalize();
}

// The rank in the record of an all-reduce; CULPRIT_UNKNOWN: the record is lost.
uint32_t rank_of_collective(const Library& library, const Caller<V5>& caller) {
  void* op = caller.enqueue(Coll{"AllReduce", 4, "ncclFloat32", 1});
  if (!op) return CULPRIT_UNKNOWN;
  caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  return library.records().back().rank;
}

const std::map<std::string, std::string> kNoLauncher;

BOOST_AUTO_TEST_CASE(without_a_launcher_the_first_communicator_numbers_the_ranks) {
  Library library(kNoLauncher);
  Caller<V5> world(library, {1, nullptr, 8, 5}), pair(library, {2, nullptr, 2, 1}),
      copy(library, {3, "w", 8, 2});
  BOOST_TEST(rank_of_collective(library, world) == 5u);
  BOOST_TEST(rank_of_collective(library, pair) == 5u);
  BOOST_TEST(rank_of_collective(library, copy) == 5u);
  BOOST_TEST(pair.enqueue(P2p{"Send", 0}) == nullptr);  // the peer is unknown
  // All ended: a job of this process starts again.
  for (const Caller<V5>* one : {&world, &pair, &copy}) one->finalize();
  Caller<V5> next(library, {4, nullptr, 4, 3});
  BOOST_TEST(rank_of_collective(library, next) == 3u);
  next.finalize();
}

BOOST_AUTO_TEST_CASE(without_a_launcher_a_group_of_some_ranks_is_lost_until_it_is_reported) {
  Library library(kNoLauncher);
  const auto group = library.symbol<int(uint8_t, const uint32_t*, uint32_t)>("culprit_nccl_group");
  const uint32_t own[] = {4, 5}, other[] = {1, 5};
  Caller<V5> lost(library, {1, "tp", 2, 1});
  BOOST_TEST(rank_of_collective(library, lost) == CULPRIT_UNKNOWN);
  BOOST_TEST(library.records().empty());
  BOOST_TEST(group(CULPRIT_DP, other, 2) == 1);
  BOOST_TEST(group(CULPRIT_TP, own, 2) == 1);
  Caller<V5> reported(library, {2, "tp", 2, 1});
  BOOST_TEST(rank_of_collective(library, reported) == 5u);
  void* op = reported.enqueue(P2p{"Send", 0});
  reported.finish(reported.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  BOOST_TEST(library.records().back().peer == 4u);
  lost.finalize();
  reported.finalize();
}

BOOST_AUTO_TEST_CASE(without_a_launcher_a_larger_communicator_numbers_the_ranks) {
  Library library(kNoLauncher);
  Caller<V5> pair(library, {1, nullptr, 2, 1}), world(library, {2, nullptr, 8, 5}),
      third(library, {3, nullptr, 2, 1});
  BOOST_TEST(rank_of_collective(library, world) == 5u);
  BOOST_TEST(rank_of_collective(library, third) == 5u);
  for (const Caller<V5>* one : {&pair, &world, &third}) one->finalize();
}

BOOST_AUTO_TEST_CASE(of_a_process_with_several_ranks_groups_of_some_are_lost) {
  const std::map<std::string, std::string> a_task_per_host = {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}};
  for (const auto& environment : {kNoLauncher, a_task_per_host}) BOOST_TEST_CONTEXT(environment.size()) {
      Library library(environment);
      Caller<V5> second(library, {1, nullptr, 4, 2}), third(library, {1, nullptr, 4, 3});
      Caller<V5> pair(library, {2, nullptr, 2, 1}), copy(library, {3, nullptr, 4, 3});
      BOOST_TEST(rank_of_collective(library, second) == 2u);
      BOOST_TEST(rank_of_collective(library, third) == 3u);
      BOOST_TEST(rank_of_collective(library, copy) == 3u);
      BOOST_TEST(rank_of_collective(library, pair) == CULPRIT_UNKNOWN);
      for (const Caller<V5>* one : {&second, &third, &pair, &copy}) one->finalize();
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(without_a_daemon_the_job_runs_on, V, Versions) {
  Library library({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"CULPRIT_RINGS", "/nonexistent/rings"}});
  Caller<V> caller(library, {});
  for (int i = 0; i < 100; ++i) {
    void* op = caller.enqueue(Coll{});
    caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
    caller.finish(caller.channel(op, 1, culprit_now_ns()), culprit_now_ns());
  }
  caller.finalize();
  BOOST_TEST(library.folder().files(".ring").empty());
}

BOOST_AUTO_TEST_CASE(a_daemon_that_does_not_read_costs_records_which_are_counted) {
  Library library;  // without a reader
  Caller<V5> caller(library, {});
  for (int i = 0; i < 5000; ++i) {
    void* op = caller.enqueue(Coll{"AllReduce", 1, "ncclInt8", 1});
    caller.finish(caller.channel(op, 0, culprit_now_ns()), culprit_now_ns());
  }
  caller.finalize();
  // A join and two records each; there was room for 4,096.
  BOOST_TEST(log_lines().back().find("5905 records dropped") != std::string::npos, log_lines().back());
}

}  // namespace
}  // namespace culprit::testing
