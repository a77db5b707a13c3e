// The state of each folder and each source that a tailer follows. Plain values; the tailer's thread.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ingest/live/generation.h"
#include "ingest/live/rotated_name.h"
#include "ingest/live/safe_open.h"
#include "ingest/live/watch_glob.h"
#include "model/piece.h"

namespace culprit::ingest {

// If calls fail for this long, readable files are read and a gap is reported.
constexpr TimeNs kUncertainNs = 60 * kNsPerSecond;

struct TailFolder;

// The file at a path, independent of its name.
struct AtPath {
  bool there = false;  // a regular file
  Look look;
  Descriptor file;         // closed if it may not be read
  bool uncertain = false;  // a call failed
  uint64_t asked = 0;      // FolderLister::mark() before the open
};

// The names of a folder, valid for one round.
struct FolderNames {
  std::shared_ptr<const std::vector<Entry>> entries;
  uint64_t begun = 0;  // FolderLister::mark() before the list was read; 0: not read yet
  int lists = 0;       // lists read in this round
  int error = 0;
  bool settled = false;  // the folder was unchanged for a while before and during the read
  bool sound = false;    // settled, or two reads were equal: one consistent state without a missed file
  TimeNs modified_ns = kNoTime;
};

// An earlier file of a source, checked for late bytes.
struct LateFile {
  Generation generation;
  TimeNs until = 0;
  bool lost = false;  // its content changed, or it is unreadable
};

// One path. Its unfinished generations, oldest first; the last one is at the path.
struct TailSource {
  StreamInfo info;
  uint32_t number = 0;  // in the SourceTable
  std::string name;     // below the root
  TailFolder* folder = nullptr;
  uint64_t size = 0;  // bytes of evidence
  std::vector<Generation> chain;
  std::vector<FilePlace> past;
  std::vector<LateFile> late;   // the latest last
  bool late_failing = false;    // the last read late file was unreadable
  TimeNs late_at = 0;           // time when a file was left or a late file had grown
  TimeNs next_late = 0;         // time of the next check of all past files
  std::optional<AtPath> ahead;  // opened at the start of this round, before any names were read
  bool pending = false;         // in the CheckQueue, to be retried
  uint64_t foreign_device = 0, foreign_inode = 0;  // the file at the path, if it belongs to another source
  TimeNs next_look = 0, queued_at = 0, interval = 0;
  TimeNs changed_at = 0;  // when the file last grew or was replaced
  std::optional<TimeNs> absent_since;
  TimeNs next_search = 0;        // time of the next search for the last generation under another name
  TimeNs searched_ns = kNoTime;  // modification time of the folder at the last search
  TimeNs not_before = 0;         // no read before this time, after a failure
  uint64_t lag = 0;
  std::optional<Gap> gap;  // not reported yet: precedes the next piece, or is reported alone at a later check
  TimeNs gap_at = 0;
  bool ended = false, ready = false, failing = false;
  bool declared = false;  // a piece was returned
  bool placed = false;    // a piece has named its file
  bool searches = false;  // earlier files may exist: known at the start, or not opened at first sight
  std::optional<TimeNs> unseen_since;     // calls on the file at the path fail since then
  std::optional<TimeNs> uncertain_since;  // its files cannot be identified since then, as calls fail
  size_t descriptors = 0;
  std::optional<std::list<uint32_t>::iterator> held;  // in OpenFiles
};

struct TailFolder {
  std::string name;  // below the root, "" the root itself
  WatchGlob::State state;
  bool watched = false, asked = false, removed = false, hinted = false, failing = false;
  bool settled = false;  // a change of the list would now change the modification time
  TimeNs modified_ns = kNoTime;
  TimeNs next_list = 0, next_full = 0;  // next_list: if the modification time changed; next_full: in any case
  TimeNs next_sweep = 0;                // next check of all its sources after a hint
  std::vector<uint32_t> sources;
  std::vector<uint32_t> ended;  // sources with files that may be in this folder
  FolderNames names;
  // Matched names that are no source, with the file at that time.
  struct Ignored {
    uint64_t inode = 0;
    std::optional<uint64_t> size{};  // its size, if rotated only by name; a source if it grows
    TimeNs since = 0;
  };
  std::unordered_map<std::string, Ignored> ignored;
  std::set<std::string> waiting;    // matched names, not identified yet
  std::set<std::string> uncertain;  // matched names not judged, as calls failed
  // Names whose listed inode differs from the file's inode, with both inodes.
  std::map<std::string, std::pair<uint64_t, uint64_t>> differing;
};

// Delay of the check of an idle file; without hints only checks find new bytes.
constexpr TimeNs kFirstLookNs = 50 * kNsPerMs;
constexpr TimeNs kPolledLookNs = 1 * kNsPerSecond;
// Files idle for longer are checked less often, with a delay of at most a tenth of the idle time: 10,000 idle
// files then cost a thousand checks a second instead of ten thousand.
constexpr int64_t kIdleShare = 10;
// Interval of checks with a watch: finds changes that hints missed.
constexpr TimeNs kSweepNs = 10 * kNsPerSecond;
// Modification times advance in steps of the kernel's clock, some milliseconds; on network mounts, a second.
constexpr TimeNs kSettledNs = 2 * kNsPerSecond;

// Files get the time of the kernel's last tick: at most 10 ms ago, at 100 ticks a second.
constexpr TimeNs kFileClockNs = 10 * kNsPerMs;

// Time of the current round.
struct RoundTime {
  TimeNs now = 0;   // wall clock
  TimeNs mono = 0;  // never steps
};

inline bool same_file(const FilePlace& place, const Look& look) {
  return place.device == look.device && place.inode == look.inode;
}

// The last part of a path below the root.
inline std::string name_in(const std::string& below) {
  const size_t slash = below.rfind('/');
  return slash == below.npos ? below : below.substr(slash + 1);
}

inline std::string join_below(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

}  // namespace culprit::ingest
