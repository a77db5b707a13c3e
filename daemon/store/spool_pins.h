// Times whose evidence is kept in preference: the minutes around diagnoses. Pure; owned by a Spool; its
// thread.
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
  // `uid`: the user whose job was diagnosed, if any.
  void add(std::optional<Principal> uid, TimeNs from, TimeNs to);
  // Segments with pinned evidence: at most `bytes_most` of them, the same share for each user, the latest
  // pins first.
  std::set<uint64_t> segments(const std::vector<SpoolSegments::Segment>& all, uint64_t bytes_most) const;

 private:
  struct Pin {
    std::optional<Principal> uid;
    TimeNs from = 0, to = 0;
  };
  std::deque<Pin> pins_;  // the latest first
};

}  // namespace culprit::store
