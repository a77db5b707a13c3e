// Rewrites a finished segment of a spool without the evidence of some sources. The kept records keep their
// order, sequence numbers and offsets. The new checkpoint has the removed sources at their positions after
// the segment: their evidence begins later. The result is complete and synced before it replaces a file, so
// a crash leaves either the old segment or the new one. If two segments are joined, a crash may leave both
// files; readers skip repeated frames by their numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "io/files.h"
#include "model/piece.h"
#include "store/frame_packer.h"

namespace culprit::store {

struct CleanPlan {
  std::string folder;
  uint64_t epoch = 0;
  uint64_t number = 0, next = 0;  // the segment and the one after it
  // An earlier segment to which the kept records are appended.
  std::optional<uint64_t> into;
  std::function<bool(const StreamInfo&)> removes;  // sources; of `into`, nothing is removed
};

// Name of an unfinished result. A start deletes such files.
std::string unfinished_name(const std::string& folder, uint64_t number);

// Writes the result as segment `into` if given, else as `number`. With `into`, the caller must then delete
// `number`. Returns the size. On an error nothing has changed.
Result<uint64_t> clean_segment(io::Files& files, FramePacker& packer, const CleanPlan& plan);

}  // namespace culprit::store
