// Gives the pieces of an archive's logs in the order in which they came, to rebuild engines from. Any thread,
// while the archive is written; owns nothing of the Archive's, and gives only frames whose checksums hold.
#pragma once

#include <functional>

#include "store/archive.h"
#include "store/evidence.h"

namespace culprit::store {

// A stream is told before its first piece. Bytes of a piece are its own for the call. False ends it.
struct ArchiveVisitor {
  std::function<bool(const LogOrigin&, const StreamInfo&)> wanted;  // pieces of others are left out
  std::function<bool(const LogOrigin&, const Piece&)> piece;
};
ReadDamage replay(io::Files& files, const std::string& folder, const ReplayPlan& plan,
                  const ArchiveVisitor& visitor);

}  // namespace culprit::store
