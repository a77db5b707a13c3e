// Selects the job that loses its engine when jobs need more engines or memory than available. Owners get
// equal shares: a user's uid, or the host of an agent. An owner within its share retains its jobs; among
// these, the job that is silent for the longest time loses its engine to one that writes.
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

// Evidence for a job's name, weakest first.
enum class JobOrigin : uint8_t {
  kClaimed,  // named only by a user's line or ring
  kWatched,  // named by a watched file, an agent, or a line of root or of the daemon's user
  kShown,    // the kernel shows processes in the job's control group
};

// The owner who wants an engine for a job, and since when.
struct JobClaim {
  std::string owner;  // "user 1000", "host gpu-7"
  JobOrigin origin = JobOrigin::kClaimed;
  TimeNs at = kNoTime;
  bool old = false;  // the job's data was written long before `at`
};
// Whether the writer chose the job's name: lines of a socket and headers of rings.
bool names_itself(OriginKind kind);
// `daemon_uid`: lines of this user and of root count as watched.
JobOrigin origin_of(const StreamInfo& info, std::optional<uint32_t> daemon_uid);
std::string owner_of(const StreamInfo& info);

// A job with an engine.
struct EngineHolder {
  std::string owner;
  JobOrigin origin = JobOrigin::kClaimed;
  TimeNs last_ns = kNoTime;  // time at which the last data was written
  bool idle = false;         // long silent, and without a visible process
  uint64_t bytes = 0;        // memory of its engine
  TimeNs read_ns = kNoTime;  // time at which the last data was read
};

// A job that writes nothing for this time may be over: a writing job of the same owner takes precedence.
constexpr TimeNs kQuietHolder = 30 * kNsPerSecond;
// An old job without new data for this time is read to its end.
constexpr TimeNs kReadWithin = 5 * kNsPerSecond;

// The holder that loses its engine to a new job, in this order: an idle one; a quiet one of the same owner;
// one of the owner with the most engines, beyond an even share of `slots`; or a claimed one if the new job is
// better known. For an old job only an idle holder that is read. Nothing: the new job gets no engine.
std::optional<size_t> gives_way(std::span<const EngineHolder> holders, const JobClaim& wants, size_t slots);

// The holder that loses its engine for lack of memory: the largest one of the owner whose engines take the
// most.
std::optional<size_t> largest_holder(std::span<const EngineHolder> holders);

}  // namespace culprit::app
