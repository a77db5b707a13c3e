// Late bytes: written to a file after another took its path, by a process that has not reopened its log. In
// the evidence they follow the bytes read since then; the place in the piece identifies their file. No
// notification reports them. So a file is kept open for a while after the source left it, and the sizes of
// all known files are polled, less often the longer they are idle.
//
// The files are kept in their sources. The tailer's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "ingest/live/tailer_context.h"

namespace culprit::ingest {

class LateFiles {
 public:
  explicit LateFiles(TailContext& tail) : tail_(tail) {}

  // Checks the late files that are open: whether one has unread bytes.
  bool have_grown(TailSource& source);
  // Reads up to `share` bytes in all; true if more are available.
  bool read(TailSource& source, uint64_t share, uint64_t& taken);
  // Keeps an open file that its source has left.
  void follow(TailSource& source, Generation generation);
  // For the due sources of the folder: finds their earlier files that are longer now, under any name.
  void find(TailFolder& folder, const std::vector<Entry>& entries);

 private:
  void drop(TailSource& source, const std::function<bool(const LateFile&)>& which);
  bool read_piece(TailSource& source, LateFile& late, uint64_t max, uint64_t& taken);
  void find_of(TailSource& source, const std::unordered_map<uint64_t, const Entry*>& by_inode);

  TailContext& tail_;
};

}  // namespace culprit::ingest
