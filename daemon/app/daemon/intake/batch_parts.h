// Splits a batch into parts that fit into frames of the spool. One round may find or end 100,000 files, which
// exceeds a frame. A refused batch would leave a gap.
#pragma once

#include <vector>

#include "model/piece.h"

namespace culprit::app {

// The parts in the batch's order: a stream precedes its pieces, and pieces of a stream keep their order. A
// batch that fits is the only part. An empty batch gives no part.
std::vector<PieceBatch> parts_of(PieceBatch&& batch, size_t bytes_max);

}  // namespace culprit::app
