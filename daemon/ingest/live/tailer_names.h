// Reads the names of folders, each list in one consistent state, at most a few lists of a folder per round.
// Borrows the root folder; owns the order of opens and lists. The tailer's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ingest/live/safe_open.h"
#include "ingest/live/tailer_source.h"

namespace culprit::ingest {

class FolderLister {
 public:
  FolderLister(const SafeFolder& root, const RoundTime& time) : root_(root), time_(time) {}

  // Orders opens of files and lists: a list with a later mark was read after the open.
  uint64_t mark() { return ++asked_; }
  // Reads the names once, without a consistency check.
  void read(TailFolder& folder);
  // The names in one consistent state, read after the mark `since`; null: not possible in this round.
  std::shared_ptr<const std::vector<Entry>> names(TailFolder& folder, uint64_t since);
  // At the end of a round.
  void forget();

 private:
  const SafeFolder& root_;
  const RoundTime& time_;
  uint64_t asked_ = 0;
  std::vector<TailFolder*> named_;  // with names read in this round
};

}  // namespace culprit::ingest
