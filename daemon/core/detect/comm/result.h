// What stays of a step when its records are gone: a small vector for each rank, the path that made the step
// as long as it was, and what the network did. Judging works on nothing else. Plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "model/report.h"

namespace culprit::comm {

// Links of a chain of waiting that are told.
constexpr size_t kChainLinks = 32;
// Records held until their step can be judged: 64 bytes each and a few of tables, 1 GB in all; a step of the
// largest jobs has a million.
constexpr size_t kRecordsHeld = 12'000'000;
// The same of a live job, beside others in a daemon: 64 MB, a minute of most hosts.
constexpr size_t kRecordsHeldLive = 1'000'000;
// Vectors of ranks held until their step can be judged, some 250 bytes each with their streams: 15 steps of
// 65,536 ranks.
constexpr size_t kVectorsHeld = 1'000'000;
// Steps that are held: 200 bytes each where hardly anything is in them.
constexpr size_t kStepsHeld = 1 << 18;
// Results of ranks and steps that are kept, 40 bytes each: 200 steps of 20,000 ranks.
constexpr size_t kRankSteps = 4'000'000;

// Of a rank in a step. Milliseconds.
struct RankStep {
  uint32_t rank = 0;   // index in the cluster
  uint32_t role = 0;   // of this step: ranks of one number are peers
  uint32_t peers = 0;  // that play its role, itself among them
  uint32_t gaps = 0;   // places of its step at which it could be compared
  float self = 0;      // of its own: not in any operation
  float excess = 0;    // of that, beyond its peers
  float closer = 0;    // beyond those of its family (Cluster::family) that play its role
  float largest = 0;   // the largest excess at one place
  float even = 0;      // share of its time at whose places it was in excess as it was on the whole: 0..1
  float path = 0;      // what the step is longer by for it
  float span = 0;      // from its first entry to its last exit
};

enum class NetKind : uint8_t { kNic, kNvlink, kLink, kHost };

// A part of the network through which operations were slower than their like.
struct NetEffect {
  NetKind kind = NetKind::kNic;
  uint32_t a = 0, b = 0;  // kNic: a rank's index; kLink: hosts; else a: a host
  double ratio = 1;       // of the time that its operations took to what is usual
  double cost = 0;        // ms, on the path
  float sure = 0;         // 0..1: that it is this part, of all that would explain the same
  float evidence = 0;     // of this step alone: log likelihood ratio, beyond what so many parts do by chance
  uint64_t comm = 0;      // the id of the communicator in which it cost most
  std::vector<uint32_t> channels = {};  // in Step::channels, that it explains; empty once the step is closed
};

// What a step's paths and costs are read off: records of all ranks there are; sums that hosts told of it; or,
// for who is named, records that were asked for beside the sums.
enum class Basis : uint8_t { kRecords, kSums, kPath };

struct StepResult {
  int64_t number = 0;
  Basis basis = Basis::kRecords;
  bool network_by_sums = false;  // what its network parts cost: records of some ranks do not tell it
  double step_ms = 0;
  int64_t last_ns = 0;  // on the clock of whichever host ended last
  std::vector<RankStep> ranks;
  std::vector<NetEffect> network;
  std::vector<ChainLink> chain;  // from the last operation to where the waiting began
  // A group of ranks that all took longer than those of other groups with the same operations: its
  // communicator (index in the cluster; none: UINT32_MAX), and how many times as long.
  uint32_t slow_group = UINT32_MAX;
  float slow_group_ratio = 1;
  double network_path_ms = 0;  // what the network took on the path beyond what is usual
};

}  // namespace culprit::comm
