// What a sweep found. A host is named if most of its links are bad while the other ends are fine with others;
// a link if it alone is bad. Slow ones were slow each time, also in quiet rounds. More bad hosts than could
// fail by chance are a part of the network, and none of them is named. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/sweep/links.h"
#include "core/sweep/pair_run.h"

namespace culprit::sweep {

struct SweepFinding {
  Trouble trouble = Trouble::kUnreachable;
  enum class Of : uint8_t { kHost, kLink, kGroup } of = Of::kHost;
  std::vector<uint32_t> members;  // one; the two of a link; of a group all
  uint32_t bad = 0, tried = 0;    // a host's links
  double figure = 0, usual = 0;   // wrong bytes of bytes; a rate; a latency in ns
};

struct SweepVerdict {
  std::vector<SweepFinding> findings;  // worst first
  std::vector<uint32_t> unknown;       // members without any answer
  Usual usual;
  uint32_t measured = 0;    // links
  bool rates_open = false;  // too many rates were disturbed to judge the rest
};

SweepVerdict judge_sweep(uint32_t members, std::span<const PairRun> runs);

}  // namespace culprit::sweep
