// Reads the pieces of an archive's logs in order of arrival, to rebuild engines. Any thread, while the
// archive is written. Borrows nothing of the Archive; returns only frames with correct checksums.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/archive.h"
#include "store/evidence.h"

namespace culprit::store {

// Each stream is passed before its first piece. The callee may move the bytes out of a piece. Return false
// to end the replay.
struct ArchiveVisitor {
  std::function<bool(const LogOrigin&, const StreamInfo&)> wanted;  // other pieces are left out
  std::function<bool(const LogOrigin&, const Piece&)> piece;
};
// Replay in parts, while the archive grows: each call continues after the previous one, with the same or a
// later plan. One thread at a time.
class ArchiveReplay {
 public:
  ArchiveReplay(io::Files& files, std::string folder);
  ~ArchiveReplay();
  // Reads to the end of the plan, or about `bytes_most` bytes of pieces. Returns whether it reached the
  // end.
  bool advance(const ReplayPlan& plan, uint64_t bytes_most, const ArchiveVisitor& visitor);
  ReadDamage damage() const;  // so far

 private:
  friend ReadDamage replay(io::Files&, const std::string&, const ReplayPlan&, const ArchiveVisitor&);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The whole plan at once.
ReadDamage replay(io::Files& files, const std::string& folder, const ReplayPlan& plan,
                  const ArchiveVisitor& visitor);

}  // namespace culprit::store
