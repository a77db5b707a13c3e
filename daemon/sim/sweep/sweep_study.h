// Sweeps over a model of a network with a known fault: what core/sweep names. Rates differ by host and run;
// pairs of one round share the uplinks of their racks; bursts of other traffic and busy processors take rate
// away. The same seed gives the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace culprit::sim {

struct SweepCase {
  uint32_t hosts = 64;
  enum class Fault : uint8_t {
    kNone,
    kSlowHost,
    kSlowLink,
    kWrongHost,
    kWrongLink,
    kDeafHost,  // no peer reaches it
    kLateHost,  // its latency is higher
    kSlowRack,
  } fault = Fault::kNone;
  double factor = 0.3;  // rate of what is slow; latency in ms; share of the runs with wrong bytes
  // The world around the fault.
  double spread = 0.05;  // of rates, standard deviation of the logarithm
  double uplinks = 0.5;  // of a rack of 16, as a share of what its hosts can send
  double bursts = 0.1;   // of the runs: other traffic takes up to 80 % of the rate
  double busy = 0.05;    // of the runs: a processor is late, takes up to 90 %; half are noticed
};
std::string name_of(SweepCase::Fault fault);

struct SweepRow {
  SweepCase of;
  uint32_t found = 0;     // the fault is named, and no other host or link
  uint32_t partly = 0;    // the fault is named as a link or group of its hosts
  uint32_t missed = 0;    // nothing is named
  uint32_t innocent = 0;  // a host or link without fault is named
  uint64_t rounds = 0, pairs = 0;
};

struct SweepStudy {
  std::vector<SweepCase> cases;
  uint32_t trials = 200;
  uint64_t seed = 1;
};
// Sizes from 3 to 1,024, each fault; rates from 90 % to 10 % for slow hosts; a loaded world.
std::vector<SweepCase> sweep_cases();
std::vector<SweepRow> run_sweep_study(const SweepStudy& study);

}  // namespace culprit::sim
