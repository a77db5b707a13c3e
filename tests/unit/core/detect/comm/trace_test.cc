// What a trace holds, whatever records say: bounded tables, and every drop told.
#include "core/detect/comm/trace.h"

#include <sys/resource.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <numeric>

#include "../../../../bench/comm/plain_job.h"
#include "core/detect/comm/tell.h"

using namespace culprit;

namespace {

CommRecord record(uint64_t i) {
  CommRecord r;
  r.start_ns = 1000 + 10 * i;
  r.end_ns = r.start_ns + 5;
  r.comm = 1;
  r.seq = i;
  r.rank = static_cast<uint32_t>(i % 8);
  r.step = static_cast<uint32_t>(i / 4096);
  r.comm_size = 8;
  r.op = CommOp::kAllReduce;
  r.device = r.rank;
  return r;
}

struct Hostile {
  std::string name;
  std::function<void(CommRecord&, uint64_t)> change;
  std::string told = {};  // words of what is said of drops; empty: nothing needs to be
};
std::ostream& operator<<(std::ostream& out, const Hostile& c) { return out << c.name; }

std::vector<Hostile> hostile() {
  return {
      {"a communicator each", [](CommRecord& r, uint64_t i) { r.comm = i; }, "more communicators"},
      {"a communicator each, of many ranks",
       [](CommRecord& r, uint64_t i) {
         r.comm = i;
         r.rank = static_cast<uint32_t>(i % 1000);
       }},
      {"a rank each", [](CommRecord& r, uint64_t i) { r.rank = static_cast<uint32_t>(i); }},
      {"a step each", [](CommRecord& r, uint64_t i) { r.step = static_cast<uint32_t>(i); }},
      {"a step and a rank each",
       [](CommRecord& r, uint64_t i) {
         r.step = static_cast<uint32_t>(i);
         r.rank = static_cast<uint32_t>(i);
       }},
      {"a step and a communicator each",
       [](CommRecord& r, uint64_t i) {
         r.step = static_cast<uint32_t>(i);
         r.comm = i;
         r.rank = static_cast<uint32_t>(i % 1000);
       }},
      {"steps that come backwards",
       [](CommRecord& r, uint64_t i) { r.step = 4'000'000'000u - static_cast<uint32_t>(i); }},
      {"a peer each",
       [](CommRecord& r, uint64_t i) {
         r.op = CommOp::kSend;
         r.peer = static_cast<uint32_t>(i);
       },
       "more communicators"},
      {"numbers that jump", [](CommRecord& r, uint64_t i) { r.seq = i << 60 | i; }},
      {"all at one time", [](CommRecord& r, uint64_t) { r.start_ns = r.end_ns = 1000; }},
      {"all the same", [](CommRecord& r, uint64_t) { r = record(0); }, "came twice"},
      {"never ended", [](CommRecord& r, uint64_t) { r.end_ns = 0; }, "more than can be remembered"},
      {"steps unknown", [](CommRecord& r, uint64_t) { r.step = kCommUnknown; }},
      {"steps unknown, a communicator each",
       [](CommRecord& r, uint64_t i) {
         r.step = kCommUnknown;
         r.comm = i;
         r.rank = static_cast<uint32_t>(i % 1000);
       }},
      {"joins of everything",
       [](CommRecord& r, uint64_t i) {
         r.op = CommOp::kJoin;
         r.comm = i;
         r.rank = static_cast<uint32_t>(i);
       }},
      {"zeros",
       [](CommRecord& r, uint64_t) {
         r = CommRecord();
         r.step = 0;
       }},
  };
}

long peak_mb() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss >> 10;
}

std::string joined(const std::vector<std::string>& list) {
  return std::accumulate(list.begin(), list.end(), std::string());
}

// What was said, to the last bit of what is counted.
std::string words_of(const comm::Told& told) {
  std::string out;
  for (const Finding& f : told.findings) {
    out += f.title;
    for (const std::string& why : f.why) out += why;
  }
  const auto number = [&out](double x) { out += std::to_string(std::bit_cast<uint64_t>(x)) + " "; };
  for (const Irregularity& i : told.irregularities) {
    number(i.cost_ms);
    number(i.slowdown);
    for (const ChainLink& link : i.chain) number(link.wait_ms);
  }
  for (const double ms : told.steps.step_ms) number(ms);
  return out;
}

}  // namespace

BOOST_DATA_TEST_CASE(memory_is_bounded_whatever_records_say, boost::unit_test::data::make(hostile()), c) {
  constexpr uint64_t kRecords = 300'000;
  const JobFile job;
  const long before = peak_mb();
  comm::CommTrace trace(&job, false);
  std::vector<CommRecord> block;
  for (uint64_t i = 0; i < kRecords; ++i) {
    CommRecord r = record(i);
    c.change(r, i);
    block.push_back(r);
    if (block.size() < 1000) continue;
    trace.take("a", block);
    block.clear();
  }
  const comm::Told told = comm::tell(trace);
  BOOST_TEST(told.steps.rows.size() <= 64u);
  BOOST_TEST(joined(trace.told_drops()).find(c.told) != std::string::npos);
  // A kilobyte a record would be a table for each; what a row takes comes on top of what the one before left.
  BOOST_TEST(peak_mb() - before < 600);
}

BOOST_AUTO_TEST_CASE(the_answer_does_not_depend_on_how_many_steps_are_analysed_at_a_time) {
  const plain::Layout layout{4, 4, 2, 4, 2, 8};
  plain::Faults faults;
  faults.work = [](uint32_t rank, uint32_t) { return rank == 9 ? 1.4 : 1.0; };
  const auto say = [&](size_t width) {
    const JobFile job;
    comm::Parallel parallel;
    parallel.width = width;
    parallel.run = [](size_t n, const comm::Parallel::Work& work) {
      for (size_t i = n; i > 0; --i) work(i - 1);
    };
    comm::CommTrace trace(&job, false, parallel);
    plain::Job plain(layout, {}, faults);
    for (int s = 0; s < 10; ++s) {
      const auto step = plain.step();
      for (uint32_t h = 0; h < plain.hosts(); ++h) trace.take("node-" + std::to_string(h), step[h]);
    }
    return words_of(comm::tell(trace));
  };
  const std::string one = say(1);
  BOOST_TEST(one.find("ank 9 ") != std::string::npos);
  BOOST_TEST(say(2) == one);
  BOOST_TEST(say(7) == one);
  BOOST_TEST(say(100) == one);
}
