// Recovery of a spool at a start.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "store/checkpoint.h"
#include "store/frames.h"
#include "store/spool.h"
#include "store/spool_clean.h"

namespace culprit::store {

namespace {

// After this time a process has stored all sources that it saw, unless the disk fails.
constexpr TimeNs kStoredSoonNs = 600 * kNsPerSecond;

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

// Records whether an earlier process used this folder, even if it could store nothing.
Status Spool::note_earlier_life() {
  const auto folder = files_.open(options_.folder, io::OpenFor::kRead);
  if (!folder && folder.error().code == ErrorCode::kNotFound) return {};
  if (!folder) return tl::unexpected(folder.error());
  const auto status = (*folder)->status();
  if (!status) return tl::unexpected(status.error());
  stored_until_ns_ = status->born_ns != kNoTime ? status->born_ns : status->modified_ns;
  return {};
}

void Spool::note_stored_until() {
  for (const auto& segment : segments_.all()) frame_times_.push_back(segment.created_ns);
  const std::vector<TimeNs> times = std::exchange(frame_times_, {});
  if (times.empty()) return;
  const TimeNs newest = *std::max_element(times.begin(), times.end());
  for (const TimeNs time : times)
    if (time != kNoTime && time <= newest - kStoredSoonNs)
      stored_until_ns_ = std::max(stored_until_ns_, time);
}

Status Spool::recover(TimeNs) {
  if (const Status noted = note_earlier_life(); !noted) return noted;
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
  // If the newest segment is not reopened, the next frame starts a new segment, and the torn bytes stay.
  if (*first == newest) segments_.reopen_newest(segments_.all().back().size - stats_.cut_bytes);
  streams_.end_recovery();
  note_stored_until();
  written_sequence_ = sequence_;
  if (const Status noted = note_shares(); !noted) return noted;
  note_first_offsets();
  if (!options_.hold) return {};
  // Data must be synced before it is sent.
  segments_.distrust_all();
  (void)sync();
  return note_sequences();
}

// Sets the last sequence before each segment. A segment without a sound frame gets the value of the next
// segment.
Status Spool::note_sequences() {
  uint64_t before = written_sequence_;
  for (size_t i = segments_.all().size(); i-- > 0;) {
    auto reader = SegmentReader::open(files_, options_.folder, segments_.all()[i].number);
    if (!reader) return tl::unexpected(reader.error());
    const auto found = sequence_before(*reader, epoch_);
    if (!found) return tl::unexpected(found.error());
    before = found->value_or(before);
    segments_.set_before(i, before);
  }
  return {};
}

// Reads the sizes of the segments, and the epoch from the newest segment with a sound header.
Status Spool::look_at_segments() {
  const auto numbers = list_segments(files_, options_.folder);
  if (!numbers) return tl::unexpected(numbers.error());
  for (const uint64_t number : *numbers) {
    // If the removal fails, the next cleaning of this segment deletes the file.
    if (options_.fair) (void)files_.remove(unfinished_name(options_.folder, number));
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
    SpoolSegments::Segment segment{number, reader->size(), 0};
    if (reader->header()) segment.created_ns = reader->header()->created_ns;
    if (reader->header()) segment.cleaned = reader->header()->cleaned;
    segments_.add_found(segment);
  }
  if (epoch_ == 0) epoch_ = options_.new_epoch;
  if (epoch_ == 0) epoch_ = random_number();
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
    frame_times_.push_back(frame.time_ns);
    const bool copy = frame.kind == FrameKind::kData && frame.sequence <= sequence_;
    sequence_ = std::max(sequence_, frame.sequence);
    if (frame.kind == FrameKind::kCheckpointEnd) checkpoint_end_ = reader->sound_end();
    if (!copy && !read_records(reader->content(), recovery)) bad_records += 1;
  }
  stats_.damaged_frames += reader->damaged_frames() + bad_records;
  if (which + 1 == segments_.all().size()) stats_.cut_bytes = reader->size() - reader->sound_end();
  return {};
}

// Computes the bytes of each owner in each segment: the growth of its positions between checkpoints.
Status Spool::note_shares() {
  if (!options_.fair) return {};
  std::map<StreamId, uint64_t> begin;
  std::optional<uint64_t> segment;  // with these positions at its beginning
  const auto grew = [&](StreamId id, uint64_t to) {
    const StreamInfo* const info = streams_.info(id);
    const uint64_t from = begin[id];
    if (segment && info != nullptr && to > from) shares_.add(*segment, owner_of(*info), to - from);
  };
  for (const auto& one : segments_.all()) {
    auto reader = SegmentReader::open(files_, options_.folder, one.number);
    if (!reader) return tl::unexpected(reader.error());
    const auto checkpoint = read_checkpoint(*reader, epoch_);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    if (!checkpoint->complete) continue;
    for (const auto& [id, size] : checkpoint->begins) grew(id, size);
    begin.clear();
    for (const auto& [id, position] : checkpoint->positions) begin[id] = position.size;
    segment = one.number;
  }
  return streams_.for_each_committed([&](const StreamInfo& info, const Position& position) {
    grew(info.id, position.size);
    return Status{};
  });
}

// Marks bytes as deleted before the checkpoint of the oldest segment, or with `fair` before the first
// segment with evidence of the owner. Streams that ended there no longer exist.
void Spool::note_first_offsets() {
  const auto first_of = [&](const StreamInfo& info) {
    const auto found = options_.fair ? shares_.first_with(owner_of(info)) : std::nullopt;
    return found.value_or((options_.fair ? segments_.all().back() : segments_.all().front()).number);
  };
  std::map<uint64_t, std::vector<StreamId>> by_segment;
  (void)streams_.for_each_committed([&](const StreamInfo& info, const Position&) {
    by_segment[first_of(info)].push_back(info.id);
    return Status{};
  });
  for (const auto& [number, ids] : by_segment) {
    auto reader = SegmentReader::open(files_, options_.folder, number);
    if (!reader) continue;
    const auto checkpoint = read_checkpoint(*reader, epoch_, &ids);
    if (!checkpoint || !checkpoint->complete) continue;
    for (const auto& [id, position] : checkpoint->positions) streams_.delete_before(id, position);
  }
}

}  // namespace culprit::store
