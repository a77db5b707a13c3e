#include "app/jobs/job_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "app/jobs/job_owner.h"
#include "app/jobs/job_recognition.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/detect/flight/condense.h"
#include "core/logs/header.h"
#include "core/rules/block_scanner.h"
#include "ingest/live/journal.h"
#include "ingest/live/kernel.h"

namespace culprit::app {
namespace {

// Limit of sources of a job over all hosts: 8,192 hosts with 8 ranks, and each host's kernel log.
constexpr SourceId kRemoteSources = 4 * limits::kLiveSources;

constexpr size_t kGapsReported = 100;                // gaps reported per job; the store counts all of them
constexpr uint64_t kTimeMostUs = uint64_t{1} << 52;  // of an entry of the journal: the year 2112
constexpr const char* kTooLong = "a line that is too long";

// The C library and Python flush full buffers in the middle of a line. A line cut at such a boundary
// continues with the next write.
constexpr uint64_t kBufferBytes = 4096;

// After this time without a queue, the second parser and its thread are freed.
constexpr TimeNs kAheadRetainedNs = 5 * kNsPerSecond;

// Tolerance of a file's future times: its clock may be ahead of the daemon's.
constexpr TimeNs kClocksApart = 24 * 3600 * kNsPerSecond;

bool tells_failure(const logs::LogBatch& batch) {
  return std::any_of(batch.forms.begin(), batch.forms.end(), [](const logs::FormSeen& form) {
    const logs::ShapeKind kind = form.shape.kind;
    return kind == logs::ShapeKind::kTraceback || kind == logs::ShapeKind::kException ||
           kind == logs::ShapeKind::kRootCause;
  });
}

}  // namespace

TraceBatch read_trace(LiveStream& stream, std::string_view bytes, uint64_t offset, bool trusted) {
  TraceBatch out;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    // The socket rejects longer lines, so a longer line is broken.
    const bool fits = stream.rest.size() + part.size() <= limits::kLineBytes;
    if (end == std::string_view::npos) {
      if (fits)
        stream.rest += part;
      else
        stream.rest.resize(limits::kLineBytes + 1);
      return out;
    }
    const uint64_t begin = offset - std::min<uint64_t>(offset, stream.rest.size());
    if (!fits)
      out.broken.add_line(kTooLong, begin, part);
    else if (stream.rest.empty())
      read_trace_line(out, part, {begin, trusted});
    else
      read_trace_line(out, stream.rest += part, {begin, trusted});
    stream.rest.clear();
    bytes.remove_prefix(end + 1);
    offset += end + 1;
  }
  return out;
}

namespace {

// Identifies the state that a finding raises or clears; empty: none.
std::string state_of(const PluginFinding& f) {
  if (f.state == PluginState::kHappened) return {};
  const auto number = [](const std::optional<uint32_t>& n) { return n ? static_cast<int64_t>(*n) : -1; };
  return fmt::format("{} {} {} {} {} {} {} {}", f.plugin, f.id, f.host, f.job, f.peer, f.part, number(f.rank),
                     number(f.device));
}

std::vector<HostLine> read_findings(std::string_view bytes, uint64_t offset) {
  std::vector<HostLine> out;
  // Pieces contain complete lines.
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size() - 1) + 1);
    HostLine& read = out.emplace_back(kNoTime, std::string(line), offset);
    const auto parsed = ingest::parse_trace_line(trim(line));
    const bool of_moment =
        parsed && (parsed->kind == ingest::TraceKind::kRas || parsed->kind == ingest::TraceKind::kStack);
    read.passing = of_moment;
    if (parsed && parsed->finding) {
      read.time_ns = parsed->time_ns;
      read.state = state_of(*parsed->finding);
      read.clears = parsed->finding->state == PluginState::kCleared;
      if (parsed->finding->id == kPluginForgot) read.forgets = parsed->finding->plugin;
    }
    offset += line.size();
    bytes.remove_prefix(line.size());
  }
  return out;
}

// The lines of the kernel, and of services that run jobs or watch the machine. What other services, users and
// containers write is evidence, and no sign: their lines quote what strangers sent them.
std::vector<HostLine> read_journal(std::string_view bytes) {
  std::vector<HostLine> out;
  ingest::JournalParser parser;
  // Pieces contain complete lines.
  for (size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    const auto entry = parser.parse(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
    if (!entry) continue;
    const bool service = entry->writer == ingest::JournalWriter::kService;
    if (service && logs::service_of(ingest::journal_tag(*entry)) != logs::Service::kNode) continue;
    const TimeNs at = static_cast<TimeNs>(std::min<uint64_t>(entry->realtime_us, kTimeMostUs)) * kNsPerUs;
    std::string text = ingest::journal_text(*entry);
    if (text.empty()) continue;
    out.push_back({at, std::move(text)});
    out.back().service = service;
  }
  return out;
}

}  // namespace

std::vector<HostLine> read_host_lines(LiveStream& stream, std::string_view bytes, uint64_t offset) {
  if (stream.info.kind == OriginKind::kPlugin) return read_findings(bytes, offset);
  if (stream.info.kind == OriginKind::kJournal) return read_journal(bytes);
  std::vector<HostLine> out;
  // Pieces contain complete records.
  while (!bytes.empty()) {
    const std::string_view record = ingest::first_kernel_record(bytes);
    if (record.empty()) break;
    bytes.remove_prefix(record.size());
    const auto parsed = ingest::parse_kernel_record(record);
    std::string text = ingest::kernel_text(record, stream.info.boot_ns);
    if (!parsed || text.empty()) continue;
    const TimeNs since = static_cast<TimeNs>(parsed->since_boot_us) * kNsPerUs;
    out.push_back({stream.info.boot_ns == kNoTime ? kNoTime : stream.info.boot_ns + since, std::move(text)});
  }
  return out;
}

const std::string& job_of(const LiveStream& stream) {
  static const std::string kDefault = kDefaultJob;
  if (!stream.info.job.empty()) return stream.info.job;
  return stream.dump_job.empty() ? kDefault : stream.dump_job;
}

LiveParsing::LiveParsing(std::string host_name, std::vector<std::string> log_roots,
                         std::optional<uint32_t> daemon_uid)
    : host(std::move(host_name)),
      roots(std::move(log_roots)),
      uid(daemon_uid),
      placement(std::move(*logs::Placement::create({}))) {}

void LiveParsing::use(const rules::Ruleset* rules, const Zone& zone) {
  logs::ParseOptions options;
  options.zone = zone;
  make_parser = [rules, options] {
    auto scanner = rules ? std::make_unique<rules::BlockScanner>(*rules) : nullptr;
    return std::make_unique<logs::LineParser>(options, std::move(scanner));
  };
  ahead.release();
  ahead_of = nullptr;
  parser = make_parser();
}

void LiveParsing::parse(const TextChunk& chunk, const SourceInfo& source) {
  if (!ahead.take(chunk, source, *parser, batch)) parser->parse(chunk, source, batch);
}

void LiveParsing::settle(TimeNs now) {
  if (ahead_ns == kNoTime || (now >= ahead_ns && now - ahead_ns < kAheadRetainedNs)) return;
  ahead_ns = kNoTime;
  ahead.release();
  ahead_of = nullptr;
}

bool JobInputs::ingest(const LiveStream& stream, const Piece& piece, TimeNs now) {
  if (piece.gap) ingest_gap(stream, piece, now);
  if (stream.info.kind == OriginKind::kFile) ingest_file(stream, piece, now);
  if (stream.info.kind == OriginKind::kRing) ingest_ring(stream, piece, now);
  return stream.info.kind == OriginKind::kDump && ingest_dump(stream, piece, now);
}

void JobInputs::step(core::Input input, TimeNs now) {
  for (core::Effect& effect : sink_.step(input, now))
    findings_.push_back(std::move(std::get<Finding>(effect)));
}

// Records that a source sent data other than log text.
void JobInputs::hear(core::ReceivedTraceCount::Of of, const LiveStream& stream, TimeNs now) {
  const auto user = user_behind(stream.info, parsing_.uid);
  if (received_.emplace(of, user).second) step(core::ReceivedTraceCount{of, user}, now);
}

// The path relative to the watched folder, since folders above it do not name hosts of this job.
std::string_view JobInputs::below_root(const std::string& path) const {
  std::string_view below = path;
  for (const std::string& root : parsing_.roots)
    if (path.size() > root.size() && path.starts_with(root) && path.size() - root.size() < below.size())
      below = std::string_view(path).substr(root.size());
  while (below.starts_with('/')) below.remove_prefix(1);
  return below;
}

void JobInputs::place(const std::string& path, JobSource& source) {
  // A pod is no host, and several pods of a job may be on one.
  if (!parsing_.pods.empty() && path.starts_with(parsing_.pods)) return;
  logs::PathOwner owner = parsing_.placement.owner(below_root(path));
  if (owner.guessed) std::swap(source.guessed, owner.host);
  source.info.host = owner.host ? std::move(owner.host) : std::optional(parsing_.host);
  source.info.rank = owner.rank;
  source.info.local = owner.local;
}

// A name such as "gpu7" counts as a host once the job has a second one of the same form.
void JobInputs::prove_guess(const std::string& guessed) {
  const std::string stem = logs::host_stem(guessed);
  std::set<std::string>& names = guesses_[stem];
  if (!names.insert(guessed).second || names.size() != 2) return;
  for (auto& [key, source] : sources_)
    if (source.guessed && logs::host_stem(*source.guessed) == stem) source.info.host = source.guessed;
}

JobInputs::JobSource* JobInputs::open(const LiveStream& stream, Part part, TimeNs now) {
  const auto known = sources_.find({stream.info.id, part});
  if (known != sources_.end()) {
    known->second.info.modified_ns = now + kClocksApart;
    return &known->second;
  }
  if (sources_.size() >= limits::kLiveSources) return nullptr;
  JobSource source;
  source.feed = logs::LineFeed(next_++);
  source.info.file = stream.info.path;
  source.info.host = parsing_.host;
  source.info.modified_ns = now + kClocksApart;
  source.info.lines_before = stream.lines_before;
  source.info.user = user_behind(stream.info, parsing_.uid);
  const bool of_kernel = stream.info.kind == OriginKind::kKernel || stream.info.kind == OriginKind::kJournal;
  if (of_kernel && part != Part::kServices) source.info.kind = SourceKind::kKernel;
  if (part == Part::kEvents) source.info.kind = SourceKind::kEvent;
  if (stream.info.kind == OriginKind::kFile) place(stream.info.path, source);
  const std::optional<std::string> guessed = source.guessed;
  if (guessed && guesses_[logs::host_stem(*guessed)].size() >= 2) source.info.host = guessed;
  step(core::SourceOpened{source.info}, now);
  JobSource& out = sources_.emplace(std::pair(stream.info.id, part), std::move(source)).first->second;
  if (guessed) prove_guess(*guessed);
  return &out;
}

logs::LineFeed::Take JobInputs::taker(JobSource& source, TimeNs now) {
  return [this, &source, now](const TextChunk& chunk) {
    parsing_.parse(chunk, source.info);
    source.trouble = source.trouble || tells_failure(parsing_.batch);
    step(core::LogInput{&parsing_.batch}, now);
  };
}

void JobInputs::ingest_file(const LiveStream& stream, const Piece& piece, TimeNs now) {
  JobSource* source = open(stream, Part::kLines, now);
  if (!source) {
    refused_ += piece.bytes.size();
    return;
  }
  const auto take = taker(*source, now);
  const size_t before = source->feed.waiting();
  if (piece.gap) source->feed.break_line(take);
  source->feed.feed(piece.bytes, take);
  if (piece.ends) source->feed.end(take);
  unfinished_bytes_ += source->feed.waiting() - before;
  source->last_ns = now;
  source->end = piece.offset + piece.bytes.size();
  source->unsettled = !piece.bytes.empty() && !piece.ends;
}

// Whether the last line has no newline and reports an error. Such a line is ingested without waiting for its
// end.
bool JobInputs::ends_in_trouble(const JobSource& source) {
  const std::string_view rest = source.feed.rest();
  if (rest.empty() || source.end % kBufferBytes == 0) return false;
  logs::LogBatch& batch = parsing_.batch;
  parsing_.parser->parse({source.feed.source(), 0, 0, rest, rest.size(), true}, source.info, batch);
  return tells_failure(batch) ||
         std::any_of(batch.hits.begin(), batch.hits.end(),
                     [](const logs::LineHit& hit) { return hit.known > logs::Meaning::kNote; });
}

JobInputs::SettledFiles JobInputs::settle_files(TimeNs now) {
  SettledFiles out;
  for (auto& [key, source] : sources_) {
    if (!source.unsettled || (now >= source.last_ns && now - source.last_ns < kQuiet)) continue;
    source.unsettled = false;
    const bool cut = ends_in_trouble(source);
    if (!cut && !source.trouble) continue;
    const size_t before = source.feed.waiting();
    source.feed.pause(cut, taker(source, now));
    unfinished_bytes_ += source.feed.waiting() - before;
    source.trouble = false;
    out.news = true;
    if (cut) out.cut.push_back(key.first);
  }
  return out;
}

bool JobInputs::ingest_dump(const LiveStream& stream, const Piece& piece, TimeNs now) {
  hear(core::ReceivedTraceCount::Of::kDumps, stream, now);
  dumps_.ingest(stream.info, piece, now);
  return feed_dumps(now);
}

bool JobInputs::settle_dumps(TimeNs now) {
  bool any = false;
  while (dumps_.settle(now)) any = feed_dumps(now) || any;
  return feed_dumps(now) || any;
}

bool JobInputs::feed_dumps(TimeNs now) {
  std::vector<FlightDump> whole = dumps_.take_whole();
  std::vector<Problem> problems = dumps_.take_problems();
  for (FlightDump& dump : whole) {
    logs::PathOwner owner = parsing_.placement.owner(below_root(dump.file));
    if (!dump.host) {
      dump.host_guessed = !owner.host || owner.guessed;
      dump.host = dump.host_guessed ? std::optional(parsing_.host) : std::move(owner.host);
    }
    // Condensed as for a collector, so that results are the same with and without a collector.
    step(core::FlightInput{flight::condense(dump)}, now);
  }
  for (Problem& problem : problems) step(core::ProblemSeen{std::move(problem)}, now);
  return !whole.empty() || !problems.empty();
}

void JobInputs::ingest_gap(const LiveStream& stream, const Piece& piece, TimeNs now) {
  if (++gaps_ > kGapsReported) return;
  const std::string what = piece.gap->bytes > 0     ? format_bytes(piece.gap->bytes)
                           : piece.gap->records > 0 ? counted(piece.gap->records, "record")
                                                    : std::string("an unknown part");
  step(core::ProblemSeen{{stream.info.path, piece.offset,
                          fmt::format("{} of it is missing here: {}", what, piece.gap->reason)}},
       now);
}

void JobInputs::report_broken(Report& report) const {
  for (const auto& [path, broken] : broken_)
    for (Problem& problem : broken.problems(path)) {
      const auto at = std::upper_bound(report.problems.begin(), report.problems.end(), path,
                                       [](const std::string& p, const Problem& q) { return p < q.file; });
      report.problems.insert(at, std::move(problem));
    }
}

void JobInputs::ingest_trace(const LiveStream& stream, TraceBatch& batch, TimeNs now) {
  if (batch.broken.count > 0) broken_[stream.info.path].add(batch.broken);
  const TraceLogFeeder taker{*parsing_.parser, parsing_.batch,
                             [&](core::Input input) { step(std::move(input), now); }};
  const auto take = [&](Part part, TraceLog& lines) {
    if (lines.text.empty()) return;
    if (JobSource* source = open(stream, part, now))
      taker.feed(source->feed, source->info, lines);
    else
      refused_ += lines.bytes;
  };
  for (TraceLog& log : batch.logs) take(Part::kLines, log);
  take(Part::kEvents, batch.events);
  for (detect::PhaseSeen& seen : batch.phases) step(std::move(seen), now);
  for (const detect::ProgressSeen& seen : batch.beats) step(seen, now);
  batch.loop.set_host(parsing_.host);
  if (!batch.loop.empty()) hear(core::ReceivedTraceCount::Of::kLoop, stream, now);
  batch.loop.each([&](std::span<const MetricRow> rows) { step(core::MetricInput{rows}, now); },
                  [&](const LoopEvent& event) { step(core::EventInput{event}, now); });
  feed_findings(stream, batch, now);
  feed_stacks(stream, batch, now);
  if (batch.loop_lines > 0) step(core::NonLogRead{batch.loop_bytes, batch.loop_lines}, now);
}

// Passes the same stacks to this engine as to a collector's: a dump without a host belongs to this host.
void JobInputs::feed_stacks(const LiveStream& stream, TraceBatch& batch, TimeNs now) {
  if (batch.stack_lines == 0) return;
  hear(core::ReceivedTraceCount::Of::kStacks, stream, now);
  for (StackDump& dump : batch.stacks) {
    if (!dump.host) dump.host = parsing_.host;
    if (dump.time_ns == kNoTime) dump.time_ns = now;
    dump.file = stream.info.path;
    step(core::StackInput{std::move(dump)}, now);
  }
  for (StackRefusal& refusal : batch.no_stacks) step(std::move(refusal), now);
  step(core::NonLogRead{batch.stack_bytes, batch.stack_lines}, now);
}

void JobInputs::ingest_host_lines(const LiveStream& stream, std::span<const HostLine> lines, TimeNs now) {
  if (lines.empty()) return;
  if (stream.info.kind == OriginKind::kPlugin) return ingest_findings(stream, lines, now);
  std::string text, services;
  for (const HostLine& line : lines) (line.service ? services : text) += line.text;
  const auto feed = [&](Part part, const std::string& what) {
    if (what.empty()) return;
    if (JobSource* source = open(stream, part, now)) source->feed.feed(what, taker(*source, now));
  };
  feed(Part::kLines, text);
  feed(Part::kServices, services);
}

void JobInputs::ingest_findings(const LiveStream& stream, std::span<const HostLine> lines, TimeNs now) {
  TraceBatch batch;
  const auto takes = [&](const ingest::TraceLine& line) { return line.job.empty() || line.job == job_; };
  for (const HostLine& line : lines) read_trace_line(batch, trim(line.text), {line.offset, true, takes});
  feed_findings(stream, batch, now);
  feed_ras(stream, batch, now);
  feed_stacks(stream, batch, now);
}

void JobInputs::feed_ras(const LiveStream& stream, TraceBatch& batch, TimeNs now) {
  for (TraceBatch::RasLine& line : batch.ras) {
    if (line.job != job_) continue;
    if (line.input.state.host.empty()) line.input.state.host = parsing_.host;
    if (line.input.state.at_ns == kNoTime) line.input.state.at_ns = now;
    line.input.file = stream.info.path;
    step(std::move(line.input), now);
  }
}

// A finding without a host is about this host; one with a job is not about other jobs.
void JobInputs::feed_findings(const LiveStream& stream, TraceBatch& batch, TimeNs now) {
  for (core::FindingInput& input : batch.findings) {
    const bool of_host = stream.info.job.empty();
    if (of_host && !input.finding.job.empty() && input.finding.job != job_) continue;
    if (input.finding.host.empty()) input.finding.host = parsing_.host;
    if (input.finding.time_ns == kNoTime) input.finding.time_ns = now;
    input.file = stream.info.path;
    input.user = user_behind(stream.info, parsing_.uid);
    input.agent = parsing_.host;
    step(std::move(input), now);
  }
}

void JobInputs::ingest_ring(const LiveStream& stream, const Piece& piece, TimeNs now) {
  std::vector<CommRecord> records(piece.bytes.size() / kCommRecordBytes);
  const auto rank = ring_ranks_.find(stream.info.id);
  if (piece.ends && rank != ring_ranks_.end()) {
    // After a gap the time of the process's end is unknown, since the daemon was not running.
    if (!piece.gap) step(detect::RankExited{rank->second, parsing_.host, stream.info.pid}, now);
    ring_ranks_.erase(rank);
  }
  if (records.empty()) return;
  hear(core::ReceivedTraceCount::Of::kComm, stream, now);
  std::memcpy(records.data(), piece.bytes.data(), records.size() * kCommRecordBytes);
  const bool sound = comm_record_fault(records.back()).empty();
  if (sound && !piece.ends && ring_ranks_.size() < limits::kLiveSources)
    ring_ranks_[stream.info.id] = records.back().rank;
  step(core::CommInput{parsing_.host, records}, now);
  step(core::NonLogRead{piece.bytes.size(), 0}, now);
}

std::optional<SourceId> JobInputs::open_other(SourceInfo info, TimeNs now) {
  if (next_ >= kRemoteSources) return std::nullopt;
  step(core::SourceOpened{std::move(info)}, now);
  return next_++;
}

void JobInputs::end(TimeNs now) {
  while (dumps_.end()) feed_dumps(now);
  feed_dumps(now);
  for (auto& [key, source] : sources_) source.feed.end(taker(source, now));
}

std::vector<Problem> JobInputs::drain_broken() {
  std::vector<Problem> out;
  for (const auto& [path, broken] : broken_)
    for (const auto& [reason, kind] : broken.kinds)
      if (broken_reported_.emplace(path, reason).second)
        out.push_back({path, kind.offset,
                       fmt::format("lines are not understood: {}", BrokenLines::shown(reason, kind))});
  return out;
}

std::optional<SourceInfo> JobInputs::source_for(StreamId stream, TimeNs at, bool joins) const {
  const auto source = sources_.find({stream, Part::kLines});
  if (source == sources_.end() || (joins && source->second.feed.waiting() > 0)) return std::nullopt;
  SourceInfo out = source->second.info;
  out.modified_ns = at + kClocksApart;
  return out;
}

std::optional<SourceId> JobInputs::source_of(StreamId stream) const {
  const auto source = sources_.find({stream, Part::kLines});
  return source == sources_.end() ? std::nullopt : std::optional(source->second.feed.source());
}

}  // namespace culprit::app
