// What a collector keeps: frames of many spools, each as it came, in segment files of one folder, and beside
// them archive.db, which tells whose they are and where each source's bytes stand. README.md has the format.
//
// A log is one spool of one host: evidence, or the condensed one that engines are rebuilt from. Its frames
// come in order of their sequence, each once; what is there already is dropped by its number, and what will
// never come is told by skip(). commit() makes all that was taken before it durable (segments are synced,
// then one transaction of the index), and only then it may be acknowledged. A kill at any point leaves what
// was committed, or more; never less, and nothing twice. A lost or damaged index is made again of the
// segments.
//
// Frames come from strangers: each is unpacked within its limits and read to its end before it is taken.
//
// One thread owns an Archive. What reads evidence (evidence.h, archive_replay.h) works on files by itself, on
// any thread, from what kept() and replay_plan() give. It never asks for the time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/files.h"
#include "model/piece.h"
#include "store/kept.h"
#include "store/segment.h"

namespace culprit::store {

enum class LogKind : uint8_t { kEvidence = 0, kCondensed = 1 };
constexpr size_t kLogKinds = 2;

struct LogOrigin {
  uint64_t epoch = 0;  // of the spool; never 0
  std::string host;
  LogKind kind = LogKind::kEvidence;
};

struct ArchiveOptions {
  std::string folder;
  uint64_t max_bytes = uint64_t{200} << 30;
  TimeNs max_age_ns = 0;  // by when frames came; 0: any
  // What goes at once when room is made (a thousandth of 200 GiB, but at most a 16th of max_bytes).
  uint64_t segment_bytes = 256 << 20;
};

struct ArchiveStats {
  uint64_t bytes = 0;  // of all segments on the disk
  uint64_t segments = 0, logs = 0;
  uint64_t frames = 0, stored_bytes = 0;  // taken by this process
  uint64_t pending_bytes = 0;             // taken and not committed yet
  uint64_t duplicates = 0;                // frames that were there already
  uint64_t refused = 0;                   // frames that are none, or do not follow
  uint64_t overlap_bytes = 0;             // of pieces whose beginning was there already
  uint64_t orphans = 0;                   // pieces of streams that nobody told: kept, but cannot be found
  uint64_t holes = 0, hole_bytes = 0;     // where bytes of a stream never came
  uint64_t adopted_frames = 0;            // at the start: written, but not in the index
  uint64_t cut_bytes = 0;                 // at the start: torn, behind the last sound frame
  uint64_t damaged_frames = 0;            // at the start, of what was read again
  uint64_t missing_segments = 0;          // at the start: in the index, but not in the folder
  uint64_t dropped_segments = 0, dropped_bytes = 0;
  uint64_t failures = 0;
  TimeNs failing_since_ns = kNoTime;  // since when nothing could be committed; kNoTime: it works
  std::string last_error;
};

struct CommittedLog {
  uint64_t epoch = 0, sequence = 0;
};

// Frames from..to never come: the peer does not send them, or does not have them any more.
struct SkippedFrames {
  uint64_t from = 0, to = 0;
  TimeNs time_ns = kNoTime;
  std::string reason;  // "not forwarded by policy"
};

struct HostRow {
  std::string host;
  TimeNs first_ns = kNoTime, seen_ns = kNoTime;
  std::string about;     // what note_host() told last
  uint64_t bytes = 0;    // of its frames that are kept
  uint64_t skipped = 0;  // frames that never came
};

struct KeptQuery {
  std::string host = {};  // empty: of all
  std::string job = {};   // and of every job: the kernel's, and dumps that name none; empty: of all
  std::string path = {};  // empty: any
  bool places = true;     // where their bytes stand, too: what a reader needs, and a list does not
  LogKind kind = LogKind::kEvidence;
};
struct HostStream {
  std::string host;
  KeptStream kept;  // to EvidenceReader::read
};

// What replay() of archive_replay.h reads; a plain value.
struct ReplayPlan {
  struct Part {
    uint64_t segment = 0, size = 0;
  };
  std::vector<Part> segments;          // in the order in which frames came
  std::map<uint64_t, LogOrigin> logs;  // by epoch; frames of others are passed over
};

// Sources of all logs that are kept in memory, 300 bytes each; logs that rest are read again when they stir.
constexpr size_t kArchiveStreamsInMemory = 500'000;

class Archive {
 public:
  // Makes the folder or goes on with what stands in it. An error where it cannot be read or written, or a
  // newer version of the program wrote it, or it holds a spool; nothing is changed then.
  static Result<std::unique_ptr<Archive>> open(io::Files& files, ArchiveOptions options);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // Where a damaged index was moved to at the start; empty: it was sound, or not there.
  const std::string& moved_aside() const;

  // Before a peer's frames: the sequence up to which its log is committed, or nothing where the log is not
  // known. Then it begins with the checkpoint of what it has first (frames.h), behind a skip() of what was
  // before that. kDenied where the epoch is another host's or another kind of log.
  Result<std::optional<uint64_t>> begin(const LogOrigin& origin, TimeNs now);
  // One frame, header and stored bytes. What was new of it stands in `taken`, where that is given, with the
  // stream ids of its log: streams are told before their pieces, holes are gaps, and what replay() will give
  // is the same. kInvalid: it is none, or its sequence does not follow; that will not mend. Other errors are
  // the disk's: nothing is taken, hand it over again later.
  Status append(std::string_view frame, TimeNs now, PieceBatch* taken = nullptr);
  // `from` follows the last frame that was taken, or lies before it; nothing happens where `to` does too.
  Status skip(uint64_t epoch, const SkippedFrames& skipped);
  // All that was taken is durable, or, on an error, will be with a later call. Gives the logs that moved.
  Result<std::vector<CommittedLog>> commit(TimeNs now);

  // Drops the oldest segments while there are more than max_bytes, and those older than max_age_ns: evidence
  // first. Condensed frames of `running` jobs go by size alone, when no evidence is left to drop.
  Status retain(const std::vector<std::string>& running, TimeNs now);

  void set_retention(uint64_t max_bytes, TimeNs max_age_ns);

  // When a host was seen last, and what is to be told of it (free text); part of the next commit.
  void note_host(const std::string& host, TimeNs now, std::string about);

  // As of the last commit.
  Result<std::vector<HostRow>> hosts();
  // By host, then in the order in which they came.
  Result<std::vector<HostStream>> kept(const KeptQuery& query);
  Result<std::vector<SkippedFrames>> skipped(const std::string& host, LogKind kind);
  // Of the condensed logs (of those hosts, where any are named).
  Result<ReplayPlan> replay_plan(const std::vector<std::string>& hosts = {});

  ArchiveStats stats() const;

 private:
  struct Impl;
  explicit Archive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::store
