// Recovery of a spool at a start.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/hash.h"
#include "store/checkpoint.h"
#include "store/frames.h"
#include "store/spool.h"

namespace culprit::store {

namespace {

// The newest segment that is readable without earlier ones, and can be continued.
Result<std::optional<size_t>> newest_checkpoint(io::Files& files, const std::string& folder,
                                                const SpoolSegments& segments, uint64_t epoch) {
  for (size_t i = segments.all().size(); i-- > 0;) {
    auto reader = SegmentReader::open(files, folder, segments.all()[i].number);
    if (!reader) return tl::unexpected(reader.error());
    const auto checkpoint = read_checkpoint(*reader, epoch);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    if (checkpoint->complete && reader->header()) return std::optional(i);
  }
  return std::nullopt;
}

}  // namespace

// Applies records to the streams, in order.
class Spool::Recovery : public RecordSink {
 public:
  explicit Recovery(Spool& spool) : spool_(spool) {}
  void on_stream(const StreamInfo& info) override { spool_.streams_.recover(info); }
  void on_piece(const Piece& piece, std::string_view bytes) override {
    spool_.streams_.recover(piece, bytes);
  }
  void on_position(StreamId id, const Position& position) override { spool_.streams_.recover(id, position); }
  void on_acknowledged(uint64_t sequence) override { spool_.retain_after(sequence); }
  void on_checkpoint(StreamId next_id, uint32_t) override { spool_.streams_.recover_next_id(next_id); }

 private:
  Spool& spool_;
};

Status Spool::recover(TimeNs) {
  if (const Status made = files_.make_folder(options_.folder); !made) return made;
  if (const Status seen = look_at_segments(); !seen) return seen;
  choose_segment_bytes();
  if (segments_.all().empty()) return {};
  const auto first = newest_checkpoint(files_, options_.folder, segments_, epoch_);
  if (!first) return tl::unexpected(first.error());
  Recovery recovery(*this);
  const size_t newest = segments_.all().size() - 1;
  for (size_t i = first->value_or(0); i <= newest; ++i)
    if (const Status read = read_segment(recovery, i); !read) return read;
  // Otherwise, or if this fails, the next frame starts a segment, and the torn part stays in place.
  if (*first == newest) segments_.reopen_newest(segments_.all().back().size - stats_.cut_bytes);
  streams_.end_recovery();
  written_sequence_ = sequence_;
  note_first_offsets();
  if (!options_.hold) return {};
  // Data must be synced before it is sent.
  segments_.distrust_all();
  (void)sync();
  return note_sequences();
}

// If a segment has no sound frame, the value of the next one counts.
Status Spool::note_sequences() {
  uint64_t before = written_sequence_;
  for (size_t i = segments_.all().size(); i-- > 0;) {
    auto reader = SegmentReader::open(files_, options_.folder, segments_.all()[i].number);
    if (!reader) return tl::unexpected(reader.error());
    const auto reported = sequence_before(*reader, epoch_);
    if (!reported) return tl::unexpected(reported.error());
    before = reported->value_or(before);
    segments_.set_before(i, before);
  }
  return {};
}

// Reads their sizes, and the epoch from the newest with a sound header.
Status Spool::look_at_segments() {
  const auto numbers = list_segments(files_, options_.folder);
  if (!numbers) return tl::unexpected(numbers.error());
  for (const uint64_t number : *numbers) {
    auto reader = SegmentReader::open(files_, options_.folder, number);
    if (!reader) return tl::unexpected(reader.error());
    if (reader->header() && reader->header()->version > kSegmentVersion)
      return fail(
          ErrorCode::kInvalid,
          fmt::format("{}/{}: written by a newer culpritd (format {}, this one knows {})", options_.folder,
                      segment_name(number), reader->header()->version, kSegmentVersion));
    const auto epoch = reader->epoch();
    if (!epoch) return tl::unexpected(epoch.error());
    if (*epoch) epoch_ = **epoch;
    segments_.add_found({number, reader->size(), 0});
  }
  if (epoch_ == 0) epoch_ = options_.new_epoch;
  while (epoch_ == 0) {
    std::random_device random;
    epoch_ = mix64(random(), random());
  }
  return {};
}

Status Spool::read_segment(Recovery& recovery, size_t which) {
  auto reader = SegmentReader::open(files_, options_.folder, segments_.all()[which].number);
  if (!reader) return tl::unexpected(reader.error());
  uint64_t bad_records = 0;
  for (;;) {
    const auto more = reader->next({});
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    const FrameHeader& frame = reader->frame();
    if (frame.epoch != epoch_) continue;
    const bool copy = frame.kind == FrameKind::kData && frame.sequence <= sequence_;
    sequence_ = std::max(sequence_, frame.sequence);
    if (frame.kind == FrameKind::kCheckpointEnd) checkpoint_end_ = reader->sound_end();
    if (!copy && !read_records(reader->content(), recovery)) bad_records += 1;
  }
  stats_.damaged_frames += reader->damaged_frames() + bad_records;
  if (which + 1 == segments_.all().size()) stats_.cut_bytes = reader->size() - reader->sound_end();
  return {};
}

// After the oldest segment: the bytes before its checkpoint. Streams that ended before it no longer exist.
void Spool::note_first_offsets() {
  auto reader = SegmentReader::open(files_, options_.folder, segments_.all().front().number);
  if (!reader) return;
  const auto checkpoint = read_checkpoint(*reader, epoch_);
  if (!checkpoint || !checkpoint->complete) return;
  for (const auto& [id, position] : checkpoint->positions) streams_.delete_before(id, position);
}

}  // namespace culprit::store
