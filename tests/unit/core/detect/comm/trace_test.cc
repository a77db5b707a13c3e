// The content of a trace for any records: bounded tables, and every drop reported.
#include "core/detect/comm/trace.h"

#include <sys/resource.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <numeric>

#include "../../../../sim/plain_job.h"
#include "core/detect/comm/findings.h"

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
  std::string reported = {};  // words of the report of drops; empty: no report
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
      {"a rank with many operations where others have one",
       [](CommRecord& r, uint64_t i) {
         r.rank = i < 2000 ? static_cast<uint32_t>(i) : 0;
         r.step = 0;
       }},
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

// The inverse of mix64 in its first word.
uint64_t unmix64(uint64_t x, uint64_t b) {
  const auto inverse = [](uint64_t odd) {
    uint64_t out = odd;
    for (int i = 0; i < 5; ++i) out *= 2 - odd * out;
    return out;
  };
  x = (x ^ (x >> 31) ^ (x >> 62)) * inverse(0x94d049bb133111ebull);
  x = (x ^ (x >> 27) ^ (x >> 54)) * inverse(0xbf58476d1ce4e5b9ull);
  x = x ^ (x >> 30) ^ (x >> 60);
  return x - 0x9e3779b97f4a7c15ull * (b + 1);
}

// All findings as text, exact to the last bit of counts.
std::string words_of(const comm::TraceFindings& reported) {
  std::string out;
  for (const Finding& f : reported.findings) {
    out += f.title;
    for (const std::string& why : f.why) out += why;
  }
  const auto number = [&out](double x) { out += std::to_string(std::bit_cast<uint64_t>(x)) + " "; };
  for (const Irregularity& i : reported.irregularities) {
    number(i.cost_ms);
    number(i.slowdown);
    for (const ChainLink& link : i.chain) number(link.wait_ms);
  }
  for (const double ms : reported.steps.step_ms) number(ms);
  return out;
}

}  // namespace

BOOST_DATA_TEST_CASE(memory_is_bounded_whatever_records_say, boost::unit_test::data::make(hostile()), c) {
  constexpr uint64_t kRecords = 300'000;
  const JobFile job;
  [[maybe_unused]] const long before = peak_mb();
  comm::CommTrace trace(&job, false);
  std::vector<CommRecord> block;
  for (uint64_t i = 0; i < kRecords; ++i) {
    CommRecord r = record(i);
    c.change(r, i);
    block.push_back(r);
    if (block.size() < 1000) continue;
    trace.add_records("a", block);
    block.clear();
  }
  const comm::TraceFindings reported = comm::report_findings(trace);
  BOOST_TEST(reported.steps.rows.size() <= 64u);
  BOOST_TEST(joined(trace.drop_sentences()).find(c.reported) != std::string::npos);
  // A kilobyte per record would allocate a table for each; memory of a row adds to that of earlier rows.
#ifdef __SANITIZE_THREAD__
  BOOST_TEST_MESSAGE("the memory is not compared: the sanitizer keeps a shadow of it");
#else
  BOOST_TEST(peak_mb() - before < 600);
#endif
}

// Communicators with equal keys in the look-up of a rank's streams.
BOOST_AUTO_TEST_CASE(streams_of_a_rank_are_distinguished_whatever_their_keys_are) {
  const JobFile job;
  comm::Cluster cluster(&job);
  std::vector<CommRecord> records;
  for (uint32_t i = 0; i < 100; ++i) {
    CommRecord r = record(0);
    r.op = CommOp::kSend;
    r.peer = i + 1;
    if (i >= 50) r.comm = unmix64(unmix64(7, r.peer), 1);
    records.push_back(r);
    if (i >= 50) BOOST_REQUIRE(mix64(mix64(r.comm, 1), r.peer) == 7u);
  }
  const uint32_t rank = cluster.rank_index(records[0], comm::kNone);
  for (int again = 0; again < 3; ++again)
    for (uint32_t i = 0; i < records.size(); ++i) BOOST_TEST(cluster.slot_of(rank, records[i]) == i);
  BOOST_TEST(cluster.ranks()[rank].slots.size() == records.size());
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
      for (uint32_t h = 0; h < plain.hosts(); ++h) trace.add_records("node-" + std::to_string(h), step[h]);
    }
    return words_of(comm::report_findings(trace));
  };
  const std::string one = say(1);
  BOOST_TEST(one.find("ank 9 ") != std::string::npos);
  BOOST_TEST(say(2) == one);
  BOOST_TEST(say(7) == one);
  BOOST_TEST(say(100) == one);
}

// Blocks of all hosts at once, as files give them, with what makes a block special.
BOOST_AUTO_TEST_CASE(blocks_of_several_hosts_give_the_same_as_one_after_the_other) {
  const plain::Layout layout{4, 4, 2, 4, 2, 8};
  using Change = std::function<void(CommRecord&, uint32_t step, uint32_t host)>;
  const std::map<std::string, Change> changes{
      {"none", [](CommRecord&, uint32_t, uint32_t) {}},
      {"an operation does not end",
       [](CommRecord& r, uint32_t step, uint32_t host) {
         if (step == 6 && host == 1 && r.seq % 5 == 0) r.end_ns = 0;
       }},
      {"a new communicator",
       [](CommRecord& r, uint32_t step, uint32_t host) { r.comm += step >= 5 && host == 2 ? 7 : 0; }},
      {"a rank of another host", [](CommRecord& r, uint32_t step, uint32_t) { r.rank ^= step == 4 ? 8 : 0; }},
      {"unknown steps", [](CommRecord& r, uint32_t, uint32_t) { r.step = kCommUnknown; }},
      {"steps that alternate", [](CommRecord& r, uint32_t step, uint32_t) { r.step = step + r.seq % 2; }},
      {"a damaged record",
       [](CommRecord& r, uint32_t, uint32_t) { r.end_ns -= r.seq == 3 ? r.end_ns / 2 : 0; }}};
  for (const auto& [name, change] : changes) {
    plain::Faults faults;
    faults.work = [](uint32_t rank, uint32_t) { return rank == 9 ? 1.4 : 1.0; };
    plain::Job plain(layout, {}, faults);
    const JobFile job;
    comm::CommTrace one(&job, false), all(&job, false);
    for (uint32_t s = 0; s < 10; ++s) {
      auto step = plain.step();
      std::vector<std::string> hosts;
      for (uint32_t h = 0; h < plain.hosts(); ++h) hosts.push_back("node-" + std::to_string(h));
      std::vector<comm::HostRecords> blocks;
      for (uint32_t h = 0; h < plain.hosts(); ++h) {
        for (CommRecord& r : step[h]) change(r, s, h);
        blocks.push_back({&hosts[h], step[h]});
        one.add_records(hosts[h], step[h]);
      }
      all.add_records(blocks);
    }
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(words_of(comm::report_findings(all)) == words_of(comm::report_findings(one)));
      BOOST_TEST(joined(all.drop_sentences()) == joined(one.drop_sentences()));
      BOOST_TEST(all.records() == one.records());
      BOOST_TEST(all.last_ns() == one.last_ns());
    }
  }
}

// A live job that runs some steps, and is restarted at an earlier step.
struct StartedAgain {
  static constexpr plain::Layout kLayout{2, 4, 2, 4, 2, 4};
  static constexpr uint64_t kLaterNs = 3'600'000'000'000;
  const JobFile job;
  comm::CommTrace trace{&job, true};

  void run(int steps, uint32_t from, uint64_t later_ns, uint64_t comms, const plain::Faults& faults) {
    plain::Job plain(kLayout, {}, faults);
    for (int s = 0; s < steps; ++s) {
      auto step = plain.step();
      for (uint32_t h = 0; h < plain.hosts(); ++h) {
        for (CommRecord& r : step[h]) {
          r.start_ns += later_ns;
          r.end_ns += r.end_ns != 0 ? later_ns : 0;
          r.comm += comms;
          r.step += from;
        }
        trace.add_records("node-" + std::to_string(h), step[h]);
      }
    }
  }
};

BOOST_FIXTURE_TEST_CASE(steps_of_a_job_that_was_started_again_are_judged_again, StartedAgain) {
  plain::Faults slow;
  slow.work = [](uint32_t rank, uint32_t) { return rank == 9 ? 1.5 : 1.0; };
  run(20, 0, 0, 0, {});
  run(20, 5, kLaterNs, 0, slow);
  const comm::TraceFindings reported = comm::report_findings(trace);
  BOOST_REQUIRE(reported.findings.size() == 1u);
  BOOST_TEST(reported.findings[0].subjects[0].rank.value() == 9u);
  BOOST_TEST(trace.steps().size() >= 36u);
  BOOST_TEST(joined(trace.drop_sentences()).find("had been judged") == std::string::npos);
  BOOST_TEST(joined(trace.drop_sentences()).find("started again") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(slow_steps_do_not_join_over_a_new_start, StartedAgain) {
  plain::Faults slow;
  slow.work = [](uint32_t rank, uint32_t) { return rank == 9 ? 1.5 : 1.0; };
  run(20, 0, 0, 0, slow);
  run(20, 5, kLaterNs, 0, slow);
  const comm::TraceFindings reported = comm::report_findings(trace);
  BOOST_TEST(reported.irregularities.size() >= 2u);
  for (const Irregularity& one : reported.irregularities) BOOST_TEST(one.first_step <= one.last_step);
}

BOOST_FIXTURE_TEST_CASE(a_hang_after_a_restart_is_reported_for_those_who_hang_now, StartedAgain) {
  for (const uint64_t comms : {0, 1000}) {
    trace = comm::CommTrace(&job, true);
    plain::Faults first, second;
    first.stuck_rank = 3;
    first.stuck_step = 15;
    second.stuck_rank = 9;
    second.stuck_step = 12;
    run(16, 0, 0, 0, first);
    BOOST_REQUIRE(trace.stuck(comm::Stopped::kByClock));
    run(13, 0, kLaterNs, comms, second);
    const auto stuck = trace.stuck(comm::Stopped::kByClock);
    BOOST_REQUIRE(stuck);
    BOOST_TEST(stuck->since_ns > static_cast<int64_t>(kLaterNs));
    BOOST_REQUIRE(stuck->ranks.size() == 1u);
    BOOST_TEST(trace.cluster().ranks()[stuck->ranks[0]].rank == 9u);
  }
}

// A process that was restarted alone is not judged until it reaches the step of the others.
BOOST_FIXTURE_TEST_CASE(records_that_one_rank_repeats_restart_no_job, StartedAgain) {
  run(20, 0, 0, 0, {});
  plain::Job plain(kLayout, {}, {});
  std::vector<CommRecord> alone;
  auto step = plain.step();
  for (CommRecord& r : step[0]) {
    if (r.rank != 0) continue;
    r.start_ns += kLaterNs;
    r.end_ns += kLaterNs;
    alone.push_back(r);
  }
  trace.add_records("node-0", alone);
  const size_t before = trace.steps().size();
  run(20, 20, 2 * kLaterNs, 0, {});
  BOOST_TEST(trace.steps().size() >= before + 18);
  BOOST_TEST(joined(trace.drop_sentences()).find("started again") == std::string::npos);
  BOOST_TEST(joined(trace.drop_sentences()).find("had been judged") != std::string::npos);
}
