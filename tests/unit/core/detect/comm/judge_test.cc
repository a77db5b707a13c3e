#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "../../../../sim/plain_job.h"
#include "base/time.h"
#include "core/detect/comm/findings.h"
#include "core/detect/comm/record_requests.h"
#include "ingest/comm_file.h"
#include "ingest/source_list.h"
#include "step_results.h"

using namespace culprit;

namespace {

using Ranks = std::vector<uint32_t>;

// 64 ranks on 8 hosts whose clocks are seconds apart.
constexpr plain::Layout kLayout{4, 4, 4, 8, 2, 8};
uint32_t host(uint32_t rank) { return rank / 8; }

bool crosses(const Ranks& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [&](uint32_t r) { return host(r) != host(ranks[0]); });
}
bool on(const Ranks& ranks, uint32_t h) {
  return std::any_of(ranks.begin(), ranks.end(), [h](uint32_t r) { return host(r) == h; });
}

plain::Faults slow_work(std::function<double(uint32_t, uint32_t)> work) {
  plain::Faults f;
  f.work = std::move(work);
  return f;
}
// Not the reduction over all ranks, which uses every link.
plain::Faults slow_network(std::function<bool(const Ranks&, uint32_t)> slow) {
  plain::Faults f;
  f.transfer = [slow = std::move(slow)](const Ranks& ranks, uint32_t step) {
    return ranks.size() < 60 && slow(ranks, step) ? 4.0 : 1.0;
  };
  return f;
}

struct Case {
  std::string name;
  plain::Chance chance;
  plain::Faults faults;
  std::string kind;                   // of all irregularities with suspects; empty: none
  std::string host;                   // of the first suspect
  std::optional<uint32_t> rank = {};  // of the first suspect
  int64_t first = 0, last = 11;       // irregular steps
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

plain::Chance chance(double imbalance = 0, double lost = 0, bool reported_steps = true) {
  plain::Chance c;
  c.skew_ms = 2000;
  c.imbalance = imbalance;
  c.lost = lost;
  c.reported_steps = reported_steps;
  return c;
}

std::vector<Case> cases() {
  plain::Faults stage, pauses;
  stage.stage_factor = [](uint32_t rank) { return rank >= 48 ? 1.5 : 1.0; };
  pauses.pause_ms = [](uint32_t rank, uint32_t step) { return mix64(rank, step) % 50 == 0 ? 200.0 : 0.0; };
  plain::Faults pause, collection;
  collection.pause_ms = [](uint32_t rank, uint32_t step) { return rank == 21 && step == 6 ? 250.0 : 0.0; };
  pause.pause_ms = [](uint32_t rank, uint32_t step) { return rank == 21 && step == 6 ? 600.0 : 0.0; };
  const auto gpu = slow_work([](uint32_t rank, uint32_t) { return rank == 21 ? 1.3 : 1.0; });
  return {
      {"healthy", chance(), {}, "", ""},
      {"batches of their own size", chance(.3), {}, "", ""},
      {"a stage longer than the others", chance(), stage, "", ""},
      {"pauses of one rank and another", chance(), pauses, "", ""},
      {"devices that differ as sound ones do", chance(),
       slow_work([](uint32_t r, uint32_t) { return 1 + 0.004 * (r % 11); }), "", ""},
      {"a rank that stood still once", chance(), pause, "host", "node-2", 21, 6, 6},
      {"a single pause as short as a collection of garbage", chance(), collection, "", ""},
      {"a slow device from the first step on", chance(), gpu, "gpu", "node-2", 21},
      {"with lost records and uneven batches", chance(.1, .001), gpu, "gpu", "node-2", 21},
      {"with steps that are not reported", chance(0, .001, false), gpu, "gpu", "node-2", 21},
      {"a slow device for three steps", chance(),
       slow_work([](uint32_t r, uint32_t s) { return r == 21 && s >= 5 && s < 8 ? 1.5 : 1.0; }), "gpu",
       "node-2", 21, 5, 7},
      {"a slow host", chance(), slow_work([](uint32_t r, uint32_t) { return host(r) == 2 ? 1.3 : 1.0; }),
       "host", "node-2"},
      {"a slow network card", chance(), slow_network([](const Ranks& ranks, uint32_t s) {
         return s >= 4 && crosses(ranks) && std::count(ranks.begin(), ranks.end(), 21u) > 0;
       }),
       "nic", "node-2", 21, 4, 11},
      {"a slow host's network", chance(),
       slow_network([](const Ranks& ranks, uint32_t) { return crosses(ranks) && on(ranks, 2); }), "host",
       "node-2"},
      {"a slow link", chance(),
       slow_network([](const Ranks& ranks, uint32_t) { return on(ranks, 2) && on(ranks, 4); }), "link",
       "node-2"},
      {"slow links within a host", chance(),
       slow_network([](const Ranks& ranks, uint32_t) { return !crosses(ranks) && on(ranks, 3); }), "nvlink",
       "node-3"},
  };
}

void feed(const plain::Layout& layout, const plain::Chance& c, const plain::Faults& faults,
          comm::CommTrace& trace) {
  plain::Job job(layout, c, faults);
  std::vector<std::vector<std::vector<CommRecord>>> steps;
  for (int s = 0; s < 12; ++s) steps.push_back(job.step());
  for (uint32_t h = 0; h < job.hosts(); ++h)
    for (const auto& step : steps) trace.add_records("node-" + std::to_string(h), step[h]);
}

comm::TraceFindings tell_folder(const std::string& folder) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  for (const ingest::SourceFile& file : ingest::list_sources({folder}).files) {
    if (file.kind != ingest::FileKind::kComm) continue;
    auto reader = ingest::CommFile::open(file);
    BOOST_REQUIRE(reader);
    std::vector<CommRecord> records;
    do {
      reader->next(records, 4096);
      trace.add_records(reader->header().host, records);
    } while (!records.empty());
  }
  return comm::report_findings(trace);
}

const char* data_folder() { return std::getenv("CULPRIT_DATA"); }

}  // namespace

BOOST_DATA_TEST_CASE(names_who_was_slow_and_no_rank_where_none_was, boost::unit_test::data::make(cases()),
                     c) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  feed(kLayout, c.chance, c.faults, trace);
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_TEST(answer.findings.size() == (c.kind.empty() ? 0u : 1u));
  bool named = false;
  for (const Irregularity& i : answer.irregularities) {
    if (i.suspects.empty()) {
      BOOST_TEST((i.kind == SlowPart::kJob));
      continue;
    }
    named = true;
    BOOST_TEST(to_string(i.kind) == c.kind);
    BOOST_TEST(i.first_step == c.first);
    BOOST_TEST(i.last_step == c.last);
    BOOST_TEST(i.suspects[0].host.value_or("") == c.host);
    BOOST_TEST((i.suspects[0].rank == c.rank));
    BOOST_TEST(i.cost_ms > 0);
    BOOST_TEST(!i.chain.empty());
  }
  BOOST_TEST(named == !c.kind.empty());
}

BOOST_AUTO_TEST_CASE(finds_the_second_culprit_behind_the_first) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  feed(kLayout, chance(), slow_work([](uint32_t r, uint32_t) { return r == 21   ? 1.4
                                                                      : r == 50 ? 1.3
                                                                                : 1.0; }),
       trace);
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_REQUIRE(answer.findings.size() == 2u);
  BOOST_TEST(answer.findings[0].subjects[0].rank.value() == 21u);
  BOOST_TEST(answer.findings[1].subjects[0].rank.value() == 50u);
}

BOOST_AUTO_TEST_CASE(reports_the_duration_of_a_step_without_the_excess) {
  const JobFile job;
  comm::CommTrace healthy(&job, false), slow(&job, false);
  feed(kLayout, chance(), {}, healthy);
  feed(kLayout, chance(), slow_work([](uint32_t rank, uint32_t) { return rank == 21 ? 1.4 : 1.0; }), slow);
  const comm::TraceFindings without = comm::report_findings(healthy), with = comm::report_findings(slow);
  BOOST_REQUIRE(with.irregularities.size() == 1u);
  for (size_t i = 1; i < with.steps.steps.size(); ++i)
    BOOST_TEST(with.steps.without_ms[i] == without.steps.step_ms[i], boost::test_tools::tolerance(0.02));
}

// Records as in a ring, at entry and at exit, up to a moment in a step.
void feed_until(uint64_t end_ns, const plain::Faults& faults, comm::CommTrace& trace) {
  plain::Chance c = chance();
  c.skew_ms = 0;
  plain::Job job(kLayout, c, faults);
  for (int s = 0; s < 12; ++s) {
    const auto step = job.step();
    for (uint32_t h = 0; h < job.hosts(); ++h)
      for (CommRecord record : step[h]) {
        if (record.start_ns > end_ns) continue;
        const uint64_t left = record.end_ns;
        record.end_ns = 0;
        trace.add_records("node-" + std::to_string(h), {&record, 1});
        record.end_ns = left;
        if (left != 0 && left <= end_ns) trace.add_records("node-" + std::to_string(h), {&record, 1});
      }
  }
}

BOOST_AUTO_TEST_CASE(a_trace_that_ends_in_the_middle_of_a_run_is_no_hang) {
  const JobFile job;
  comm::CommTrace whole(&job, false);
  feed_until(UINT64_MAX, {}, whole);
  const auto first = static_cast<uint64_t>(whole.first_ns()), last = static_cast<uint64_t>(whole.last_ns());
  for (uint64_t part = 1; part < 32; ++part) {
    comm::CommTrace cut(&job, false);
    feed_until(first + (last - first) / 32 * part, {}, cut);
    BOOST_TEST(!comm::report_findings(cut).hang.has_value(), "cut off after " << part << " of 32 parts");
  }
}

BOOST_AUTO_TEST_CASE(suspects_the_device_that_does_not_leave_the_last_operation) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  plain::Job plain(kLayout, chance());
  for (int s = 0; s < 6; ++s) {
    auto step = plain.step();
    for (uint32_t h = 0; h < plain.hosts(); ++h) {
      CommRecord* last = nullptr;
      for (CommRecord& record : step[h])
        if (record.rank == 21 && (!last || record.end_ns > last->end_ns)) last = &record;
      if (s == 5 && last) last->end_ns = 0;
      trace.add_records("node-" + std::to_string(h), step[h]);
    }
  }
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_REQUIRE(answer.hang);
  BOOST_REQUIRE(answer.hang->suspects.size() == 1u);
  BOOST_TEST(answer.hang->suspects[0].rank.value() == 21u);
}

// Three ranks on the cores of one host, next to other work: steps of 300 to 400 ms, each late by up to
// a fifth. Rank 1 loses 120 ms more in some of them.
comm::TraceFindings three_on_cores(const std::function<bool(uint64_t)>& slow) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  constexpr uint64_t kMs = 1'000'000;
  uint64_t at = 1'000 * kMs;
  for (uint64_t seq = 0; seq < 60; ++seq) {
    std::array<uint64_t, 3> begin{};
    for (uint32_t r = 0; r < 3; ++r)
      begin[r] = at + (300 + mix64(seq, r) % 60 + (slow(seq) && r == 1 ? 120 : 0)) * kMs;
    at = *std::max_element(begin.begin(), begin.end()) + 3 * kMs;
    for (uint32_t r = 0; r < 3; ++r) {
      CommRecord one;
      one.rank = r, one.seq = seq, one.step = static_cast<uint32_t>(seq), one.bytes = 1 << 20;
      one.op = CommOp::kAllReduce, one.comm = 1, one.comm_size = 3, one.group = CommGroup::kWorld;
      one.start_ns = begin[r], one.end_ns = at;
      trace.add_records("node-0", {&one, 1});
    }
  }
  return comm::report_findings(trace);
}

BOOST_AUTO_TEST_CASE(a_rank_on_cores_is_named_where_it_is_behind_in_nearly_all_steps_of_a_longer_time) {
  const comm::TraceFindings answer = three_on_cores([](uint64_t step) { return step >= 20; });
  BOOST_REQUIRE(answer.findings.size() == 1u);
  BOOST_TEST(answer.findings[0].subjects[0].rank.value() == 1u);
  BOOST_TEST((answer.findings[0].component == Component::kCpu));
  BOOST_TEST((answer.findings[0].category == Category::kUnknown));
}

BOOST_AUTO_TEST_CASE(work_that_takes_a_core_now_and_then_accuses_no_rank) {
  BOOST_TEST(three_on_cores([](uint64_t step) { return step % 20 >= 14; }).findings.empty());
  BOOST_TEST(three_on_cores([](uint64_t step) { return step >= 30 && step < 42; }).findings.empty());
}

// Each rank sends to its neighbour and receives from it in one launch, with common times; then all reduce.
// Rank 5 is 60 ms late; without it all would wait for rank 2, which is 45 ms late.
BOOST_AUTO_TEST_CASE(what_a_rank_costs_is_reported_where_operations_are_launched_as_one) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  constexpr uint64_t kMs = 1'000'000;
  uint64_t at = 1'000 * kMs;
  for (uint64_t seq = 0; seq < 16; ++seq) {
    const bool slow = seq >= 8;
    std::array<uint64_t, 8> begin{};
    for (uint32_t r = 0; r < 8; ++r)
      begin[r] = at + (100 + r % 3 + (slow && r == 5 ? 60 : 0) + (slow && r == 2 ? 45 : 0)) * kMs;
    uint64_t all = 0;
    for (uint32_t r = 0; r < 8; ++r) all = std::max(all, std::max(begin[r], begin[r ^ 1]) + 60 * kMs);
    for (uint32_t r = 0; r < 8; ++r) {
      CommRecord one;
      one.rank = r, one.seq = seq, one.step = static_cast<uint32_t>(seq), one.bytes = 1 << 20;
      one.comm = 10 + r / 2, one.comm_size = 2, one.peer = r ^ 1, one.group = CommGroup::kPp;
      one.start_ns = begin[r], one.end_ns = std::max(begin[r], begin[r ^ 1]) + 10 * kMs;
      std::vector<CommRecord> records;
      for (const CommOp op : {CommOp::kSend, CommOp::kRecv}) one.op = op, records.push_back(one);
      one.op = CommOp::kAllReduce, one.comm = 1, one.comm_size = 8, one.peer = kCommUnknown;
      one.group = CommGroup::kWorld;
      one.start_ns = one.end_ns + 50 * kMs, one.end_ns = all + 5 * kMs;
      records.push_back(one);
      trace.add_records("node-" + std::to_string(r), records);
    }
    at = all + 5 * kMs;
  }
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_REQUIRE(answer.irregularities.size() == 1u);
  const Irregularity& slow = answer.irregularities[0];
  BOOST_TEST(slow.suspects.at(0).rank.value() == 5u);
  BOOST_TEST(slow.cost_ms == 15, boost::test_tools::tolerance(0.1));
}

// Three pairs. Rank 1 never enters the sixth operation of its pair, and the last operation of rank 3 was not
// recorded. The first ranks of all pairs have a common operation, and so have the second ranks.
BOOST_AUTO_TEST_CASE(ranks_that_wait_for_the_culprit_are_not_suspects) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  constexpr uint64_t kMs = 1'000'000;
  std::vector<std::vector<CommRecord>> hosts(3);
  for (uint32_t rank = 0; rank < 6; ++rank)
    for (uint64_t seq = 0; seq < 6; ++seq) {
      CommRecord one;
      one.rank = rank, one.seq = seq, one.step = static_cast<uint32_t>(seq);
      one.op = CommOp::kAllReduce, one.bytes = 1 << 20;
      one.comm = 10 + rank / 2, one.comm_size = 2, one.group = CommGroup::kTp;
      one.start_ns = (100 * seq + 10 + rank) * kMs, one.end_ns = (100 * seq + 20) * kMs;
      if (seq == 5 && rank == 1) break;
      if (seq == 5 && rank == 0) one.end_ns = 0;
      hosts[rank / 2].push_back(one);
      if (seq == 5 && (rank == 0 || rank == 3)) break;
      one.comm = 20 + rank % 2, one.comm_size = 3, one.group = CommGroup::kDp;
      one.start_ns += 20 * kMs, one.end_ns = seq == 5 ? 0 : one.end_ns + 20 * kMs;
      hosts[rank / 2].push_back(one);
    }
  for (size_t h = 0; h < hosts.size(); ++h) trace.add_records("node-" + std::to_string(h), hosts[h]);
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_REQUIRE(answer.hang);
  BOOST_REQUIRE(answer.hang->suspects.size() == 1u);
  BOOST_TEST(answer.hang->suspects[0].rank.value() == 1u);
}

// Three ranks wait for the fourth, and no operation begins or ends: only later joins show that time passed.
BOOST_AUTO_TEST_CASE(joins_that_are_written_again_show_that_a_trace_ends_in_a_hang) {
  for (const bool again : {false, true}) {
    const JobFile job;
    comm::CommTrace trace(&job, false);
    constexpr uint64_t kMs = 1'000'000;
    std::vector<CommRecord> records;
    for (uint64_t seq = 0; seq < 6; ++seq)
      for (uint32_t rank = 0; rank < (seq == 5 ? 3 : 4); ++rank) {
        CommRecord one;
        one.rank = rank, one.seq = seq, one.step = static_cast<uint32_t>(seq);
        one.op = CommOp::kAllReduce, one.bytes = 1 << 20;
        one.comm = 1, one.comm_size = 4, one.group = CommGroup::kWorld;
        one.start_ns = (100 * seq + 10 + rank) * kMs, one.end_ns = 0;
        records.push_back(one);  // at its entry, and again at its exit
        one.end_ns = (100 * seq + 20) * kMs;
        if (seq < 5) records.push_back(one);
      }
    for (uint32_t rank = 0; again && rank < 4; ++rank) {
      CommRecord join;
      join.rank = rank, join.op = CommOp::kJoin, join.comm = 1, join.comm_size = 4;
      join.group = CommGroup::kWorld, join.start_ns = join.end_ns = 5'000 * kMs;
      records.push_back(join);
    }
    trace.add_records("node-0", records);
    const comm::TraceFindings answer = comm::report_findings(trace);
    BOOST_REQUIRE(answer.hang.has_value() == again);
    if (again) BOOST_TEST(answer.hang->suspects.at(0).rank.value() == 3u);
  }
}

BOOST_AUTO_TEST_CASE(hosts_of_which_nothing_is_recorded_are_reported_and_blame_no_rank) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  plain::Job plain(kLayout, chance());
  for (int s = 0; s < 6; ++s) trace.add_records("node-3", plain.step()[3]);
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_TEST(answer.findings.empty());
  BOOST_TEST(!answer.hang.has_value());
  BOOST_REQUIRE(trace.drop_sentences().size() == 1u);
  BOOST_TEST(trace.drop_sentences()[0] ==
             "not there: communication records of 56 of 64 ranks that communicators speak of: ranks 0 to 23, "
             "32 to 63");
}

// If the last record of a rank's step is lost, its next step seems to begin long before the others'.
BOOST_AUTO_TEST_CASE(a_step_whose_end_is_lost_blames_no_rank_for_the_next) {
  const JobFile job;
  plain::Faults faults;
  faults.transfer = [](const Ranks& ranks, uint32_t step) {
    return step == 5 && ranks.size() == 64 ? 4000.0 : 1.0;  // the last operation of all: a checkpoint's
  };
  plain::Job plain(kLayout, chance(), faults);
  comm::CommTrace trace(&job, false);
  for (int s = 0; s < 12; ++s) {
    auto step = plain.step();
    const auto last =
        std::max_element(step[2].begin(), step[2].end(), [](const CommRecord& a, const CommRecord& b) {
          return std::pair(a.rank == 21, a.end_ns) < std::pair(b.rank == 21, b.end_ns);
        });
    if (s == 5) step[2].erase(last);
    for (uint32_t h = 0; h < plain.hosts(); ++h) trace.add_records("node-" + std::to_string(h), step[h]);
  }
  BOOST_TEST(comm::report_findings(trace).findings.empty());
}

// All traffic of the job uses the links within one host: there is no comparison.
BOOST_AUTO_TEST_CASE(on_one_host_its_links_are_no_part_that_could_be_slow) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  feed({2, 2, 2, 8, 2, 8}, chance(), slow_network([](const Ranks&, uint32_t step) { return step >= 6; }),
       trace);
  BOOST_TEST(comm::report_findings(trace).findings.empty());
}

// A path between two hosts in a ring of eight: any two of them may be the cause, so no host is named.
BOOST_AUTO_TEST_CASE(a_slowdown_that_many_parts_explain_names_no_part) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  feed({1, 8, 1, 8, 2, 1}, chance(),
       slow_network([](const Ranks& ranks, uint32_t step) { return ranks.size() == 8 && step >= 6; }), trace);
  BOOST_TEST(comm::report_findings(trace).findings.empty());
}

BOOST_AUTO_TEST_CASE(is_the_surer_the_more_steps_a_culprit_shows_in) {
  const JobFile job;
  double sure = 0;
  for (const uint32_t from : {9u, 6u, 0u}) {
    comm::CommTrace trace(&job, false);
    feed(kLayout, chance(),
         slow_work([&](uint32_t r, uint32_t s) { return r == 21 && s >= from ? 1.5 : 1.0; }), trace);
    const comm::TraceFindings answer = comm::report_findings(trace);
    BOOST_REQUIRE(answer.findings.size() == 1u);
    BOOST_TEST(answer.findings[0].confidence > sure);
    sure = answer.findings[0].confidence;
  }
  BOOST_TEST(sure < 1);
}

BOOST_AUTO_TEST_CASE(suspects_the_rank_that_does_not_enter) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  plain::Faults faults;
  faults.stuck_rank = 21;
  faults.stuck_step = 11;
  feed(kLayout, chance(), faults, trace);
  const comm::TraceFindings answer = comm::report_findings(trace);
  BOOST_REQUIRE(answer.hang);
  BOOST_REQUIRE(answer.hang->suspects.size() == 1u);
  BOOST_TEST(answer.hang->suspects[0].rank.value() == 21u);
}

BOOST_AUTO_TEST_CASE(the_order_of_records_changes_nothing) {
  const JobFile job;
  comm::CommTrace forward(&job, false), mixed(&job, false);
  const auto faults = slow_work([](uint32_t rank, uint32_t) { return rank == 21 ? 1.3 : 1.0; });
  feed(kLayout, chance(), faults, forward);
  plain::Job plain(kLayout, chance(), faults);
  std::mt19937_64 random(3);
  for (int s = 0; s < 12; ++s) {
    auto step = plain.step();
    for (uint32_t h = 0; h < plain.hosts(); ++h) {
      std::shuffle(step[h].begin(), step[h].end(), random);
      mixed.add_records("node-" + std::to_string(h), step[h]);
      mixed.add_records("node-" + std::to_string(h), {step[h].data(), 10});  // and some records twice
    }
  }
  const comm::TraceFindings a = comm::report_findings(forward), b = comm::report_findings(mixed);
  BOOST_REQUIRE(a.irregularities.size() == 1u);
  BOOST_REQUIRE(b.irregularities.size() == 1u);
  BOOST_TEST(a.irregularities[0].suspects[0].rank.value() == b.irregularities[0].suspects[0].rank.value());
  BOOST_TEST(a.irregularities[0].cost_ms == b.irregularities[0].cost_ms, boost::test_tools::tolerance(1e-6));
  BOOST_TEST(mixed.drop_sentences().size() == 1u);
}

BOOST_AUTO_TEST_CASE(names_rank_0_of_a_real_job_and_no_rank_of_another) {
  if (!data_folder()) {
    BOOST_TEST_MESSAGE("passed over: CULPRIT_DATA is not set");
    return;
  }
  const comm::TraceFindings ar = tell_folder(std::string(data_folder()) + "/comm/straggler-AR");
  BOOST_REQUIRE(ar.irregularities.size() == 1u);
  BOOST_TEST(ar.irregularities[0].suspects[0].rank.value() == 0u);
  BOOST_TEST(ar.irregularities[0].first_step == ar.steps.steps.front());
  BOOST_TEST(ar.irregularities[0].last_step == ar.steps.steps.back());
  const comm::TraceFindings st = tell_folder(std::string(data_folder()) + "/comm/straggler-ST");
  BOOST_TEST(st.findings.empty());
  BOOST_TEST(st.irregularities.empty());
}

BOOST_FIXTURE_TEST_CASE(only_hosts_that_are_slow_at_the_same_time_hang_on_one_switch, StepResults) {
  slow_way_out(1, 0, 40);
  slow_way_out(2, 60, 100);
  auto culprits = comm::judge(cluster, steps).culprits;
  BOOST_REQUIRE(culprits.size() == 2u);
  BOOST_TEST((culprits[0].kind == SlowPart::kHost));
  BOOST_TEST((culprits[1].kind == SlowPart::kHost));
  slow_way_out(3, 5, 45);
  culprits = comm::judge(cluster, steps).culprits;
  BOOST_REQUIRE(culprits.size() == 2u);
  BOOST_TEST((culprits[0].kind == SlowPart::kSwitch));
  BOOST_TEST((culprits[0].hosts == Ranks{1, 3}));
  BOOST_TEST((culprits[1].kind == SlowPart::kHost));
}

// Rank 5 started late, and is slow after rank 9 recovered.
BOOST_FIXTURE_TEST_CASE(ranks_are_compared_over_the_same_steps_where_one_lacks_some, StepResults) {
  for (uint32_t s = 40; s < kSteps; ++s) {
    comm::RankStep& of = steps[s].ranks[s < 70 ? 9 : 5];
    of.excess = of.closer = of.path = 30;
    of.self += 30;
  }
  for (uint32_t s = 0; s < 30; ++s) steps[s].ranks.erase(steps[s].ranks.begin() + 5);
  const auto culprits = comm::judge(cluster, steps).culprits;
  BOOST_REQUIRE(culprits.size() == 2u);
  for (const comm::Culprit& c : culprits) BOOST_TEST(c.confidence > 0.95);
}

BOOST_FIXTURE_TEST_CASE(a_burst_of_slow_steps_is_one_event_and_names_no_rank, StepResults) {
  for (uint32_t s = 40; s < 52; ++s) slow(5, s, 60);
  BOOST_TEST(comm::judge(cluster, steps).culprits.empty());
}

BOOST_FIXTURE_TEST_CASE(a_lasting_share_of_the_steps_is_a_fault, StepResults) {
  for (uint32_t s = 60; s < kSteps; ++s) slow(5, s, 30);
  const auto culprits = comm::judge(cluster, steps).culprits;
  BOOST_REQUIRE(culprits.size() == 1u);
  BOOST_TEST((culprits[0].ranks == Ranks{5}));
  BOOST_TEST(culprits[0].lasting);
}

BOOST_FIXTURE_TEST_CASE(a_live_job_is_given_time_before_a_rank_is_named, StepResults) {
  steps.resize(40);
  for (uint32_t s = 30; s < 40; ++s) slow(5, s, 30);
  BOOST_TEST(comm::judge(cluster, steps).culprits.size() == 1u);
  BOOST_TEST(comm::judge(cluster, steps, true).culprits.empty());
}

BOOST_FIXTURE_TEST_CASE(a_rank_that_is_slow_in_one_of_seven_steps_is_named, StepResults) {
  for (uint32_t s = 3; s < kSteps; s += 7) slow(5, s, 30);
  const auto culprits = comm::judge(cluster, steps).culprits;
  BOOST_REQUIRE(culprits.size() == 1u);
  BOOST_TEST((culprits[0].ranks == Ranks{5}));
  BOOST_TEST(culprits[0].period == 7u);
}

BOOST_FIXTURE_TEST_CASE(four_stalls_of_one_rank_name_it, StepResults) {
  for (const uint32_t s : {8u, 31u, 64u, 90u}) slow(5, s, 600);
  const auto culprits = comm::judge(cluster, steps).culprits;
  BOOST_REQUIRE(culprits.size() == 1u);
  BOOST_TEST((culprits[0].ranks == Ranks{5}));
  BOOST_TEST(culprits[0].stalls);
  BOOST_TEST(culprits[0].events == 4u);
}

BOOST_FIXTURE_TEST_CASE(a_few_stalls_with_a_period_are_likely_and_name_no_rank_alone, StepResults) {
  steps.resize(40);
  for (const uint32_t s : {3u, 11u, 19u, 35u}) slow(5, s, 600);
  const comm::Judgement judged = comm::judge(cluster, steps);
  BOOST_TEST(judged.culprits.empty());
  BOOST_REQUIRE(judged.likely.size() == 1u);
  BOOST_TEST((judged.likely[0].ranks == Ranks{5}));
  BOOST_TEST(judged.likely[0].confidence < 0.95);
}

BOOST_FIXTURE_TEST_CASE(stalls_without_a_period_are_not_even_likely, StepResults) {
  steps.resize(40);
  for (const uint32_t s : {5u, 9u, 26u}) slow(5, s, 600);
  BOOST_TEST(comm::judge(cluster, steps).likely.empty());
}

BOOST_FIXTURE_TEST_CASE(stalls_of_one_rank_and_another_name_no_rank, StepResults) {
  for (uint32_t s = 4; s < kSteps; s += 6) slow(static_cast<uint32_t>(mix64(s, 1) % kRanks), s, 600);
  BOOST_TEST(comm::judge(cluster, steps).culprits.empty());
}

BOOST_FIXTURE_TEST_CASE(what_rank_0_does_every_ten_steps_is_the_program, StepResults) {
  for (uint32_t s = 9; s < kSteps; s += 10) slow(0, s, 600);
  BOOST_TEST(comm::judge(cluster, steps).culprits.empty());
}

BOOST_FIXTURE_TEST_CASE(a_job_slower_by_some_percent_accuses_no_rank, StepResults) {
  for (uint32_t s = 0; s < kSteps; ++s) slow(5, s, 4);
  BOOST_TEST(comm::judge(cluster, steps).culprits.empty());
}

// Ranks 0 to 3 of one group; the operation number 5 that each enters.
comm::TraceFindings tell_calls(const std::vector<std::pair<CommOp, uint64_t>>& calls, uint64_t last = 5) {
  static const JobFile job;
  comm::CommTrace trace(&job, false);
  for (uint32_t rank = 0; rank < calls.size(); ++rank)
    for (uint64_t seq = 0; seq <= last; ++seq) {
      CommRecord one;
      one.rank = rank, one.seq = seq, one.step = static_cast<uint32_t>(seq), one.comm = 7;
      one.comm_size = static_cast<uint32_t>(calls.size());
      one.op = seq == 5 ? calls[rank].first : CommOp::kAllReduce;
      one.bytes = seq == 5 ? calls[rank].second : 1024;
      one.start_ns = (1000 + 100 * seq + rank) * 1'000'000;
      one.end_ns = (1010 + 100 * seq) * 1'000'000;
      trace.add_records("node-" + std::to_string(rank), {&one, 1});
    }
  return comm::report_findings(trace);
}

BOOST_AUTO_TEST_CASE(a_rank_that_enters_another_collective_than_its_peers_is_the_programs_fault) {
  using enum CommOp;
  const comm::TraceFindings answer =
      tell_calls({{kAllReduce, 1024}, {kAllReduce, 1024}, {kAllGather, 1024}, {kAllReduce, 1024}});
  BOOST_REQUIRE(answer.findings.size() == 1u);
  const Finding& f = answer.findings[0];
  BOOST_TEST(f.title == "Rank 2 (node-2) entered all_gather where 3 peers entered all_reduce");
  BOOST_TEST((f.category == Category::kUser));
  BOOST_TEST(f.iteration.value() == 5);
  BOOST_TEST(f.by_no_device);
}

BOOST_AUTO_TEST_CASE(sizes_that_differ_are_a_fault_only_where_they_must_be_alike) {
  using enum CommOp;
  const auto sizes = [](CommOp op, uint64_t other) {
    return tell_calls({{op, 1024}, {op, 1024}, {op, other}, {op, 1024}}).findings.size();
  };
  BOOST_TEST(sizes(kAllReduce, 2048) == 1u);
  BOOST_TEST(sizes(kBroadcast, 0) == 0u);  // no rank reported it
  BOOST_TEST(sizes(kAllToAll, 2048) == 0u);
  BOOST_TEST(sizes(kAllGather, 2048) == 0u);
}

// A library that ends its processes at once: the operation stays open, and no clock is over.
BOOST_AUTO_TEST_CASE(open_calls_that_differ_count_once_the_process_of_a_rank_ended) {
  const JobFile job;
  comm::CommTrace trace(&job, true);
  for (uint32_t rank = 0; rank < 4; ++rank)
    for (uint64_t seq = 0; seq <= 5; ++seq) {
      CommRecord one;
      one.rank = rank, one.seq = seq, one.step = static_cast<uint32_t>(seq), one.comm = 7, one.comm_size = 4;
      one.op = CommOp::kAllReduce;
      one.bytes = seq == 5 && rank == 2 ? 4096 : 256;
      one.start_ns = (1000 + 100 * seq + rank) * 1'000'000;
      one.end_ns = seq == 5 ? 0 : (1010 + 100 * seq) * 1'000'000;
      trace.add_records("node-" + std::to_string(rank), {&one, 1});
    }
  BOOST_TEST(comm::report_findings(trace, comm::Stopped::kNo).findings.empty());
  const comm::TraceFindings output = comm::report_findings(trace, comm::Stopped::kRanksEnded);
  BOOST_REQUIRE(output.findings.size() == 1u);
  BOOST_TEST(
      output.findings[0].title ==
      "Rank 2 (node-2) entered all_reduce of 4096 bytes where 3 peers entered all_reduce of 256 bytes");
  BOOST_TEST(!output.hang);
}

BOOST_AUTO_TEST_CASE(ranks_that_go_on_after_a_mismatch_only_count_differently) {
  using enum CommOp;
  BOOST_TEST(
      tell_calls({{kAllReduce, 8}, {kAllReduce, 8}, {kAllGather, 8}, {kAllReduce, 8}}, 12).findings.empty());
}

BOOST_FIXTURE_TEST_CASE(unrequested_answers_take_no_room_of_requested_ones, StepResults) {
  cluster.settle();
  for (comm::StepResult& step : steps) step.basis = comm::Basis::kSums;
  comm::Culprit culprit;
  culprit.ranks = {3};
  culprit.steps = {90};
  comm::RecordRequests asked;
  for (uint32_t i = 0; i < 2 * comm::kStepsOfJob; ++i) asked.add_answer({0, 1000 + i, {CommRecord()}, {}}, 1);
  BOOST_TEST(asked.choose(cluster, steps, {culprit}, 2).size() == 1u);
  // Evaluated answers are removed, which makes room for others.
  const auto complete = asked.complete(1000 * kNsPerSecond);
  BOOST_TEST(complete.size() == comm::kStepsUnasked);
  for (const int64_t step : complete) asked.done(step);
  asked.add_answer({0, 5000, {CommRecord()}, {}}, 1);
  BOOST_TEST((asked.complete(1000 * kNsPerSecond) == std::vector<int64_t>{5000}));
}

// Stages of one host each: a slow host looks like a stage with more layers.
BOOST_AUTO_TEST_CASE(a_stage_that_one_host_runs_alone_and_slowly_is_reported_as_unknown) {
  const JobFile job;
  comm::CommTrace slow(&job, false), healthy(&job, false);
  const plain::Layout layout{2, 4, 4, 8, 2, 8};
  feed(layout, chance(), slow_work([](uint32_t r, uint32_t) { return host(r) == 1 ? 1.8 : 1.0; }), slow);
  const comm::TraceFindings answer = comm::report_findings(slow);
  BOOST_TEST(answer.findings.empty());
  BOOST_REQUIRE(answer.missing.size() == 1u);
  BOOST_TEST(answer.missing[0].find("all of them run on node-1") != std::string::npos, answer.missing[0]);
  feed(layout, chance(), {}, healthy);
  BOOST_TEST(comm::report_findings(healthy).missing.empty());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_records_is_counted_and_reported) {
  const JobFile job;
  comm::CommTrace trace(&job, false);
  std::vector<CommRecord> records(4);
  for (CommRecord& r : records) r = {100, 200, 1, 0, 0, 0, 0, kCommUnknown, 2, CommOp::kBarrier};
  records[0].end_ns = 50;
  records[1].rank = 0xffffff00;
  records[2].op = static_cast<CommOp>(99);
  records[3].end_ns = 1ull << 62;
  trace.add_records("a", records);
  BOOST_TEST(trace.empty());
  BOOST_TEST(trace.drop_sentences().size() == 4u);
}
