#include "ingest/live/generation.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/hash.h"
#include "base/limits.h"
#include "ingest/file.h"

namespace culprit::ingest {
namespace {

// A hole of at least this size is a gap, not zeros: after copytruncate, a writer without O_APPEND leaves a
// hole of the log's former size. Smaller holes are zeros of the file.
constexpr uint64_t kHoleBytes = 4 << 20;
// Bytes decoded and discarded per step before the position: some ten milliseconds.
constexpr uint64_t kSkipBytes = 16 << 20;
// Bytes per read of a plain file, as one piece. Work per piece (writers, forms, counts) is then shared by
// some thousand lines; with 64 KiB the engine takes a tenth longer.
constexpr size_t kReadBytes = 256 << 10;

// Returns the bytes read, fewer only at the end; -1 with errno.
ssize_t read_at(int descriptor, char* out, size_t size, uint64_t offset) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(descriptor, out + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) note_call(errno);
    if (n < 0) return done > 0 ? static_cast<ssize_t>(done) : -1;
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(done);
}

// Reads all bytes; else returns why not, with errno for kUnreadable.
FileState read_whole(const Descriptor& file, char* out, size_t size, uint64_t offset) {
  errno = 0;
  if (read_at(file.get(), out, size, offset) == static_cast<ssize_t>(size)) return FileState::kYes;
  return errno == 0 ? FileState::kNo : FileState::kUnreadable;
}

// Reads the bytes before the position, and compares them with their hash.
FileState tail_at(const Descriptor& file, const FilePlace& place, std::string& tail) {
  tail.assign(std::min<uint64_t>({place.tail_bytes, limits::kTailBytes, place.offset}), '\0');
  if (tail.empty()) return FileState::kYes;
  const FileState read = read_whole(file, tail.data(), tail.size(), place.offset - tail.size());
  return read == FileState::kYes && hash64(tail) != place.tail ? FileState::kNo : read;
}

// Clears the text and frees its memory: thousands of files wait with a position.
void release(std::string& text) {
  text.clear();
  text.shrink_to_fit();
}

// Advances the position over `bytes`, or over a hole of `zeros`.
void taken(Generation& generation, std::string_view bytes, uint64_t zeros) {
  FilePlace& place = generation.place;
  if (place.fingerprint_bytes < limits::kFingerprintBytes) {
    CULPRIT_CHECK(generation.head.size() <= limits::kFingerprintBytes);
    const size_t room = limits::kFingerprintBytes - generation.head.size();
    generation.head.append(std::min<uint64_t>(zeros, room), '\0');
    generation.head.append(bytes.substr(0, limits::kFingerprintBytes - generation.head.size()));
    place.fingerprint = hash64(generation.head);
    place.fingerprint_bytes = static_cast<uint32_t>(generation.head.size());
    if (generation.head.size() == limits::kFingerprintBytes) release(generation.head);
  }
  place.offset += zeros + bytes.size();
  generation.verified = true;
  std::string& tail = generation.tail;
  if (zeros > 0) tail.clear();
  tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), limits::kTailBytes)));
  tail.erase(0, tail.size() - std::min(tail.size(), limits::kTailBytes));
  place.tail_bytes = static_cast<uint32_t>(tail.size());
  place.tail = tail.empty() ? 0 : hash64(tail);
}

// The size of a large hole at the position; 0 if there is none.
uint64_t hole_at_place(const Generation& generation, const Look& look) {
  if (look.allocated + kHoleBytes > look.size) return 0;
  const auto at = static_cast<off_t>(generation.place.offset);
  const off_t data = ::lseek(generation.file.get(), at, SEEK_DATA);
  // No data after the hole: the writer has not written it yet, so wait.
  const uint64_t end = data >= 0 ? static_cast<uint64_t>(data) : look.size;
  const uint64_t hole = end - std::min(end, generation.place.offset);
  return hole < kHoleBytes ? 0 : hole;
}

Reading read_plain(Generation& generation, size_t max) {
  Reading reading;
  Look look;
  const int descriptor = generation.file.get();
  if ((reading.error = look_at(descriptor, look)) != 0) {
    reading.result = ReadResult::kFailed;
    return reading;
  }
  FilePlace& place = generation.place;
  generation.seen = look.size;
  generation.modified_ns = look.modified_ns;
  const auto is = [&](ReadResult result) {
    reading.result = result;
    return std::move(reading);
  };
  // A read error does not prove another file; otherwise bytes could be read twice.
  const auto unless_unchanged = [&]() -> std::optional<ReadResult> {
    const FileState now = state_as_read(generation);
    if (now == FileState::kYes) return std::nullopt;
    if (now == FileState::kUnreadable) reading.error = errno;
    return now == FileState::kNo ? ReadResult::kChanged : ReadResult::kFailed;
  };
  if (look.size < place.offset) return is(ReadResult::kChanged);
  if (look.size == place.offset) return is(ReadResult::kEnd);
  if (const uint64_t hole = hole_at_place(generation, look)) {
    if (const auto other = unless_unchanged()) return is(*other);
    if (place.offset + hole >= look.size) return is(ReadResult::kEnd);
    reading.skipped = hole;
    taken(generation, {}, hole);
    return is(ReadResult::kSkipped);
  }
  reading.bytes.resize(std::min<uint64_t>({max, kReadBytes, look.size - place.offset}));
  const ssize_t n = read_at(descriptor, reading.bytes.data(), reading.bytes.size(), place.offset);
  reading.error = n < 0 ? errno : 0;
  reading.bytes.resize(n < 0 ? 0 : static_cast<size_t>(n));
  // After the read: a rewrite before the read is now visible in the beginning.
  const CallWatch calls;
  const bool as_seen =
      place.offset > 0 || begins_as(beginning_of(generation.file, Compression::kNone), generation.peek);
  if (calls.failed()) {
    reading.error = CallWatch::error();
    reading.bytes.clear();
    return is(ReadResult::kFailed);
  }
  const auto other = as_seen ? unless_unchanged() : ReadResult::kChanged;
  if (other) {
    reading.bytes.clear();
    return is(*other);
  }
  if (n <= 0) return is(n < 0 ? ReadResult::kFailed : ReadResult::kEnd);
  // If more follows, ends at the last line end: readers then need not join cut lines.
  const size_t lines = reading.bytes.rfind('\n') + 1;
  if (place.offset + reading.bytes.size() < look.size && lines > 0) reading.bytes.resize(lines);
  taken(generation, reading.bytes, 0);
  return is(ReadResult::kBytes);
}

Reading read_compressed(Generation& generation, size_t max) {
  Reading reading;
  std::string& bytes = reading.bytes;
  uint64_t skipped = 0;
  while (generation.decoded < generation.place.offset && skipped < kSkipBytes) {
    bytes.resize(std::min<uint64_t>(limits::kPieceBytes, generation.place.offset - generation.decoded));
    const size_t n = generation.decoder->read(bytes.data(), bytes.size());
    const uint32_t known = generation.place.fingerprint_bytes;
    if (generation.decoded == 0 && known < limits::kFingerprintBytes) generation.head.assign(bytes, 0, known);
    generation.decoded += n;
    skipped += n;
    generation.tail.append(bytes, 0, n);
    generation.tail.erase(0, generation.tail.size() - std::min(generation.tail.size(), limits::kTailBytes));
    if (n < bytes.size()) break;
  }
  bytes.clear();
  if (skipped == kSkipBytes) {
    reading.result = ReadResult::kSkipped;
    return reading;
  }
  if (generation.decoded == generation.place.offset) {
    bytes.resize(std::min(max, limits::kPieceBytes));
    bytes.resize(generation.decoder->read(bytes.data(), bytes.size()));
    generation.decoded += bytes.size();
  }
  if (!bytes.empty()) {
    taken(generation, bytes, 0);
    reading.result = ReadResult::kBytes;
    return reading;
  }
  if (generation.decoder->read_error() != 0) {
    // Decoded again from the beginning.
    reading.error = generation.decoder->read_error();
    reading.result = ReadResult::kFailed;
    generation.decoder.reset();
    generation.tail.clear();
    return reading;
  }
  generation.ended = true;
  reading.result = generation.decoder->problem() ? ReadResult::kDamaged : ReadResult::kEnd;
  return reading;
}

}  // namespace

Reading read_on(Generation& generation, size_t max) {
  if (generation.compression != Compression::kNone) return read_compressed(generation, max);
  Reading reading = read_plain(generation, max);
  release(generation.tail);  // each read first checks the bytes in the file
  return reading;
}

FileState state_as_read(Generation& generation) {
  const FilePlace& place = generation.place;
  char head[limits::kFingerprintBytes];
  const size_t size = std::min<size_t>(place.fingerprint_bytes, sizeof head);
  if (const FileState read = read_whole(generation.file, head, size, 0); read != FileState::kYes) return read;
  if (size > 0 && hash64({head, size}) != place.fingerprint) return FileState::kNo;
  std::string tail;
  if (const FileState unchanged = tail_at(generation.file, place, tail); unchanged != FileState::kYes)
    return unchanged;
  generation.tail = std::move(tail);
  if (size < limits::kFingerprintBytes) generation.head.assign(head, size);
  return FileState::kYes;
}

FilePlace place_by_now(const Generation& generation) {
  FilePlace place = generation.place;
  char head[limits::kFingerprintBytes];
  if (generation.compression != Compression::kNone || !generation.file.is_open()) return place;
  const ssize_t n = read_at(generation.file.get(), head, sizeof head, 0);
  if (n < static_cast<ssize_t>(place.fingerprint_bytes)) return place;
  place.fingerprint = hash64({head, static_cast<size_t>(n)});
  place.fingerprint_bytes = static_cast<uint32_t>(n);
  return place;
}

std::string beginning_of(const Descriptor& file, Compression compression) {
  std::string head(limits::kFingerprintBytes, '\0');
  if (compression == Compression::kNone) {
    head.resize(static_cast<size_t>(std::max<ssize_t>(read_at(file.get(), head.data(), head.size(), 0), 0)));
    return head;
  }
  const auto decoder = decoder_over(file, compression, "");
  head.resize(decoder ? decoder->read(head.data(), head.size()) : 0);
  note_call(decoder ? decoder->read_error() : ENOMEM);
  return head;
}

bool begins_as(std::string_view beginning, const FilePlace& place) {
  if (place.fingerprint_bytes == 0) return true;
  return beginning.size() >= place.fingerprint_bytes &&
         hash64(beginning.substr(0, place.fingerprint_bytes)) == place.fingerprint;
}

Reach reaches(const Descriptor& file, Compression compression, const FilePlace& place) {
  if (compression == Compression::kNone) {
    Look look;
    if (look_at(file.get(), look) != 0) return Reach::kOther;
    if (look.size < place.offset) return Reach::kShorter;
    std::string tail;
    return tail_at(file, place, tail) == FileState::kYes ? Reach::kWhole : Reach::kOther;
  }
  if (place.offset > kSkipBytes) return Reach::kWhole;
  const auto decoder = decoder_over(file, compression, "");
  if (!decoder) {
    note_call(ENOMEM);
    return Reach::kOther;
  }
  std::string bytes, tail;
  for (uint64_t left = place.offset; left > 0; left -= bytes.size()) {
    bytes.resize(std::min<uint64_t>(limits::kPieceBytes, left));
    bytes.resize(decoder->read(bytes.data(), bytes.size()));
    note_call(decoder->read_error());
    if (bytes.empty()) return Reach::kShorter;
    tail.append(bytes);
    tail.erase(0, tail.size() - std::min<size_t>(tail.size(), place.tail_bytes));
  }
  return tail.empty() || hash64(tail) == place.tail ? Reach::kWhole : Reach::kOther;
}

FilePlace peek_of(const Generation& generation) {
  FilePlace place;
  place.device = generation.place.device;
  place.inode = generation.place.inode;
  const std::string head = beginning_of(generation.file, generation.compression);
  place.fingerprint = hash64(head);
  place.fingerprint_bytes = static_cast<uint32_t>(head.size());
  return place;
}

bool begins_and_ends_as(const Descriptor& part, const Descriptor& whole) {
  Look a, b;
  if (look_at(part.get(), a) != 0 || look_at(whole.get(), b) != 0) return false;
  if (a.size == 0 || a.size > b.size || (a.device == b.device && a.inode == b.inode)) return false;
  char left[limits::kFingerprintBytes], right[limits::kFingerprintBytes];
  const size_t size = std::min<uint64_t>(a.size, sizeof left);
  for (const uint64_t offset : {uint64_t{0}, a.size - size}) {
    const ssize_t n = read_at(part.get(), left, size, offset);
    if (n <= 0 || read_at(whole.get(), right, size, offset) != n || !std::equal(left, left + n, right))
      return false;
  }
  return true;
}

std::unique_ptr<Decompressor> decoder_over(const Descriptor& file, Compression compression,
                                           const std::string& name) {
  const int copy = ::fcntl(file.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return nullptr;
  // A duplicate shares the position of read() with the original.
  (void)::lseek(copy, 0, SEEK_SET);
  auto opened = File::adopt(copy, name);
  if (!opened) return nullptr;
  SourceFile source;
  source.path = name;
  source.compression = compression;
  source.stream = std::make_shared<File>(std::move(*opened));
  auto decoder = Decompressor::open(source);
  return decoder ? std::make_unique<Decompressor>(std::move(*decoder)) : nullptr;
}

}  // namespace culprit::ingest
