// Reads a communication trace (formats.md section 3), compressed or not, in blocks of records. One thread at
// a time. The reader does not check records. Damage or a cut ends the records; problem() reports it.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "ingest/decompress.h"
#include "model/comm.h"

namespace culprit::ingest {

class CommFile {
 public:
  // Reads the header. The error names the file.
  static Result<CommFile> open(const SourceFile& file);
  // Reads the output of a decompressor; `name` is for errors.
  static Result<CommFile> over(Decompressor bytes, const std::string& name);

  const CommHeader& header() const { return header_; }
  // Fills `out` with the next records, at most `most`. Empty: the end.
  void next(std::vector<CommRecord>& out, size_t most);
  const std::optional<Problem>& problem() const { return problem_; }
  // Bytes of the file consumed so far, for a progress bar.
  uint64_t consumed() const { return bytes_.consumed(); }

 private:
  CommFile(Decompressor bytes, std::string name, CommHeader header)
      : bytes_(std::move(bytes)), name_(std::move(name)), header_(std::move(header)) {}

  Decompressor bytes_;
  std::string name_;
  CommHeader header_;
  uint64_t offset_ = kCommHeaderBytes;
  std::optional<Problem> problem_;
};

}  // namespace culprit::ingest
