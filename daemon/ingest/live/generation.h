// One file of a source: its identity, the read position, and reading its next bytes. A file keeps its
// identity while its device and inode are the same, it begins with the bytes that were read, and it has not
// become shorter. Owns its descriptor; the tailer's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ingest/decompress.h"
#include "ingest/live/safe_open.h"
#include "model/piece.h"

namespace culprit::ingest {

struct Generation {
  FilePlace place;   // the read position
  std::string name;  // below the root; its last known name
  Compression compression = Compression::kNone;
  Descriptor file;                        // may be closed while the file is idle
  std::unique_ptr<Decompressor> decoder;  // over its own descriptor
  uint64_t decoded = 0;                   // bytes that the decoder has returned
  std::string head;                       // the bytes read so far, if fewer than a fingerprint covers
  std::string tail;   // the bytes behind the hash `place.tail`, as far as they are in memory
  uint64_t seen = 0;  // size at the last check
  TimeNs modified_ns = kNoTime;
  std::optional<TimeNs> failing_since;  // monotonic: its reads fail
  bool verified = false;                // since it was opened or restored, its beginning was found to match
  bool ended = false;                   // of a compressed file: completely decoded
  std::optional<Gap> gap_before;
  FilePlace peek;       // fingerprint at the last check, before any byte was read
  bool copied = false;  // a copy: bytes written between the copy and the truncation are lost

  uint64_t unread() const { return seen > place.offset ? seen - place.offset : 0; }
};

enum class ReadResult : uint8_t {
  kBytes,
  kEnd,      // for now, of a plain file
  kSkipped,  // a hole of `skipped` bytes, or compressed bytes before the position
  kChanged,  // the file has another content now
  kDamaged,  // compressed data that cannot be decoded further
  kFailed,   // errno in `error`
};
struct Reading {
  ReadResult result = ReadResult::kEnd;
  std::string bytes;
  uint64_t skipped = 0;
  int error = 0;
};

// Reads the next bytes, at most `max`, and advances the position. The file (or decoder) must be open.
Reading read_on(Generation& generation, size_t max);

// Whether the open file begins as in the fingerprint and still has the last read bytes before the position.
// Stores the beginning in `head` if it is shorter than a fingerprint. kUnreadable sets errno.
enum class FileState : uint8_t { kYes, kNo, kUnreadable };
FileState state_as_read(Generation& generation);

// The position of an open file, with a fingerprint of all bytes that exist now.
FilePlace place_by_now(const Generation& generation);

// The decompressed bytes that a fingerprint covers; fewer if the file is shorter.
std::string beginning_of(const Descriptor& file, Compression compression);

// Whether the beginning matches the fingerprint. True if no byte was read.
bool begins_as(std::string_view beginning, const FilePlace& place);

enum class Reach : uint8_t {
  kWhole,    // up to the position, with the same bytes before it
  kShorter,  // the file ends before the position
  kOther,    // other bytes stand before the position
};
// How far a file with a matching beginning goes. A compressed file with a far position counts as kWhole
// without decoding.
Reach reaches(const Descriptor& file, Compression compression, const FilePlace& place);

// A position at the start of the file, with a fingerprint.
FilePlace peek_of(const Generation& generation);

// Whether `part` is a copy of the beginning of the other file `whole`, judged by the first and last bytes of
// `part`.
bool begins_and_ends_as(const Descriptor& part, const Descriptor& whole);

// A decoder over a duplicate of the descriptor.
std::unique_ptr<Decompressor> decoder_over(const Descriptor& file, Compression compression,
                                           const std::string& name);

}  // namespace culprit::ingest
