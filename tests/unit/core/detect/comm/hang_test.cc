// Operations that never ended: the suspects, the healthy waiting ranks, and cases without a hang.
#include "core/detect/comm/hang.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <ostream>
#include <string>
#include <vector>

using namespace culprit;

namespace {

using Ranks = std::vector<uint32_t>;
using comm::Stopped;
constexpr uint64_t kMs = 1'000'000;  // of nanoseconds

// One operation of a group, as its records show it. Those of one group are numbered from 0. A send goes from
// the first rank to the second.
struct Call {
  Ranks group, left, inside;  // ranks of the group in neither list did not enter
  CommOp op = CommOp::kAllReduce;
};

Call whole(const Ranks& group, CommOp op = CommOp::kAllReduce) { return {group, group, {}, op}; }

// One call per 100 ms, with a duration of 50 ms.
class Job {
 public:
  explicit Job(uint32_t ranks_per_host = 1) : ranks_per_host_(ranks_per_host) {}

  void join(const Ranks& group) {
    for (const uint32_t r : group) {
      CommRecord record = record_of({group, {}, {}, CommOp::kJoin}, r);
      record.seq = 0;
      cluster_.join(index_of(record), record);
    }
  }
  // `at_entry`: as a ring, writes each operation at its entry, and again at its exit.
  void add(const std::vector<Call>& calls, bool at_entry = false) {
    for (const Call& call : calls) {
      at_ms_ += 100;
      for (const uint32_t r : call.group) {
        CommRecord record = record_of(call, r);
        const bool left = std::count(call.left.begin(), call.left.end(), r) > 0;
        if (!left && std::count(call.inside.begin(), call.inside.end(), r) == 0) continue;
        if (at_entry || !left) take(record);
        record.end_ns = record.start_ns + 50 * kMs;
        if (left) take(record);
      }
      ++seq_[call.group];
    }
  }
  // The last activity of a rank.
  void alive(uint32_t rank, uint64_t after_ms) {
    CommRecord record;
    record.rank = rank, record.start_ns = record.end_ns = (at_ms_ + after_ms) * kMs;
    open_.note_alive(record);
  }
  std::optional<comm::Stuck> find(Stopped stopped = Stopped::kRecordsEnd) {
    cluster_.settle();
    return open_.find(cluster_, stopped);
  }
  Ranks named(const comm::Stuck& stuck) const {
    Ranks out;
    for (const uint32_t r : stuck.ranks) out.push_back(cluster_.ranks()[r].rank);
    return out;
  }
  uint64_t comm_of(const Ranks& group) { return comms_.try_emplace(group, comms_.size() + 1).first->second; }
  comm::OpenOperations& open() { return open_; }
  uint64_t now_ns() const { return at_ms_ * kMs; }

 private:
  CommRecord record_of(const Call& call, uint32_t rank) {
    CommRecord record;
    record.rank = rank;
    record.comm = comm_of(call.group);
    record.comm_size = static_cast<uint32_t>(call.group.size());
    record.seq = seq_[call.group];
    record.op = call.op;
    record.start_ns = (at_ms_ + rank) * kMs;
    if (call.op == CommOp::kSend) {
      record.op = rank == call.group[0] ? CommOp::kSend : CommOp::kRecv;
      record.peer = call.group[rank == call.group[0] ? 1 : 0];
    }
    return record;
  }
  uint32_t index_of(const CommRecord& record) {
    const std::string host = "node-" + std::to_string(record.rank / ranks_per_host_);
    return cluster_.rank_index(record, cluster_.host_index(host));
  }
  void take(const CommRecord& record) {
    const uint32_t rank = index_of(record);
    cluster_.note(rank, cluster_.slot_of(rank, record), record.seq, record.end_ns != 0);
    open_.add(record);
  }

  const uint32_t ranks_per_host_;
  const JobFile job_;
  comm::Cluster cluster_{&job_};
  comm::OpenOperations open_;
  std::map<Ranks, uint64_t> comms_, seq_;
  uint64_t at_ms_ = 1000;
};

struct Case {
  std::string name;
  std::vector<Call> calls;
  bool hang = true;
  Ranks named = {};
  uint64_t waiting = 0;  // ranks
  bool on_device = false;
  uint32_t ranks_per_host = 1;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

const Ranks kAll = {0, 1, 2, 3};
constexpr auto kSend = CommOp::kSend;

const std::vector<Case> kCases = {
    {.name = "a rank that its peers wait for and that never entered is named",
     .calls = {whole(kAll), {kAll, {}, {0, 1, 2}}},
     .named = {3},
     .waiting = 3},
    {.name = "a rank that waits in another group is not named, only the one at the end of the chain",
     .calls = {whole({0, 1}),
               whole({1, 2}),
               whole({2, 3}),
               {{0, 1}, {}, {0}},
               {{1, 2}, {}, {1}},
               {{2, 3}, {}, {3}}},
     .named = {2},
     .waiting = 3},
    {.name = "a sender that its receiver waits for is named",
     .calls = {whole({0, 1}, kSend), {{0, 1}, {}, {1}, kSend}},
     .named = {0},
     .waiting = 1},
    {.name = "a sender that waits in a collective itself is not named",
     .calls = {whole({0, 1}, kSend), whole({0, 2}), {{0, 2}, {}, {0}}, {{0, 1}, {}, {1}, kSend}},
     .named = {2},
     .waiting = 2},
    {.name = "a rank that did not leave what its peers left hangs on its device",
     .calls = {whole(kAll), {kAll, {0, 1, 2}, {3}}},
     .named = {3},
     .waiting = 1,
     .on_device = true},
    {.name = "ranks of a broadcast leave one by one, which is no hang",
     .calls = {whole(kAll), {kAll, {0, 1, 2}, {3}, CommOp::kBroadcast}},
     .hang = false},
    {.name = "an exit that was not recorded is no hang where the rank entered the next operation",
     .calls = {whole(kAll), {kAll, {0, 1, 2}, {3}}, whole(kAll)},
     .hang = false},
    {.name = "an exit that was not recorded is no hang where the peers left the next operation",
     .calls = {whole(kAll), {kAll, {0, 1, 2}, {3}}, {kAll, {0, 1, 2}, {}}},
     .hang = false},
    {.name = "on a tie of two hosts no rank is named",
     .calls = {whole(kAll), {kAll, {}, {0, 1}}},
     .waiting = 2},
    {.name = "all missing ranks are named where they share a host",
     .calls = {whole(kAll), {kAll, {}, {0, 1}}},
     .named = {2, 3},
     .waiting = 2,
     .ranks_per_host = 2},
    {.name = "no rank is named where each waits for the next in a circle",
     .calls = {whole({0, 1}),
               whole({1, 2}),
               whole({0, 2}),
               {{0, 1}, {}, {0}},
               {{1, 2}, {}, {1}},
               {{0, 2}, {}, {2}}},
     .waiting = 3},
    {.name = "two of eight ranks that stand still are no hang of the job",
     .calls = {whole({0, 1, 2, 3, 4, 5, 6, 7}), whole({0, 1}), {{0, 1}, {}, {0}}},
     .hang = false},
    {.name = "nothing that was entered and not left is no hang", .calls = {whole(kAll)}, .hang = false},
};

}  // namespace

BOOST_DATA_TEST_CASE(names_who_the_others_wait_for, boost::unit_test::data::make(kCases), c) {
  Job job(c.ranks_per_host);
  job.add(c.calls);
  const auto stuck = job.find();
  BOOST_REQUIRE(stuck.has_value() == c.hang);
  if (!stuck) return;
  BOOST_TEST(job.named(*stuck) == c.named, boost::test_tools::per_element());
  BOOST_TEST(stuck->waiting == c.waiting);
  BOOST_TEST(stuck->on_device == c.on_device);
  BOOST_TEST(!stuck->absent);
}

BOOST_AUTO_TEST_CASE(the_first_operation_that_waits_for_the_named_rank_is_stated) {
  Job job;
  const Ranks pair = {3, 4};
  job.add({whole(kAll), whole(pair), whole(kAll), {pair, {}, {4}}, {kAll, {}, {0, 1, 2}}});
  const auto stuck = job.find();
  BOOST_REQUIRE(stuck);
  BOOST_TEST(job.named(*stuck) == Ranks{3}, boost::test_tools::per_element());
  BOOST_TEST(stuck->comm == job.comm_of(pair));
  BOOST_TEST(stuck->seq == 1u);
  BOOST_TEST((stuck->op == CommOp::kAllReduce));
  BOOST_TEST(stuck->since_ns == static_cast<int64_t>(1404 * kMs));  // when rank 4 entered it
}

BOOST_AUTO_TEST_CASE(a_member_without_any_record_is_named_as_absent) {
  Job job;
  job.join(kAll);
  job.add({{kAll, {}, {0, 1, 2}}});
  const auto stuck = job.find();
  BOOST_REQUIRE(stuck);
  BOOST_TEST(job.named(*stuck) == Ranks{3}, boost::test_tools::per_element());
  BOOST_TEST(stuck->absent);
}

// At the end of its records a healthy job is within operations too: a ring has those.
BOOST_AUTO_TEST_CASE(in_a_ring_an_operation_hangs_once_it_is_open_for_longer_than_its_like_took) {
  struct Row {
    std::string name;
    uint64_t alive_ms;  // the last activity, after the start of the last call
    Stopped stopped;
    bool hang;
  };
  const Row rows[] = {{"as long as usual", 50, Stopped::kRecordsEnd, false},
                      {"longer than all others", 51, Stopped::kRecordsEnd, true},
                      {"the caller's clock has decided", 10, Stopped::kByClock, true}};
  for (const Row& row : rows) BOOST_TEST_CONTEXT(row.name) {
      Job job(4);
      job.add({whole(kAll), {kAll, {}, {0, 1, 2}}}, true);
      job.alive(3, row.alive_ms);
      const auto stuck = job.find(row.stopped);
      BOOST_REQUIRE(stuck.has_value() == row.hang);
      if (stuck) BOOST_TEST(job.named(*stuck) == Ranks{3}, boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_CASE(a_job_hangs_only_where_nearly_all_ranks_wait_or_are_waited_for) {
  const std::vector<Call> begin = {whole(kAll), whole({0, 1}), whole({2, 3})};
  Job job;
  job.add(begin, true);
  job.add({{{0, 1}, {}, {0}}, whole({2, 3})}, true);
  BOOST_TEST(!job.find(Stopped::kByClock).has_value());
  Job all;
  all.add(begin, true);
  all.add({{{0, 1}, {}, {0}}, {kAll, {}, {2, 3}}}, true);
  const auto stuck = all.find(Stopped::kByClock);
  BOOST_REQUIRE(stuck);
  BOOST_TEST(all.named(*stuck) == Ranks{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_was_open_before_a_restart_is_forgotten) {
  Job job;
  job.add({whole(kAll), {kAll, {}, {0, 1, 2}}});
  job.open().forget_before(static_cast<int64_t>(job.now_ns()));
  BOOST_TEST(job.find().has_value());
  job.open().forget_before(static_cast<int64_t>(job.now_ns() + 10 * kMs));
  BOOST_TEST(job.open().empty());
  BOOST_TEST(!job.find().has_value());
}

BOOST_AUTO_TEST_CASE(open_operations_are_bounded_and_one_too_many_is_refused) {
  comm::OpenOperations open;
  CommRecord record;
  record.op = CommOp::kAllReduce, record.start_ns = 1;
  for (record.seq = 0; record.seq < 1u << 18; ++record.seq) open.add(record);
  BOOST_TEST(!open.add(record));
  record.end_ns = 2, record.seq = 7;
  BOOST_TEST(open.add(record));  // an exit makes room
  record.end_ns = 0, record.seq = 1u << 18;
  BOOST_TEST(open.add(record));
}
