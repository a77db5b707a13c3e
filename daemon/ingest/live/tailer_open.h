// Bounds the descriptors that a tailer keeps open: beyond the limit, all files of the source that is unused
// for the longest time are closed. Where the process has too few, the limit halves, and then grows by one a
// round up to `max`. Borrows the sources and the output; the tailer's thread.
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
  // Before a late file is closed. If bytes are unread, they are found again by its size, or are a gap if no
  // name is left.
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
