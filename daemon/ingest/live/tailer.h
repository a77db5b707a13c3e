// Follows the log files of one glob through all kinds of rotation, truncation and restarts, and returns their
// bytes as pieces. One path is one source. Its evidence is the bytes of all generations of the file, in
// order, each byte once; lost bytes are a gap.
//
// Identity of files. A file with a rotated name of a source is a part of that source and no source of its
// own. Exceptions: it existed when the source was first seen, or it is still written and is no copy. A part
// is recognised by its inode and by the bytes already read: the same beginning, and the same bytes before the
// position. Parts are checked from the youngest on, until one is recognised. Younger parts were never seen
// and are read whole; older parts are not read. If bytes may be missing (a copy and its truncation, a deleted
// part), a gap is reported. A failed call (EIO, EMFILE) proves nothing: the check is repeated for a minute.
//
// A source is declared with its first piece, which names its file, before any byte is read. So a restart
// finds the file under any name. After a kill, parts that left a path after the last stored frame belong to a
// log without stored bytes.
//
// Late bytes are written to a file after another file took its path. In the evidence they follow the bytes
// read by then. They are found at once while the file is kept open (seconds). Later they are found within a
// tenth of the time without new bytes (at most 10 minutes), also after a restart. This holds for the last
// kPastPlaces files of a source, as long as they are in its folder under any name. The place of a piece
// identifies its file, so that each file can be rebuilt exactly. Not detected: late bytes of a file that was
// removed between two checks, or that was empty when the source left it and closed it.
//
// Blocking; belongs to one worker thread (stats(): any thread). It reads no clock and stores no state:
// `known` is the content of the store, and after a kill the tailer continues there. Change notifications
// (inotify) are hints: they cause an immediate check but never decide what is read. It never maps a file,
// never follows a link below the glob's root, opens only regular files, and never blocks on a FIFO or device.
// Any file names, sizes and contents have a bounded cost.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/principal.h"
#include "base/status.h"
#include "base/time.h"
#include "model/piece.h"
#include "model/report.h"

namespace culprit::ingest {

struct TailOptions {
  std::string glob;                                            // absolute: formats.md section 8
  OriginKind kind = OriginKind::kFile;                         // kind of its sources: kFile or kDump
  std::function<std::string(const std::string& path)> job_of;  // job of a new source, from its path
  // Whether the files of a folder below the root are followed; its path is absolute. Asked when a folder is
  // found, and after kLater again within seconds. Empty: all folders are.
  enum class Enter : uint8_t { kYes, kNo, kLater };
  std::function<Enter(const std::string& folder)> enter;
  // The container whose output a file of root is, from its path. Empty: io::container_of_log().
  std::function<std::optional<Principal>(const std::string& path)> container_of;
  std::function<StreamId()> allocate;  // a number for a new source; must be thread safe
  // Wall clock. Files that left their path after this time may have been read, but not stored, by an earlier
  // process. kNoTime: no earlier process.
  TimeNs stored_until_ns = kNoTime;
  size_t files_max = 100'000;        // sources followed at once; further ones are reported and counted
  size_t open_max = 512;             // descriptors kept: share RLIMIT_NOFILE among the tailers
  std::function<void()> before_ask;  // called before each file system access; tests change files there
};

struct TailRound {
  TimeNs now = 0;       // wall clock
  TimeNs now_mono = 0;  // never steps
  // Bytes that may be read now, from the credit; 0: only check. Divided among the files with new bytes;
  // their owners take turns.
  size_t budget_bytes = 8 << 20;
  std::vector<std::string> changed;  // folders with a change notification
  std::vector<std::string> watched;  // folders of Outcome::watch with a watch now
};

struct TailOutcome {
  PieceBatch batch;
  bool more = false;                 // more bytes are available: call again as soon as there is credit
  TimeNs next_mono_ns = 0;           // monotonic: time of the next check without a hint
  std::vector<std::string> watch;    // new folders to watch; polled until `watched` has them
  std::vector<std::string> unwatch;  // deleted folders: their watches are obsolete
  std::vector<Problem> problems;     // each reported once, when it begins
};

// Since the tailer was made; read from any thread.
struct TailStats {
  uint64_t files = 0;        // currently followed
  uint64_t slots = 0;        // sources in memory, including ended ones with files
  uint64_t open = 0;         // open descriptors
  uint64_t bytes = 0;        // read so far
  uint64_t lag_bytes = 0;    // in files and not read yet
  uint64_t generations = 0;  // files finished because another took their path
  uint64_t gaps = 0;         // number of gaps
  uint64_t gap_bytes = 0;    // as far as known
  uint64_t refused = 0;      // current links, devices, unreadable files, files beyond files_max
  uint64_t left_out = 0;     // files that were found while files_max others were followed
};

class Tailer {
 public:
  // An error for an invalid glob (relative, too many alternatives). `known`: the stored streams; those that
  // the glob does not match are ignored.
  static Result<std::unique_ptr<Tailer>> make(TailOptions options, const std::vector<StreamState>& known);
  ~Tailer();

  TailOutcome round(const TailRound& round);
  TailStats stats() const;

 private:
  class Impl;
  explicit Tailer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::ingest
