#include "store/frames.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::store {

Result<std::optional<uint64_t>> sequence_before(SegmentReader& reader, uint64_t epoch) {
  const auto first = reader.next({.content = false, .epoch = epoch});
  if (!first) return tl::unexpected(first.error());
  if (!*first) return std::nullopt;
  const FrameHeader& frame = reader.frame();
  return std::optional(frame.sequence - (frame.kind == FrameKind::kData ? 1 : 0));
}

// The last segment that was created before frame `after` + 1.
Result<std::optional<uint64_t>> FrameReader::segment_of(uint64_t after) {
  const auto numbers = list_segments(files_, folder_);
  if (!numbers) return tl::unexpected(numbers.error());
  std::optional<uint64_t> found;
  for (const uint64_t number : *numbers) {
    auto reader = SegmentReader::open(files_, folder_, number);
    if (!reader && reader.error().code == ErrorCode::kNotFound) continue;  // deleted since
    if (!reader) return tl::unexpected(reader.error());
    const auto before = sequence_before(*reader, epoch_);
    if (!before) return tl::unexpected(before.error());
    if (found && *before && **before > after) break;
    if (*before || !found) found = number;
  }
  return found;
}

Status FrameReader::enter(uint64_t number) {
  reader_.reset();
  auto reader = SegmentReader::open(files_, folder_, number);
  if (!reader) return tl::unexpected(reader.error());
  reader_.emplace(std::move(*reader));
  number_ = number;
  return {};
}

// Moves to the next unread data frame; false if there is none.
Result<bool> FrameReader::next(const FrameQuery& query) {
  CULPRIT_CHECK(reader_);
  for (;;) {
    const auto more = reader_->next({.checkpoints = false, .content = false, .epoch = epoch_});
    if (!more) return tl::unexpected(more.error());
    if (*more) {
      // A failed write may leave a frame on disk that the retry wrote again.
      if (reader_->frame().sequence <= sequence_) continue;
      return reader_->frame().sequence <= query.until;
    }
    const auto numbers = list_segments(files_, folder_);
    if (!numbers) return tl::unexpected(numbers.error());
    const auto later = std::upper_bound(numbers->begin(), numbers->end(), number_);
    if (later == numbers->end()) return false;
    const Status entered = enter(*later);
    if (!entered && entered.error().code != ErrorCode::kNotFound) return tl::unexpected(entered.error());
    if (!entered) return false;  // deleted since; the next call starts after it
  }
}

Result<std::vector<VerbatimFrame>> FrameReader::read(const FrameQuery& query) {
  std::vector<VerbatimFrame> found;
  if (query.after >= query.until) return found;
  if (!reader_ || sequence_ != query.after) {
    const auto number = segment_of(query.after);
    if (!number) return tl::unexpected(number.error());
    if (!*number) return found;
    if (const Status entered = enter(**number); !entered) return tl::unexpected(entered.error());
    sequence_ = query.after;
  } else if (const Status fresh = reader_->refresh(); !fresh) {
    return tl::unexpected(fresh.error());
  }
  for (size_t bytes = 0; found.empty() || bytes < query.bytes;) {
    const auto more = next(query);
    if (!more || !*more) {
      // Searches the position again from the start.
      const bool left = sequence_ < query.until;
      if (left) reader_.reset();
      if (!more && found.empty()) return tl::unexpected(more.error());
      break;
    }
    CULPRIT_CHECK(reader_->frame().sequence > sequence_ && reader_->frame().sequence <= query.until);
    sequence_ = reader_->frame().sequence;
    found.push_back({reader_->frame(), reader_->verbatim()});
    bytes += found.back().bytes.size();
    if (sequence_ >= query.until) break;
  }
  return found;
}

Result<FrameReader::Checkpoint> FrameReader::checkpoint(uint64_t after) {
  Checkpoint checkpoint;
  const auto number = segment_of(after);
  if (!number) return tl::unexpected(number.error());
  if (!*number) return checkpoint;
  auto reader = SegmentReader::open(files_, folder_, **number);
  if (!reader) return tl::unexpected(reader.error());
  for (;;) {
    const auto more = reader->next({.streams = 0, .content = false, .epoch = epoch_});
    if (!more) return tl::unexpected(more.error());
    if (!*more) return Checkpoint{};
    checkpoint.sequence = reader->frame().sequence;
    checkpoint.frames.push_back({reader->frame(), reader->verbatim()});
    if (reader->frame().kind == FrameKind::kCheckpointEnd) return checkpoint;
  }
}

}  // namespace culprit::store
