// The state that the parts of a tailer share: options, root folder, time of the round, sources and output.
// Parts that use it: FolderScan (folders, new names), SourceFollower (rotation, bytes), LateFiles. Owned by
// the tailer; its thread only, but the counts are read from any thread.
#pragma once

#include <utility>

#include "ingest/live/safe_open.h"
#include "ingest/live/tailer.h"
#include "ingest/live/tailer_names.h"
#include "ingest/live/tailer_open.h"
#include "ingest/live/tailer_output.h"
#include "ingest/live/tailer_queue.h"
#include "ingest/live/tailer_table.h"
#include "ingest/live/watch_glob.h"

namespace culprit::ingest {

struct TailContext {
  TailContext(TailOptions from, WatchGlob pattern)
      : options(std::move(from)), glob(std::move(pattern)), root({.before_ask = options.before_ask}) {}
  TailContext(const TailContext&) = delete;

  const TailOptions options;
  const WatchGlob glob;
  SafeFolder root;
  RoundTime time;
  TailCounts counts;
  TailOutput output{glob, time, counts};
  SourceTable sources{root};
  FolderLister lister{root, time};
  CheckQueue queue{time, sources};
  OpenFiles open{options.open_max, sources, output};
};

}  // namespace culprit::ingest
