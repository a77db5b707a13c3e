#include "app/daemon/intake/batch_parts.h"

#include <utility>

#include "store/record.h"

namespace culprit::app {

std::vector<PieceBatch> parts_of(PieceBatch&& batch, size_t bytes_max) {
  std::vector<PieceBatch> parts;
  if (batch.opened.empty() && batch.pieces.empty()) return parts;
  if (store::encoded_size_max(batch) <= bytes_max) {
    parts.push_back(std::move(batch));
    return parts;
  }
  size_t size = 0;
  const auto part_for = [&](size_t more) -> PieceBatch& {
    if (parts.empty() || size + more > bytes_max) {
      parts.emplace_back();
      size = 0;
    }
    size += more;
    return parts.back();
  };
  for (StreamInfo& stream : batch.opened)
    part_for(store::encoded_size_max(stream)).opened.push_back(std::move(stream));
  for (Piece& piece : batch.pieces)
    part_for(store::encoded_size_max(piece)).pieces.push_back(std::move(piece));
  return parts;
}

}  // namespace culprit::app
