// Summaries that hosts send in place of their records, compared with the answer from all records.
#include "core/detect/comm/step_summary.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <optional>
#include <tuple>

#include "../../../../sim/plain_job.h"
#include "core/detect/comm/findings.h"

using namespace culprit;
using namespace culprit::comm;

namespace {

// 64 ranks on 8 hosts.
constexpr plain::Layout kLayout{4, 4, 4, 8, 2, 8};
constexpr uint32_t kHosts = 8, kSteps = 20;
const JobFile kNoJob;

uint32_t host_of(uint32_t rank) { return rank / 8; }
std::string name_of(uint32_t host) { return "node-" + std::to_string(host); }

struct Case {
  std::string name;
  plain::Chance chance;
  plain::Faults faults;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

plain::Chance chance(double imbalance = 0, double lost = 0) {
  plain::Chance c;
  c.imbalance = imbalance;
  c.lost = lost;
  return c;
}

plain::Faults slow_work(std::function<double(uint32_t, uint32_t)> work) {
  plain::Faults f;
  f.work = std::move(work);
  return f;
}

using Ranks = std::vector<uint32_t>;
bool crosses(const Ranks& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [&](uint32_t r) { return host_of(r) != host_of(ranks[0]); });
}
bool on(const Ranks& ranks, uint32_t host) {
  return std::any_of(ranks.begin(), ranks.end(), [host](uint32_t r) { return host_of(r) == host; });
}
// Not the reduction over all ranks, which uses every link.
plain::Faults slow_network(std::function<bool(const Ranks&)> slow) {
  plain::Faults f;
  f.transfer = [slow = std::move(slow)](const Ranks& ranks, uint32_t) {
    return ranks.size() < 60 && slow(ranks) ? 4.0 : 1.0;
  };
  return f;
}

std::vector<Case> cases() {
  plain::Faults stage, pauses;
  stage.stage_factor = [](uint32_t rank) { return rank >= 48 ? 1.5 : 1.0; };
  pauses.pause_ms = [](uint32_t rank, uint32_t step) { return mix64(rank, step) % 50 == 0 ? 200.0 : 0.0; };
  return {
      {"healthy", chance(), {}},
      {"a stage longer than the others", chance(), stage},
      {"pauses of one rank and another", chance(), pauses},
      {"a slow device from the first step on", chance(),
       slow_work([](uint32_t r, uint32_t) { return r == 21 ? 1.3 : 1.0; })},
      {"a slow device and lost records", chance(0, .001),
       slow_work([](uint32_t r, uint32_t) { return r == 21 ? 1.5 : 1.0; })},
      {"a slow device for five steps", chance(),
       slow_work([](uint32_t r, uint32_t s) { return r == 21 && s >= 4 && s < 9 ? 1.5 : 1.0; })},
      {"a slow host", chance(), slow_work([](uint32_t r, uint32_t) { return host_of(r) == 2 ? 1.3 : 1.0; })},
      {"a slow network card", chance(), slow_network([](const Ranks& ranks) {
         return crosses(ranks) && std::count(ranks.begin(), ranks.end(), 21u) > 0;
       })},
      {"a slow host's network", chance(),
       slow_network([](const Ranks& ranks) { return crosses(ranks) && on(ranks, 2); })},
      {"a slow link", chance(),
       slow_network([](const Ranks& ranks) { return on(ranks, 2) && on(ranks, 4); })},
      {"slow links within a host", chance(),
       slow_network([](const Ranks& ranks) { return !crosses(ranks) && on(ranks, 3); })},
  };
}

// By host, step after step. The same job with synchronised clocks, or with clocks that differ by seconds.
std::vector<std::vector<std::vector<CommRecord>>> records_of(const Case& c, double skew_ms = 2000) {
  plain::Chance chance = c.chance;
  chance.skew_ms = skew_ms;
  plain::Job job(kLayout, chance, c.faults);
  std::vector<std::vector<std::vector<CommRecord>>> out(kHosts);
  for (uint32_t s = 0; s < kSteps; ++s) {
    auto step = job.step();
    for (uint32_t h = 0; h < kHosts; ++h) out[h].push_back(std::move(step[h]));
  }
  return out;
}

struct Sizes {
  size_t records = 0, bytes = 0, vectors = 0;
};

// A job's agents, and a collector; messages go as bytes.
class Agents {
 public:
  explicit Agents(const std::vector<std::vector<std::vector<CommRecord>>>& records) : records_(records) {
    for (Host& host : hosts_) host.trace.condense_into(&host.condenser);
  }

  void go_on(size_t until) {
    for (uint32_t h = 0; h < kHosts; ++h) {
      for (size_t s = done_; s < until; ++s) {
        hosts_[h].trace.add_records(name_of(h), records_[h][s]);
        sizes.records += records_[h][s].size();
      }
      sizes.bytes += send(h);
    }
    done_ = until;
  }

  // Connected agents answer the requests. Returns the number of bytes.
  size_t answer(const std::vector<StepsWanted>& wanted, uint32_t exited = kHosts) {
    size_t bytes = 0;
    for (const StepsWanted& one : wanted)
      for (uint32_t h = 0; h < kHosts; ++h)
        if (std::find(one.hosts.begin(), one.hosts.end(), name_of(h)) != one.hosts.end() && h != exited) {
          hosts_[h].condenser.answer(one.steps);
          bytes += send(h);
        }
    return bytes;
  }

  TraceFindings findings() { return report_findings(all_, comm::Stopped::kNo); }
  Sizes sizes;

 private:
  struct Host {
    CommTrace trace{&kNoJob, true};
    StepSummarizer condenser;
    std::vector<RankStreams> streams;
  };

  size_t send(uint32_t h) {
    Host& host = hosts_[h];
    PackedWriter out;
    pack(host.condenser.drain(), out);
    PackedReader in(out.bytes());
    HostVectors reported;
    BOOST_REQUIRE(unpack(in, host.streams.size(), reported));
    BOOST_REQUIRE(in.done());
    sizes.vectors += reported.vectors.size();
    host.streams.insert(host.streams.end(), reported.streams.begin(), reported.streams.end());
    all_.add_summaries(name_of(h), reported, host.streams);
    return out.size();
  }

  const std::vector<std::vector<std::vector<CommRecord>>>& records_;
  std::vector<Host> hosts_ = std::vector<Host>(kHosts);
  CommTrace all_{&kNoJob, true};
  size_t done_ = 0;
};

TraceFindings from_records(const std::vector<std::vector<std::vector<CommRecord>>>& records) {
  CommTrace all(&kNoJob, true);
  for (uint32_t s = 0; s < kSteps; ++s)
    for (uint32_t h = 0; h < kHosts; ++h) all.add_records(name_of(h), records[h][s]);
  return report_findings(all, comm::Stopped::kNo);
}

std::string words(const Irregularity& i) {
  std::string out =
      std::string(to_string(i.kind)) + " " + std::to_string(i.first_step) + "-" + std::to_string(i.last_step);
  if (!i.suspects.empty())
    out += " " + i.suspects[0].host.value_or("-") + " " +
           (i.suspects[0].rank ? std::to_string(*i.suspects[0].rank) : "-");
  return out;
}

}  // namespace

// Equal: the number of known steps, and of each irregularity its kind, steps, first suspect and score; after
// records were requested also its cost, and the chain exists.
BOOST_DATA_TEST_CASE(summaries_agree_with_all_records, cases(), c) {
  const auto records = records_of(c), in_time = records_of(c, 0);
  Agents agents(records);
  agents.go_on(kSteps / 2);
  agents.go_on(kSteps);
  TraceFindings reported = agents.findings();
  const TraceFindings whole = from_records(in_time), sums = reported;
  const size_t asked = agents.answer(reported.wanted);
  reported = agents.findings();
  const double raw = 64.0 * static_cast<double>(agents.sizes.records);
  BOOST_TEST_MESSAGE(
      c.name << ": " << static_cast<double>(agents.sizes.bytes) / static_cast<double>(agents.sizes.vectors)
             << " bytes a rank and step, " << 100 * static_cast<double>(agents.sizes.bytes) / raw
             << " % of records; asked for " << 100 * static_cast<double>(asked) / raw << " %");
  BOOST_REQUIRE(!whole.steps.steps.empty());
  BOOST_TEST(reported.steps.steps.back() + 3 >=
             whole.steps.steps.back());  // two of an agent, and two of a collector
  std::vector<std::string> here, there;
  const int64_t last = reported.steps.steps.back();
  for (const Irregularity& i : reported.irregularities) here.push_back(words(i));
  for (Irregularity i : whole.irregularities) {
    if (i.first_step > last) continue;
    i.last_step = std::min(i.last_step, last);  // blocks of the last steps may be missing
    there.push_back(words(i));
  }
  BOOST_TEST(here == there, boost::test_tools::per_element());
  const bool named = std::any_of(reported.irregularities.begin(), reported.irregularities.end(),
                                 [](const Irregularity& i) { return !i.suspects.empty(); });
  BOOST_TEST(named == !sums.wanted.empty());  // without a suspect no records are requested
  for (size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    const Irregularity &a = reported.irregularities[i], &b = whole.irregularities[i];
    if (a.suspects.empty() || b.suspects.empty()) continue;
    BOOST_TEST(std::abs(a.suspects[0].score - b.suspects[0].score) <= 0.05 * b.suspects[0].score);
    BOOST_TEST_MESSAGE("  score " << a.suspects[0].score << " of " << b.suspects[0].score << ", cost "
                                  << a.cost_ms << " of " << b.cost_ms << " ms, "
                                  << sums.irregularities[i].cost_ms << " by sums; chain of " << a.chain.size()
                                  << " and " << b.chain.size());
    BOOST_TEST(std::abs(a.cost_ms - b.cost_ms) <= 0.05 * b.cost_ms);
    BOOST_TEST(!a.chain.empty());
  }
}

// For a job of a thousand steps summaries and records together are less than a hundredth of all records.
BOOST_AUTO_TEST_CASE(summaries_and_requested_records_are_a_hundredth) {
  const auto slow = slow_work([](uint32_t r, uint32_t) { return r == 21 ? 1.3 : 1.0; });
  const auto records = records_of({"", chance(), slow});
  Agents agents(records);
  agents.go_on(kSteps);
  const size_t asked = agents.answer(agents.findings().wanted);  // one step
  const double raw_step = 64.0 * static_cast<double>(agents.sizes.records) / kSteps;
  const double sums = static_cast<double>(agents.sizes.bytes) / kSteps;
  const double part = (1000 * sums + kStepsAsked * static_cast<double>(asked)) / (1000 * raw_step);
  BOOST_TEST_MESSAGE("of a thousand steps " << 100 * part << " %");
  BOOST_TEST(asked > 0u);
  BOOST_TEST(part <= 0.01);
}

// The result of the summaries stays, and the report says that it has no more.
BOOST_AUTO_TEST_CASE(without_the_culprits_records_sums_count) {
  const auto slow = slow_work([](uint32_t r, uint32_t) { return r == 21 ? 1.3 : 1.0; });
  const auto records = records_of({"", chance(), slow});
  Agents agents(records);
  agents.go_on(kSteps);
  const TraceFindings sums = agents.findings();
  BOOST_REQUIRE(!sums.wanted.empty());
  agents.answer(sums.wanted, host_of(21));
  const TraceFindings reported = agents.findings();
  BOOST_REQUIRE(reported.irregularities.size() == 1u);
  BOOST_TEST(reported.irregularities[0].cost_ms == sums.irregularities[0].cost_ms);
  BOOST_TEST(reported.wanted.empty());  // not again at once
  const auto& why = reported.irregularities[0].suspects.at(0).why;
  BOOST_TEST(std::any_of(why.begin(), why.end(),
                         [](const std::string& w) { return w.find("as far as sums tell") != w.npos; }));
}

BOOST_AUTO_TEST_CASE(summaries_of_a_restarted_job_are_judged_again) {
  constexpr uint64_t kLaterNs = 3'600'000'000'000;
  auto records = records_of({"", chance(), {}});
  const auto again =
      records_of({"", chance(), slow_work([](uint32_t r, uint32_t) { return r == 21 ? 1.3 : 1.0; })});
  for (uint32_t h = 0; h < kHosts; ++h)
    for (auto step : again[h]) {
      for (CommRecord& r : step) {
        r.start_ns += kLaterNs;
        r.end_ns += kLaterNs;
        r.step += 5;
      }
      records[h].push_back(std::move(step));
    }
  Agents agents(records);
  for (size_t until = 7; until < records[0].size(); until += 7) agents.go_on(until);
  agents.go_on(records[0].size());
  TraceFindings reported = agents.findings();
  agents.answer(reported.wanted);
  reported = agents.findings();
  BOOST_TEST(reported.steps.steps.size() >= 2 * kSteps - 14u);
  BOOST_TEST(reported.steps.steps.back() >= 20);
  BOOST_REQUIRE(reported.findings.size() == 1u);
  BOOST_TEST(reported.findings[0].subjects[0].rank.value() == 21u);
}

// Exact to the nanosecond, also for an unfinished operation.
BOOST_AUTO_TEST_CASE(requested_records_are_exact) {
  plain::Faults f;
  f.stuck_rank = 21;
  f.stuck_step = 1;
  const auto records = records_of({"", chance(), f});
  CommTrace trace(&kNoJob, false);
  StepSummarizer condenser;
  trace.condense_into(&condenser);
  for (size_t s = 0; s < 2; ++s) trace.add_records(name_of(2), records[2][s]);
  trace.settle();
  const std::vector<RankStreams> streams = condenser.drain().streams;
  condenser.answer({1, 7});
  const HostVectors reported = condenser.drain();
  BOOST_REQUIRE(reported.answers.size() == 2u);
  BOOST_TEST(reported.answers[1].ranks.empty());  // a step that the agent does not have
  std::vector<CommRecord> came, were = records[2][1];
  for (const RankRecords& rank : reported.answers[0].ranks) {
    OwnRecords own;
    BOOST_REQUIRE(unpack(rank, streams[rank.streams], 1, own));
    BOOST_TEST(own.before_ns >= 0);
    came.insert(came.end(), own.records.begin(), own.records.end());
    RankRecords cut = rank;
    cut.packed.pop_back();
    OwnRecords none;
    BOOST_TEST(!unpack(cut, streams[rank.streams], 1, none));
  }
  const auto order = [](const CommRecord& a, const CommRecord& b) {
    return std::tie(a.rank, a.start_ns, a.comm, a.seq) < std::tie(b.rank, b.start_ns, b.comm, b.seq);
  };
  std::sort(came.begin(), came.end(), order);
  std::sort(were.begin(), were.end(), order);
  BOOST_TEST((came == were));
}

// A few dozen bytes, for any number of records in a step.
BOOST_AUTO_TEST_CASE(a_rank_and_step_takes_at_most_64_bytes) {
  const auto records = records_of({"healthy", chance(), {}});
  Agents agents(records);
  agents.go_on(kSteps);
  BOOST_TEST(agents.sizes.bytes <= 64 * agents.sizes.vectors);
}

// No single host can see the stuck rank; the standing operations of all hosts together show it.
BOOST_AUTO_TEST_CASE(standing_ranks_show_who_is_stuck) {
  plain::Faults f;
  f.stuck_rank = 21;
  f.stuck_step = kSteps - 1;
  const auto records = records_of({"stuck", chance(), f});
  CommTrace all(&kNoJob, true);
  std::vector<StepSummarizer> condensers(kHosts);
  for (uint32_t h = 0; h < kHosts; ++h) {
    CommTrace trace(&kNoJob, true);
    trace.condense_into(&condensers[h]);
    for (const auto& step : records[h]) trace.add_records(name_of(h), step);
    for (const CommRecord& r : trace.open_records()) condensers[h].pass(r);
    const HostVectors reported = condensers[h].drain();
    all.add_summaries(name_of(h), reported, reported.streams);
  }
  const auto stuck = all.stuck();
  BOOST_REQUIRE(stuck);
  BOOST_REQUIRE(stuck->ranks.size() == 1u);
  BOOST_TEST(all.cluster().ranks()[stuck->ranks[0]].rank == 21u);
}

// Live, steps without a number are numbered on arrival, and continue after a restart.
BOOST_AUTO_TEST_CASE(steps_that_no_one_numbered_go_on) {
  plain::Chance c = chance();
  c.reported_steps = false;
  plain::Job job(kLayout, c, {});
  CommTrace trace(&kNoJob, true);
  size_t records = 0;
  for (uint32_t s = 0; records < 2 * kRecordsHeldLive / 3; ++s) {
    const auto step = job.step();
    for (uint32_t h = 0; h < kHosts; ++h) {
      trace.add_records(name_of(h), step[h]);
      records += step[h].size();
    }
  }
  const auto& steps = trace.steps();
  const size_t in_a_step = kLayout.world() * 59;
  BOOST_REQUIRE(steps.size() > kRecordsHeldLive / 4 / in_a_step);  // more than the first records hold
  for (size_t i = 1; i < steps.size(); ++i) BOOST_TEST(steps[i].number == steps[i - 1].number + 1);
}

// Times keep at least three digits, and unknown values stay unknown.
BOOST_AUTO_TEST_CASE(summaries_are_decoded_exactly) {
  HostVectors reported;
  reported.streams.push_back({7, 3, {{0xabcdef, 16, kCommUnknown, CommOp::kAllReduce, CommGroup::kDp, 97}}});
  for (const float ms : {0.f, 0.001f, 1.5f, 33.25f, 26'100.f, 3'600'000.f}) {
    RankVector v;
    v.step = 5;
    v.begin_ns = 1'790'000'000'000'000'000;
    v.span_ms = ms;
    v.self_ms.fill(ms);
    v.self_ms[3] = NAN;
    v.reported = 1;
    v.sums[0] = {0, 12, ms};
    reported.vectors.push_back(v);
  }
  CommRecord join;
  join.rank = 7;
  reported.open_records.push_back(join);
  PackedWriter out;
  pack(reported, out);
  PackedReader in(out.bytes());
  HostVectors back;
  BOOST_REQUIRE(unpack(in, 0, back));
  BOOST_TEST(in.done());
  BOOST_REQUIRE(back.vectors.size() == reported.vectors.size());
  for (size_t i = 0; i < reported.vectors.size(); ++i) {
    const RankVector &a = reported.vectors[i], &b = back.vectors[i];
    BOOST_TEST(a.step == b.step);
    BOOST_TEST(a.begin_ns == b.begin_ns);
    BOOST_TEST(std::abs(a.span_ms - b.span_ms) <= 0.001f * a.span_ms);
    BOOST_TEST(std::abs(a.self_ms[0] - b.self_ms[0]) <= 0.001f * a.self_ms[0]);
    BOOST_TEST(std::isnan(b.self_ms[3]));
    BOOST_TEST(b.sums[0].count == 12u);
  }
  BOOST_TEST((back.open_records == reported.open_records));
  BOOST_TEST(size_class(bytes_of_class(97)) == 97);
}

// Any bytes are refused or give numbers within bounds.
BOOST_AUTO_TEST_CASE(strange_bytes_are_refused) {
  PackedWriter wrong_streams;
  wrong_streams.number(0);
  wrong_streams.number(1);
  wrong_streams.number(9);  // of RankStreams that were never declared
  wrong_streams.raw(std::string(40, '\1'));
  PackedWriter many;
  many.number(uint64_t{1} << 60);
  for (const std::string& bytes :
       {wrong_streams.bytes(), many.bytes(), std::string(), std::string("\1", 1)}) {
    PackedReader in(bytes);
    HostVectors out;
    BOOST_TEST(!unpack(in, 0, out));
  }
}
