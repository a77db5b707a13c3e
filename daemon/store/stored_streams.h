// The stored part of a source. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/piece.h"

namespace culprit::store {

// Part of an archive's segment that has a stream's bytes [from, to).
struct Extent {
  uint64_t segment = 0;
  uint64_t from = 0, to = 0;
  uint64_t first_at = 0, last_at = 0;  // file offsets of its first and its last frame
  bool is_object = false;              // `segment` is an object's (EvidenceRange::open_object)
};

// Bytes of a stream that never came, and the reason.
struct Hole {
  uint64_t offset = 0, bytes = 0;
  std::string reason;
};

struct StoredStream {
  StreamState state;          // as of the last commit
  uint64_t first_offset = 0;  // earlier bytes were deleted with their segments
  // Of streams in an archive, which has many spools:
  uint64_t epoch = 0;  // of the spool; 0: in a spool
  std::vector<Extent> extents = {};
  std::vector<Hole> holes = {};
};

}  // namespace culprit::store
