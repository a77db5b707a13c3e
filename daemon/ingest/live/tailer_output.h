// What a round of the tailer returns: pieces, gaps, problems, and folders to watch. A gap goes with the next
// piece of its source, so that both become durable together. Owned by the tailer; its thread, but the counts
// are read from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ingest/live/tailer.h"
#include "ingest/live/tailer_source.h"
#include "ingest/live/watch_glob.h"

namespace culprit::ingest {

// As in TailStats.
struct TailCounts {
  std::atomic<uint64_t> files{0}, slots{0}, open{0}, bytes{0}, lag_bytes{0}, generations{0}, gaps{0},
      gap_bytes{0}, refused{0}, left_out{0};
};

class TailOutput {
 public:
  TailOutput(const WatchGlob& glob, const RoundTime& time, TailCounts& counts)
      : glob_(glob), time_(time), counts_(counts) {}

  // Begins a round, whose results go to `outcome`.
  void begin(TailOutcome& outcome) { out_ = &outcome; }
  void end() { out_ = nullptr; }

  std::string path_of(const std::string& below) const;
  void problem(const std::string& below, std::string what);
  void watch(const std::string& below) { out_->watch.push_back(path_of(below)); }
  void unwatch(const std::string& below) { out_->unwatch.push_back(path_of(below)); }

  void note_gap(TailSource& source, Gap gap);
  // Counts a gap that is already in a piece.
  void count_gap(uint64_t bytes);
  // Adds a piece with the source's gap and the position in the current file.
  Piece& add_piece(TailSource& source, std::string bytes);
  // Adds a piece without gap and position. The first piece of a source declares the source.
  Piece& add_bare_piece(TailSource& source, std::string bytes);
  void note_lag(TailSource& source);

 private:
  const WatchGlob& glob_;
  const RoundTime& time_;
  TailCounts& counts_;
  TailOutcome* out_ = nullptr;
};

}  // namespace culprit::ingest
