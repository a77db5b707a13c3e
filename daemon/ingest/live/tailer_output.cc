#include "ingest/live/tailer_output.h"

#include <utility>

namespace culprit::ingest {

std::string TailOutput::path_of(const std::string& below) const {
  if (below.empty()) return glob_.root();
  return glob_.root() == "/" ? "/" + below : glob_.root() + "/" + below;
}

void TailOutput::problem(const std::string& below, std::string what) {
  if (out_) out_->problems.push_back({path_of(below), std::nullopt, std::move(what)});
}

void TailOutput::note_gap(TailSource& source, Gap gap) {
  count_gap(gap.bytes);
  if (source.gap) gap.bytes += source.gap->bytes;
  source.gap = std::move(gap);
  source.gap_at = time_.mono;
}

void TailOutput::count_gap(uint64_t bytes) {
  ++counts_.gaps;
  counts_.gap_bytes += bytes;
}

Piece& TailOutput::add_bare_piece(TailSource& source, std::string content) {
  if (!std::exchange(source.declared, true)) out_->batch.opened.push_back(source.info);
  Piece piece;
  piece.stream = source.info.id;
  piece.offset = source.size;
  piece.time_ns = time_.now;
  piece.bytes = std::move(content);
  source.size += piece.bytes.size();
  out_->batch.pieces.push_back(std::move(piece));
  return out_->batch.pieces.back();
}

Piece& TailOutput::add_piece(TailSource& source, std::string content) {
  Piece& piece = add_bare_piece(source, std::move(content));
  piece.gap = std::exchange(source.gap, std::nullopt);
  // Also before the first byte is read: the gap before it must not be reported again after a restart.
  if (!source.chain.empty()) {
    const Generation& first = source.chain.front();
    // Before any byte is read, the beginning identifies the file.
    piece.place = first.place.offset == 0 && first.peek.fingerprint_bytes > 0 ? first.peek : first.place;
    source.placed = true;
  } else if (!source.past.empty()) {
    piece.place = source.past.back();
  }
  return piece;
}

void TailOutput::note_lag(TailSource& source) {
  uint64_t lag = 0;
  for (const Generation& generation : source.chain)
    if (generation.compression == Compression::kNone) lag += generation.unread();
  counts_.lag_bytes += lag - source.lag;
  source.lag = lag;
}

}  // namespace culprit::ingest
