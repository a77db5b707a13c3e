// Turns pieces of the daemon's sources into inputs of an engine: lines of a trace socket, kernel records as
// lines, and the sources of one job's engine with their host and rank.
//
// One thread: the engine's worker. No clock: the time of an input is the time at which its piece was read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/jobs/job_dumps.h"
#include "app/jobs/metered_engine.h"
#include "app/jobs/parse_ahead.h"
#include "app/jobs/trace_batch.h"
#include "core/engine.h"
#include "core/logs/line_feed.h"
#include "core/logs/placement.h"
#include "model/piece.h"

namespace culprit::app {

// A stream in LiveJobs; it outlives the runs of its job.
struct LiveStream {
  StreamInfo info;
  uint64_t lines_before = 0;   // lines of a file that belong to earlier runs
  uint64_t lines_refused = 0;  // the last of these lines, refused while the job had no engine
  uint64_t read_until = 0;     // the job has ingested all bytes before this offset
  bool late = false;           // the job was read from the store: see LiveJobs::begin_reading()
  bool stored = false;         // the stream is known from the store alone
  std::string rest;            // incomplete line or record of a socket or the kernel log
  BrokenLines broken_before;   // broken lines of a socket before the first line that began a job
  bool ended = false;
  std::string dump_job;  // the job that gets a dump without a job name
};

// The job that gets the stream's data.
const std::string& job_of(const LiveStream& stream);

// Reads the complete lines of `stream.rest` + `bytes` and stores the incomplete rest. `offset`: position of
// `bytes` in the source's evidence. `trusted`: the peer may name hosts.
TraceBatch read_trace(LiveStream& stream, std::string_view bytes, uint64_t offset, bool trusted);

// A line about the whole host: a message of the kernel, a line of a service in the journal, or a finding of a
// plugin.
struct HostLine {
  TimeNs time_ns = kNoTime;
  std::string text;  // includes its newline
  // Position of a finding in the source's evidence, and the state that the finding raises or clears.
  uint64_t offset = 0;
  std::string state = {};  // empty: none
  bool clears = false;
  std::string forgets = {};  // the plugin whose states all end with this line; empty: none
  bool passing = false;      // true: jobs that start later do not get the line
  bool service = false;      // of a service in the journal
};
// As read_trace(), for records of the kernel log, entries of the journal and findings.
std::vector<HostLine> read_host_lines(LiveStream& stream, std::string_view bytes, uint64_t offset);

// The parser that all jobs share; it matches rules.
struct LiveParsing {
  // `daemon_uid`: sources of this user and of root do not count as a user's sources.
  LiveParsing(std::string host_name, std::vector<std::string> log_roots,
              std::optional<uint32_t> daemon_uid = {});
  // Sets the rules (null: none) and the zone for later lines. The rules outlive the next call.
  void use(const rules::Ruleset* rules, const Zone& zone);
  // Parses the chunk to `batch`, or takes the result of parsing ahead.
  void parse(const TextChunk& chunk, const SourceInfo& source);
  // Frees the memory for parsing ahead if the queue was empty for some seconds.
  void settle(TimeNs now);

  std::string host;
  std::vector<std::string> roots;
  std::string pods;  // see LiveOptions
  std::optional<uint32_t> uid;
  logs::Placement placement;
  std::function<std::unique_ptr<logs::LineParser>()> make_parser;
  std::unique_ptr<logs::LineParser> parser;
  logs::LogBatch batch;
  unsigned threads = 1;  // 2: queued texts are parsed ahead
  // For BatchAhead: the batch of the last texts, and the time of the last use.
  std::shared_ptr<const PieceBatch> ahead_of;
  TimeNs ahead_ns = kNoTime;
  DumpReading dumps;
  ParseAhead ahead;  // destroyed first
};

// Receiver of a job's inputs: an engine, or the condensed log for a collector.
class LiveSink {
 public:
  virtual ~LiveSink() = default;
  // See Engine::step.
  virtual std::vector<core::Effect> step(core::Input& input, TimeNs now) = 0;
};

class EngineSink : public LiveSink {
 public:
  explicit EngineSink(MeteredEngine& engine) : engine_(engine) {}
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override { return engine_.step(input, now); }

 private:
  MeteredEngine& engine_;
};

// The sources of one job and their engine.
class JobInputs {
 public:
  JobInputs(std::string job, LiveSink& sink, LiveParsing& parsing)
      : job_(std::move(job)), sink_(sink), parsing_(parsing), dumps_(parsing.dumps) {}

  // Ingests a piece of a file, a ring (whole records; the ring ends with its process) or a dump. Returns
  // whether a dump became complete or was abandoned.
  bool ingest(const LiveStream& stream, const Piece& piece, TimeNs now);
  // Settles files that are quiet for a second: ends records that wait for their last line, and a last line
  // with an error but without a newline. `cut`: files whose last line was ingested without a newline.
  struct SettledFiles {
    bool news = false;
    std::vector<StreamId> cut;
  };
  SettledFiles settle_files(TimeNs now);
  // Reads dumps that no longer grow; returns the same as ingest().
  bool settle_dumps(TimeNs now);
  bool dump_pending(StreamId stream) const { return dumps_.pending(stream); }
  void ingest_trace(const LiveStream& stream, TraceBatch& batch, TimeNs now);
  void ingest_host_lines(const LiveStream& stream, std::span<const HostLine> lines, TimeNs now);
  // A gap of a source.
  void ingest_gap(const LiveStream& stream, const Piece& piece, TimeNs now);
  // Adds broken lines to the report as problems with their position.
  void report_broken(Report& report) const;
  // Inputs that need no parsing. open_other() returns the source's number; nothing if the limit of sources is
  // reached.
  std::optional<SourceId> open_other(SourceInfo info, TimeNs now);
  void feed(core::Input input, TimeNs now) { step(std::move(input), now); }
  // Ingests incomplete last lines as complete lines.
  void end(TimeNs now);
  // Kinds of broken lines since the last call, each as one problem.
  std::vector<Problem> drain_broken();
  // The source to which the stream's next piece, read at `at`, will belong. Nothing: the source is not open,
  // or, with `joins`, the piece continues an incomplete line.
  std::optional<SourceInfo> source_for(StreamId stream, TimeNs at, bool joins) const;
  // Number of the stream's source in the engine.
  std::optional<SourceId> source_of(StreamId stream) const;

  size_t size() const { return next_; }
  uint64_t refused() const { return refused_; }  // bytes beyond limits::kLiveSources
  // Bytes of incomplete lines and of incomplete dumps.
  uint64_t unread_bytes() const { return unfinished_bytes_ + dumps_.bytes(); }
  std::vector<Finding> take_findings() { return std::exchange(findings_, {}); }

 private:
  struct JobSource {
    SourceInfo info;
    logs::LineFeed feed;
    std::optional<std::string> guessed;  // host from the file's name, not yet confirmed by other files
    TimeNs last_ns = kNoTime;            // arrival of the file's last bytes
    uint64_t end = 0;                    // end offset of these bytes
    bool unsettled = false;              // bytes arrived since settle_files()
    bool trouble = false;                // these bytes contain an exception or a list of failures
  };
  enum class Part : uint8_t { kLines, kEvents, kServices };

  void ingest_file(const LiveStream& stream, const Piece& piece, TimeNs now);
  bool ingest_dump(const LiveStream& stream, const Piece& piece, TimeNs now);
  void ingest_ring(const LiveStream& stream, const Piece& piece, TimeNs now);
  void ingest_findings(const LiveStream& stream, std::span<const HostLine> lines, TimeNs now);
  void feed_findings(const LiveStream& stream, TraceBatch& batch, TimeNs now);
  void feed_ras(const LiveStream& stream, TraceBatch& batch, TimeNs now);
  void feed_stacks(const LiveStream& stream, TraceBatch& batch, TimeNs now);
  JobSource* open(const LiveStream& stream, Part part, TimeNs now);
  std::string_view below_root(const std::string& path) const;
  bool feed_dumps(TimeNs now);
  void place(const std::string& path, JobSource& source);
  void prove_guess(const std::string& guessed);
  void step(core::Input input, TimeNs now);
  void hear(core::ReceivedTraceCount::Of of, const LiveStream& stream, TimeNs now);
  bool ends_in_trouble(const JobSource& source);
  logs::LineFeed::Take taker(JobSource& source, TimeNs now);

  const std::string job_;
  LiveSink& sink_;
  LiveParsing& parsing_;
  JobDumps dumps_;
  std::map<std::pair<StreamId, Part>, JobSource> sources_;
  std::map<StreamId, uint32_t> ring_ranks_;  // ranks of open rings
  SourceId next_ = 0;
  std::map<std::string, std::set<std::string>> guesses_;  // by stem, names
  std::vector<Finding> findings_;
  std::map<std::string, BrokenLines> broken_;                      // by the source's path
  std::set<std::pair<std::string, std::string>> broken_reported_;  // pairs of path and reason that
                                                                   // drain_broken() returned
  std::set<std::pair<core::ReceivedTraceCount::Of, std::optional<Principal>>>
      received_;  // users, by their data
  size_t gaps_ = 0;
  uint64_t unfinished_bytes_ = 0;  // bytes of the feeds' incomplete lines
  uint64_t refused_ = 0;
};

}  // namespace culprit::app
