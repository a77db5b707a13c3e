// An answer of NCCL's RAS service (docs/formats.md section 1): the communicators of a job as its processes
// report them. RasState combines consecutive answers. Plain values that own all their data; any thread.
// Untrusted: every number and name is a claim of the answering process.
//
// Counts are operations that the host launched, per function. RAS does not count send, recv and all-to-all,
// and does not know whether a launched operation finished.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/principal.h"
#include "base/time.h"
#include "model/rank_list.h"

namespace culprit {

constexpr uint32_t kRasUnknown = UINT32_MAX;  // an unknown rank, process or device
constexpr size_t kRasFunctions = 8;           // functions of an answer; NCCL counts five

// kNoComm: the process answers, but is not or no longer a member of the communicator.
enum class RasPhase : uint8_t { kNoComm, kInit, kRunning, kFinalize, kAbort };
constexpr size_t kRasPhases = 5;
std::string_view to_string(RasPhase phase);  // as NCCL spells it: "NOCOMM", …
std::optional<RasPhase> ras_phase(std::string_view word);

struct RasProcess {
  std::string host;  // address of its host, as NCCL prints it
  uint32_t pid = 0;
  auto operator<=>(const RasProcess&) const = default;
};

// A rank of a communicator: its rank number, its process (index into the process table) and its device.
struct RasMember {
  uint32_t rank = 0;
  uint32_t process = kRasUnknown;
  uint32_t device = kRasUnknown;
  uint32_t world = kRasUnknown;  // global rank; only in a RasState
  auto operator<=>(const RasMember&) const = default;
};

struct RasRank {
  RasMember member;
  RasPhase phase = RasPhase::kRunning;
  int32_t error = 0;                             // result code of NCCL; 0: none
  std::array<uint64_t, kRasFunctions> counts{};  // by RasAnswer::functions
};

// A member without data. No flag set: its process answers, but does not report this communicator.
struct RasMissing {
  RasMember member;
  bool unresponsive = false, dead = false;
  bool operator==(const RasMissing&) const = default;
};

// Ranks with the same count of a function, or in the same phase. The text form lists only minorities.
struct RasGroup {
  uint64_t value = 0;  // a count, or a RasPhase
  uint32_t ranks = 0;
  std::vector<RasMember> listed;
  bool operator==(const RasGroup&) const = default;
};
struct RasSpread {
  std::string function;  // "AllReduce"; empty: several functions together
  std::vector<RasGroup> groups;
  bool operator==(const RasSpread&) const = default;
};

struct RasComm {
  uint64_t hash = 0;
  std::string secondary;               // distinguishes communicators with equal hash; absent in the text form
  uint32_t size = 0;                   // 0: not reported
  uint32_t reporting = 0;              // ranks with data
  std::vector<RasRank> ranks;          // JSON only: all ranks with data
  std::vector<RasMissing> missing;     // listed missing members
  uint32_t missing_ranks = 0;          // number of missing members
  std::vector<RasSpread> spreads;      // text form only: functions with different counts
  std::vector<RasGroup> phases;        // text form only: if phases differ
  std::optional<RasPhase> phase = {};  // text form only: the common phase, or the latest of several
  uint32_t errors = 0;                 // ranks that report an error
};

// A process of the job without an answer; dead: for at least a minute.
struct RasExit {
  uint32_t process = kRasUnknown, device = kRasUnknown;
  uint32_t world = kRasUnknown;  // global rank; only in a RasState
  bool dead = false;
  bool operator==(const RasExit&) const = default;
};

struct RasAnswer {
  bool json = false;
  std::string version;        // of NCCL
  TimeNs local_ns = kNoTime;  // the answer's own time, read as UTC; JSON only
  std::vector<RasProcess> processes;
  std::vector<std::string> functions;
  std::vector<RasComm> comms;  // the text form: only those with an error or a warning
  uint64_t comms_seen = 0;     // number of communicators, as the answer reports
  uint32_t largest = 0;        // size of the largest communicator
  uint64_t largest_comms = 0;  // communicators of that size
  std::vector<RasExit> exited;
  uint32_t exited_processes = 0, dead_processes = 0;  // numbers of processes, even if none is listed
  uint32_t timeouts = 0;
  uint64_t dropped = 0;  // communicators, ranks and lines beyond limits or not parsed
  bool cut = false;      // the text ends early
};

// ---- the state of one job from consecutive answers

struct RasCommState {
  uint64_t hash = 0;
  std::string secondary;
  uint32_t size = 0, reporting = 0, missing_ranks = 0;
  RankList members;  // global ranks of all members; empty: unknown, or more than limits::kRasRuns runs
  std::vector<RasMissing> missing;  // at most limits::kRasListed, as all lists here
  std::vector<RasSpread> spreads;   // only functions with different counts
  std::vector<RasGroup> phases;     // only if phases differ; or one group, if all are in init
  uint32_t errors = 0;
  uint32_t answers = 1;       // consecutive answers with the same content; the first included
  TimeNs since_ns = kNoTime;  // time of the first of these answers
  bool operator==(const RasCommState&) const = default;
};

struct RasState {
  std::string host;     // the host that queried; empty: offline
  std::string address;  // address of the querying host, as NCCL prints it; empty: unknown
  std::string version;
  TimeNs at_ns = kNoTime;  // time of the last answer
  bool json = false;
  uint32_t answers = 1;  // answers of this job so far
  uint32_t still = 1;    // consecutive answers in which no count of any communicator moved
  TimeNs still_since_ns = kNoTime;
  uint64_t comms_seen = 0;            // communicators of the last answer
  uint32_t ranks = 0;                 // ranks of the largest communicator
  std::vector<RasProcess> processes;  // processes of the members below
  std::vector<RasCommState> comms;    // communicators with a fault
  std::vector<RasExit> exited;
  uint32_t exited_processes = 0, dead_processes = 0;
  uint64_t dropped = 0;  // entries beyond limits, not stored
  // Live only: user of the answering process; none: root, the daemon's user, or unknown.
  std::optional<Principal> user;
  bool operator==(const RasState&) const = default;
};

}  // namespace culprit
