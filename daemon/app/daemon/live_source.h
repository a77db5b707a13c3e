// What pieces of the daemon's sources say to an engine: the lines of a trace socket sorted out, the kernel's
// records as lines, and the sources of one job's engine with the host and the rank that write them.
//
// One thread: the engine's worker. No clock: time is that at which a piece was read.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/daemon/live_dumps.h"
#include "app/trace_batch.h"
#include "core/engine.h"
#include "core/logs/line_feed.h"
#include "core/logs/placement.h"
#include "model/piece.h"

namespace culprit::app {

// A stream as LiveJobs knows it; it outlives the runs of its job.
struct LiveStream {
  StreamInfo info;
  uint64_t lines_before = 0;  // of a file: ended in runs that are over
  std::string rest;           // of a socket or the kernel: the line or record that is not complete
  BrokenLines broken_before;  // of a socket: before the first line that a job was begun by
  bool ended = false;
  std::string dump_job;  // of a dump that names none: the one that takes it
};

// The job that takes what comes of a stream.
const std::string& job_of(const LiveStream& stream);

// Takes the whole lines of `stream.rest` + `bytes`; the rest is kept. `offset`: of the bytes in the source's
// evidence. `trusted`: the peer may name hosts.
TraceBatch read_trace(LiveStream& stream, std::string_view bytes, uint64_t offset, bool trusted);

struct KernelLine {
  TimeNs time_ns = kNoTime;
  std::string text;  // with its newline
};
// The kernel's own records, the same way.
std::vector<KernelLine> read_kernel(LiveStream& stream, std::string_view bytes);

// The kernel's last lines: what it said before a job's first line may have hit that job.
class KernelBacklog {
 public:
  void keep(StreamId stream, std::vector<KernelLine> lines);
  // Those that a job which begins at `at` may have to do with, oldest first.
  template <class Take>  // (StreamId, const KernelLine&)
  void give(TimeNs at, const Take& take) const {
    for (const auto& [stream, line] : lines_)
      if (line.time_ns == kNoTime || line.time_ns >= at - kMargin) take(stream, line);
  }

 private:
  // A job's processes need that long to speak.
  static constexpr TimeNs kMargin = 60 * kNsPerSecond;
  struct Line {
    StreamId stream;
    KernelLine line;
  };
  std::deque<Line> lines_;
  size_t bytes_ = 0;
};

// What all jobs share: rules are found by one parser.
struct LiveParsing {
  LiveParsing(std::string host_name, std::vector<std::string> log_roots);
  // Parses for these rules (null: none) from now on.
  void use(const rules::Ruleset* rules, const Zone& zone);

  std::string host;
  std::vector<std::string> roots;
  logs::Placement placement;
  std::unique_ptr<logs::LineParser> parser;
  logs::LogBatch batch;
  size_t dump_bytes = 0;  // that are held until their dumps are whole
};

// Who takes what the sources of a job say: an engine, or what sends its inputs to one.
class LiveSink {
 public:
  virtual ~LiveSink() = default;
  // As Engine::step.
  virtual std::vector<core::Effect> step(core::Input& input, TimeNs now) = 0;
};

class EngineSink : public LiveSink {
 public:
  explicit EngineSink(core::Engine& engine) : engine_(engine) {}
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override {
    return engine_.step({&input, 1}, now);
  }

 private:
  core::Engine& engine_;
};

// The sources of one job, on their way to its engine.
class LiveSources {
 public:
  LiveSources(LiveSink& sink, LiveParsing& parsing)
      : sink_(sink), parsing_(parsing), dumps_(parsing.dump_bytes) {}

  void take_file(const LiveStream& stream, const Piece& piece, TimeNs now);
  // Takes the ends of files that are quiet for a second: records that wait for their last line, and a last
  // line with an error but without a newline. `cut`: files whose last line was taken without a newline.
  struct SettledFiles {
    bool news = false;
    std::vector<StreamId> cut;
  };
  SettledFiles settle_files(TimeNs now);
  // Whether a dump became whole, or one was given up; the same of settle_dumps(), for what time alone tells.
  bool take_dump(const LiveStream& stream, const Piece& piece, TimeNs now);
  bool settle_dumps(TimeNs now);
  bool dump_pending(StreamId stream) const { return dumps_.pending(stream); }
  void take_trace(const LiveStream& stream, TraceBatch& batch, TimeNs now);
  void take_kernel(const LiveStream& stream, std::span<const KernelLine> lines, TimeNs now);
  // Whole records. A ring ends with its process.
  void take_ring(const LiveStream& stream, const Piece& piece, TimeNs now);
  // What is missing from a source.
  void take_gap(const LiveStream& stream, const Piece& piece, TimeNs now);
  // Lines that were not understood, as problems of the report, at their place.
  void tell_broken(Report& report) const;
  // What comes ready for the engine from elsewhere: a source's number here (nothing: there are too many),
  // and inputs.
  std::optional<SourceId> open_other(SourceInfo info, TimeNs now);
  void give(core::Input input, TimeNs now) { step(std::move(input), now); }
  // The unfinished lines are lines.
  void end(TimeNs now);
  // Kinds of lines that were not understood, since the last call: each once, as a problem.
  std::vector<Problem> take_broken();
  // The number of a stream's lines in the engine.
  std::optional<SourceId> source_of(StreamId stream) const;

  size_t size() const { return next_; }
  uint64_t refused() const { return refused_; }  // bytes beyond limits::kLiveSources
  std::vector<Finding> take_findings() { return std::exchange(findings_, {}); }

 private:
  struct Source {
    SourceInfo info;
    logs::LineFeed feed;
    std::optional<std::string> guessed;  // the host by its file's name, where others may yet prove it
    TimeNs last_ns = kNoTime;            // when the file's last bytes came
    uint64_t end = 0;                    // end offset of these bytes
    bool unsettled = false;              // bytes came since settle_files()
    bool trouble = false;                // these bytes hold an exception or a list of failures
  };
  enum class Part : uint8_t { kLines, kEvents };

  Source* open(const LiveStream& stream, Part part, TimeNs now);
  std::string_view below_root(const std::string& path) const;
  bool give_dumps(TimeNs now);
  void place(const std::string& path, Source& source);
  void prove_guess(const std::string& guessed);
  void step(core::Input input, TimeNs now);
  bool ends_in_trouble(const Source& source);
  logs::LineFeed::Take taker(Source& source, TimeNs now);

  LiveSink& sink_;
  LiveParsing& parsing_;
  LiveDumps dumps_;
  std::map<std::pair<StreamId, Part>, Source> sources_;
  std::map<StreamId, uint32_t> ring_ranks_;  // of rings that go on
  SourceId next_ = 0;
  std::map<std::string, std::set<std::string>> guesses_;  // by stem, names
  std::vector<Finding> findings_;
  std::map<std::string, BrokenLines> broken_;                  // by the source's path
  std::set<std::pair<std::string, std::string>> broken_told_;  // by take_broken(): path, reason
  size_t gaps_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace culprit::app
