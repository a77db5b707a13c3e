// A segment file: its header, its frames, and a reader that returns sound frames and skips damage between
// them. README.md has the format. Any thread, one at a time. A reader owns its file handle; another thread
// may append to the file meanwhile. Nothing here writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/files.h"

struct ZSTD_DCtx_s;

namespace culprit::store {

constexpr uint32_t kSegmentVersion = 1;
constexpr size_t kSegmentHeaderBytes = 64;
constexpr size_t kFrameHeaderBytes = 72;
// Limit of a frame's raw size. Larger frames are refused, so that a damaged or forged size causes no large
// allocation. A writer's batch fits into one frame.
constexpr size_t kFrameRawMax = 8 << 20;
// Largest sequence: no spool reaches it, and sums still fit 64 bits.
constexpr uint64_t kSequenceMax = uint64_t{1} << 60;

// Owner of the frames: one spool; or many spools in an archive (archive.h), one kind of log per segment.
enum class SegmentKind : uint8_t { kSpool = 0, kEvidence = 1, kCondensed = 2 };

struct SegmentHeader {
  uint32_t version = kSegmentVersion;
  uint64_t epoch = 0;  // epoch of the spool or archive: random, drawn at its creation
  uint64_t number = 0;
  TimeNs created_ns = kNoTime;
  SegmentKind kind = SegmentKind::kSpool;
  bool cleaned = false;  // rewritten without the evidence of some owners (spool_clean.h)
};
std::string encode(const SegmentHeader& header);
// Nothing if the header is malformed or damaged. Its version may be newer: the 64 bytes of the header never
// change.
std::optional<SegmentHeader> decode_segment_header(std::string_view bytes);

enum class FrameKind : uint8_t {
  kData = 0,
  kCheckpointPart = 1,  // more of it follows
  kCheckpointEnd = 2,
  kOrigin = 3,  // in an archive: the owner of the log with this epoch, and the positions of its streams
};

struct FrameHeader {
  FrameKind kind = FrameKind::kData;
  bool declares = false;  // declares streams: later frames depend on this frame
  uint32_t raw_size = 0, stored_size = 0;
  uint64_t epoch = 0, segment = 0;
  uint64_t sequence =
      // Of a data frame: its number over all segments; of a checkpoint: that of the last data frame before
      // it.
      0;
  TimeNs time_ns = kNoTime;
  uint64_t stream_mask = 0;  // bit (id mod 64) is set for each stream that has records in the frame
  uint64_t payload_hash = 0;
};
std::string encode(const FrameHeader& header);
std::optional<FrameHeader> decode_frame_header(std::string_view bytes);
// Packs content of at most kFrameRawMax into a frame; fills in sizes and hash of the header.
std::string pack_frame(FrameHeader header, std::string_view raw);
inline uint64_t stream_bit(uint32_t id) { return uint64_t{1} << (id % 64); }

// "0000000000000001.seg", and back.
std::string segment_name(uint64_t number);
std::optional<uint64_t> segment_number(std::string_view name);

// Segments of a folder, in order.
Result<std::vector<uint64_t>> list_segments(io::Files& files, const std::string& folder);

// From the newest segment with a sound header.
Result<std::optional<uint64_t>> newest_epoch(io::Files& files, const std::string& folder);

// Decompresses a frame. Any thread, one at a time.
class Unpacker {
 public:
  Unpacker();
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  // False if `stored` does not match the header, or is not a zstd frame of the header's raw size.
  bool unpack(const FrameHeader& header, std::string_view stored, std::string& out);

 private:
  ZSTD_DCtx_s* context_;
};

class SegmentReader {
 public:
  static Result<SegmentReader> open(io::Files& files, const std::string& folder, uint64_t number);
  // The same of a file that is open; `number`: what its header must have.
  static Result<SegmentReader> open(std::unique_ptr<io::FileHandle> file, uint64_t number);
  // Accepts frames of any spool, also if the segment's header is damaged: for archives.
  void accept_any_origin() { any_origin_ = true; }
  SegmentReader(SegmentReader&&) noexcept;
  SegmentReader& operator=(SegmentReader&&) noexcept;
  ~SegmentReader();

  const std::optional<SegmentHeader>& header() const { return header_; }  // nothing: damaged
  uint64_t size() const { return size_; }
  // Epoch of the segment's spool, from the header or, if that is damaged, from the first sound frame.
  Result<std::optional<uint64_t>> epoch();

  // Selects the frames that next() returns; it skips others by their headers.
  struct Wanted {
    uint64_t streams = ~uint64_t{0};
    bool checkpoints = true;
    uint64_t behind = 0;                 // data frames up to this number are skipped
    bool content = true;                 // false: next() verifies only the checksum, and content() is empty
    std::optional<uint64_t> epoch = {};  // nothing: any
  };
  // Moves to the next sound frame that `wanted` selects; false if there is none. An error if the disk
  // fails.
  Result<bool> next(const Wanted& wanted);
  const FrameHeader& frame() const { return frame_; }
  std::string_view content() const { return content_; }  // valid until next()
  // The frame as in the file, header and stored bytes.
  std::string verbatim() const { return frame_head_ + stored_; }
  uint64_t frame_at() const { return frame_at_; }  // its offset in the file

  // next() continues at `offset`; call seek() before the first next().
  void seek(uint64_t offset) { position_ = offset; }
  // Ignores bytes from offset `size` on: they may not be durable.
  void limit(uint64_t size) { size_ = std::min(size_, size); }
  // Makes bytes readable that were appended after the file was opened.
  Status refresh();

  // The end of the last sound frame so far.
  uint64_t sound_end() const { return sound_end_; }
  // Damage between sound frames so far: number of frames with a sound header and damaged content, and
  // skipped bytes.
  uint64_t damaged_frames() const { return damaged_frames_; }
  uint64_t damaged_bytes() const { return damaged_bytes_; }

 private:
  SegmentReader();
  Result<bool> read(std::string& out, size_t size, uint64_t offset);
  Result<std::optional<FrameHeader>> header_at(uint64_t offset);
  Result<std::optional<uint64_t>> find_header(uint64_t from);
  bool belongs(const FrameHeader& frame) const;
  bool skips(const Wanted& wanted) const;

  std::unique_ptr<io::FileHandle> file_;
  std::unique_ptr<Unpacker> unpacker_;
  std::optional<SegmentHeader> header_;
  uint64_t number_ = 0, size_ = 0;
  uint64_t position_ = 0, sound_end_ = 0;
  uint64_t damaged_frames_ = 0, damaged_bytes_ = 0;
  FrameHeader frame_;
  uint64_t frame_at_ = 0;
  bool any_origin_ = false;
  std::string head_, frame_head_, stored_, content_;
};

}  // namespace culprit::store
