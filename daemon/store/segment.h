// A segment file: its header, its frames, and a reader that gives the sound ones whatever stands between
// them. README.md has the format byte by byte. Any thread, one at a time; a reader owns its file and may
// read while another thread appends to it. Nothing here writes.
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
// Of a frame, decompressed. Larger ones are refused, so that a damaged or forged size makes no reader
// allocate more; a writer's batch fits into one.
constexpr size_t kFrameRawMax = 8 << 20;
// Of a frame: no spool comes so far, and numbers behind it still fit.
constexpr uint64_t kSequenceMax = uint64_t{1} << 60;

// Whose frames stand in it: of one spool; or of many, in an archive (archive.h), one kind of log each.
enum class SegmentKind : uint8_t { kSpool = 0, kEvidence = 1, kCondensed = 2 };

struct SegmentHeader {
  uint32_t version = kSegmentVersion;
  uint64_t epoch = 0;  // of the spool or the archive: drawn when it was begun
  uint64_t number = 0;
  TimeNs created_ns = kNoTime;
  SegmentKind kind = SegmentKind::kSpool;
};
std::string encode(const SegmentHeader& header);
// Nothing where it is none, or damaged. The version may be a newer one: these 64 bytes stay as they are.
std::optional<SegmentHeader> decode_segment_header(std::string_view bytes);

enum class FrameKind : uint8_t {
  kData = 0,
  kCheckpointPart = 1,  // more of it follows
  kCheckpointEnd = 2,
  kOrigin = 3,  // of an archive: whose the frames of this epoch are, and how far its streams were
};

struct FrameHeader {
  FrameKind kind = FrameKind::kData;
  bool declares = false;  // streams are told in it: who leaves it out will not know them
  uint32_t raw_size = 0, stored_size = 0;
  uint64_t epoch = 0, segment = 0;
  uint64_t sequence = 0;  // of a data frame: counts on over segments; of a checkpoint: of the last before it
  TimeNs time_ns = kNoTime;
  uint64_t stream_mask = 0;  // bit (id mod 64) is set where a record speaks of a stream
  uint64_t payload_hash = 0;
};
std::string encode(const FrameHeader& header);
std::optional<FrameHeader> decode_frame_header(std::string_view bytes);
// The whole frame of what it shall hold, at most kFrameRawMax; sizes and hash of the header are filled in.
std::string pack_frame(FrameHeader header, std::string_view raw);
inline uint64_t stream_bit(uint32_t id) { return uint64_t{1} << (id % 64); }

// "0000000000000001.seg", and back.
std::string segment_name(uint64_t number);
std::optional<uint64_t> segment_number(std::string_view name);

// Those of a folder, in order.
Result<std::vector<uint64_t>> list_segments(io::Files& files, const std::string& folder);

// Of the newest segment that tells it.
Result<std::optional<uint64_t>> newest_epoch(io::Files& files, const std::string& folder);

// Decompresses what a frame stores. Any thread, one at a time.
class Unpacker {
 public:
  Unpacker();
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  // False where `stored` is not what the header tells, or no zstd frame of its size.
  bool unpack(const FrameHeader& header, std::string_view stored, std::string& out);

 private:
  ZSTD_DCtx_s* context_;
};

class SegmentReader {
 public:
  static Result<SegmentReader> open(io::Files& files, const std::string& folder, uint64_t number);
  // Frames of any spool belong into it, also where its header is damaged: it is an archive's.
  void take_any_origin() { any_origin_ = true; }
  SegmentReader(SegmentReader&&) noexcept;
  SegmentReader& operator=(SegmentReader&&) noexcept;
  ~SegmentReader();

  const std::optional<SegmentHeader>& header() const { return header_; }  // nothing: damaged
  uint64_t size() const { return size_; }
  // Of the spool that it is of, by its header or, where that is damaged, by its first sound frame.
  Result<std::optional<uint64_t>> epoch();

  // What next() need not read is skipped by its header alone.
  struct Wanted {
    uint64_t streams = ~uint64_t{0};
    bool checkpoints = true;
    uint64_t behind = 0;                 // data frames up to this number are not
    bool content = true;                 // else its checksum is looked at, and content() is empty
    std::optional<uint64_t> epoch = {};  // else of any
  };
  // Moves to the next sound frame that is wanted; false where none follows. An error where the disk fails.
  Result<bool> next(const Wanted& wanted);
  const FrameHeader& frame() const { return frame_; }
  std::string_view content() const { return content_; }  // until next()
  // The frame as it stands in the file, header and stored bytes.
  std::string verbatim() const { return frame_head_ + stored_; }
  uint64_t frame_at() const { return frame_at_; }  // where it begins in the file

  // next() goes on from there; before the first one.
  void seek(uint64_t offset) { position_ = offset; }
  // Nothing behind `size` is read: it is not known to be there for good.
  void limit(uint64_t size) { size_ = std::min(size_, size); }
  // Sees what was appended since it was opened.
  Status refresh();

  // Behind the last sound frame so far.
  uint64_t sound_end() const { return sound_end_; }
  // So far, between sound frames: frames with a sound header whose content is not, and bytes skipped.
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
