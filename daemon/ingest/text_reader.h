// Reads a file's text, decompressed, as chunks of whole lines. One thread at a time.
//
// Chunk i has the lines that begin within [i * C, (i + 1) * C) of the text, C = ChunkRule::chunk_bytes.
// Several threads may read parts of a plain file. A compressed file or a pipe is read in order; the same rule
// divides its decompressed text. So chunks do not depend on the way of reading.
//
// The last line of a chunk may reach beyond the chunk's end. Up to ChunkRule::line_bytes bytes beyond the
// chunk's end are kept, the last of these from the line's end (if within 64 MiB, not counting holes of a
// plain file). The middle is omitted, and a newline ends the line (ChunkBuffer::cut). So a chunk has at most
// C + line_bytes + 1 bytes, and a line of 100 GB costs only the time to read it. Every line keeps its number
// and its offset: only the last line of a chunk is ever cut, and only beyond limits::kLineBytes. A chunk in
// the middle of an earlier line is empty.
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

// Number of chunks of a text of this size (at least 1).
uint64_t chunk_count(uint64_t size, const ChunkRule& rule = {});

// Whether the file requires StreamReader: it is compressed, a stream, or reports no size (files of /proc).
bool is_stream(const SourceFile& file);

// Reusable memory that is not filled with zeros.
class ByteStore {
 public:
  // At least `size` bytes; the earlier content is lost.
  char* reserve(size_t size);
  char* data() { return bytes_.get(); }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
};

// A chunk and the memory behind `bytes` (moved together). TextChunk borrows from it.
struct ChunkBuffer {
  std::string_view bytes;
  uint64_t index = 0;
  uint64_t offset = 0;             // offset of bytes[0] in the text
  uint64_t range_bytes = 0;        // size of the chunk's range; the sum is the size of the text
  bool last = false;               // no chunk follows
  bool cut = false;                // the last line is longer than in `bytes`
  std::optional<Problem> problem;  // plain files only: `bytes` has the readable part
  ByteStore store;
};

// Reads chunk `index` of a plain file with pread; any thread. The file is read up to its size when it was
// listed; later bytes are ignored. If the file is shorter now, the chunk with its new end has the problem.
// `recycled`: an earlier buffer whose memory is reused.
Result<ChunkBuffer> read_plain_chunk(const SourceFile& file, uint64_t index, ChunkBuffer recycled = {},
                                     const ChunkRule& rule = {});

// Reads any file in order: compressed files, pipes and plain files.
class StreamReader {
 public:
  static Result<StreamReader> open(const SourceFile& file, const ChunkRule& rule = {});
  static StreamReader over(Decompressor text, const ChunkRule& rule = {});
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;
  ~StreamReader();

  // The next chunk; nullopt after the last. Damage ends the text: the bytes before it are returned, and
  // problem() reports the damage. Even an empty text has one chunk.
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
