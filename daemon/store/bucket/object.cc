#include "store/bucket/object.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "store/bucket/sha256.h"

namespace culprit::store::bucket {
namespace {

// Raw bytes of one frame of the index.
constexpr size_t kIndexPartBytes = 1 << 20;
// LogTaker notes extents of a segment with a number.
constexpr uint64_t kThis = 1;

class IndexSink final : public RecordSink {
 public:
  explicit IndexSink(ObjectIndex& out) : out_(out) {}
  bool good = true;

  void on_log(const LogRecord& log) override { out_.logs.push_back({log.epoch, log.host, {}}); }
  void on_stream(const StreamInfo& info) override {
    if (out_.logs.empty()) return void(good = false);
    out_.logs.back().streams.push_back({info, 0, false, {}, {}});
  }
  void on_position(StreamId id, const Position& position) override {
    if (ObjectStream* stream = last(id)) stream->size = position.size, stream->ended = position.ended;
  }
  void on_extent(StreamId id, const Extent& extent) override {
    if (ObjectStream* stream = last(id)) stream->extent = extent;
  }
  void on_piece(const Piece& piece, std::string_view) override {
    ObjectStream* stream = last(piece.stream);
    if (stream && piece.gap) stream->holes.push_back({piece.offset, piece.gap->bytes, piece.gap->reason});
  }
  void on_blocks(const BlocksRecord& blocks) override { out_.blocks = blocks; }

 private:
  ObjectStream* last(StreamId id) {
    const bool known = !out_.logs.empty() && !out_.logs.back().streams.empty() &&
                       out_.logs.back().streams.back().info.id == id;
    good = good && known;
    return known ? &out_.logs.back().streams.back() : nullptr;
  }
  ObjectIndex& out_;
};

bool is_sound(const ObjectStream& stream) {
  const Extent& extent = stream.extent;
  return stream.size >= extent.to && std::ranges::all_of(stream.holes, [](const Hole& hole) {
           return hole.bytes <= kSequenceMax && hole.offset <= kSequenceMax;
         });
}

}  // namespace

std::string prefix_of(uint64_t archive) { return fmt::format("v1/{}/", hex64(archive)); }
std::string key_of(const ObjectName& name) {
  return fmt::format("{}{:010}-{:012}.cul", prefix_of(name.archive), name.epoch, name.number);
}

Result<ObjectIndex> parse_index(std::string_view bytes) {
  ObjectIndex out;
  IndexSink sink(out);
  Unpacker unpacker;
  std::string content;
  const auto damaged = [] { return fail(ErrorCode::kInvalid, "its index is damaged"); };
  while (!bytes.empty()) {
    const auto header = decode_frame_header(bytes);
    if (!header || header->kind != FrameKind::kOrigin ||
        bytes.size() - kFrameHeaderBytes < header->stored_size ||
        !unpacker.unpack(*header, bytes.substr(kFrameHeaderBytes, header->stored_size), content) ||
        !read_records(content, sink) || !sink.good)
      return damaged();
    bytes.remove_prefix(kFrameHeaderBytes + header->stored_size);
  }
  if (out.blocks.block_bytes == 0) return damaged();
  for (const ObjectLog& log : out.logs)
    if (!std::ranges::all_of(log.streams, is_sound)) return damaged();
  return out;
}

// ---- making

Result<std::optional<MadeObject>> ObjectMaker::make(const std::vector<ReplayPlan::Part>& segments,
                                                    FramePlace from, const ObjectName& name, TimeNs now) {
  MadeObject out;
  for (const ReplayPlan::Part& part : segments) {
    if (part.segment < from.segment || part.size <= kSegmentHeaderBytes) continue;
    if (part.segment > from.segment) {
      out.lost_segments +=
          from.segment != 0 && from.at != 0 &&
          std::ranges::find(segments, from.segment, &ReplayPlan::Part::segment) == segments.end();
      from = {part.segment, kSegmentHeaderBytes};
    }
    out.from = from;
    while (from.at < part.size) {
      out.bytes =
          encode(SegmentHeader{kSegmentVersion, name.archive, name.number, now, SegmentKind::kEvidence});
      const auto taken = take_next(from, part.size, out.bytes);
      if (!taken) return tl::unexpected(taken.error());
      if (!*taken) continue;  // no data: only what logs declare, or damage
      out.to = from;
      put_index(out, name.archive, now);
      return std::optional(std::move(out));
    }
  }
  return std::nullopt;
}

// Appends data frames to `out`, grouped by log, and moves `at` past them; false: none.
Result<bool> ObjectMaker::take_next(FramePlace& at, uint64_t size, std::string& out) {
  if (const Status entered = enter(at.segment, at.at); !entered) return tl::unexpected(entered.error());
  std::vector<TakenFrame> frames;
  if (const Status read = gather(at, size, frames); !read) return tl::unexpected(read.error());
  reached_ = at.at;
  std::ranges::stable_sort(frames, {}, [](const TakenFrame& one) { return one.header.epoch; });
  const size_t begin = out.size();
  for (TakenFrame& frame : frames) {
    take(frame, {kThis, out.size()});
    if (frame.header.kind == FrameKind::kData) out += frame.bytes;
    frame.bytes = {};
  }
  return out.size() > begin;
}

// The sources of the segment as of `until`: each log begins in a segment with what it declares.
Status ObjectMaker::enter(uint64_t segment, uint64_t until) {
  if (segment == segment_ && until == reached_) return {};
  logs_.clear();
  touched_.clear();
  segment_ = segment;
  reached_ = kSegmentHeaderBytes;
  while (reached_ < until) {
    FramePlace at{segment, reached_};
    std::vector<TakenFrame> frames;
    if (const Status read = gather(at, until, frames); !read) return read;
    for (const TakenFrame& frame : frames) take(frame, {kThis, 0});
    reached_ = frames.empty() ? until : at.at;
  }
  for (const uint64_t epoch : touched_) {
    ArchivedLog& log = logs_[epoch];
    log.touched_streams.clear();
    log.new_holes.clear();
    log.new_skips.clear();
    for (auto& [id, stream] : log.streams) stream.touched = false, stream.extent = {};
  }
  touched_.clear();
  reached_ = until;
  return {};
}

// Frames from `at` on, up to `size` of the file; `at` moves past them.
Status ObjectMaker::gather(FramePlace& at, uint64_t size, std::vector<TakenFrame>& out) {
  auto reader = SegmentReader::open(files_, folder_, at.segment);
  if (!reader) return tl::unexpected(reader.error());
  reader->accept_any_origin();
  reader->limit(size);
  reader->seek(at.at);
  for (uint64_t bytes = 0; bytes < kObjectBytes;) {
    const auto more = reader->next({.content = false});
    if (!more) return tl::unexpected(more.error());
    if (!*more) {
      at.at = size;
      return {};
    }
    out.push_back({reader->frame(), reader->verbatim()});
    bytes += out.back().bytes.size();
    at.at = reader->sound_end();
  }
  return {};
}

// A frame that cannot be read counts as lost, as in a replay.
void ObjectMaker::take(const TakenFrame& frame, FramePlace place) {
  const FrameHeader& header = frame.header;
  ArchivedLog& log = logs_[header.epoch];
  log.origin.epoch = header.epoch;
  if (!unpacker_.unpack(header, std::string_view(frame.bytes).substr(kFrameHeaderBytes), content_)) return;
  struct Host final : RecordSink {
    std::string name;
    void on_origin(const OriginRecord& origin) override { name = origin.host; }
  } host;
  if (header.kind == FrameKind::kOrigin && read_records(content_, host) && !host.name.empty())
    log.origin.host = host.name;
  LogTaker taker({log, stats_}, place, header.kind);
  if (header.kind == FrameKind::kData) taker.note_lost(header.sequence, header.time_ns);
  (void)read_records(content_, taker);
  if (header.kind == FrameKind::kData) log.sequence = header.sequence;
  touched_.insert(header.epoch);
}

void ObjectMaker::put_index(MadeObject& out, uint64_t archive, TimeNs now) {
  out.index_at = out.bytes.size();
  BlocksRecord blocks{kBlockBytes, {}};
  for (uint64_t at = 0; at < out.index_at; at += kBlockBytes)
    blocks.sums +=
        sha256(std::string_view(out.bytes).substr(at, std::min<uint64_t>(kBlockBytes, out.index_at - at)));
  FrameHeader header;
  header.kind = FrameKind::kOrigin;
  header.epoch = archive;
  header.time_ns = now;
  std::string raw;
  put_blocks(raw, blocks);
  for (const uint64_t epoch : std::exchange(touched_, {})) {
    ArchivedLog& log = logs_[epoch];
    put_log(raw, {epoch, log.origin.host});
    out.hosts.insert(log.origin.host);
    out.reached[epoch] = log.sequence;
    for (const StreamId id : std::exchange(log.touched_streams, {})) {
      ArchivedStream& stream = log.streams.at(id);
      stream.touched = false;
      const Extent extent = std::exchange(stream.extent, {});
      if (extent.segment == 0) continue;  // only declared
      out.jobs.insert(stream.info.job);
      put_stream(raw, stream.info);
      Position position;
      position.size = stream.size;
      position.ended = stream.ended;
      put_position(raw, id, position);
      put_extent(raw, id, extent);
      for (const auto& [of, hole] : log.new_holes) {
        if (of != id) continue;
        Piece piece;
        piece.stream = id;
        piece.offset = hole.offset;
        piece.gap = Gap{hole.bytes, 0, hole.reason};
        put_piece(raw, piece);
      }
      if (raw.size() < kIndexPartBytes) continue;
      out.bytes += pack_frame(header, std::exchange(raw, {}));
      put_log(raw, {epoch, log.origin.host});
    }
    log.new_holes.clear();
    log.new_skips.clear();
  }
  out.bytes += pack_frame(header, raw);
}

}  // namespace culprit::store::bucket
