// Gives the pieces of an archive's logs in the order in which they came, to rebuild engines from. Any thread,
// while the archive is written; owns nothing of the Archive's, and gives only frames whose checksums hold.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/archive.h"
#include "store/evidence.h"

namespace culprit::store {

// A stream is told before its first piece. Bytes of a piece are its own for the call. False ends it.
struct ArchiveVisitor {
  std::function<bool(const LogOrigin&, const StreamInfo&)> wanted;  // pieces of others are left out
  std::function<bool(const LogOrigin&, const Piece&)> piece;
};
// The same in parts, while the archive grows: each call goes on behind the one before, with the same plan or
// a later one. One thread at a time.
class ArchiveReplay {
 public:
  ArchiveReplay(io::Files& files, std::string folder);
  ~ArchiveReplay();
  // To the end of the plan, or until about `bytes_most` bytes of pieces were given: whether it got there.
  bool advance(const ReplayPlan& plan, uint64_t bytes_most, const ArchiveVisitor& visitor);
  ReadDamage damage() const;  // so far

 private:
  friend ReadDamage replay(io::Files&, const std::string&, const ReplayPlan&, const ArchiveVisitor&);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All of it at once.
ReadDamage replay(io::Files& files, const std::string& folder, const ReplayPlan& plan,
                  const ArchiveVisitor& visitor);

}  // namespace culprit::store
