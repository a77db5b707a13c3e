#include "store/spool_clean.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "base/crash_point.h"
#include "store/checkpoint.h"
#include "store/segment.h"

namespace culprit::store {

namespace {

// A checkpoint that also collects the streams that it declares.
class FullCheckpoint : public Checkpoint {
 public:
  std::map<StreamId, StreamInfo> infos;
  std::optional<uint64_t> acknowledged;
  StreamId next_id = 0;

  void on_stream(const StreamInfo& info) override { infos[info.id] = info; }
  void on_acknowledged(uint64_t sequence) override { acknowledged = sequence; }
  void on_checkpoint(StreamId next, uint32_t streams) override {
    next_id = next;
    Checkpoint::on_checkpoint(next, streams);
  }
};

struct Source {
  SegmentReader reader;
  FullCheckpoint checkpoint;
};
Result<Source> open_source(io::Files& files, const CleanPlan& plan, uint64_t number) {
  auto reader = SegmentReader::open(files, plan.folder, number);
  if (!reader) return tl::unexpected(reader.error());
  Source source{std::move(*reader), {}};
  if (const Status read = read_checkpoint(source.reader, plan.epoch, source.checkpoint); !read)
    return tl::unexpected(read.error());
  if (!source.checkpoint.complete || !source.reader.header())
    return fail(ErrorCode::kIo,
                fmt::format("{}/{}: its checkpoint is damaged", plan.folder, segment_name(number)));
  return source;
}

// The records of a frame that stay.
class Filter : public RecordSink {
 public:
  explicit Filter(std::function<bool(StreamId)> removes) : removes_(std::move(removes)) {}
  std::string raw;
  FrameHeader header;

  void begin(const FrameHeader& from) {
    raw.clear();
    header = from;
    header.stream_mask = 0;
    header.declares = false;
  }
  void on_stream(const StreamInfo& info) override {
    if (removes_(info.id)) return;
    put_stream(raw, info);
    header.declares = true;
    header.stream_mask |= stream_bit(info.id);
  }
  void on_piece(const Piece& piece, std::string_view bytes) override {
    if (removes_(piece.stream)) return;
    Piece copy = piece;
    copy.bytes.assign(bytes);
    put_piece(raw, copy);
    header.stream_mask |= stream_bit(piece.stream);
  }

 private:
  const std::function<bool(StreamId)> removes_;
};

class Cleaner {
 public:
  Cleaner(io::Files& files, FramePacker& packer, const CleanPlan& plan)
      : files_(files), packer_(packer), plan_(plan), result_(plan.into.value_or(plan.number)) {}

  Result<uint64_t> run() {
    auto from = open_source(files_, plan_, plan_.number);
    if (!from) return tl::unexpected(from.error());
    const auto after = open_source(files_, plan_, plan_.next);
    if (!after) return tl::unexpected(after.error());
    std::optional<Source> into;
    if (plan_.into) {
      auto opened = open_source(files_, plan_, *plan_.into);
      if (!opened) return tl::unexpected(opened.error());
      into.emplace(std::move(*opened));
    }
    for (const auto* known : std::array<const FullCheckpoint*, 2>{&from->checkpoint, &after->checkpoint})
      for (const auto& [id, info] : known->infos) removed_[id] = plan_.removes(info);
    Source& first = into ? *into : *from;
    if (Status begun = begin(first, after->checkpoint); !begun) return tl::unexpected(begun.error());
    if (into)
      if (Status copied = copy(*into); !copied) return tl::unexpected(copied.error());
    if (Status stored = keep(*from, after->checkpoint); !stored) return tl::unexpected(stored.error());
    return finish();
  }
  void discard() {
    file_.reset();
    (void)files_.remove(unfinished());
  }

 private:
  std::string path() const { return plan_.folder + "/" + segment_name(result_); }
  std::string unfinished() const { return unfinished_name(plan_.folder, result_); }
  bool removes(StreamId id) const {
    const auto found = removed_.find(id);
    return found != removed_.end() && found->second;
  }
  Status append(std::string_view bytes) {
    size_ += bytes.size();
    return file_->append(bytes);
  }

  // Writes the header and the checkpoint of `first`, with the positions of removed sources from `after`.
  Status begin(Source& first, const FullCheckpoint& after) {
    (void)files_.remove(unfinished());  // of a cleaning that failed
    auto file = files_.open(unfinished(), io::OpenFor::kCreate);
    if (!file) return tl::unexpected(file.error());
    file_ = std::move(*file);
    SegmentHeader header = *first.reader.header();
    header.cleaned = true;
    if (Status written = append(encode(header)); !written) return written;
    FullCheckpoint& known = first.checkpoint;
    for (const auto& [id, position] : after.positions)
      if (removes(id)) {
        known.begins.try_emplace(id, 0);
        known.positions[id] = position;
        known.infos[id] = after.infos.at(id);
      }
    FrameHeader frame = first.reader.frame();
    CheckpointWriter writer(packer_, frame);
    if (known.acknowledged) writer.add_acknowledged(*known.acknowledged);
    for (const auto& [id, position] : known.positions)
      if (const auto info = known.infos.find(id); info != known.infos.end())
        if (Status added = writer.add(info->second, position, known.begins.at(id)); !added) return added;
    const auto packed = writer.finish(known.next_id);
    if (!packed) return tl::unexpected(packed.error());
    return append(*packed);
  }

  Status copy(Source& source) {
    for (;;) {
      const auto more = source.reader.next({.checkpoints = false, .content = false, .epoch = plan_.epoch});
      if (!more) return tl::unexpected(more.error());
      if (!*more) return {};
      if (Status written = append(source.reader.verbatim()); !written) return written;
    }
  }

  static bool ended_before(const Source& source, StreamId id) {
    const auto found = source.checkpoint.positions.find(id);
    return found != source.checkpoint.positions.end() && found->second.ended;
  }

  // Frames without records of kept sources are skipped by their headers.
  Status keep(Source& source, const FullCheckpoint& after) {
    uint64_t stored = 0;
    for (const auto* known : std::array<const FullCheckpoint*, 2>{&source.checkpoint, &after})
      for (const auto& [id, info] : known->infos)
        if (!removes(id) && !ended_before(source, id)) stored |= stream_bit(id);
    Filter filter([this](StreamId id) { return removes(id); });
    for (;;) {
      const auto more = source.reader.next({.streams = stored, .checkpoints = false, .epoch = plan_.epoch});
      if (!more) return tl::unexpected(more.error());
      if (!*more) return {};
      filter.begin(source.reader.frame());
      filter.header.segment = result_;
      (void)read_records(source.reader.content(), filter);
      if (filter.raw.empty()) continue;
      std::string frame;
      if (Status packed = packer_.pack(filter.header, filter.raw, frame); !packed) return packed;
      if (Status written = append(frame); !written) return written;
    }
  }

  Result<uint64_t> finish() {
    if (const Status synced = file_->sync(); !synced) return tl::unexpected(synced.error());
    file_.reset();
    crash_point("store.segment_cleaned");
    if (const Status renamed = files_.rename(unfinished(), path()); !renamed)
      return tl::unexpected(renamed.error());
    crash_point("store.segment_replaced");
    return size_;
  }

  io::Files& files_;
  FramePacker& packer_;
  const CleanPlan& plan_;
  const uint64_t result_;
  std::map<StreamId, bool> removed_;
  std::unique_ptr<io::FileHandle> file_;
  uint64_t size_ = 0;
};

}  // namespace

std::string unfinished_name(const std::string& folder, uint64_t number) {
  return folder + "/" + segment_name(number) + ".new";
}

Result<uint64_t> clean_segment(io::Files& files, FramePacker& packer, const CleanPlan& plan) {
  Cleaner cleaner(files, packer, plan);
  auto size = cleaner.run();
  if (!size) cleaner.discard();
  return size;
}

}  // namespace culprit::store
