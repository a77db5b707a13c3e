// Intervals whose evidence is deleted last: the minutes around diagnoses. Pure; owned by a Spool; used on
// its thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>

#include "base/principal.h"
#include "base/time.h"
#include "store/spool_segments.h"

namespace culprit::store {

class SpoolPins {
 public:
  // `uid`: the user whose job was diagnosed, if known.
  void add(std::optional<Principal> uid, TimeNs from, TimeNs to);
  // Segments with pinned evidence, at most `bytes_most` bytes in total. Each user gets the same share; the
  // latest pins come first.
  std::set<uint64_t> segments(const std::vector<SpoolSegments::Segment>& all, uint64_t bytes_most) const;

 private:
  struct Pin {
    std::optional<Principal> uid;
    TimeNs from = 0, to = 0;
  };
  std::deque<Pin> pins_;  // the latest first
};

}  // namespace culprit::store
