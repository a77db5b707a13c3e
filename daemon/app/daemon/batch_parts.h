// A batch in parts that the spool takes: 100,000 files that are found, or end, in one round are more than it
// packs into a frame, and what it refuses once leaves a hole before all that follows.
#pragma once

#include <vector>

#include "model/piece.h"

namespace culprit::app {

// In the batch's order: streams stand before their pieces, and pieces of a stream in their own order. A batch
// that fits is the only part; one of nothing gives none.
std::vector<PieceBatch> parts_of(PieceBatch&& batch, size_t bytes_max);

}  // namespace culprit::app
