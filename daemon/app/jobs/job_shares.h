// Which job gives up its engine when jobs want more engines, or more memory, than there are. Owners share
// both evenly: a user's uid, or the host of an agent. An owner within its share keeps its jobs, and among
// them the one that is silent for the longest time gives way to one that writes.
//
// Pure functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/time.h"
#include "model/piece.h"

namespace culprit::app {

// How a job is known, weakest first.
enum class JobOrigin : uint8_t {
  kClaimed,  // a user's line or ring names it
  kWatched,  // a watched file, an agent, or a line of root or of the daemon's user
  kShown,    // the kernel shows processes in its control group
};

// Who wants an engine for a job, and since when.
struct JobClaim {
  std::string owner;  // "user 1000", "host gpu-7"
  JobOrigin origin = JobOrigin::kClaimed;
  TimeNs at = kNoTime;
  bool old = false;  // its data was written long before `at`
};
// Whether its writer chose the job's name: lines of a socket and headers of rings.
bool names_itself(OriginKind kind);
// `daemon_uid`: lines of this user and of root count as watched.
JobOrigin origin_of(const StreamInfo& info, std::optional<uint32_t> daemon_uid);
std::string owner_of(const StreamInfo& info);

// A job with an engine.
struct EngineHolder {
  std::string owner;
  JobOrigin origin = JobOrigin::kClaimed;
  TimeNs last_ns = kNoTime;  // when its last data was written
  bool idle = false;         // silent for long, and without a process that is seen
  uint64_t bytes = 0;        // memory of its engine
  TimeNs read_ns = kNoTime;  // when its last data was read
};

// A job that writes nothing for this time may be over: one of its owner that writes goes before it.
constexpr TimeNs kQuietHolder = 30 * kNsPerSecond;
// Without new data for this time an old job is read to its end.
constexpr TimeNs kReadWithin = 5 * kNsPerSecond;

// The holder that gives way for a new job: an idle one; a quiet one of the same owner; one of the owner that
// holds the most, beyond an even share of `slots`; or a claimed one for a job that is better known. For an
// old job only an idle one that is read. Nothing: the new job gets no engine.
std::optional<size_t> gives_way(std::span<const EngineHolder> holders, const JobClaim& wants, size_t slots);

// The holder that gives way for memory: the largest one of the owner whose engines take the most.
std::optional<size_t> largest_holder(std::span<const EngineHolder> holders);

}  // namespace culprit::app
