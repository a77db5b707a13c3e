// A host with one watched log: its folder and journal, a writer, and a daemon's intake (tailer and spool, as
// the recorder joins them). The daemon's system calls go through the shim. One thread.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "ingest/live/tailer.h"
#include "journal.h"
#include "store/spool.h"

namespace culprit::fault {

class Host {
 public:
  // `pattern`: of the watched names.
  explicit Host(const std::string& pattern);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // ---- the writer and its log rotation
  void write(int lines);
  void rename_away();   // train.log.1 becomes train.log.2, ...; the writer opens a new file
  void create_later();  // the next write creates the file: rename_away() without it
  void truncate_copied();
  void compress_older();  // all rotated files but the newest
  // One step of a rotation without a pause: by renaming; with compression of the file before, whose parts are
  // the rename, a half written compressed file, and the rest; or by copying.
  enum class Turn : uint8_t { kNone, kRename, kCompress, kCopy };
  void turn(Turn how);

  // ---- the daemon
  struct Rounds {
    int count = 1;
    bool commits = true;
    TimeNs each_ns = 1100 * kNsPerMs;  // of the monotonic clock
  };
  // Starts the daemon if it does not run.
  void run(const Rounds& rounds);
  void kill();  // kill -9
  // Rounds until no more bytes come and all is stored.
  void settle();

  Account account();
  bool refused() const { return refused_; }  // a batch that the spool can never store

 private:
  struct Daemon {
    std::unique_ptr<store::Spool> spool;
    std::unique_ptr<ingest::Tailer> tailer;
    std::deque<PieceBatch> waiting;  // read, and not in the spool yet
  };
  std::string log() const { return folder_ + "/logs/train.log"; }
  std::string part(int number) const;
  bool start();
  bool round(const Rounds& rounds);
  bool store(bool commits);
  void note_first_seen();

  std::string folder_, pattern_;
  std::string journal_;
  uint64_t line_ = 0;
  int turns_ = 0;
  uint64_t file_begin_ = 0;          // of the journal: where the present file begins
  uint64_t seen_from_ = UINT64_MAX;  // of the journal: what was at the path when the daemon first saw it
  TimeNs mono_ = 1000 * kNsPerSecond;
  bool refused_ = false;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace culprit::fault
