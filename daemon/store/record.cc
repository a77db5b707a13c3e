#include "store/record.h"

#include "base/bytes.h"

namespace culprit::store {

namespace {

enum class RecordKind : uint8_t {
  kStream = 1,
  kPiece = 2,
  kPosition = 3,
  kCheckpoint = 4,
  kAcknowledged = 5,
  kOrigin = 6,
  kSkipped = 7,
  kLog = 8,
  kExtent = 9,
  kBlocks = 10,
};

// Flags of a stream record.
constexpr uint8_t kHasUid = 1, kHasPid = 2, kHasPod = 4;
// Flags of a piece and of a position record.
constexpr uint8_t kHasPlace = 1, kHasGap = 2, kEnds = 4, kHasPast = 8;

// Size of a piece without bytes and reason: 1 + 1 + 4 + 8 + 8 + 4, a place of 48, a gap of 20.
constexpr size_t kPieceFixedMax = 96;
constexpr size_t kStreamFixedMax = 64;
// Largest offset of a source: sums of a few still fit 64 bits.
constexpr uint64_t kOffsetMax = uint64_t{1} << 60;

void put_string(std::string& out, std::string_view text) {
  text = text.substr(0, kStringMax);
  put(out, static_cast<uint32_t>(text.size()));
  out.append(text);
}

std::string_view get_string(Cursor& in, bool& good) {
  const auto size = in.get<uint32_t>();
  if (size > kStringMax) good = false;
  return in.read_bytes(size);
}

void put_place(std::string& out, const FilePlace& place) {
  put(out, place.device);
  put(out, place.inode);
  put(out, place.fingerprint);
  put(out, place.fingerprint_bytes);
  put(out, place.offset);
  put(out, place.tail);
  put(out, place.tail_bytes);
}

FilePlace get_place(Cursor& in) {
  FilePlace place;
  place.device = in.get<uint64_t>();
  place.inode = in.get<uint64_t>();
  place.fingerprint = in.get<uint64_t>();
  place.fingerprint_bytes = in.get<uint32_t>();
  place.offset = in.get<uint64_t>();
  place.tail = in.get<uint64_t>();
  place.tail_bytes = in.get<uint32_t>();
  return place;
}

// Each returns whether the record is well-formed; the caller must also check `in`, which may have run out
// of bytes.
bool read_stream(Cursor& in, RecordSink& sink) {
  StreamInfo stream;
  bool good = true;
  const auto flags = in.get<uint8_t>();
  const auto kind = in.get<uint8_t>();
  stream.id = in.get<uint32_t>();
  if (flags & kHasUid) stream.uid = in.get<uint32_t>();
  if (flags & kHasPod) stream.uid = Principal::from(in.get<uint64_t>());
  if (flags & kHasPid) stream.pid = in.get<uint32_t>();
  stream.opened_ns = in.get<TimeNs>();
  stream.boot_ns = in.get<TimeNs>();
  stream.job = get_string(in, good);
  stream.path = get_string(in, good);
  stream.kind = kind_of(kind, stream.path);
  if (!good || in.bad() || static_cast<uint8_t>(stored_kind(stream.kind)) != kind || stream.id == kNoStream ||
      (flags & ~(kHasUid | kHasPid | kHasPod)) || (stream.uid && stream.uid->value >= Principal::kEnd))
    return false;
  sink.on_stream(stream);
  return true;
}

bool read_piece(Cursor& in, RecordSink& sink) {
  Piece piece;
  bool good = true;
  const auto flags = in.get<uint8_t>();
  piece.stream = in.get<uint32_t>();
  piece.offset = in.get<uint64_t>();
  piece.time_ns = in.get<TimeNs>();
  piece.ends = flags & kEnds;
  if (flags & kHasPlace) piece.place = get_place(in);
  if (flags & kHasGap) {
    Gap& gap = piece.gap.emplace();
    gap.bytes = in.get<uint64_t>();
    gap.records = in.get<uint64_t>();
    gap.reason = get_string(in, good);
  }
  const std::string_view bytes = in.read_bytes(in.get<uint32_t>());
  if (!good || in.bad() || (flags & ~(kHasPlace | kHasGap | kEnds)) || piece.offset > kOffsetMax)
    return false;
  sink.on_piece(piece, bytes);
  return true;
}

bool read_position(Cursor& in, RecordSink& sink) {
  Position position;
  const auto flags = in.get<uint8_t>();
  const auto stream = in.get<uint32_t>();
  position.size = in.get<uint64_t>();
  position.ended = flags & kEnds;
  if (flags & kHasPlace) position.place = get_place(in);
  if (flags & kHasPast) {
    const auto count = in.get<uint32_t>();
    if (count > kPastPlaces) return false;
    for (uint32_t i = 0; i < count; ++i) position.past.push_back(get_place(in));
  }
  if (in.bad() || (flags & ~(kHasPlace | kEnds | kHasPast)) || position.size > kOffsetMax) return false;
  sink.on_position(stream, position);
  return true;
}

bool read_acknowledged(Cursor& in, RecordSink& sink) {
  const auto sequence = in.get<uint64_t>();
  if (in.bad()) return false;
  sink.on_acknowledged(sequence);
  return true;
}

bool read_origin(Cursor& in, RecordSink& sink) {
  OriginRecord origin;
  bool good = true;
  origin.kind = in.get<uint8_t>();
  origin.sequence = in.get<uint64_t>();
  origin.host = get_string(in, good);
  if (!good || in.bad()) return false;
  sink.on_origin(origin);
  return true;
}

bool read_skipped(Cursor& in, RecordSink& sink) {
  SkippedRecord skipped;
  bool good = true;
  skipped.from = in.get<uint64_t>();
  skipped.to = in.get<uint64_t>();
  skipped.time_ns = in.get<TimeNs>();
  skipped.reason = get_string(in, good);
  if (!good || in.bad() || skipped.from > skipped.to) return false;
  sink.on_skipped(skipped);
  return true;
}

bool read_log(Cursor& in, RecordSink& sink) {
  LogRecord log;
  bool good = true;
  log.epoch = in.get<uint64_t>();
  log.host = get_string(in, good);
  if (!good || in.bad()) return false;
  sink.on_log(log);
  return true;
}

bool read_extent(Cursor& in, RecordSink& sink) {
  Extent extent;
  const auto stream = in.get<uint32_t>();
  extent.from = in.get<uint64_t>();
  extent.to = in.get<uint64_t>();
  extent.first_at = in.get<uint64_t>();
  extent.last_at = in.get<uint64_t>();
  if (in.bad() || extent.from > extent.to || extent.to > kOffsetMax || extent.first_at > extent.last_at)
    return false;
  sink.on_extent(stream, extent);
  return true;
}

bool read_blocks(Cursor& in, RecordSink& sink) {
  BlocksRecord blocks;
  blocks.block_bytes = in.get<uint32_t>();
  const auto count = in.get<uint32_t>();
  if (count > kBlocksMax) return false;
  blocks.sums = in.read_bytes(count * kSumBytes);
  if (in.bad() || blocks.block_bytes == 0) return false;
  sink.on_blocks(blocks);
  return true;
}

bool read_checkpoint(Cursor& in, RecordSink& sink) {
  const auto next_id = in.get<uint32_t>();
  const auto streams = in.get<uint32_t>();
  if (in.bad()) return false;
  sink.on_checkpoint(next_id, streams);
  return true;
}

}  // namespace

OriginKind stored_kind(OriginKind kind) { return kind == OriginKind::kJournal ? OriginKind::kKernel : kind; }

OriginKind kind_of(uint64_t stored, std::string_view path) {
  const auto kind =
      stored > static_cast<uint8_t>(kLastOriginKind) ? OriginKind::kFile : static_cast<OriginKind>(stored);
  return kind == OriginKind::kKernel && path.starts_with(kJournalPaths) ? OriginKind::kJournal : kind;
}

void put_stream(std::string& out, const StreamInfo& stream) {
  const bool is_pod = stream.uid && stream.uid->is_pod();
  put(out, RecordKind::kStream);
  put(out, static_cast<uint8_t>((!stream.uid ? 0 : is_pod ? kHasPod : kHasUid) | (stream.pid ? kHasPid : 0)));
  put(out, stored_kind(stream.kind));
  put(out, stream.id);
  if (stream.uid && is_pod) put(out, stream.uid->value);
  if (stream.uid && !is_pod) put(out, *stream.uid->uid());
  if (stream.pid) put(out, *stream.pid);
  put(out, stream.opened_ns);
  put(out, stream.boot_ns);
  put_string(out, stream.job);
  put_string(out, stream.path);
}

void put_piece(std::string& out, const Piece& piece) {
  put(out, RecordKind::kPiece);
  put(out, static_cast<uint8_t>((piece.place ? kHasPlace : 0) | (piece.gap ? kHasGap : 0) |
                                (piece.ends ? kEnds : 0)));
  put(out, piece.stream);
  put(out, piece.offset);
  put(out, piece.time_ns);
  if (piece.place) put_place(out, *piece.place);
  if (piece.gap) {
    put(out, piece.gap->bytes);
    put(out, piece.gap->records);
    put_string(out, piece.gap->reason);
  }
  put(out, static_cast<uint32_t>(piece.bytes.size()));
  out.append(piece.bytes);
}

void put_position(std::string& out, StreamId stream, const Position& position) {
  put(out, RecordKind::kPosition);
  put(out, static_cast<uint8_t>((position.place ? kHasPlace : 0) | (position.ended ? kEnds : 0) |
                                (position.past.empty() ? 0 : kHasPast)));
  put(out, stream);
  put(out, position.size);
  if (position.place) put_place(out, *position.place);
  if (position.past.empty()) return;
  put(out, static_cast<uint32_t>(position.past.size()));
  for (const FilePlace& place : position.past) put_place(out, place);
}

void put_checkpoint(std::string& out, StreamId next_id, uint32_t streams) {
  put(out, RecordKind::kCheckpoint);
  put(out, next_id);
  put(out, streams);
}

void put_acknowledged(std::string& out, uint64_t sequence) {
  put(out, RecordKind::kAcknowledged);
  put(out, sequence);
}

void put_origin(std::string& out, const OriginRecord& origin) {
  put(out, RecordKind::kOrigin);
  put(out, origin.kind);
  put(out, origin.sequence);
  put_string(out, origin.host);
}

void put_skipped(std::string& out, const SkippedRecord& skipped) {
  put(out, RecordKind::kSkipped);
  put(out, skipped.from);
  put(out, skipped.to);
  put(out, skipped.time_ns);
  put_string(out, skipped.reason);
}

void put_log(std::string& out, const LogRecord& log) {
  put(out, RecordKind::kLog);
  put(out, log.epoch);
  put_string(out, log.host);
}

void put_extent(std::string& out, StreamId stream, const Extent& extent) {
  put(out, RecordKind::kExtent);
  put(out, stream);
  put(out, extent.from);
  put(out, extent.to);
  put(out, extent.first_at);
  put(out, extent.last_at);
}

void put_blocks(std::string& out, const BlocksRecord& blocks) {
  put(out, RecordKind::kBlocks);
  put(out, blocks.block_bytes);
  put(out, static_cast<uint32_t>(blocks.sums.size() / kSumBytes));
  out.append(blocks.sums);
}

size_t encoded_size_max(const StreamInfo& stream) {
  return kStreamFixedMax + stream.job.size() + stream.path.size();
}

size_t encoded_size_max(const Piece& piece) {
  return kPieceFixedMax + piece.bytes.size() + (piece.gap ? piece.gap->reason.size() : 0);
}

size_t encoded_size_max(const PieceBatch& batch) {
  size_t size = 0;
  for (const StreamInfo& stream : batch.opened) size += encoded_size_max(stream);
  for (const Piece& piece : batch.pieces) size += encoded_size_max(piece);
  return size;
}

bool read_records(std::string_view content, RecordSink& sink) {
  Cursor in(content);
  while (!in.at_end()) {
    bool good = false;
    switch (in.get<RecordKind>()) {
      case RecordKind::kStream:
        good = read_stream(in, sink);
        break;
      case RecordKind::kPiece:
        good = read_piece(in, sink);
        break;
      case RecordKind::kPosition:
        good = read_position(in, sink);
        break;
      case RecordKind::kCheckpoint:
        good = read_checkpoint(in, sink);
        break;
      case RecordKind::kAcknowledged:
        good = read_acknowledged(in, sink);
        break;
      case RecordKind::kOrigin:
        good = read_origin(in, sink);
        break;
      case RecordKind::kSkipped:
        good = read_skipped(in, sink);
        break;
      case RecordKind::kLog:
        good = read_log(in, sink);
        break;
      case RecordKind::kExtent:
        good = read_extent(in, sink);
        break;
      case RecordKind::kBlocks:
        good = read_blocks(in, sink);
        break;
    }
    if (!good || in.bad()) return false;
  }
  return true;
}

}  // namespace culprit::store
