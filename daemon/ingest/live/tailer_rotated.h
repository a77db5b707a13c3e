// Finds the last file of a source and its successors among the names of the folder. It opens files but
// changes nothing: the follower carries out the plan.
//
// Invariant of rotation: a check first opens the file at the path, then reads all names of the folder. The
// path must be unchanged after all names were checked. So every file that was at the path since the last
// known one is among the names. A file is identified by its open descriptor, never by a name that was checked
// earlier.
//
// Made for one check of one source; borrows the root folder and the sources. The tailer's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingest/live/rotated_name.h"
#include "ingest/live/safe_open.h"
#include "ingest/live/tailer_source.h"
#include "ingest/live/tailer_table.h"

namespace culprit::ingest {

// A file that may be a generation of a source, now or earlier.
struct Sibling {
  bool rotated() const { return !form.base.empty(); }
  std::string name;  // below the root
  uint64_t inode = 0;
  RotatedName form;  // no base: not a rotated name
  Compression compression = Compression::kNone;
  bool seen = false;  // `look` is valid
  Look look;
  bool operator==(const Sibling& other) const { return name == other.name && inode == other.inode; }
};

// Result of a check: the state of the last generation, and the later ones.
struct RotationPlan {
  bool rewritten = false;  // the file at the path is the same, with another content
  bool held = false;       // the last generation is open and unchanged
  bool taken = false;      // found as a copy without unread bytes
  bool lost = false;       // not found
  bool may_lack = false;   // files between the last and the present one may have been deleted
  bool torn = false;       // names changed while they were checked
  std::vector<Sibling> found;
  Descriptor opened;                // the file at the path
  FilePlace place;                  // position in the last generation
  std::optional<Sibling> position;  // present name of the last generation
  Descriptor file;                  // the last generation, opened at `position`
  std::vector<Generation> newer;    // oldest first; the one at the path is last
  bool at_path = false;             // a regular file is at the path
  Look path;
  bool foreign = false;  // the file at the path belongs to another source
};

// The source's last file under any name in the folder, and all files with rotated names of the source.
std::vector<Sibling> siblings_of(const TailSource& source, const std::vector<Entry>& entries);

// A renamed file is older than the file that took its path, a copy is younger. Compression keeps the time of
// the last write.
bool is_copied(const SafeFolder& root, const RotationPlan& plan, const TailSource& source,
               const Sibling& sibling);

// Time when a part left the path. A part is written or copied no later, and renamed when the next file is
// created. `born`, `next_born`: creation times, kNoTime if unknown; pass kNoTime as `next_born` for a copy.
TimeNs left_path_ns(const Look& part, TimeNs born, TimeNs next_born);

// copytruncate: whether the file is a copy of the file at the path, or of its content before a truncation.
// For a log that is rotated by renaming, each part has its own inode, and no copies are searched.
bool is_copy_of(const SafeFolder& root, const TailSource& base, const std::string& name, const Look& look);

class RotationSearch {
 public:
  RotationSearch(const SafeFolder& root, const SourceTable& sources, const TailSource& source)
      : root_(root), sources_(sources), source_(source) {}

  // Call once. `rewritten`: the last file's content differs from the bytes read.
  RotationPlan plan(AtPath at, const std::vector<Entry>& entries, bool rewritten);

 private:
  struct Row;  // parts of one naming style, the youngest first
  // The role of a file with a rotated name for the source.
  enum class Part : uint8_t {
    kPosition,   // the file of the read position
    kTakenCopy,  // a copy of its beginning, completely read
    kTaken,      // completely read and left
    kElsewhere,  // belongs to another source, or is also at the path
    kUnknown,
  };

  bool see(Sibling& sibling);
  bool counts_up(const std::vector<Sibling*>& row);
  void order(std::vector<Sibling*>& row);
  bool is_taken(const Descriptor& file, const Sibling& sibling);
  bool is_part_of(const Descriptor& file, const FilePlace& place);
  Part what_is(Sibling& sibling);
  void find_by_inode();
  void find_parts();
  bool walk(Row& row);
  bool left_while_followed(const Row& row, const Sibling& sibling);
  void open_newer(const Row& row);
  const TailSource* base_copied() const;
  void find_at_path();

  const SafeFolder& root_;
  const SourceTable& sources_;
  const TailSource& source_;
  RotationPlan plan_;
};

}  // namespace culprit::ingest
