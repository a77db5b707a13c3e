#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "ingest/live/tailer_impl.h"

namespace culprit::ingest {
namespace {

bool same(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

// Budget cost of work without bytes (a hole, decoding up to the position).
constexpr uint64_t kSkipCost = limits::kPieceBytes;

}  // namespace

uint64_t Tailer::Impl::read_source(TailSource& source, uint64_t share) {
  if (source.ended || mono_ < source.not_before) return 0;
  uint64_t taken = 0;
  bool goes_on = true;
  while (goes_on && taken < share) goes_on = read_piece(source, share - taken, taken);
  if (!goes_on) goes_on = read_late(source, share, taken);
  if (!source.chain.empty() && taken > 0) source.changed_at = mono_;
  if (goes_on) make_ready(source);
  note_lag(source);
  count_open(source);
  return taken;
}

// False if no more bytes are available for now.
bool Tailer::Impl::read_piece(TailSource& source, uint64_t max, uint64_t& taken) {
  if (source.chain.empty()) return false;
  Generation& first = source.chain.front();
  const bool last = source.chain.size() == 1;
  if (first.gap_before) {
    note_gap(source, std::move(*first.gap_before));
    first.gap_before.reset();
  }
  if (!ensure_open(source, first)) return !last && source.not_before <= mono_;
  Reading reading = read_on(first, max);
  switch (reading.result) {
    case ReadResult::kBytes:
      if (std::exchange(source.failing, false)) --refused;
      taken += reading.bytes.size();
      add_piece(source, std::move(reading.bytes));
      return true;
    case ReadResult::kSkipped:
      taken += kSkipCost;
      if (reading.skipped == 0) return true;
      note_gap(source, {reading.skipped, 0, "a hole in the file"});
      add_piece(source, "");
      return true;
    case ReadResult::kChanged:
      if (last) {
        resolve(source, true);
        // Unidentified files are retried in the next round, not in a loop here.
        return !source.pending && !source.chain.empty() && source.chain.front().unread() > 0;
      }
      taken += kSkipCost;
      note_gap(source, {first.unread(), 0, "the file was truncated before its rest was read"});
      begin_again(source, first);
      return true;
    case ReadResult::kFailed:
      failed(source, reading.error);
      return false;
    case ReadResult::kDamaged:
      note_gap(source, {0, 0, "the rest of the file was compressed and is damaged"});
      break;
    case ReadResult::kEnd:
      break;
  }
  if (last) return false;
  // An empty file at the path: its writer has not opened it yet and continues in the present file.
  const Generation& next = source.chain[1];
  const bool finished = source.chain.size() > 2 || next.seen > 0 || next.compression != Compression::kNone ||
                        first.compression != Compression::kNone;
  if (finished) leave(source);
  return finished;
}

// The file was truncated, and perhaps rewritten, before it was renamed.
void Tailer::Impl::begin_again(TailSource& source, Generation& generation) {
  remember(source, generation.place);
  Generation fresh;
  fresh.name = std::move(generation.name);
  fresh.file = std::move(generation.file);
  fresh.place.device = generation.place.device;
  fresh.place.inode = generation.place.inode;
  fresh.peek = peek_of(fresh);
  generation = std::move(fresh);
}

// The gap goes with the next piece: the place in the new file and the gap before it become durable together.
void Tailer::Impl::note_gap(TailSource& source, Gap gap) {
  ++gaps;
  gap_bytes += gap.bytes;
  if (source.gap) gap.bytes += source.gap->bytes;
  source.gap = std::move(gap);
  source.gap_at = mono_;
}

Piece& Tailer::Impl::bare_piece(TailSource& source, std::string content) {
  Piece piece;
  piece.stream = source.info.id;
  piece.offset = source.size;
  piece.time_ns = now_;
  piece.bytes = std::move(content);
  source.size += piece.bytes.size();
  out_->batch.pieces.push_back(std::move(piece));
  return out_->batch.pieces.back();
}

Piece& Tailer::Impl::add_piece(TailSource& source, std::string content) {
  Piece& piece = bare_piece(source, std::move(content));
  piece.gap = std::exchange(source.gap, std::nullopt);
  // Also before the first byte is read: the gap before it must not be reported again after a restart.
  if (!source.chain.empty()) {
    piece.place = source.chain.front().place;
  } else if (!source.past.empty()) {
    piece.place = source.past.back();
  }
  return piece;
}

bool Tailer::Impl::ensure_open(TailSource& source, Generation& generation) {
  int error = 0;
  if (!generation.file.is_open()) {
    error = root_.open_file(generation.name, generation.file);
    Look look;
    if (error == 0) error = look_at(generation.file.get(), look);
    const bool other =
        error == 0 && generation.compression == Compression::kNone && !same(generation.place, look);
    if (other || error == ENOENT) error = find_again(source, generation);
  }
  if (error == 0 && generation.compression != Compression::kNone && !generation.decoder) {
    generation.decoder = decoder_over(generation.file, generation.compression, generation.name);
    generation.decoded = 0;
    if (!generation.decoder) error = ENOMEM;
  }
  count_open(source);
  if (error == 0) return true;
  const bool ours = error == EMFILE || error == ENFILE || error == ENOMEM;
  if (error == EAGAIN) {
    // Names change: retried in the next round.
    source.not_before = mono_ + kNsPerMs;
    if (!std::exchange(source.pending, true)) pending_.push_back(source.number);
  } else if (!ours && &generation != &source.chain.back()) {
    note_gap(source,
             {generation.unread(), 0, "the rotated file was removed or cannot be read: " + reason_of(error)});
    leave(source);
  } else if (error == ENOENT) {
    // The last file is being replaced: the next check finds the new one.
    source.changed_at = mono_;
    schedule(source, mono_ + kNsPerMs);
  } else {
    failed(source, error);
  }
  return false;
}

void Tailer::Impl::failed(TailSource& source, int error) {
  if (!std::exchange(source.failing, true)) {
    problem(source.name, reason_of(error));
    ++refused;
  }
  source.not_before = mono_ + kRetryNs;
  schedule(source, std::min(source.next_look, source.not_before));
}

void Tailer::Impl::count_open(TailSource& source) {
  size_t count = 0;
  for (const Generation& generation : source.chain)
    count += generation.file.is_open() + (generation.decoder != nullptr);
  count += source.late.size();
  descriptors_ += count - source.descriptors;
  source.descriptors = count;
  if (source.held) open_order_.erase(*source.held);
  source.held.reset();
  if (count > 0) source.held = open_order_.insert(open_order_.end(), source.number);
  while (descriptors_ > options_.open_max && open_order_.front() != source.number)
    close_all(*sources_[open_order_.front()]);
}

void Tailer::Impl::close_all(TailSource& source) {
  for (Generation& generation : source.chain) {
    generation.file = Descriptor();
    generation.decoder.reset();
  }
  for (const LateFile& late : source.late) leave_late(source, late);
  if (!std::exchange(source.late, {}).empty()) source.next_late = 0;
  descriptors_ -= source.descriptors;
  source.descriptors = 0;
  if (source.held) open_order_.erase(*source.held);
  source.held.reset();
}

}  // namespace culprit::ingest
