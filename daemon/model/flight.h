// The Flight Recorder dump of one rank (PyTorch's record of the collectives that a process enqueued), as a
// plain value: docs/detectors.md. Owns all its data; any thread. Untrusted: groups, ranks and numbers are
// the file's claims.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/rank_list.h"

namespace culprit {

enum class FlightState : uint8_t { kScheduled, kStarted, kCompleted };

// A process group as this rank knows it. `name` is the same on all of its ranks.
struct FlightGroup {
  std::string name, description;
  RankList ranks;  // global; empty: not in the dump
  // The rank's counters of collectives, if in the dump.
  std::optional<int64_t> enqueued, completed;
};

// An operation that the rank enqueued. Texts are indices into FlightDump::words.
struct FlightOp {
  uint32_t group = 0;  // index into FlightDump::groups
  uint32_t name = 0;   // "all_reduce", "recv 0<-3"
  uint32_t in_sizes = 0, out_sizes = 0, dtypes = 0;
  uint32_t stack = 0;  // index into FlightDump::stacks
  int64_t seq = 0;     // for collectives: number within the group, equal on all ranks
  TimeNs created_ns = kNoTime;
  FlightState state = FlightState::kScheduled;
  bool p2p = false;
  bool done = false;  // completed, or retired by the watchdog
};

struct FlightDump {
  uint32_t rank = 0;
  std::optional<std::string> host;
  bool host_guessed = false;    // `host` is the dump's folder, which several hosts may share
  std::string file;             // name of the file in reports
  std::string version;          // version of the format
  TimeNs written_ns = kNoTime;  // write time of the file, if known
  std::vector<FlightGroup> groups;
  std::vector<FlightOp> ops;  // in order of enqueueing
  std::vector<std::string> words;
  std::vector<std::vector<uint32_t>> stacks;  // frames as words, innermost first; the first stack is empty
};

}  // namespace culprit
