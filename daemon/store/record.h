// What stands in a frame, decompressed: records one behind the other (README.md has each byte by byte).
// Pure functions over bytes. A decoder refuses whatever is not exactly a sequence of records; it borrows
// the frame's bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/piece.h"

namespace culprit::store {

// Of a path, a job or a reason; what is longer is cut. A path of the kernel has at most 4 KiB.
constexpr size_t kStringMax = 16 << 10;

// How far a stream is.
struct Position {
  uint64_t size = 0;
  std::optional<FilePlace> place;
  bool ended = false;
  std::vector<FilePlace> past;  // StreamState::past
};

void put_stream(std::string& out, const StreamInfo& stream);
void put_piece(std::string& out, const Piece& piece);
void put_position(std::string& out, StreamId stream, const Position& position);
// The last record of a checkpoint: the next free id, and how many positions stood before it.
void put_checkpoint(std::string& out, StreamId next_id, uint32_t streams);

// Of a checkpoint: up to where a peer has the frames.
void put_acknowledged(std::string& out, uint64_t sequence);
// Of an archive: whose log it is, and up to where it was taken.
struct OriginRecord {
  uint8_t kind = 0;
  uint64_t sequence = 0;
  std::string host;
};
void put_origin(std::string& out, const OriginRecord& origin);
// Of an archive: frames that never come.
struct SkippedRecord {
  uint64_t from = 0, to = 0;
  TimeNs time_ns = kNoTime;
  std::string reason;
};
void put_skipped(std::string& out, const SkippedRecord& skipped);

// At least as long as put_stream and put_piece make of them.
size_t encoded_size_max(const StreamInfo& stream);
size_t encoded_size_max(const Piece& piece);
size_t encoded_size_max(const PieceBatch& batch);

// Gets what a frame holds, in its order; what is borrowed, is so for the call.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void on_stream(const StreamInfo& /*stream*/) {}
  // `piece.bytes` is empty: they are `bytes`.
  virtual void on_piece(const Piece& /*piece*/, std::string_view /*bytes*/) {}
  virtual void on_position(StreamId /*stream*/, const Position& /*position*/) {}
  virtual void on_acknowledged(uint64_t /*sequence*/) {}
  virtual void on_origin(const OriginRecord& /*origin*/) {}
  virtual void on_skipped(const SkippedRecord& /*skipped*/) {}
  virtual void on_checkpoint(StreamId /*next_id*/, uint32_t /*streams*/) {}
};
// False where the content is no sequence of records; what stood before was given to `sink`.
bool read_records(std::string_view content, RecordSink& sink);

}  // namespace culprit::store
