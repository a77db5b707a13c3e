// A job of this host and its session: writes the job's inputs into blocks of the condensed log. After a long
// enough session, or a block that the spool rejected, a new session continues with the same sources.
//
// Owner: JobForwarder. One thread: the uplink's worker. No clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/jobs/flush_parts.h"
#include "app/jobs/forwarded_streams.h"
#include "app/jobs/job_router.h"
#include "app/jobs/job_shares.h"
#include "app/jobs/pool_owner.h"
#include "core/wire/inputs.h"
#include "model/piece.h"

namespace culprit::app {

// A session's writer and the state of its sources. In a new session, each source is declared again with a new
// number at its next input. Declaring all sources at once would exceed a frame, and most sources have ended.
class WriterSink : public LiveSink {
 public:
  explicit WriterSink(std::optional<wire::InputWriter>& writer) : writer_(writer) {}
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override;
  void begin_session();
  uint64_t dropped_lines() const { return dropped_lines_; }

 private:
  struct WrittenSource {
    SourceInfo info;                 // with the current number of lines
    std::optional<SourceId> number;  // number in this session; nothing: not declared yet
  };
  void declare(WrittenSource& source, TimeNs now);
  void write_lines(logs::LogBatch& batch, TimeNs now);

  std::optional<wire::InputWriter>& writer_;
  std::vector<WrittenSource> sources_;  // by the sources' numbers in this class
  std::vector<core::ReceivedTraceCount> received_;
  size_t received_sent_ = 0;  // of these, in this session
  SourceId next_ = 0;
  uint64_t dropped_lines_ = 0;
};

// Totals of sessions.
struct SessionCounts {
  uint64_t lines = 0, bytes = 0, lines_lost = 0, notes_lost = 0;
  SessionCounts& operator+=(const SessionCounts& other);
};

// A part that the spool rejected for good.
struct RefusedPart {
  explicit RefusedPart(const PieceBatch& part);
  // Whether the part contains the stream. If the part opened the stream, `mark` is reset, so that the stream
  // is opened again.
  bool lost(StreamId& mark) const;

  std::set<StreamId> undeclared;                    // streams opened in the part
  std::unordered_map<StreamId, uint64_t> retained;  // streams with pieces in the part, and the offset before
                                                    // these pieces
};

class ForwardedJob final : public RoutedJob {
 public:
  ForwardedJob(std::string id, const JobForwarderOptions& options, LiveParsing& parsing);

  void ingest(const LiveStream& from, const Piece& piece, TimeNs now) override;
  void ingest_trace(const LiveStream& from, TraceBatch& batch, const Piece& piece, TimeNs now) override;
  void keep_out(Principal user, const LiveStream& from, const Piece& piece) override;
  const JobInputs& inputs() const override { return sources_; }
  // A piece of a source about the host (is_of_host) and its lines; the job ingests the part that it did not
  // get before.
  void ingest_host_lines(LiveStream& from, const Piece& piece, std::span<const HostLine> lines, TimeNs now);

  // Adds the session's next block and, once the session is over, the session's end.
  void add_block(FlushParts& out, JobForwarderCounts& totals);
  // Adds marks of the sources about the host if the session has any block.
  void add_host_marks(FlushParts& out, ForwardedStreams& streams);
  // Writes the rejected marks again, and begins a new session if a block was rejected.
  void refused(const RefusedPart& part);
  SessionCounts counts() const;

  wire::InputWriter& writer() { return *writer_; }
  const wire::InputWriter& writer() const { return *writer_; }
  JobInputs& sources() { return sources_; }
  const JobStreams& streams() const { return streams_; }

  // State of the job for JobForwarder, kept between calls.
  struct HostMark {
    uint64_t reported = 0;  // the job has ingested the source up to this position
    bool moved = false;     // since the last flush
    StreamId stream = kNoStream;
  };
  std::map<StreamId, HostMark> host_marks;
  // Last blocks and ends of earlier sessions, sent with the first block of this session.
  std::vector<Piece> before;
  TimeNs last_ns = kNoTime;  // read time of the last bytes
  TimeNs asked_ns = kNoTime, reported_ns = kNoTime;
  std::optional<bool> reported;
  bool over = false;  // the session ends with the next flush
  JobClaim claim;     // claim by the best-known sender of data

 private:
  void note(const LiveStream& from, const Piece& piece, TimeNs now);
  void begin_session();
  void note_owner(const LiveStream& from, const Piece& piece, TimeNs now);

  const std::string id_;
  const JobForwarderOptions& options_;
  uint64_t session_;
  std::optional<wire::InputWriter> writer_;  // always set
  WriterSink sink_;
  JobInputs sources_;
  JobStreams streams_;
  PoolOwner pool_owner_;
  StreamId stream_ = kNoStream;  // stream of the session's blocks
  uint64_t offset_ = 0;
  TimeNs began_ns_ = kNoTime;
  SessionCounts earlier_;  // sessions
};

}  // namespace culprit::app
