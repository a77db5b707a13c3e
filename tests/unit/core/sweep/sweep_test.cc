// Which pairs a sweep measures, and what it names: never an innocent host.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <map>
#include <set>

#include "core/sweep/judge.h"
#include "core/sweep/schedule.h"
#include "sim/sweep/sweep_study.h"

using namespace culprit;
using namespace culprit::sweep;

namespace {

constexpr double kTestRate = 1e9;
constexpr TimeNs kTestLatency = 30 * kNsPerUs;

// Changes what a pair measured.
using SweepFault = std::function<void(PairRun&)>;

PairRun usual_run(const Pair& pair, uint32_t round, bool quiet) {
  PairRun run{pair.first, pair.second, round, quiet, PairAnswer::kMeasured, {}, {}, kTestLatency};
  run.to_a = run.to_b = {true, false, kTestRate, kTestRate, 1 << 20, 0};
  return run;
}

std::vector<PairRun> swept(uint32_t members, const SweepFault& fault) {
  std::vector<PairRun> runs;
  uint32_t number = 0;
  const auto add = [&](const Round& round, bool quiet) {
    for (const Pair& pair : round) {
      runs.push_back(usual_run(pair, number, quiet));
      fault(runs.back());
    }
    ++number;
  };
  for (const Round& round : sweep_rounds(members)) add(round, false);
  for (uint32_t again = 0;; ++again) {
    const Round round = follow_up(members, runs, again);
    if (round.empty()) return runs;
    add(round, true);
  }
}

bool has(const PairRun& run, uint32_t member) { return run.a == member || run.b == member; }
void slow_down(PairRun& run, double factor) {
  for (Flow* flow : {&run.to_a, &run.to_b}) flow->rate *= factor, flow->most *= factor;
}
void not_reached(PairRun& run) {
  run.answer = PairAnswer::kNotReached;
  run.to_a = run.to_b = Flow();
  run.latency_ns = kNoTime;
}

// "host slow 3", "link wrong 1 2", …
std::vector<std::string> named(const SweepVerdict& verdict) {
  constexpr const char* kOf[] = {"host", "link", "group"};
  constexpr const char* kWhat[] = {"unreachable", "wrong", "slow", "latency"};
  std::vector<std::string> out;
  for (const SweepFinding& f : verdict.findings) {
    out.push_back(
        fmt::format("{} {}", kOf[static_cast<size_t>(f.of)], kWhat[static_cast<size_t>(f.trouble)]));
    for (const uint32_t member : f.members) out.back() += fmt::format(" {}", member);
  }
  return out;
}

struct SweepTestCase {
  const char* name;
  uint32_t members;
  SweepFault fault;
  std::vector<std::string> named;
};
std::ostream& operator<<(std::ostream& out, const SweepTestCase& one) { return out << one.name; }

const SweepTestCase kSweepCases[] = {
    {"nothing wrong", 8, [](PairRun&) {}, {}},
    {"a slow host",
     8,
     [](PairRun& r) {
       if (has(r, 3)) slow_down(r, 0.3);
     },
     {"host slow 3"}},
    {"a slow host of three",
     3,
     [](PairRun& r) {
       if (has(r, 0)) slow_down(r, 0.3);
     },
     {"host slow 0"}},
    {"a slow host of two", 2, [](PairRun& r) { slow_down(r, 0.01); }, {}},
    {"slow among many pairs alone",
     8,
     [](PairRun& r) {
       if (has(r, 3) && !r.follow_up) slow_down(r, 0.3);
     },
     {}},
    {"slow while a processor was busy",
     8,
     [](PairRun& r) {
       if (!has(r, 3)) return;
       r.to_a.rate = r.to_b.rate = 0.1 * kTestRate;
       r.to_a.disturbed = r.to_b.disturbed = true;
     },
     {}},
    {"a slow link",
     8,
     [](PairRun& r) {
       if (r.a == 1 && r.b == 2) slow_down(r, 0.3);
     },
     {"link slow 1 2"}},
    {"slow in one direction",
     8,
     [](PairRun& r) {
       if (r.a == 5) r.to_b.rate = r.to_b.most = 0.2 * kTestRate;
       if (r.b == 5) r.to_a.rate = r.to_a.most = 0.2 * kTestRate;
     },
     {"host slow 5"}},
    {"two slow hosts",
     16,
     [](PairRun& r) {
       if (has(r, 3) || has(r, 9)) slow_down(r, 0.3);
     },
     {"host slow 3", "host slow 9"}},
    {"half of the hosts have slower NICs",
     8,
     [](PairRun& r) {
       if (r.a < 4 || r.b < 4) slow_down(r, 0.3);
     },
     {}},
    {"a rack with a slow uplink",
     16,
     [](PairRun& r) {
       if ((r.a < 4) != (r.b < 4)) slow_down(r, 0.2);
     },
     {"group slow 0 1 2 3"}},
    {"a host that changes bytes",
     8,
     [](PairRun& r) {
       if (has(r, 6)) r.to_a.wrong = 1;
     },
     {"host wrong 6"}},
    {"a link that changes bytes",
     8,
     [](PairRun& r) {
       if (r.a == 0 && r.b == 6) r.to_a.wrong = 1;
     },
     {"link wrong 0 6"}},
    {"changed bytes between two hosts", 2, [](PairRun& r) { r.to_a.wrong = 1; }, {"link wrong 0 1"}},
    {"a host that no peer reaches",
     8,
     [](PairRun& r) {
       if (has(r, 2)) not_reached(r);
     },
     {"host unreachable 2"}},
    {"a pair that does not reach each other",
     8,
     [](PairRun& r) {
       if (r.a == 2 && r.b == 5) not_reached(r);
     },
     {"link unreachable 2 5"}},
    {"not reached once",
     8,
     [](PairRun& r) {
       if (has(r, 2) && r.round == 1) not_reached(r);
     },
     {}},
    {"two halves",
     8,
     [](PairRun& r) {
       if ((r.a < 4) != (r.b < 4)) not_reached(r);
     },
     {"group unreachable 0 1 2 3 4 5 6 7"}},
    {"high latency",
     8,
     [](PairRun& r) {
       if (has(r, 7)) r.latency_ns *= 50;
     },
     {"host latency 7"}},
    {"latency that no job notices",
     8,
     [](PairRun& r) {
       if (has(r, 7)) r.latency_ns *= 4;
     },
     {}},
    {"a slow host that changes bytes",
     8,
     [](PairRun& r) {
       if (has(r, 4)) slow_down(r, 0.1), r.to_b.wrong = 9;
     },
     {"host wrong 4"}},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(sweep_of_pairs)

BOOST_DATA_TEST_CASE(names_what_is_wrong_and_nothing_else, boost::unit_test::data::make(kSweepCases)) {
  const auto runs = swept(sample.members, sample.fault);
  const auto found = named(judge_sweep(sample.members, runs));
  BOOST_TEST(found == sample.named, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_round_has_each_member_at_most_once) {
  for (const uint32_t members : {2u, 3u, 7u, 8u, 16u, 17u, 64u, 1000u, kMembersMost}) {
    std::set<Pair> met;
    std::map<uint32_t, uint32_t> peers;
    const auto rounds = sweep_rounds(members);
    for (const Round& round : rounds) {
      std::set<uint32_t> in;
      for (const Pair& pair : round) {
        BOOST_TEST(pair.first < pair.second);
        BOOST_TEST(pair.second < members);
        BOOST_TEST((in.insert(pair.first).second && in.insert(pair.second).second));
        BOOST_TEST(met.insert(pair).second);
        ++peers[pair.first], ++peers[pair.second];
      }
    }
    if (members <= kAllPairsMost) BOOST_TEST(met.size() == members * (members - 1) / 2);
    for (uint32_t member = 0; member < members; ++member)
      BOOST_TEST(peers[member] >= std::min(members - 1, kRoundsLeast - 1));
    BOOST_TEST(rounds.size() <= std::max(members, 16u));
  }
  BOOST_TEST(sweep_rounds(0).empty());
  BOOST_TEST(sweep_rounds(1).empty());
}

BOOST_AUTO_TEST_CASE(a_member_without_an_answer_is_unknown) {
  const auto runs = swept(8, [](PairRun& r) {
    if (has(r, 2)) not_reached(r), r.answer = PairAnswer::kNoReport;
  });
  const SweepVerdict verdict = judge_sweep(8, runs);
  BOOST_TEST(verdict.findings.empty());
  BOOST_TEST(verdict.unknown == std::vector<uint32_t>{2}, boost::test_tools::per_element());
}

// Bursts of other traffic, busy processors and shared uplinks; a host at .3 of the usual rate among them.
BOOST_AUTO_TEST_CASE(names_no_innocent_host_in_a_simulated_network) {
  sim::SweepStudy study;
  study.trials = 20;
  for (const uint32_t hosts : {4u, 8u, 64u}) {
    study.cases.push_back({hosts, sim::SweepCase::Fault::kNone, 1});
    study.cases.push_back({hosts, sim::SweepCase::Fault::kSlowHost, 0.3});
    study.cases.push_back({hosts, sim::SweepCase::Fault::kWrongHost, 1});
    study.cases.push_back({hosts, sim::SweepCase::Fault::kDeafHost, 1});
  }
  for (const sim::SweepRow& row : run_sweep_study(study)) {
    BOOST_TEST(row.innocent == 0u, row.of.hosts << " hosts, " << name_of(row.of.fault));
    if (row.of.fault != sim::SweepCase::Fault::kNone)
      BOOST_TEST(row.found >= 18u, row.of.hosts << " hosts, " << name_of(row.of.fault) << ": " << row.found);
  }
}

BOOST_AUTO_TEST_SUITE_END()
