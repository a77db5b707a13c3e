#include "store/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "store/checkpoint.h"
#include "store/frames.h"
#include "store/segment.h"

namespace culprit::store {

namespace {

// Reads the frames of a folder's segments once each, in order, while the folder is written.
class SpoolFrames {
 public:
  static Result<SpoolFrames> open(io::Files& files, const std::string& folder) {
    SpoolFrames frames(files, folder);
    const auto epoch = newest_epoch(files, folder);
    if (!epoch) return tl::unexpected(epoch.error());
    frames.epoch_ = epoch->value_or(0);
    auto numbers = list_segments(files, folder);
    if (!numbers) return tl::unexpected(numbers.error());
    frames.numbers_ = std::move(*numbers);
    return frames;
  }

  size_t segments() const { return numbers_.size(); }
  // Nothing if it is unreadable or damaged.
  std::optional<Checkpoint> checkpoint(size_t segment, const std::vector<StreamId>& only) {
    auto reader = SegmentReader::open(files_, folder_, numbers_[segment]);
    if (!reader) return std::nullopt;
    auto found = read_checkpoint(*reader, epoch_, &only);
    if (!found || !found->complete) return std::nullopt;
    return std::move(*found);
  }

  // Continues after frame `sequence` of `segment`, which another reader has reached.
  void go_on_behind(uint64_t sequence, uint64_t segment) {
    next_segment_ =
        static_cast<size_t>(std::lower_bound(numbers_.begin(), numbers_.end(), segment) - numbers_.begin());
    sequence_ = sequence;
    removed_ = segment > 0 && (next_segment_ == numbers_.size() || numbers_[next_segment_] != segment);
    // The rest of the removed segment may have been joined to the previous segment.
    if (removed_ && next_segment_ > 0) next_segment_ -= 1;
  }
  // Whether evidence was removed before the current frame to make room, since the last call.
  bool went() { return std::exchange(removed_, false); }
  uint64_t segment() const { return numbers_[next_segment_ - 1]; }  // of the current frame
  // The last segment with a complete checkpoint that was created before frame `sequence` + 1.
  std::optional<uint64_t> segment_before(uint64_t sequence) {
    const std::vector<StreamId> none;
    for (size_t i = numbers_.size(); i-- > 0;) {
      auto reader = SegmentReader::open(files_, folder_, numbers_[i]);
      if (!reader) continue;
      const auto before = sequence_before(*reader, epoch_);
      if (before && *before && **before <= sequence && checkpoint(i, none)) return numbers_[i];
    }
    return std::nullopt;
  }

  void rewind(size_t segment) {
    leave_segment();
    next_segment_ = segment;
    entered_.reset();
    removed_ = false;
    sequence_ = 0;
  }
  // False after the last.
  bool next(const SegmentReader::Wanted& wanted) {
    for (;;) {
      if (!reader_ && !enter_segment()) return false;
      const auto more = reader_->next(wanted);
      if (!more) note_unreadable(more.error());
      if (!more || !*more) {
        leave_segment();
        continue;
      }
      const FrameHeader& frame = reader_->frame();
      if (frame.epoch != epoch_) continue;
      if (frame.kind == FrameKind::kData &&
          std::exchange(sequence_, std::max(sequence_, frame.sequence)) >= frame.sequence)
        continue;
      return true;
    }
  }
  const FrameHeader& frame() const { return reader_->frame(); }
  // False if the content is malformed; the records before the malformed one were passed on.
  bool records(RecordSink& sink) {
    if (read_records(reader_->content(), sink)) return true;
    damage_.frames += 1;
    return false;
  }
  ReadDamage damage() {
    leave_segment();
    return damage_;
  }

 private:
  SpoolFrames(io::Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  bool enter_segment() {
    while (next_segment_ < numbers_.size()) {
      auto reader = SegmentReader::open(files_, folder_, numbers_[next_segment_++]);
      if (reader) {
        const uint64_t number = numbers_[next_segment_ - 1];
        const bool cleaned = reader->header() && reader->header()->cleaned;
        removed_ = removed_ || cleaned || (entered_ && *entered_ + 1 != number);
        entered_ = number;
        reader_.emplace(std::move(*reader));
        return true;
      }
      // The segment was deleted after the folder was listed; the offsets of the next pieces show the hole.
      removed_ = removed_ || reader.error().code == ErrorCode::kNotFound;
      if (reader.error().code != ErrorCode::kNotFound) note_unreadable(reader.error());
    }
    return false;
  }
  void leave_segment() {
    if (!reader_) return;
    damage_.frames += reader_->damaged_frames();
    damage_.bytes += reader_->damaged_bytes();
    if (reader_->damaged_bytes() > 0 && damage_.first.empty())
      damage_.first = fmt::format("{}/{}: {} damaged bytes were skipped", folder_,
                                  segment_name(numbers_[next_segment_ - 1]), reader_->damaged_bytes());
    reader_.reset();
  }
  void note_unreadable(const Error& error) {
    damage_.unreadable_segments += 1;
    if (damage_.first.empty()) damage_.first = error.text;
  }

  io::Files& files_;
  std::string folder_;
  uint64_t epoch_ = 0, sequence_ = 0;
  std::vector<uint64_t> numbers_;
  size_t next_segment_ = 0;
  std::optional<uint64_t> entered_;  // the last one's number
  bool removed_ = false;
  std::optional<SegmentReader> reader_;
  ReadDamage damage_;
};

// ---- replay

class Replayer : public RecordSink {
 public:
  bool done() const { return done_; }
  // Bytes before the first checkpoint are skipped by request; they are no gap.
  void begin_here() { begins_here_ = true; }
  void visit(const ReplayVisitor& visitor) { visitor_ = &visitor; }
  uint64_t bytes() const { return bytes_; }  // returned so far
  // Evidence before the next frame was removed to make room.
  void segments_went() { went_ = true; }

  void on_stream(const StreamInfo& info) override {
    if (const auto [at, fresh] = streams_.try_emplace(info.id); fresh)
      at->second.wanted = visitor_->wanted(info);
  }
  void on_position(StreamId id, const Position& position) override {
    // At the first checkpoint, or after deleted segments: earlier bytes no longer exist.
    if (const auto found = streams_.find(id); found != streams_.end() && (went_ || !found->second.seen))
      (begins_here_ && !found->second.seen ? found->second.next : found->second.first) = position.size;
  }
  void on_piece(const Piece& piece, std::string_view bytes) override {
    const auto found = streams_.find(piece.stream);
    if (done_ || found == streams_.end() || !found->second.wanted) return;
    Stream& stream = found->second;
    stream.seen = true;
    went_ = false;
    Piece copy = piece;
    if (piece.offset < stream.next) {  // returned before, except its end
      if (piece.offset + bytes.size() <= stream.next) return;
      bytes.remove_prefix(stream.next - piece.offset);
      copy.offset = stream.next;
    }
    copy.bytes.assign(bytes);
    if (copy.offset > stream.next) add_hole(copy, stream);
    stream.next = copy.offset + bytes.size();
    bytes_ += copy.bytes.size();
    done_ = !visitor_->piece(copy);
  }

 private:
  struct Stream {
    uint64_t next = 0, first = 0;
    bool wanted = false, seen = false;
  };
  static void add_hole(Piece& piece, const Stream& stream) {
    const bool dropped = piece.offset <= stream.first;
    if (!piece.gap) piece.gap = Gap{0, 0, std::string(dropped ? kDropped : kDamaged)};
    piece.gap->bytes += piece.offset - stream.next;
  }
  const ReplayVisitor* visitor_ = nullptr;
  uint64_t bytes_ = 0;
  bool went_ = false;
  std::map<StreamId, Stream> streams_;
  bool begins_here_ = false;
  bool done_ = false;
};

// ---- evidence

// Passes on the bytes [next, to) of one stream of the range, in order.
class StreamCopy : public RecordSink {
 public:
  StreamCopy(const StoredStream& stream, uint64_t base, const EvidenceSink& sink)
      : id_(stream.state.info.id),
        size_(stream.state.size),
        first_(stream.first_offset),
        base_(base),
        holes_(stream.holes),
        sink_(sink) {}
  void limit(uint64_t from, uint64_t to) {
    next_ = from;
    to_ = std::min(to, size_);
    whole_ = to >= size_;
  }
  // A gap may follow the last byte.
  bool done() const { return enough_ || (next_ >= to_ && !whole_); }
  bool enough() const { return enough_; }
  // Evidence before the next piece was removed to make room.
  void evidence_went() { went_ = true; }
  // Of streams in several places: the end of the next extent; its frames may have more.
  void until(uint64_t end) { until_ = end; }
  // The bytes up to until() cannot be read here.
  void give_up(std::string reason) {
    const uint64_t end = std::min(until_, to_);
    if (enough_ || next_ >= end) return;
    const Hole hole{next_, end - next_, std::move(reason)};
    holes_.insert(std::ranges::lower_bound(holes_, hole.offset, {}, &Hole::offset), hole);
  }

  void on_piece(const Piece& piece, std::string_view bytes) override {
    if (piece.stream != id_ || done() || piece.offset > size_) return;
    if (piece.offset > until_ || (piece.offset == until_ && !bytes.empty())) return;
    const uint64_t end = piece.offset + bytes.size();
    if (end < next_ || (end == next_ && (piece.offset < next_ || !piece.gap))) return;
    if (piece.offset > next_) hole(std::min(piece.offset, to_));
    went_ = false;
    if (piece.gap && piece.offset == next_ && sink_.gap) sink_.gap({base_ + next_, 0, *piece.gap});
    if (next_ >= to_ || next_ < piece.offset) return;
    if (next_ >= until_) return;
    const std::string_view part = bytes.substr(next_ - piece.offset, std::min(to_, until_) - next_);
    next_ += part.size();
    if (!part.empty() && !sink_.bytes(part)) enough_ = true;
  }
  void finish() {
    if (!enough_ && next_ < to_) hole(to_);
    for (const Hole& behind : holes_)
      if (!enough_ && whole_ && behind.bytes == 0 && behind.offset == size_ && sink_.gap)
        sink_.gap({base_ + size_, 0, Gap{0, 0, behind.reason}});
  }

 private:
  // Reports the missing bytes up to `until`. An archive also knows the bytes that never came.
  void hole(uint64_t until) {
    if (next_ < first_) part_hole(std::min(until, first_), kDropped);
    for (const Hole& never : holes_) {
      const uint64_t end = never.offset + never.bytes;
      if (end <= next_ || never.offset >= until) continue;
      part_hole(never.offset, kDamaged);
      part_hole(std::min(until, end), never.reason);
    }
    part_hole(until, went_ ? kDropped : kDamaged);
  }
  void part_hole(uint64_t until, std::string_view reason) {
    if (until <= next_) return;
    const uint64_t missing = until - next_;
    if (sink_.gap) sink_.gap({base_ + next_, missing, Gap{missing, 0, std::string(reason)}});
    next_ = until;
  }

  const StreamId id_;
  const uint64_t size_, first_, base_;
  std::vector<Hole> holes_;
  const EvidenceSink& sink_;
  uint64_t next_ = 0, to_ = 0, until_ = UINT64_MAX;
  bool whole_ = false, enough_ = false, went_ = false;
};

// Positions of all sources at the start of each segment; nothing for a damaged one.
using Starts = std::vector<std::optional<std::map<StreamId, Position>>>;

Starts read_starts(SpoolFrames& frames, const EvidenceRange& range) {
  std::vector<StreamId> wanted;
  for (const StoredStream& stream : range.streams) wanted.push_back(stream.state.info.id);
  std::sort(wanted.begin(), wanted.end());
  Starts starts(frames.segments());
  for (size_t i = 0; i < starts.size(); ++i)
    if (auto checkpoint = frames.checkpoint(i, wanted)) starts[i] = std::move(checkpoint->positions);
  return starts;
}

// The last segment that was created before byte `from` of the source.
size_t segment_before(const Starts& starts, StreamId stream, uint64_t from) {
  size_t best = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (!starts[i]) continue;
    const auto found = starts[i]->find(stream);
    // Equal sizes do not count: a gap at `from` may be in the previous segment.
    if (found == starts[i]->end() || found->second.size < from) best = i;
  }
  return best;
}

// ---- evidence of an archive

struct ExtentSource {
  io::Files& files;
  const std::string& folder;
  const EvidenceRange& range;
  ReadDamage& damage;
  void note(std::string what) const {
    if (damage.first.empty()) damage.first = std::move(what);
  }
};

// An error if the extent cannot be read to its end; damage between sound frames is counted only.
Status copy_extent(const ExtentSource& from, const StoredStream& stream, const Extent& extent,
                   StreamCopy& copy) {
  auto reader = extent.is_object ? from.range.open_object(extent.segment)
                                 : SegmentReader::open(from.files, from.folder, extent.segment);
  if (!reader) return tl::unexpected(reader.error());
  reader->accept_any_origin();
  reader->seek(extent.first_at);
  SegmentReader::Wanted wanted{.streams = stream_bit(stream.state.info.id), .checkpoints = false};
  wanted.epoch = stream.epoch;
  Status status;
  bool more = true;
  while (more && !copy.done()) {
    const auto next = reader->next(wanted);
    if (!next) status = tl::unexpected(next.error());
    more = next && *next && reader->frame_at() <= extent.last_at;
    if (more && !read_records(reader->content(), copy)) from.damage.frames += 1;
    // Bytes after the extent may be garbage that a start of the archive skipped.
    more = more && reader->frame_at() < extent.last_at;
  }
  from.damage.frames += reader->damaged_frames();
  from.damage.bytes += reader->damaged_bytes();
  if (reader->damaged_bytes() > 0)
    from.note(fmt::format("{}/{}: {} damaged bytes were skipped", from.folder, segment_name(extent.segment),
                          reader->damaged_bytes()));
  return status;
}

// Reads the stream's frames in order, starting with the extent of byte `first`, until the copy is complete.
void copy_extents(const ExtentSource& from, const StoredStream& stream, uint64_t first, StreamCopy& copy) {
  for (const Extent& extent : stream.extents) {
    if (extent.to < first || copy.done()) continue;
    if (from.range.open_object) copy.until(extent.to);
    const Status done = copy_extent(from, stream, extent, copy);
    if (extent.is_object) copy.give_up(done ? std::string(kDamaged) : done.error().text);
    if (done || done.error().code == ErrorCode::kNotFound) continue;  // deleted since: offsets show the hole
    from.damage.unreadable_segments += 1;
    from.note(done.error().text);
  }
  copy.until(UINT64_MAX);
}

}  // namespace

struct Replay::Impl {
  io::Files& files;
  std::string folder;
  Replayer replayer;
  std::optional<SpoolFrames> frames;   // until the previous mark is reached
  uint64_t sequence = 0, segment = 0;  // of the last returned frame
  ReadDamage damage;

  void add(const ReadDamage& more) {
    damage.frames += more.frames;
    damage.bytes += more.bytes;
    damage.unreadable_segments += more.unreadable_segments;
    if (damage.first.empty()) damage.first = more.first;
  }
};

Replay::Replay(io::Files& files, std::string folder)
    : impl_(new Impl{files, std::move(folder), {}, {}, 0, 0, {}}) {}
Replay::~Replay() = default;
ReadDamage Replay::damage() const { return impl_->damage; }

void Replay::begin_behind(uint64_t sequence) {
  if (sequence == 0) return;
  auto frames = SpoolFrames::open(impl_->files, impl_->folder);
  if (!frames) return;
  const auto segment = frames->segment_before(sequence);
  if (!segment) return;
  impl_->segment = *segment;
  impl_->replayer.begin_here();
}

Result<bool> Replay::advance(uint64_t until, uint64_t bytes_most, const ReplayVisitor& visitor) {
  Impl& r = *impl_;
  if (!r.frames) {
    auto frames = SpoolFrames::open(r.files, r.folder);
    if (!frames) return tl::unexpected(frames.error());
    r.frames.emplace(std::move(*frames));
    r.frames->go_on_behind(r.sequence, r.segment);
  }
  r.replayer.visit(visitor);
  const uint64_t begin = r.replayer.bytes();
  while (!r.replayer.done()) {
    if (r.replayer.bytes() - begin >= bytes_most) return false;
    // Segments may grow during the read; next() checks a finished one again.
    if (!r.frames->next({.behind = r.sequence}) || r.frames->frame().sequence > until) break;
    if (r.frames->went()) r.replayer.segments_went();
    (void)r.frames->records(r.replayer);
    r.sequence = std::max(r.sequence, r.frames->frame().sequence);
    r.segment = r.frames->segment();
  }
  r.add(r.frames->damage());
  r.frames.reset();
  return true;
}

Result<ReadDamage> replay(io::Files& files, const std::string& folder, uint64_t until,
                          const ReplayVisitor& visitor) {
  Replay all(files, folder);
  if (auto done = all.advance(until, UINT64_MAX, visitor); !done) return tl::unexpected(done.error());
  return all.damage();
}

Result<ReadDamage> EvidenceReader::read(const EvidenceRange& range, const EvidenceSink& sink) const {
  std::optional<SpoolFrames> frames;
  Starts starts;
  const auto of_spool = [](const StoredStream& stream) { return stream.epoch == 0; };
  if (std::any_of(range.streams.begin(), range.streams.end(), of_spool)) {
    auto opened = SpoolFrames::open(files_, folder_);
    if (!opened) return tl::unexpected(opened.error());
    frames.emplace(std::move(*opened));
    starts = read_starts(*frames, range);
  }
  ReadDamage damage;
  uint64_t base = 0;
  for (const StoredStream& stream : range.streams) {
    const uint64_t begin = base, size = stream.state.size;
    base += size;
    if (base < range.from || (base == range.from && size > 0) || begin >= range.to) continue;
    const uint64_t from = range.from > begin ? range.from - begin : 0;
    StreamCopy copy(stream, begin, sink);
    copy.limit(from, range.to - begin);
    const StreamId id = stream.state.info.id;
    if (!of_spool(stream)) {
      copy_extents({files_, folder_, range, damage}, stream, from, copy);
    } else {
      frames->rewind(segment_before(starts, id, from));
      while (!copy.done() && frames->next({.streams = stream_bit(id), .checkpoints = false})) {
        if (frames->went()) copy.evidence_went();
        (void)frames->records(copy);
      }
      if (frames->went()) copy.evidence_went();
    }
    copy.finish();
    if (copy.enough()) break;
  }
  return frames ? frames->damage() : damage;
}

}  // namespace culprit::store
