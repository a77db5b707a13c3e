// Encodes and decodes the records of an uncompressed frame (README.md has their format). Pure functions
// over bytes. The decoder refuses content that is not exactly a sequence of records; it borrows the frame's
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/piece.h"
#include "store/stored_streams.h"

namespace culprit::store {

// Bytes of a path, job or reason; longer ones are cut. A kernel path has at most 4 KiB.
constexpr size_t kStringMax = 16 << 10;

// Position of a stream.
struct Position {
  uint64_t size = 0;
  std::optional<FilePlace> place;
  bool ended = false;
  std::vector<FilePlace> past;  // StreamState::past
};

// The number of a kind on disk and in frames between versions. A version refuses a frame with a number that
// it does not know, so a journal has the number of a kernel's log, which each version stores and shows; the
// path says what it is.
OriginKind stored_kind(OriginKind kind);
// kFile for a number of no kind.
OriginKind kind_of(uint64_t stored, std::string_view path);

void put_stream(std::string& out, const StreamInfo& stream);
void put_piece(std::string& out, const Piece& piece);
void put_position(std::string& out, StreamId stream, const Position& position);
// The last record of a checkpoint: the next free id, and the number of positions before it.
void put_checkpoint(std::string& out, StreamId next_id, uint32_t streams);

// In a checkpoint: the sequence that a peer has acknowledged.
void put_acknowledged(std::string& out, uint64_t sequence);
// In an archive: the owner of a log, and the log's last stored sequence.
struct OriginRecord {
  uint8_t kind = 0;
  uint64_t sequence = 0;
  std::string host;
};
void put_origin(std::string& out, const OriginRecord& origin);
// In an archive: frames that never come.
struct SkippedRecord {
  uint64_t from = 0, to = 0;
  TimeNs time_ns = kNoTime;
  std::string reason;
};
void put_skipped(std::string& out, const SkippedRecord& skipped);

// In the index of an object (bucket/object.h): the log of the streams that follow, where a stream's bytes
// are (without the segment), and the SHA-256 of each block of the object before its index, 32 bytes each.
struct LogRecord {
  uint64_t epoch = 0;
  std::string host;
};
void put_log(std::string& out, const LogRecord& log);
void put_extent(std::string& out, StreamId stream, const Extent& extent);
struct BlocksRecord {
  uint32_t block_bytes = 0;
  std::string sums;
};
void put_blocks(std::string& out, const BlocksRecord& blocks);
constexpr size_t kSumBytes = 32;
constexpr uint32_t kBlocksMax = 4096;

// Upper bounds of the sizes that put_stream and put_piece write.
size_t encoded_size_max(const StreamInfo& stream);
size_t encoded_size_max(const Piece& piece);
size_t encoded_size_max(const PieceBatch& batch);

// Receives the records of a frame in order; all views are borrowed for the call.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void on_stream(const StreamInfo& /*stream*/) {}
  // `bytes` has the bytes of the piece; `piece.bytes` is empty.
  virtual void on_piece(const Piece& /*piece*/, std::string_view /*bytes*/) {}
  virtual void on_position(StreamId /*stream*/, const Position& /*position*/) {}
  virtual void on_acknowledged(uint64_t /*sequence*/) {}
  virtual void on_origin(const OriginRecord& /*origin*/) {}
  virtual void on_skipped(const SkippedRecord& /*skipped*/) {}
  virtual void on_log(const LogRecord& /*log*/) {}
  virtual void on_extent(StreamId /*stream*/, const Extent& /*extent*/) {}
  virtual void on_blocks(const BlocksRecord& /*blocks*/) {}
  virtual void on_checkpoint(StreamId /*next_id*/, uint32_t /*streams*/) {}
};
// False if the content is malformed; `sink` has received the records before the malformed one.
bool read_records(std::string_view content, RecordSink& sink);

}  // namespace culprit::store
