// Follows the log files that one glob matches, through rotation in all its forms, truncation and restarts,
// and gives their bytes as pieces. One path is one source: its evidence is the bytes of all generations of
// the file there, in order, each byte once; what is lost is a gap.
//
// Which file is which: one under a rotated name of a source is a part of it and no source of its own,
// unless it was there when the source was first seen, or is written on and is no copy. It is known by its
// inode and by what was taken: the same beginning, and the same bytes before the place. Parts are looked at
// from the youngest on, until one is known; those before it were never seen and are taken whole. Nothing
// behind it is. Where bytes may be missing (a copy and its truncation, a part that is gone) a gap is told.
//
// What is written to a file after another took its path comes when it is found, behind what was taken by
// then: at once while the file is kept open (seconds), later within a tenth of the time for which nothing
// came to it (10 minutes at most), after a restart too. So it is for the last kPastPlaces files of a source,
// as long as they stand in its folder under any name. A piece's place tells which file it is of, so that each
// can be put together exactly. Not known are bytes that came between two looks to a file that was then
// removed, and those to one that was empty when it was left and has been closed.
//
// Blocking; belongs to one worker thread (stats() alone: any thread). It reads no clock and keeps no file
// of its own: `known` is what the store holds, and after a kill the tailer goes on behind that. Changes
// told from outside (inotify) are hints: they make it look at once, never decide what is read. It never
// maps a file, never follows a link below the glob's root, never opens anything but regular files, and
// never blocks on a FIFO or a device. What an application does with file names, sizes and contents costs a
// bounded amount.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "model/piece.h"
#include "model/report.h"

namespace culprit::ingest {

struct TailOptions {
  std::string glob;                                            // absolute: formats.md section 8
  OriginKind kind = OriginKind::kFile;                         // or kDump: of its sources
  std::function<std::string(const std::string& path)> job_of;  // of a new source's path
  std::function<StreamId()> allocate;  // a number for a new source; must be thread safe
  size_t files_max = 100'000;          // sources followed at once; what comes beyond is told and counted
  size_t open_max = 512;               // descriptors kept: share RLIMIT_NOFILE among the tailers
  std::function<void()> before_ask;    // before each question to the file system: tests change it there
};

struct TailRound {
  TimeNs now = 0;       // wall clock
  TimeNs now_mono = 0;  // never steps
  // Bytes that may be taken now, as credit allows; 0: only look. Shared out evenly among the files that have
  // some.
  size_t budget_bytes = 8 << 20;
  std::vector<std::string> changed;  // folders of which a watch tells that something changed
  std::vector<std::string> watched;  // of Outcome::watch: a watch stands now
};

struct TailOutcome {
  PieceBatch batch;
  bool more = false;                 // there is more to take: call again as soon as there is credit
  TimeNs next_mono_ns = 0;           // by the monotonic clock: when it wants to look again without a hint
  std::vector<std::string> watch;    // new folders that a watch would help; until `watched` they are polled
  std::vector<std::string> unwatch;  // gone: their watches are of no use any more
  std::vector<Problem> problems;     // each told when it begins, not each round
};

// Since the tailer was made; read from any thread.
struct TailStats {
  uint64_t files = 0;      // followed now
  uint64_t slots = 0;      // sources held now: also those that have ended and of which files are still there
  uint64_t open = 0;       // descriptors held now
  uint64_t bytes = 0;      // taken
  uint64_t lag_bytes = 0;  // seen in files and not yet taken
  uint64_t generations = 0;  // files finished because another took their path
  uint64_t gaps = 0;         // places where bytes are missing
  uint64_t gap_bytes = 0;    // as far as their number is known
  uint64_t refused = 0;      // links, devices, unreadable files, files beyond files_max: now
};

class Tailer {
 public:
  // An error where the glob is none (relative, too many alternatives). `known`: of the files that this glob
  // matched before, as the store has them; others are left alone.
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
