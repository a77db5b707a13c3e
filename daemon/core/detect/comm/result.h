// Result of a step after its records are dropped: a small vector per rank, the critical path, and network
// effects. The judge's only input on steps. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "model/report.h"

namespace culprit::comm {

// Maximum number of links in a reported chain of waiting.
constexpr size_t kChainLinks = 32;
// Records held until their step is judged: 64 bytes each plus tables, 1 GB in total. A step of the largest
// jobs has a million.
constexpr size_t kRecordsHeld = 12'000'000;
// Limit for a live job, which shares its process with other jobs: 64 MB, about a minute of records.
constexpr size_t kRecordsHeldLive = 1'000'000;
// Summaries of ranks held until their step is judged: about 250 bytes each with their streams. Enough for 15
// steps of 65,536 ranks.
constexpr size_t kVectorsHeld = 1'000'000;
// Steps held: 200 bytes each if nearly empty.
constexpr size_t kStepsHeld = 1 << 18;
// Results per rank and step, 40 bytes each: 200 steps of 20,000 ranks.
constexpr size_t kRankSteps = 4'000'000;

// One rank in one step. Milliseconds.
struct RankStep {
  uint32_t rank = 0;   // index in the cluster
  uint32_t role = 0;   // within this step: ranks with the same number are peers
  uint32_t peers = 0;  // ranks with the same role, including itself
  uint32_t gaps = 0;   // number of places in the step that could be compared
  float self = 0;      // self time: outside any operation
  float excess = 0;    // self time beyond its peers
  float closer = 0;    // excess beyond peers of the same family (Cluster::family)
  float largest = 0;   // largest excess at one place
  // 0..1: share of self time at places whose relative excess is at least half of the overall one
  float even = 0;
  float path = 0;  // how much longer the step is because of this rank
  float span = 0;  // from first entry to last exit
};

enum class NetKind : uint8_t { kNic, kNvlink, kLink, kHost };

// A network part through which operations were slower than operations of the same kind.
struct NetEffect {
  NetKind kind = NetKind::kNic;
  uint32_t a = 0, b = 0;  // kNic: index of a rank; kLink: hosts; else a: a host
  double ratio = 1;       // duration of its operations relative to the usual duration
  double cost = 0;        // ms on the critical path
  float sure = 0;         // 0..1: probability that this part and no other explains the slowdown
  float evidence = 0;     // of this step: log likelihood ratio, corrected for the number of parts
  uint64_t comm = 0;      // id of the communicator with the highest cost
  // Explained channels, in Step::channels; empty once the step is closed.
  std::vector<uint32_t> channels = {};
};

// Source of a step's paths and costs. kRecords: records of all ranks. kSums: summaries from hosts. kPath:
// summaries, and requested records of named culprits.
enum class Basis : uint8_t { kRecords, kSums, kPath };

struct StepResult {
  int64_t number = 0;
  Basis basis = Basis::kRecords;
  bool network_by_sums = false;  // network costs come from summaries, because only some ranks have records
  double step_ms = 0;
  int64_t last_ns = 0;  // on the clock of the host that ended last
  std::vector<RankStep> ranks;
  std::vector<NetEffect> network;
  std::vector<ChainLink> chain;  // from the last operation back to the start of the waiting
  // A group of ranks that took longer than other groups with the same operations: its communicator (index in
  // the cluster; UINT32_MAX: none) and the ratio.
  uint32_t slow_group = UINT32_MAX;
  float slow_group_ratio = 1;
  double network_path_ms = 0;  // network time on the critical path beyond the usual time
};

}  // namespace culprit::comm
