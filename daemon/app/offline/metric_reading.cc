#include "app/offline/metric_reading.h"

#include <algorithm>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <tuple>

#include "app/jobs/trace_batch.h"
#include "app/offline/open_files.h"
#include "base/limits.h"
#include "ingest/text_reader.h"

namespace culprit::app {
namespace {

// Limits of text in memory: for all open files together, and at least a few lines of each.
constexpr size_t kTextBytes = 128 << 20, kTextBytesLeast = 16 << 10;
// Lines read at a time if there is only one file.
constexpr size_t kLinesAtOnce = 256;

struct MetricInput {
  MetricInput(const LogFile& f, ingest::StreamReader r) : file(&f), reader(std::move(r)) {}
  const LogFile* file;
  ingest::StreamReader reader;
  std::optional<ingest::ChunkBuffer> chunk;
  size_t at = 0;  // position in the chunk
  bool ended = false;
  TraceBatch pending;  // read, not yet fed to the engine
  std::optional<int64_t> step;
  BrokenLines broken;
  uint64_t bytes = 0, lines = 0, reported = 0;  // `reported`: bytes already reported as progress
  uint64_t given_bytes = 0, given_lines = 0;    // fed as log lines
  std::optional<logs::LineFeed> log_feed, event_feed;
};

// Order of reading: the file with the lowest step first. A step number that jumps back counts as one step
// forward, since all ranks jump.
struct Turn {
  int64_t place = 0;
  uint64_t lines = 0;
  size_t file = 0;
  bool operator<(const Turn& o) const {
    return std::tie(place, lines, file) < std::tie(o.place, o.lines, o.file);
  }
};

class MetricReader {
 public:
  MetricReader(const std::vector<LogFile>& files, const MetricReading& options, core::Engine& engine,
               ReadProgress& progress)
      : files_(files),
        options_(options),
        engine_(engine),
        progress_(progress),
        parser_(options.parse, engine.make_scanner()),
        readings_(files.size()),
        next_source_(options.sources) {
    open_max_ = std::min(kOpen, descriptors_for(std::min(kOpen, files.size())));
    const size_t open = std::max<size_t>(1, std::min(open_max_, files.size()));
    text_bytes_ = std::clamp(kTextBytes / open, kTextBytesLeast, limits::kChunkBytes);
  }

  MetricsRead run() {
    while (!progress_.stop) {
      while (next_file_ < files_.size() && has_room(files_[next_file_].file)) open();
      if (turns_.empty()) break;
      const Turn turn = turns_.extract(turns_.begin()).value();
      go_on(turn);
    }
    for (size_t i = 0; i < readings_.size(); ++i)
      if (readings_[i]) close(i);  // stopped early
    return std::move(out_);
  }

 private:
  bool has_room(const ingest::SourceFile& file) const {
    if (file.compression != ingest::Compression::kNone && compressed_ >= kOpenCompressed) return false;
    return turns_.size() < open_max_;
  }

  void open() {
    const size_t index = next_file_++;
    const LogFile& file = files_[index];
    auto reader = ingest::StreamReader::open(file.file, {text_bytes_, limits::kLineBytes});
    if (!reader) {
      std::string what = reader.error().text;
      if (what.starts_with(file.file.path + ": ")) what = what.substr(file.file.path.size() + 2);
      out_.problems.push_back({file.file.path, std::nullopt, std::move(what)});
      return;
    }
    readings_[index] = std::make_unique<MetricInput>(file, std::move(*reader));
    compressed_ += file.file.compression != ingest::Compression::kNone;
    go_on({0, 0, index});
  }

  void go_on(const Turn& turn) {
    MetricInput& reading = *readings_[turn.file];
    try {
      feed(reading);
      read(reading, turn);
    } catch (const std::bad_alloc&) {
      out_.problems.push_back(
          {reading.file->file.path, std::nullopt, "out of memory: could not be read to its end"});
      close(turn.file);
    }
  }

  void close(size_t index) {
    MetricInput& r = *readings_[index];
    const std::string& path = r.file->file.path;
    if (r.reader.problem()) out_.problems.push_back(*r.reader.problem());
    for (Problem& problem : r.broken.problems(path)) out_.problems.push_back(std::move(problem));
    for (std::optional<logs::LineFeed>* feed : {&r.log_feed, &r.event_feed})
      if (*feed) (*feed)->end([&](const TextChunk& chunk) { parse(chunk, r.file->info); });
    step(core::NonLogRead{r.bytes - std::min(r.bytes, r.given_bytes),
                          r.lines - std::min(r.lines, r.given_lines)});
    compressed_ -= r.file->file.compression != ingest::Compression::kNone;
    readings_[index] = nullptr;
  }

  // Reads up to the next valid line; with only one file, several lines.
  void read(MetricInput& r, Turn turn) {
    const size_t wanted = files_.size() == 1 ? kLinesAtOnce : 1;
    r.pending = {};
    // Checked per line: lines of other jobs in a large file must not delay a stop.
    while (r.pending.understood < wanted && !progress_.stop && next_line(r)) {
    }
    r.broken.add(r.pending.broken);
    progress_.bytes_done += r.reader.consumed() - r.reported;
    r.reported = r.reader.consumed();
    if (r.pending.understood == 0) return close(turn.file);
    if (!r.pending.beats.empty()) {
      const int64_t now = r.pending.beats.front().step;
      turn.place += !r.step ? now : now > *r.step ? now - *r.step : now < *r.step ? 1 : 0;
      turn.place = std::min(turn.place, limits::kStepSumMax);
      r.step = r.pending.beats.back().step;
    }
    turn.lines = r.lines;
    turns_.insert(turn);
  }

  bool next_line(MetricInput& r) {
    while (!r.chunk || r.at >= r.chunk->bytes.size()) {
      if (r.ended) return false;
      r.chunk = r.reader.next(r.chunk ? std::move(*r.chunk) : ingest::ChunkBuffer{});
      r.at = 0;
      if (!r.chunk) return r.ended = true, false;
      r.bytes += r.chunk->range_bytes;
    }
    const std::string_view rest = r.chunk->bytes.substr(r.at);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    // A host from the user's own pattern overrides the host in a line.
    const SourceInfo& info = r.file->info;
    read_trace_line(r.pending, line,
                    {r.chunk->offset + r.at, !(info.host_wins && info.host),
                     [this](const ingest::TraceLine& l) { return takes(l); }});
    r.at += line.size() + 1;
    ++r.lines;
    return true;
  }

  bool takes(const ingest::TraceLine& line) {
    const logs::ParseOptions& wanted = options_.parse;
    if (line.time_ns != kNoTime && ((wanted.since_ns != kNoTime && line.time_ns < wanted.since_ns) ||
                                    (wanted.until_ns != kNoTime && line.time_ns > wanted.until_ns)))
      return false;
    if (line.job.empty()) {
      out_.nameless += !options_.takes_nameless;
      return options_.takes_nameless;
    }
    if (options_.job.empty() || line.job == options_.job) return ++out_.taken, true;
    if (out_.other_jobs.size() < kOtherJobs) out_.other_jobs.emplace(line.job);
    return false;
  }

  void feed(MetricInput& r) {
    TraceBatch& batch = r.pending;
    const SourceInfo& info = r.file->info;
    const TraceLogFeeder taker{parser_, parsed_, [this](core::Input input) { step(std::move(input)); }};
    const auto take = [&](std::optional<logs::LineFeed>& feed, SourceKind kind, TraceLog& lines) {
      if (lines.text.empty()) return;
      SourceInfo source = info;
      source.kind = kind;
      if (!feed) {
        step(core::SourceOpened{source});
        feed.emplace(next_source_++);
      }
      r.given_bytes += lines.bytes;
      r.given_lines += lines.times.size();
      taker.feed(*feed, std::move(source), lines);
    };
    for (TraceLog& log : batch.logs) take(r.log_feed, SourceKind::kLog, log);
    take(r.event_feed, SourceKind::kEvent, batch.events);
    for (detect::PhaseSeen& seen : batch.phases) step(std::move(seen));
    for (core::FindingInput& input : batch.findings) {
      if (input.finding.host.empty() && info.host) input.finding.host = *info.host;
      input.file = info.file;
      step(std::move(input));
    }
    for (TraceBatch::RasLine& line : batch.ras) {
      line.input.file = info.file;
      step(std::move(line.input));
    }
    for (StackDump& dump : batch.stacks) {
      if (!dump.host) dump.host = info.host;
      dump.file = info.file;
      step(core::StackInput{std::move(dump)});
    }
    for (StackRefusal& refusal : batch.no_stacks) step(std::move(refusal));
    if (info.host) batch.loop.set_host(*info.host);
    batch.loop.each([&](std::span<const MetricRow> rows) { step(core::MetricInput{rows}); },
                    [&](const LoopEvent& event) { step(core::EventInput{event}); });
  }

  void parse(const TextChunk& chunk, const SourceInfo& info) {
    parser_.parse(chunk, info, parsed_);
    step(core::LogInput{&parsed_});
  }
  void step(core::Input input) { engine_.step({&input, 1}, kNoTime); }

  const std::vector<LogFile>& files_;
  const MetricReading& options_;
  core::Engine& engine_;
  ReadProgress& progress_;
  logs::LineParser parser_;
  logs::LogBatch parsed_;
  std::vector<std::unique_ptr<MetricInput>> readings_;  // by file, null if not open
  std::set<Turn> turns_;                                // turns of the open files
  size_t next_file_ = 0, open_max_ = 0, compressed_ = 0, text_bytes_ = 0;
  SourceId next_source_;
  MetricsRead out_;
};

}  // namespace

std::set<std::string> jobs_named(const LogFile& file) {
  std::set<std::string> out;
  constexpr size_t kBytes = 16 << 10;
  std::optional<ingest::ChunkBuffer> chunk;
  std::string_view text = file.file.head;
  if (!file.file.stream) {
    auto reader = ingest::StreamReader::open(file.file, {kBytes, kBytes});
    if (reader) chunk = reader->next();
    if (chunk) text = chunk->bytes;
  }
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto read = ingest::parse_trace_line(line);
    if (read && !read->job.empty()) out.emplace(read->job);
  }
  return out;
}

MetricsRead read_metrics(const std::vector<LogFile>& files, const MetricReading& reading,
                         core::Engine& engine, ReadProgress& progress) {
  return files.empty() ? MetricsRead() : MetricReader(files, reading, engine, progress).run();
}

}  // namespace culprit::app
