#include "app/jobs/job_shares.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "app/jobs/pool_owner.h"

namespace culprit::app {
namespace {

std::map<std::string, size_t> count_by_owner(std::span<const EngineHolder> holders) {
  std::map<std::string, size_t> out;
  for (const EngineHolder& holder : holders) ++out[holder.owner];
  return out;
}

}  // namespace

bool names_itself(OriginKind kind) { return kind == OriginKind::kSocket || kind == OriginKind::kRing; }

JobOrigin origin_of(const StreamInfo& info, std::optional<uint32_t> daemon_uid) {
  const bool trusted = info.uid && (info.uid->is_uid(0) || info.uid == daemon_uid);
  return names_itself(info.kind) && !trusted ? JobOrigin::kClaimed : JobOrigin::kWatched;
}

std::string owner_of(const StreamInfo& info) { return info.uid ? name_of(*info.uid) : "an unknown user"; }

std::optional<size_t> gives_way(std::span<const EngineHolder> holders, const JobClaim& wants, size_t slots) {
  std::map<std::string, size_t> held = count_by_owner(holders);
  const size_t of_claimant = held[wants.owner];
  const size_t share = slots / held.size();
  const bool entitled = of_claimant < share;
  std::optional<size_t> out;
  // Prefers an idle holder, then one of the largest owner; among these, the weakest origin, then the longest
  // silence.
  const auto order = [&](size_t i) {
    const EngineHolder& h = holders[i];
    return std::tuple(!h.idle, ~held[h.owner], h.origin, h.last_ns);
  };
  for (size_t i = 0; i < holders.size(); ++i) {
    const EngineHolder& h = holders[i];
    const bool foreign = h.owner != wants.owner;
    const bool beyond = foreign && held[h.owner] > share;
    const bool weaker = h.origin < wants.origin && (!foreign || beyond);
    const bool idle = h.idle && h.origin <= wants.origin;
    const bool quiet = !foreign && h.origin <= wants.origin && wants.at - h.last_ns >= kQuietHolder;
    const bool gives = wants.old ? idle && wants.at - h.read_ns >= kReadWithin
                                 : idle || quiet || weaker || (entitled && beyond);
    if (!gives) continue;
    if (!out || order(i) < order(*out)) out = i;
  }
  return out;
}

std::optional<size_t> largest_holder(std::span<const EngineHolder> holders) {
  std::map<std::string, uint64_t> bytes;
  for (const EngineHolder& holder : holders) bytes[holder.owner] += holder.bytes;
  std::optional<size_t> out;
  const auto order = [&](size_t i) { return std::tuple(bytes[holders[i].owner], holders[i].bytes); };
  for (size_t i = 0; i < holders.size(); ++i)
    if (!out || order(i) > order(*out)) out = i;
  return out;
}

}  // namespace culprit::app
