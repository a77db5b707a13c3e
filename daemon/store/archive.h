// The collector's store: frames of many spools, unchanged, in segment files of one folder, and archive.db
// with their owners and the position of each source's bytes. README.md has the format.
//
// A log is one spool of one host: evidence, or the condensed log from which engines are rebuilt. Its frames
// are stored in order of their sequence, each once: duplicates are dropped by number, and skip() records
// frames that will never come. commit() makes all taken frames durable: it syncs the segments, then runs one
// transaction of the index. Only then may they be acknowledged. After a kill at any point, all committed
// frames are there, perhaps more, and none twice. A lost or damaged index is rebuilt from the segments.
//
// Frames are untrusted: each is unpacked within limits and read to its end before it is taken.
//
// One thread owns an Archive. Readers of evidence (evidence.h, archive_replay.h) use the files on any thread,
// with the results of kept() and replay_plan(). An Archive never reads a clock.
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
#include "store/segment.h"
#include "store/stored_streams.h"

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
  TimeNs max_age_ns = 0;  // by arrival of the frames; 0: no limit
  // Segment size; a segment is the unit of deletion. A thousandth of 200 GiB, but at most a 16th of
  // max_bytes.
  uint64_t segment_bytes = 256 << 20;
};

struct ArchiveStats {
  uint64_t bytes = 0;  // of all segments on the disk
  uint64_t segments = 0, logs = 0;
  uint64_t frames = 0, stored_bytes = 0;  // taken by this process
  uint64_t pending_bytes = 0;             // taken, not committed yet
  uint64_t duplicates = 0;                // frames that were already stored
  uint64_t refused = 0;                   // malformed frames, or frames out of sequence
  uint64_t orphans = 0;                   // pieces of undeclared streams: stored, but not readable
  uint64_t holes = 0, hole_bytes = 0;     // bytes of a stream that never came
  uint64_t adopted_frames = 0;            // at the start: in a segment, but not in the index
  uint64_t cut_bytes = 0;                 // at the start: torn bytes after the last sound frame
  uint64_t damaged_frames = 0;            // at the start, in the re-read part
  uint64_t missing_segments = 0;          // at the start: in the index, but not in the folder
  uint64_t dropped_segments = 0, dropped_bytes = 0;
  uint64_t failures = 0;
  TimeNs failing_since_ns = kNoTime;  // since when commits fail; kNoTime: they work
  std::string last_error;
};

struct CommittedLog {
  uint64_t epoch = 0, sequence = 0;
};

// Frames from..to will not arrive: the peer does not send them or has deleted them.
struct SkippedFrames {
  uint64_t from = 0, to = 0;
  TimeNs time_ns = kNoTime;
  std::string reason;  // "not forwarded by policy"
};

struct HostRow {
  std::string host;
  TimeNs first_ns = kNoTime, seen_ns = kNoTime;
  std::string about;     // from the last note_host()
  uint64_t bytes = 0;    // of its stored frames
  uint64_t skipped = 0;  // frames that never came
};

struct StoredQuery {
  std::string host = {};  // empty: all
  std::string job = {};   // includes kernel messages and dumps without a job; empty: all
  std::string path = {};  // empty: any
  bool places = true;     // also the positions of the streams' bytes: a reader needs them, a list does not
  LogKind kind = LogKind::kEvidence;
};
struct HostStream {
  std::string host;
  StoredStream stored;  // for EvidenceReader::read
};

// Input of replay() in archive_replay.h; a plain value.
struct ReplayPlan {
  struct Part {
    uint64_t segment = 0, size = 0;
  };
  std::vector<Part> segments;          // in order of arrival of their frames
  std::map<uint64_t, LogOrigin> logs;  // by epoch; other frames are skipped
};

// Limit of the sources in memory, over all logs; 300 bytes each. Idle logs are unloaded, and loaded again
// on their next frame.
constexpr size_t kArchiveStreamsInMemory = 500'000;

class Archive {
 public:
  // Creates the folder or continues its content. An error if it cannot be read or written, if a newer version
  // of the program wrote it, or if it holds a spool; nothing is changed then.
  static Result<std::unique_ptr<Archive>> open(io::Files& files, ArchiveOptions options);
  ~Archive();
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  // New path of an index that was damaged at the start; empty if the index was sound or absent.
  const std::string& moved_aside() const;

  // Call before the frames of a peer. Returns the committed sequence of the log; nothing for an unknown
  // log. For an unknown log, next call skip() for its deleted frames, and append the checkpoint of its
  // first frame (frames.h). kDenied if the epoch belongs to another host or kind of log.
  Result<std::optional<uint64_t>> begin(const LogOrigin& origin, TimeNs now);
  // Stores one frame, header and stored bytes. Its new records are added to `taken` (may be null) with the
  // stream ids of its log: streams before their pieces, holes as gaps, equal to the later output of
  // replay(). kInvalid: malformed or out of sequence, a permanent error. Other errors come from the disk:
  // nothing is stored; retry later.
  Status append(std::string_view frame, TimeNs now, PieceBatch* taken = nullptr);
  // `from` is at most the last stored sequence plus one. No effect if `to` is not greater than the last
  // stored sequence.
  Status skip(uint64_t epoch, const SkippedFrames& skipped);
  // Makes all appended frames durable. After an error, call it again. Returns the logs whose committed
  // sequence increased.
  Result<std::vector<CommittedLog>> commit(TimeNs now);

  // Deletes the oldest segments above max_bytes, and segments older than max_age_ns, evidence first.
  // Condensed frames of `running` jobs are deleted only above max_bytes, after all evidence.
  Status retain(const std::vector<std::string>& running, TimeNs now);

  void set_retention(uint64_t max_bytes, TimeNs max_age_ns);

  // Records the last contact of a host, with free text; stored by the next commit.
  void note_host(const std::string& host, TimeNs now, std::string about);

  // As of the last commit.
  Result<std::vector<HostRow>> hosts();
  // By host, then in order of arrival.
  Result<std::vector<HostStream>> stored(const StoredQuery& query);
  Result<std::vector<SkippedFrames>> skipped(const std::string& host, LogKind kind);
  // Plan for the condensed logs of `hosts`; of all hosts if the list is empty.
  Result<ReplayPlan> replay_plan(const std::vector<std::string>& hosts = {});

  uint64_t epoch() const;  // random, drawn when the archive was created
  // Segments of evidence with their committed sizes, by number.
  Result<std::vector<ReplayPlan::Part>> evidence_segments();
  // The committed sequence of each log of evidence, by epoch.
  std::map<uint64_t, uint64_t> evidence_logs() const;

  ArchiveStats stats() const;

 private:
  struct Impl;
  explicit Archive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::store
