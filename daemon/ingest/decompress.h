// One interface over plain, zstd, gzip and xz bytes, of a file, of standard input or in memory. Owns its file
// and its decoder; belongs to one thread at a time. Concatenated frames, members and streams follow one
// another; skippable zstd frames are skipped. Memory is bounded by the window that limits.h allows and one
// input buffer.
//
// It never throws away what is sound: damage, a cut, a read error or a bomb end the bytes where they stand,
// and problem() tells what happened and where in the compressed file.
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
  // Over bytes in memory, borrowed for the object's life; `name` is for problems.
  static Decompressor over(std::string_view bytes, Compression compression, std::string name);
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;
  ~Decompressor();

  // Fills `out`; fewer bytes than asked only when nothing follows.
  size_t read(char* out, size_t size);
  const std::optional<Problem>& problem() const;
  // Bytes of the compressed input that were decoded.
  uint64_t consumed() const;

 private:
  struct Impl;
  explicit Decompressor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The whole decompressed content of a small file (job.toml and the like). Damage is an error here: half of
// such a file says something else than its owner wrote. So is a content longer than `limit` bytes.
Result<std::string> read_small_file(const SourceFile& file, size_t limit);

}  // namespace culprit::ingest
