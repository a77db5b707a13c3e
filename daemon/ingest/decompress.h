// Reads plain, zstd, gzip and xz bytes from a file, standard input or memory. UTF-16 text is converted to
// UTF-8. Owns its file and its decoder; one thread at a time. Concatenated frames, members and streams are
// read as one; skippable zstd frames are skipped. Memory is bounded by the window that limits.h allows and
// one input buffer.
//
// Sound bytes are never discarded. Damage, a cut, a read error or a decompression bomb ends the bytes at that
// point; problem() reports the cause and its offset in the compressed file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ingest/source_list.h"
#include "model/report.h"

namespace culprit::ingest {

class Decompressor {
 public:
  static Result<Decompressor> open(const SourceFile& file);
  // Reads bytes in memory, borrowed for the object's life; `name` is for problems.
  static Decompressor over(std::string_view bytes, Compression compression, std::string name);
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;
  ~Decompressor();

  // Fills `out`; returns fewer than `size` bytes only at the end.
  size_t read(char* out, size_t size);
  // Appends to `out` until it has at least `limit` bytes or the input ends. Returns whether more may follow.
  bool read_up_to(size_t limit, std::string& out);
  const std::optional<Problem>& problem() const;
  // errno of the read that ended the bytes; 0: no read error.
  int read_error() const;
  // Bytes of the compressed input decoded so far.
  uint64_t consumed() const;

 private:
  struct Impl;
  explicit Decompressor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The whole decompressed content of a small file (job.toml and the like). Damage is an error, as part of such
// a file may have another meaning. Content longer than `limit` bytes is an error too.
Result<std::string> read_small_file(const SourceFile& file, size_t limit);

}  // namespace culprit::ingest
