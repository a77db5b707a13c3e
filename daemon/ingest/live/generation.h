// One file of a source: which it is, how far its bytes are taken, and the next of them. A file is what it was
// as long as device and inode are the same, its beginning is what was taken, and it has not become shorter.
// Owns its descriptor; belongs to the tailer's thread.
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
  FilePlace place;   // what is taken
  std::string name;  // below the root, where it was found last
  Compression compression = Compression::kNone;
  Descriptor file;                        // may be closed while nothing happens
  std::unique_ptr<Decompressor> decoder;  // over a descriptor of its own
  uint64_t decoded = 0;                   // bytes that came out of it
  std::string head;                       // what was taken, while that is less than a whole fingerprint
  std::string tail;                       // what `place.tail` is of, as far as it was seen
  uint64_t seen = 0;                      // size when looked at last
  TimeNs modified_ns = kNoTime;
  bool verified = false;  // since it was opened or restored it was found to begin as it should
  bool ended = false;     // of a compressed one: all of it is decoded
  std::optional<Gap> gap_before;
  FilePlace peek;       // what it began with when it was looked at, before anything was taken
  bool copied = false;  // it is a copy: what came between it and the truncation is lost

  uint64_t unread() const { return seen > place.offset ? seen - place.offset : 0; }
};

enum class ReadResult : uint8_t {
  kBytes,
  kEnd,      // for now, of a plain file
  kSkipped,  // a hole, of `skipped` bytes; or compressed bytes on the way to the place
  kChanged,  // it is another file's content now
  kDamaged,  // compressed data that cannot be decoded further
  kFailed,   // errno in `error`
};
struct Reading {
  ReadResult result = ReadResult::kEnd;
  std::string bytes;
  uint64_t skipped = 0;
  int error = 0;
};

// The next bytes, at most `max`; the place moves behind them. The file (or decoder) must be open.
Reading read_on(Generation& generation, size_t max);

// Whether what is open begins as the place says, and what was taken last still stands before it. Keeps the
// beginning in `head` if it is shorter than a fingerprint; errno tells why it cannot be read.
enum class Stands : uint8_t { kYes, kNo, kUnreadable };
Stands stands_as_taken(Generation& generation);

// The place with the fingerprint of all that is there by now, of an open file.
FilePlace place_by_now(const Generation& generation);

// As many bytes of the content (decompressed) as a fingerprint is of, fewer where there are no more.
std::string beginning_of(const Descriptor& file, Compression compression);

// Whether what begins so begins as the place says. Nothing taken: it does.
bool begins_as(std::string_view beginning, const FilePlace& place);

enum class Reach : uint8_t {
  kWhole,    // to the place, and the same stands before it as did when it was taken
  kShorter,  // less far
  kOther,    // something else stands there
};
// How far a file goes that begins as the place says. One that is compressed and taken far into is believed.
Reach reaches(const Descriptor& file, Compression compression, const FilePlace& place);

// The place of its beginning, with nothing taken.
FilePlace peek_of(const Generation& generation);

// Whether `part` is, by its beginning and its end, a copy of the beginning of `whole`, another file.
bool begins_and_ends_as(const Descriptor& part, const Descriptor& whole);

// A decoder over a duplicate of the descriptor.
std::unique_ptr<Decompressor> decoder_over(const Descriptor& file, Compression compression,
                                           const std::string& name);

}  // namespace culprit::ingest
