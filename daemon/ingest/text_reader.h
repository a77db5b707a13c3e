// Reads a file's text, decompressed, as chunks of whole lines. A reader belongs to one thread at a time.
//
// Chunk i holds the lines that begin within [i * C, (i + 1) * C) of the text, C = ChunkRule::chunk_bytes. A
// plain file can be read in parts by several threads; a compressed file or a pipe is read in order, and cut
// by the same rule in the decompressed text, so that chunks do not depend on how they were read.
//
// The last line of a chunk may reach beyond the chunk's end; up to ChunkRule::line_bytes bytes of what lies
// beyond are kept, the rest is left out, and the line's newline put in its place (ChunkBuffer::cut). So a
// chunk never holds more than C + line_bytes + 1 bytes, a line of 100 GB costs its reading and no more, and
// every line keeps its number and its offset: only the last line of a chunk is ever cut, and it is cut beyond
// limits::kLineBytes only. A chunk all of whose bytes belong to a line that began before is empty.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/status.h"
#include "ingest/decompress.h"
#include "ingest/source_list.h"
#include "model/batch.h"
#include "model/report.h"

namespace culprit::ingest {

struct ChunkRule {
  size_t chunk_bytes = limits::kChunkBytes;  // at least 1
  size_t line_bytes = limits::kLineBytes;
};

// Chunks that a text of this size has (at least 1).
uint64_t chunk_count(uint64_t size, const ChunkRule& rule = {});

// Whether the file must be read with StreamReader: it is compressed, a stream, or does not tell its size
// (files of /proc).
bool is_stream(const SourceFile& file);

// Memory that is not filled with zeros, and used again.
class ByteStore {
 public:
  // At least `size` bytes; what was there is lost.
  char* reserve(size_t size);
  char* data() { return bytes_.get(); }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
};

// A chunk and the memory that `bytes` points into (which moves along with it). TextChunk borrows from it.
struct ChunkBuffer {
  std::string_view bytes;
  uint64_t index = 0;
  uint64_t offset = 0;  // of bytes[0] in the text
  uint64_t range_bytes =
      0;              // of the text that lie in the chunk's range: over all chunks, the size of the text
  bool last = false;  // no chunk follows
  bool cut = false;   // the last line is longer than what `bytes` has of it
  std::optional<Problem> problem;  // of a plain file: `bytes` has what could be read
  ByteStore store;
};

// Reads chunk `index` of a plain file with pread; safe from any thread. The file is read as long as it was
// when it was listed: what has been written since is left alone. If it is shorter now, the chunk in which it
// ends has the problem. `recycled`: a buffer of before, for its memory.
Result<ChunkBuffer> read_plain_chunk(const SourceFile& file, uint64_t index, ChunkBuffer recycled = {},
                                     const ChunkRule& rule = {});

// Reads any file in order: compressed ones, pipes, and plain ones just as well.
class StreamReader {
 public:
  static Result<StreamReader> open(const SourceFile& file, const ChunkRule& rule = {});
  static StreamReader over(Decompressor text, const ChunkRule& rule = {});
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;
  ~StreamReader();

  // The next chunk, nothing after the last. Damage ends the text where it stands: what was sound has been
  // given, and problem() tells. There is always a first chunk, even of an empty text.
  std::optional<ChunkBuffer> next(ChunkBuffer recycled = {});
  const std::optional<Problem>& problem() const;
  // Bytes of the file consumed so far, for a progress bar.
  uint64_t consumed() const;

 private:
  struct Impl;
  explicit StreamReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::ingest
