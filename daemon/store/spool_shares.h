// Bytes of each owner in each segment of a spool. Chooses whose evidence is deleted to make room. Pure;
// owned by a Spool; used on its thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/principal.h"
#include "model/piece.h"
#include "store/spool_segments.h"

namespace culprit::store {

// Owner of evidence. Without a uid: the host itself (files and the kernel).
struct Owner {
  std::optional<Principal> uid;
  std::string job;
  auto operator<=>(const Owner&) const = default;
};
inline Owner owner_of(const StreamInfo& stream) { return {stream.uid, stream.job}; }
std::string to_string(const std::optional<Principal>& uid);  // "uid 1000", "the host"

// The evidence that makes room next.
struct Victim {
  size_t segment = 0;                   // index
  bool everyone = false;                // all evidence of the segment; otherwise:
  std::optional<Principal> uid = {};    // of this owner
  std::optional<std::string> job = {};  // nothing: of all its jobs
  bool takes(const Owner& owner) const {
    return everyone || (owner.uid == uid && (!job || owner.job == *job));
  }
};

class SpoolShares {
 public:
  using Segments = std::vector<SpoolSegments::Segment>;

  void add(uint64_t segment, const Owner& owner, uint64_t bytes);
  // The victim's evidence was removed from the segment.
  void evict(uint64_t segment, const Victim& victim);
  // Moves the evidence counted in segment `from` to `into`.
  void join(uint64_t from, uint64_t into);
  void forget(uint64_t segment) { bytes_.erase(segment); }

  bool is_empty(uint64_t segment) const { return !bytes_.contains(segment); }
  bool has(uint64_t segment, const Victim& victim) const;
  // Whether all evidence in the segment belongs to the victim.
  bool is_only_of(uint64_t segment, const Victim& victim) const;
  // Number of the first segment with bytes of the owner.
  std::optional<uint64_t> first_with(const Owner& owner) const;

  // Chooses the user with most bytes, that user's largest job, and the oldest candidate segment with enough
  // of the job's bytes. Nothing if one owner has all bytes, or no candidate has enough.
  std::optional<Victim> choose(const Segments& segments, const std::vector<size_t>& candidates) const;

 private:
  std::map<uint64_t, std::map<Owner, uint64_t>> bytes_;  // before compression, by segment
};

}  // namespace culprit::store
