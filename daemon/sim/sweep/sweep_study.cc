#include "sim/sweep/sweep_study.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/sweep/judge.h"
#include "core/sweep/schedule.h"
#include "sim/random.h"

namespace culprit::sim {
namespace {

using sweep::Flow;
using sweep::PairAnswer;
using sweep::PairRun;
using Fault = SweepCase::Fault;

constexpr uint32_t kRack = 16;
constexpr double kRate = 10e9, kLatencyNs = 30e3, kBytes = 64e6;

class SweepWorld {
 public:
  SweepWorld(const SweepCase& of, Random random) : of_(of), random_(random) {
    for (uint32_t i = 0; i < of.hosts; ++i) hosts_.push_back(kRate * std::exp(of.spread / 2 * normal()));
    bad_ = static_cast<uint32_t>(random_.below(of.hosts));
    peer_ = (bad_ + 1 + static_cast<uint32_t>(random_.below(of.hosts - 1))) % of.hosts;
  }

  uint32_t bad() const { return bad_; }
  sweep::Pair bad_link() const { return {std::min(bad_, peer_), std::max(bad_, peer_)}; }
  bool is_bad_link(uint32_t a, uint32_t b) const { return sweep::Pair{a, b} == bad_link(); }

  void run(const sweep::Round& round, uint32_t number, bool quiet, std::vector<PairRun>& runs) {
    std::map<uint32_t, uint32_t> across;  // pairs on a rack's uplink
    for (const auto& [a, b] : round)
      if (a / kRack != b / kRack) ++across[a / kRack], ++across[b / kRack];
    for (const auto& [a, b] : round) {
      PairRun run{a, b, number, quiet, PairAnswer::kMeasured, {}, {}, kNoTime};
      if (of_.fault == Fault::kDeafHost && (a == bad_ || b == bad_)) {
        run.answer = PairAnswer::kNotReached;
        runs.push_back(run);
        continue;
      }
      double shared = 1;
      if (a / kRack != b / kRack) {
        const double pairs = std::max(across[a / kRack], across[b / kRack]);
        shared = std::min(1.0, of_.uplinks * kRack / pairs);
      }
      run.to_b = flow(a, b, shared, false);
      run.to_a = flow(b, a, shared, true);
      run.latency_ns = static_cast<TimeNs>(latency(a, b));
      runs.push_back(run);
    }
  }

 private:
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random_.real();
    return sum;
  }

  double latency(uint32_t a, uint32_t b) {
    double out = kLatencyNs * std::exp(0.2 * normal());
    if (random_.real() < of_.busy) out += 1e6 * random_.real() * random_.real();
    if (of_.fault == Fault::kLateHost && (a == bad_ || b == bad_)) out += 1e6 * of_.factor;
    return out;
  }

  Flow flow(uint32_t from, uint32_t to, double shared, bool back) {
    double rate = std::min(hosts_[from], hosts_[to]) * std::exp(of_.spread * normal()) * shared;
    if (random_.real() < of_.bursts) rate *= 1 - 0.8 * random_.real();
    Flow out;
    double network = rate;
    if (random_.real() < of_.busy) {
      rate *= 1 - 0.9 * random_.real();
      out.disturbed = random_.chance(50);
      if (!out.disturbed) network = rate;
    }
    const uint32_t low = std::min(from, to), high = std::max(from, to);
    const bool its = from == bad_ || to == bad_;
    const bool rack = (from / kRack == bad_ / kRack) != (to / kRack == bad_ / kRack);
    // A slow link is slow in one direction.
    if ((of_.fault == Fault::kSlowHost && its) || (of_.fault == Fault::kSlowRack && rack) ||
        (of_.fault == Fault::kSlowLink && is_bad_link(low, high) && back))
      network = std::min(network, kRate * of_.factor * std::exp(of_.spread * normal()));
    out.measured = true;
    out.rate = std::min(rate, network);
    out.most = network;
    out.bytes = static_cast<uint64_t>(kBytes);
    const bool wrong =
        (of_.fault == Fault::kWrongHost && its) || (of_.fault == Fault::kWrongLink && is_bad_link(low, high));
    if (wrong && random_.real() < of_.factor) out.wrong = 1 + random_.below(100);
    return out;
  }

  const SweepCase of_;
  Random random_;
  std::vector<double> hosts_;
  uint32_t bad_ = 0, peer_ = 0;
};

bool names_link(Fault fault) { return fault == Fault::kSlowLink || fault == Fault::kWrongLink; }

void count(const SweepWorld& world, const std::vector<sweep::SweepFinding>& findings, SweepRow& row) {
  using Of = sweep::SweepFinding::Of;
  bool exact = false, part = false, innocent = false;
  for (const sweep::SweepFinding& f : findings) {
    if (f.of == Of::kGroup) {
      part = true;
    } else if (f.of == Of::kHost) {
      const bool right = f.members[0] == world.bad() && row.of.fault != Fault::kNone &&
                         row.of.fault != Fault::kSlowRack && !names_link(row.of.fault);
      (right ? exact : innocent) = true;
    } else {
      const bool of_host = f.members[0] == world.bad() || f.members[1] == world.bad();
      if (names_link(row.of.fault) && world.is_bad_link(f.members[0], f.members[1]))
        exact = true;
      else if (row.of.fault != Fault::kNone && of_host && !names_link(row.of.fault))
        part = true;
      else
        innocent = true;
    }
  }
  ++(innocent ? row.innocent : exact ? row.found : part ? row.partly : row.missed);
}

}  // namespace

std::string name_of(SweepCase::Fault fault) {
  constexpr const char* kNames[] = {"none",       "slow host", "slow link", "wrong host",
                                    "wrong link", "deaf host", "late host", "slow rack"};
  return kNames[static_cast<size_t>(fault)];
}

std::vector<SweepCase> sweep_cases() {
  std::vector<SweepCase> out;
  for (const uint32_t hosts : {3u, 4u, 8u, 16u, 64u, 256u, 1024u}) {
    const auto add = [&](Fault fault, double factor) { out.push_back({hosts, fault, factor}); };
    add(Fault::kNone, 1);
    out.push_back({hosts, Fault::kNone, 1, 0.15, 0.25, 0.3, 0.3});
    for (const double factor : {0.8, 0.6, 0.5, 0.3, 0.1}) add(Fault::kSlowHost, factor);
    add(Fault::kSlowLink, 0.3);
    add(Fault::kWrongHost, 1);
    add(Fault::kWrongHost, 0.3);
    add(Fault::kWrongLink, 1);
    add(Fault::kDeafHost, 1);
    add(Fault::kLateHost, 1);
    if (hosts > 2 * kRack) add(Fault::kSlowRack, 0.3);
  }
  return out;
}

std::vector<SweepRow> run_sweep_study(const SweepStudy& study) {
  std::vector<SweepRow> out;
  for (const SweepCase& one : study.cases) {
    SweepRow row;
    row.of = one;
    for (uint32_t trial = 0; trial < study.trials; ++trial) {
      SweepWorld world(one, Random(study.seed).fork(out.size() * 100'000 + trial));
      std::vector<PairRun> runs;
      uint32_t number = 0;
      for (const sweep::Round& round : sweep::sweep_rounds(one.hosts))
        world.run(round, number++, false, runs);
      for (uint32_t again = 0;; ++again) {
        const sweep::Round round = sweep::follow_up(one.hosts, runs, again);
        if (round.empty()) break;
        world.run(round, number++, true, runs);
      }
      row.rounds += number;
      row.pairs += runs.size();
      count(world, sweep::judge_sweep(one.hosts, runs).findings, row);
    }
    out.push_back(row);
  }
  return out;
}

}  // namespace culprit::sim
