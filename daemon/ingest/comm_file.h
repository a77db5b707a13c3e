// Reads a communication trace (formats.md section 3), compressed or not, in blocks of records. One thread at
// a time. The reader does not check records. Damage or a cut ends the records; problem() reports it.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "ingest/comm_source.h"
#include "ingest/decompress.h"
#include "model/comm.h"

namespace culprit::ingest {

class CommFile : public CommSource {
 public:
  // Reads the header. The error names the file.
  static Result<CommFile> open(const SourceFile& file);
  // Reads the output of a decompressor; `name` is for errors.
  static Result<CommFile> over(Decompressor bytes, const std::string& name);

  const CommHeader& header() const override { return header_; }
  void next(std::vector<CommRecord>& out, size_t most) override;
  const std::optional<Problem>& problem() const { return problem_; }
  std::vector<Problem> problems() const override {
    return problem_ ? std::vector<Problem>{*problem_} : std::vector<Problem>();
  }
  uint64_t consumed() const override { return bytes_.consumed(); }
  uint64_t content_bytes() const override { return offset_; }

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
