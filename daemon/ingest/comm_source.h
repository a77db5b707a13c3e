// A file with communication records, in blocks: traces of our own (CommFile), files of NCCL's Inspector
// (InspectorFile) and PyTorch's profiler traces (ProfilerTrace). One thread at a time. Readers do not check
// records. Damage or a cut ends or thins the records; problems() reports it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/comm.h"
#include "model/report.h"

namespace culprit::ingest {

class CommSource {
 public:
  CommSource() = default;
  CommSource(CommSource&&) = default;
  CommSource& operator=(CommSource&&) = default;
  virtual ~CommSource() = default;

  // Of the records that next() gave last.
  virtual const CommHeader& header() const = 0;
  // Fills `out` with the next records, at most `most`. Empty: the end.
  virtual void next(std::vector<CommRecord>& out, size_t most) = 0;
  // Complete once next() has reached the end.
  virtual std::vector<Problem> problems() const = 0;
  // Bytes of the file consumed so far, for a progress bar.
  virtual uint64_t consumed() const = 0;
  // Bytes of decompressed content that the records so far were made from.
  virtual uint64_t content_bytes() const = 0;
};

}  // namespace culprit::ingest
