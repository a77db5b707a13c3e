// Bounds the descriptors that a tailer keeps open: beyond the limit, all files of the source that is unused
// for the longest time are closed. If the process runs out of descriptors, the limit halves; then it grows by
// one per round up to `max`. Borrows the sources and the output; the tailer's thread.
#pragma once

#include <cstdint>
#include <list>

#include "ingest/live/tailer_output.h"
#include "ingest/live/tailer_source.h"
#include "ingest/live/tailer_table.h"

namespace culprit::ingest {

class OpenFiles {
 public:
  OpenFiles(size_t max, SourceTable& sources, TailOutput& output)
      : most_(max), max_(max), sources_(sources), output_(output) {}

  // Counts the files of a source that was just used, and closes others beyond the limit.
  void update(TailSource& source);
  void close_all(TailSource& source);
  // Once a round. `shortage`: a file could not be opened for want of a descriptor.
  void adapt(bool shortage);
  // Before a late file is closed. Unread bytes are found again by the file's size; if the file has no name
  // left, the bytes are a gap.
  void note_rest(TailSource& source, const LateFile& late);
  size_t count() const { return count_; }

 private:
  const size_t most_;
  size_t max_;
  SourceTable& sources_;
  TailOutput& output_;
  std::list<uint32_t> order_;  // sources with open descriptors, the longest unused first
  size_t count_ = 0;
};

}  // namespace culprit::ingest
