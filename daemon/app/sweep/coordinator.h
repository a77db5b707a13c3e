// The coordinator of a sweep, in the process of rank 0: collects the members, has pairs measure, and judges.
//
// Blocking within its limits; one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/sweep/messages.h"
#include "app/sweep/wire.h"
#include "base/status.h"
#include "core/sweep/judge.h"
#include "core/sweep/pair_run.h"

namespace culprit::app::sweeping {

struct SweepOptions {
  uint32_t size = 0;  // members that are expected
  std::string secret;
  TimeNs join_within_ns = 60 * kNsPerSecond;
  TimeNs total_ns = 600 * kNsPerSecond;  // no round begins after it
  uint64_t bytes = 128 << 20;            // of a pair in each direction
  TimeNs pair_ns = 2 * kNsPerSecond;     // of a connection, and of each direction
  std::function<void(const std::string&)> progress = nullptr;
};

struct SweepMember {
  uint32_t rank = 0;
  std::string host;  // empty: it did not join
  std::string why;   // it takes no part: it did not join, it is busy, or it stopped answering
  bool joined = false, lost = false;
};

struct SweepResult {
  std::vector<SweepMember> members;  // by rank
  std::vector<uint32_t> ranks;       // of the members of `runs` and `verdict`, by their number there
  std::vector<sweep::PairRun> runs;
  sweep::SweepVerdict verdict;
  bool cut = false;  // the time was over before all rounds
  TimeNs took_ns = 0;
};

// An error: fewer than two members joined.
Result<SweepResult> coordinate(Listener& listener, const SweepOptions& options);

}  // namespace culprit::app::sweeping
