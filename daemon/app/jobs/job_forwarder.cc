#include "app/jobs/job_forwarder.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "app/jobs/job_inputs.h"
#include "app/jobs/job_router.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/thread_owner.h"
#include "core/wire/inputs.h"

namespace culprit::app {
namespace {

constexpr TimeNs kAskEvery = kNsPerSecond;
// Interval at which the state of processes of a silent job is reported.
constexpr TimeNs kAliveEvery = 30 * kNsPerSecond;
// Time after which a job is forgotten if its processes are unknown; as in LiveJobs.
constexpr TimeNs kForgotten = 6 * 3600 * kNsPerSecond;
// Maximum overhead of a record in addition to its bytes and names.
constexpr size_t kRecordBytes = 128;
// Limit of mark bytes between two flushes. A block has at most some 3 MiB and shares a frame with the marks
// of its sources. A frame holds 6 MiB; up to JobForwarderOptions::part_bytes of it are in use already.
constexpr size_t kMarkBytes = 2 << 20;
constexpr size_t kFrameBytes = (6 << 20) - (64 << 10);
// Stream number of the mark of the whole evidence.
constexpr uint64_t kAllStreams = UINT64_MAX;
// Flags in a mark's place: the gap or the end at its offset is already forwarded.
constexpr uint64_t kGapReported = 1, kEndReported = 2;
// Flag: the mark says how much of a shared source (the kernel log) is in the blocks of one job.
constexpr uint64_t kOfOneJob = 4;

// A session's writer and the state of its sources. Sources continue in a new session: each is declared again
// with a new number at its next input. All declarations at once would exceed a frame, and most sources have
// ended.
class WriterSink : public LiveSink {
 public:
  explicit WriterSink(std::optional<wire::InputWriter>& writer) : writer_(writer) {}
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override {
    if (const auto* opened = std::get_if<core::SourceOpened>(&input)) {
      sources_.push_back({opened->info, std::nullopt});
      declare(sources_.back(), now);
    } else if (const auto* lines = std::get_if<core::LogInput>(&input)) {
      write_lines(*lines->batch, now);
    } else {
      writer_->add(input, now);
    }
    return {};
  }
  void begin_session() {
    next_ = 0;
    for (WrittenSource& source : sources_) source.number.reset();
  }
  uint64_t dropped_lines() const { return dropped_lines_; }

 private:
  struct WrittenSource {
    SourceInfo info;                 // with the current number of lines
    std::optional<SourceId> number;  // in this session; nothing: not declared yet
  };
  void declare(WrittenSource& source, TimeNs now) {
    if (!writer_->has_room_for_source()) return;
    source.number = next_++;
    writer_->add(core::SourceOpened{source.info}, now);
  }
  void write_lines(logs::LogBatch& batch, TimeNs now) {
    CULPRIT_CHECK(batch.source < sources_.size());
    WrittenSource& source = sources_[batch.source];
    if (!source.number) declare(source, now);
    source.info.lines_before += batch.lines.size();
    if (!source.number) {
      dropped_lines_ += batch.lines.size();
      return;
    }
    CULPRIT_CHECK(*source.number < next_);
    const SourceId here = std::exchange(batch.source, *source.number);
    writer_->add(core::LogInput{&batch}, now);
    batch.source = here;
  }

  std::optional<wire::InputWriter>& writer_;
  std::vector<WrittenSource> sources_;  // by their numbers in this class
  SourceId next_ = 0;
  uint64_t dropped_lines_ = 0;
};

// Position in the kernel log up to which one job was fed.
struct KernelMark {
  uint64_t reported = 0;
  bool moved = false;  // since the last flush
  StreamId stream = kNoStream;
};

// A job and its session.
struct ForwardedJob final : RoutedJob {
  ForwardedJob(uint64_t number, LiveParsing& parsing)
      : session(number), writer(number), sink(writer), sources(sink, parsing) {}

  void ingest(const LiveStream& from, const Piece& piece, TimeNs now) override {
    note(from, piece, now);
    sources.ingest(from, piece, now);
  }
  void ingest_trace(const LiveStream& from, TraceBatch& batch, const Piece& piece, TimeNs now) override {
    note(from, piece, now);
    if (piece.gap) sources.ingest_gap(from, piece, now);
    sources.ingest_trace(from, batch, now);
    if (batch.ends) writer->ends(batch.failed, now);
  }
  void note(const LiveStream& from, const Piece& piece, TimeNs now) {
    if (shows_life(from.info, piece)) last_ns = std::max(last_ns, now);
    streams.note(from.info, piece);
  }

  uint64_t session;
  std::optional<wire::InputWriter> writer;  // always set
  WriterSink sink;
  JobInputs sources;
  StreamId stream = kNoStream;  // of the session's blocks
  uint64_t offset = 0;
  TimeNs began_ns = kNoTime;
  JobStreams streams;
  std::map<StreamId, KernelMark> kernel;
  std::vector<Piece> before;  // ends of earlier sessions, sent with the first block of this one
  TimeNs last_ns = kNoTime;   // read time of the last bytes
  TimeNs asked_ns = kNoTime, reported_ns = kNoTime;
  std::optional<bool> reported;
  bool over = false;  // the session ends with the next flush
};

// A source and its mark.
struct ForwardedStream {
  LiveStream live;
  uint64_t end = 0;               // ingested up to here
  uint64_t mark = 0;              // condensed up to here: complete lines
  uint64_t lines = 0;             // that end before the mark
  uint64_t since = 0;             // frames up to this one have nothing after the mark
  uint64_t reported_at_mark = 0;  // kGapReported, kEndReported
  uint64_t resume = 0;            // a previous process condensed everything before
  uint64_t resume_reported = 0;
  bool resumes = false;
  bool moved = false;  // since the last flush
  StreamId mark_stream = kNoStream;
};

}  // namespace

struct JobForwarder::Impl final : JobTable {
  ThreadOwner owner;
  JobForwarderOptions options;
  LiveParsing parsing;
  JobRouter router;
  JobForwarderCounts counts;
  std::unordered_map<StreamId, ForwardedStream> streams;
  std::map<std::string, std::unique_ptr<ForwardedJob>> jobs;
  KernelBacklog backlog;
  std::vector<Piece> ends;                                // of condensed streams, for the next flush
  std::unordered_map<StreamId, StreamState> known_marks;  // by evidence stream, of sources not opened yet
  StreamId all_stream = kNoStream;                        // the mark of kAllStreams
  uint64_t behind = 0;                                    // value of that mark at the start
  size_t mark_bytes = 0;                                  // of marks for the next flush
  bool hurry = false;

  explicit Impl(JobForwarderOptions o)
      : options(std::move(o)),
        parsing(options.host, options.roots),
        router(*this, options.uid, options.seen) {
    parsing.use(options.rules.get(), options.zone);
  }

  void open_stream(const StreamInfo& info, uint64_t sequence) {
    const auto [at, fresh] = streams.try_emplace(info.id);
    ForwardedStream& stream = at->second;
    stream.live.info = info;
    if (!fresh) return;
    stream.since = sequence;
    const auto known = known_marks.find(info.id);
    if (known == known_marks.end()) return;
    const MarkPlace place = MarkPlace::from(*known->second.place);
    stream.mark_stream = known->second.info.id;
    stream.resume = stream.mark = stream.end = place.offset;
    stream.lines = place.lines;
    stream.resume_reported = stream.reported_at_mark = place.flags;
    stream.resumes = true;
    known_marks.erase(known);
  }

  // Removes the part of a piece that the previous process condensed; false: nothing is left.
  bool cut(ForwardedStream& stream, Piece& piece) {
    if (!stream.resumes) return true;
    const uint64_t end = piece.offset + piece.bytes.size();
    const bool at_mark = piece.offset == stream.resume;
    if (piece.offset < stream.resume || (at_mark && (stream.resume_reported & kGapReported)))
      piece.gap.reset();
    if (end <= stream.resume) {
      if (end == stream.resume && (stream.resume_reported & kEndReported)) piece.ends = false;
      if (end < stream.resume || (!piece.gap && !piece.ends)) return false;
    }
    if (piece.offset < stream.resume) {
      piece.bytes.erase(0, stream.resume - piece.offset);
      piece.offset = stream.resume;
    }
    stream.resumes = false;
    return true;
  }

  void ingest(const Piece& given, uint64_t sequence, TimeNs now) {
    const auto known = streams.find(given.stream);
    if (known == streams.end()) {
      counts.bytes_refused += given.bytes.size();
      return;
    }
    ForwardedStream& stream = known->second;
    if (stream.resumes) {
      Piece piece = given;
      const TimeNs at = piece.time_ns == kNoTime ? now : piece.time_ns;
      if (cut(stream, piece)) ingest_new(stream, piece, sequence, at);
    } else {
      ingest_new(stream, given, sequence, given.time_ns == kNoTime ? now : given.time_ns);
    }
  }

  void ingest_new(ForwardedStream& stream, const Piece& piece, uint64_t sequence, TimeNs at) {
    if (stream.live.info.kind == OriginKind::kKernel)
      ingest_kernel(stream, piece, at);
    else
      ingest_bytes(stream, piece, at);
    advance_mark(stream, piece, sequence);
  }

  // Moves the mark to the end of the last complete line.
  void advance_mark(ForwardedStream& stream, const Piece& piece, uint64_t sequence) {
    const uint64_t before = stream.mark;
    const OriginKind kind = stream.live.info.kind;
    const bool pending = stream.mark < stream.end;
    if (!pending) stream.since = sequence;
    if (piece.gap) {
      if (pending) ++stream.lines;  // the incomplete line
      stream.mark = piece.offset;
      stream.since = sequence;
    }
    stream.end = piece.offset + piece.bytes.size();
    const size_t last = piece.bytes.rfind('\n');
    if (kind == OriginKind::kDump) {
      if (!dump_pending(stream)) stream.mark = stream.end;
    } else if (kind != OriginKind::kFile && kind != OriginKind::kSocket) {
      stream.mark = stream.end;
    } else if (last != std::string::npos) {
      stream.mark = piece.offset + last + 1;
      stream.lines += static_cast<uint64_t>(std::count(piece.bytes.begin(), piece.bytes.end(), '\n'));
      stream.since = sequence;
    }
    if (piece.ends && stream.mark < stream.end) {
      ++stream.lines;
      stream.mark = stream.end;
    }
    CULPRIT_CHECK(stream.mark >= before && stream.mark <= stream.end);
    if (stream.mark != before) stream.reported_at_mark = 0;
    if (piece.gap && stream.mark == piece.offset) stream.reported_at_mark |= kGapReported;
    if (piece.ends) stream.reported_at_mark |= kEndReported;
    stream.live.ended = piece.ends;
    if (stream.mark != before || piece.gap || piece.ends) move(stream);
  }

  // A dump is condensed as a whole.
  bool dump_pending(const ForwardedStream& stream) const {
    const auto job = jobs.find(job_of(stream.live));
    return job != jobs.end() && job->second->sources.dump_pending(stream.live.info.id);
  }

  void settle_dumps(ForwardedJob& job, TimeNs now) {
    if (!job.sources.settle_dumps(now)) return;
    for (auto& [id, stream] : streams) {
      if (stream.live.info.kind != OriginKind::kDump || stream.mark == stream.end || dump_pending(stream))
        continue;
      stream.mark = stream.end;
      stream.reported_at_mark = 0;
      move(stream);
    }
  }

  // The stream's last line was ingested without a newline.
  void mark_cut_line(StreamId id) {
    const auto known = streams.find(id);
    if (known == streams.end() || known->second.mark == known->second.end) return;
    known->second.mark = known->second.end;
    known->second.reported_at_mark = 0;
    ++known->second.lines;
    move(known->second);
  }

  void move(ForwardedStream& stream) {
    if (!std::exchange(stream.moved, true))
      mark_bytes += kRecordBytes + stream.live.info.path.size() + stream.live.info.job.size();
  }

  void ingest_bytes(ForwardedStream& stream, const Piece& piece, TimeNs at) {
    stream.live.lines_before = stream.lines;
    router.route(stream.live, piece, at);
    counts.broken_trace_lines = router.broken_trace_lines();
  }

  void refuse(LiveStream&, const Piece& piece) override { counts.bytes_refused += piece.bytes.size(); }
  bool runs(const std::string& id) const override { return jobs.contains(id); }
  std::string only_running() const override { return jobs.size() == 1 ? jobs.begin()->first : ""; }

  ForwardedJob* open(const std::string& id, TimeNs at) override {
    const auto known = jobs.find(id);
    if (known != jobs.end()) return known->second.get();
    if (jobs.size() >= options.jobs_max) return nullptr;
    ForwardedJob& job =
        *jobs.emplace(id, std::make_unique<ForwardedJob>(options.draw_session(), parsing)).first->second;
    job.writer->set_rules(options.rules.get());
    job.last_ns = at;
    for (const auto& [stream, known_stream] : streams)
      if (known_stream.live.info.kind == OriginKind::kKernel)
        job.kernel[stream] = {known_stream.end, true, kNoStream};
    backlog.replay(at, [&](StreamId stream, const KernelLine& line) {
      if (const auto kernel = streams.find(stream); kernel != streams.end())
        job.sources.ingest_kernel(kernel->second.live, {&line, 1}, at);
    });
    return &job;
  }

  void ingest_kernel(ForwardedStream& stream, const Piece& piece, TimeNs at) {
    std::vector<KernelLine> lines = read_kernel(stream.live, piece.bytes);
    const uint64_t end = piece.offset + piece.bytes.size();
    for (auto& [id, job] : jobs) {
      KernelMark& mark = job->kernel[stream.live.info.id];
      if (end <= mark.reported) continue;
      if (mark.reported <= piece.offset) {
        job->sources.ingest_kernel(stream.live, lines, at);
      } else {
        const std::string_view rest = std::string_view(piece.bytes).substr(mark.reported - piece.offset);
        job->sources.ingest_kernel(stream.live, read_kernel(stream.live, rest), at);
      }
      CULPRIT_CHECK(end >= mark.reported);
      mark.reported = end;
      mark.moved = true;
    }
    backlog.keep(stream.live.info.id, std::move(lines));
  }

  // ---- time

  void tick(const std::string& id, ForwardedJob& job, TimeNs now) {
    settle_dumps(job, now);
    for (const StreamId cut : job.sources.settle_files(now).cut) mark_cut_line(cut);
    if (job.asked_ns != kNoTime && now >= job.asked_ns && now - job.asked_ns < kAskEvery) return;
    job.asked_ns = now;
    job.writer->tick(now);
    std::optional<bool> alive = options.alive ? options.alive(id) : std::nullopt;
    const bool all_ended = job.streams.all_ended();
    if (!alive && all_ended) alive = false;
    const TimeNs silent = now - job.last_ns;
    if (alive && (alive != job.reported || (silent >= kAliveEvery && now - job.reported_ns >= kAliveEvery))) {
      hurry = hurry || alive != job.reported;
      job.reported = alive;
      job.reported_ns = now;
      job.writer->alive(*alive, now);
    }
    if (silent >= (alive.value_or(true) ? kForgotten : options.ended_after_ns) && alive != true)
      end(job, now);
  }

  // Incomplete lines count as lines.
  void end(ForwardedJob& job, TimeNs now) {
    if (std::exchange(job.over, true)) return;
    job.sources.end(now);
    for (const StreamId id : job.streams.ids()) {
      mark_cut_line(id);
      if (const auto known = streams.find(id); known != streams.end()) known->second.live.rest.clear();
    }
  }

  // ---- flush

  // Splits the output into batches of at most one frame.
  class Parts {
   public:
    Parts() : parts_(1) {}
    void open(StreamInfo info) {
      weight_ += info.path.size() + info.job.size() + kRecordBytes;
      parts_.back().opened.push_back(std::move(info));
    }
    void add(Piece piece) {
      weight_ += piece.bytes.size() + kRecordBytes;
      parts_.back().pieces.push_back(std::move(piece));
    }
    // Allows a new batch before the next part.
    void may_part(size_t bytes) {
      if (weight_ < bytes) return;
      parts_.emplace_back();
      weight_ = 0;
    }
    bool has_room() const { return weight_ < kFrameBytes; }
    std::vector<PieceBatch> finish() {
      for (PieceBatch& part : parts_) part.whole = true;
      return std::move(parts_);
    }

   private:
    std::vector<PieceBatch> parts_;
    size_t weight_ = 0;
  };

  // A mark: its stream in the condensed log (kNoStream: none yet) and its value.
  struct Mark {
    StreamId& stream;
    std::string job, path;
    FilePlace place;
  };
  void add(Mark mark, Parts& out, TimeNs now) {
    if (mark.stream == kNoStream) {
      StreamInfo info;
      info.id = mark.stream = options.allocate();
      info.kind = OriginKind::kMark;
      info.job = std::move(mark.job);
      info.path = std::move(mark.path);
      info.opened_ns = now;
      out.open(std::move(info));
    }
    Piece piece;
    piece.stream = mark.stream;
    piece.time_ns = now;
    piece.place = mark.place;
    piece.place->device = options.evidence_epoch;
    out.add(std::move(piece));
  }

  void add_mark(ForwardedStream& stream, Parts& out, TimeNs now) {
    stream.moved = false;
    const StreamInfo& info = stream.live.info;
    FilePlace place;
    place.inode = info.id;
    place.offset = stream.mark;
    place.tail = stream.lines;
    place.fingerprint = stream.reported_at_mark;
    add({stream.mark_stream, info.job, info.path, place}, out, now);
  }

  static Piece end_of(StreamId stream, TimeNs now) {
    Piece last;
    last.stream = stream;
    last.time_ns = now;
    last.ends = true;
    return last;
  }

  // Adds marks of the job's session if it has any block.
  void add_kernel_marks(const std::string& id, ForwardedJob& job, Parts& out, TimeNs now) {
    for (auto& [stream, mark] : job.kernel) {
      if (job.over && mark.stream != kNoStream) out.add(end_of(mark.stream, now));
      const bool reported = job.stream != kNoStream || !job.before.empty();
      if (job.over || !reported || !std::exchange(mark.moved, false)) continue;
      const auto known = streams.find(stream);
      FilePlace place;
      place.inode = stream;
      place.offset = mark.reported;
      place.fingerprint = kOfOneJob;
      add({mark.stream, id, known == streams.end() ? "" : known->second.live.info.path, place}, out, now);
    }
  }

  void open_session(const std::string& id, ForwardedJob& job, Parts& out, TimeNs now) {
    StreamInfo info;
    info.id = job.stream = options.allocate();
    info.kind = OriginKind::kCondensed;
    info.job = id;
    info.path = "condensed/" + hex64(job.session);
    info.opened_ns = job.began_ns = now;
    out.open(std::move(info));
  }

  // Starts another session of the same sources, which may be in the middle of a line. The previous session
  // ends with the first block of the new one: a collector forgets a session once the next one begins. After a
  // kill the job is found by the previous session.
  void begin_session(ForwardedJob& job) {
    over.add(job);
    job.session = options.draw_session();
    job.writer.emplace(job.session);
    job.writer->set_rules(options.rules.get());
    job.sink.begin_session();
    job.stream = kNoStream;
    job.offset = 0;
    job.reported.reset();
  }

  void add_block(const std::string& id, ForwardedJob& job, Parts& out, TimeNs now) {
    for (Problem& problem : job.sources.drain_broken())
      job.writer->add(core::ProblemSeen{std::move(problem)}, now);
    if (job.over || !job.writer->empty(now))
      for (Piece& last : std::exchange(job.before, {})) {
        last.time_ns = now;
        out.add(std::move(last));
      }
    if (!job.writer->empty(now)) {
      if (job.stream == kNoStream) open_session(id, job, out, now);
      Piece piece;
      piece.stream = job.stream;
      piece.offset = job.offset;
      piece.bytes = job.writer->flush(now);
      piece.time_ns = now;
      job.offset += piece.bytes.size();
      ++counts.blocks;
      counts.block_bytes += piece.bytes.size();
      out.add(std::move(piece));
    }
    if (job.stream == kNoStream) return;
    const bool is_long = job.offset >= options.session_bytes || now - job.began_ns >= options.session_ns;
    if (!job.over && !is_long) return;
    Piece last = end_of(job.stream, now);
    last.offset = job.offset;
    if (job.over) {
      out.add(std::move(last));
    } else {
      job.before.push_back(std::move(last));
      begin_session(job);
    }
  }

  // Undoes the effects of a rejected part: its streams are declared again, its marks are written again, and
  // jobs with a block in it start new sessions.
  void refused(const PieceBatch& part) {
    std::set<StreamId> undeclared;
    for (const StreamInfo& info : part.opened) undeclared.insert(info.id);
    std::unordered_map<StreamId, uint64_t> kept;  // streams in the part, with the offset before it
    for (const Piece& piece : part.pieces) {
      kept.try_emplace(piece.stream, piece.offset);
      counts.blocks_refused += piece.bytes.empty() ? 0 : 1;
    }
    const auto lost = [&](StreamId& mark) {
      if (mark == kNoStream || !kept.contains(mark)) return false;
      if (undeclared.contains(mark)) mark = kNoStream;
      return true;
    };
    lost(all_stream);
    for (auto& [id, stream] : streams)
      if (lost(stream.mark_stream)) move(stream);
    for (auto& [id, job] : jobs) {
      for (auto& [stream, mark] : job->kernel)
        if (lost(mark.stream)) mark.moved = true;
      std::erase_if(job->before, [&](const Piece& last) { return undeclared.contains(last.stream); });
      for (Piece& last : job->before)
        if (const auto at = kept.find(last.stream); at != kept.end()) last.offset = at->second;
      const auto block = job->stream == kNoStream ? kept.end() : kept.find(job->stream);
      if (block == kept.end()) continue;
      Piece last = end_of(job->stream, kNoTime);  // the flush sets the time
      last.offset = block->second;
      if (!undeclared.contains(job->stream)) job->before.push_back(std::move(last));
      begin_session(*job);
    }
  }

  void add_all_mark(uint64_t sequence, Parts& out, TimeNs now) {
    for (const auto& [id, stream] : streams)
      if (stream.mark < stream.end) sequence = std::min(sequence, stream.since);
    FilePlace place;
    place.inode = kAllStreams;
    place.offset = sequence;
    add({all_stream, "", "", place}, out, now);
  }

  // A job's block and its marks are in one part, so a kill between two parts repeats nothing. The mark of the
  // whole evidence comes last.
  std::vector<PieceBatch> flush(uint64_t sequence, TimeNs now) {
    Parts out;
    for (Piece& last : std::exchange(ends, {})) {
      out.may_part(options.part_bytes);
      last.time_ns = now;
      out.add(std::move(last));
    }
    std::map<std::string_view, std::vector<ForwardedStream*>> moved;  // by job
    for (auto& [id, stream] : streams) {
      const StreamInfo& info = stream.live.info;
      if (info.kind == OriginKind::kKernel)
        stream.moved = false;  // each job has its own kernel mark
      else if (stream.moved)
        moved[job_of(stream.live)].push_back(&stream);
    }
    for (auto& [id, job] : jobs) {
      out.may_part(options.part_bytes);
      add_block(id, *job, out, now);
      add_kernel_marks(id, *job, out, now);
      // Marks without room here belong only to incomplete lines that the end of a job completed.
      for (ForwardedStream* stream : moved[id])
        if (out.has_room()) add_mark(*stream, out, now);
    }
    for (auto& [id, stream] : streams) {
      if (!stream.moved) continue;
      out.may_part(options.part_bytes);
      add_mark(stream, out, now);
    }
    add_all_mark(sequence, out, now);
    mark_bytes = 0;
    count();
    std::erase_if(jobs, [](const auto& job) { return job.second->over; });
    hurry = false;
    return out.finish();
  }

  // Totals of ended and open sessions.
  struct Counted {
    uint64_t lines = 0, bytes = 0, lines_lost = 0, notes_lost = 0;
    void add(const ForwardedJob& job) {
      const wire::CondenseCounts& c = job.writer->counts();
      lines += c.lines;
      bytes += c.bytes;
      lines_lost += c.dropped + job.sink.dropped_lines();
      notes_lost += job.writer->dropped_notes();
    }
  } over;
  void count() {
    Counted all = over;
    for (const auto& [id, job] : jobs) {
      all.add(*job);
      if (job->over) over.add(*job);
    }
    counts.lines = all.lines;
    counts.bytes = all.bytes;
    counts.dropped_lines = all.lines_lost;
    counts.dropped_notes = all.notes_lost;
  }
};

JobForwarder::JobForwarder(JobForwarderOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
JobForwarder::~JobForwarder() = default;

void JobForwarder::resume(const std::vector<StreamState>& known, TimeNs now) {
  Impl& s = *impl_;
  std::vector<const StreamState*> of_one_job;
  for (const StreamState& state : known) {
    if (state.ended) continue;
    const bool ours = state.info.kind == OriginKind::kMark && state.place &&
                      state.place->device == s.options.evidence_epoch;
    if (ours && state.place->inode == kAllStreams) {
      s.all_stream = state.info.id;
      s.behind = state.place->offset;
    } else if (ours && state.place->fingerprint == kOfOneJob) {
      of_one_job.push_back(&state);
    } else if (ours && state.place->inode < kNoStream) {
      s.known_marks[static_cast<StreamId>(state.place->inode)] = state;
    } else {  // a session of the previous process, or the mark of another spool
      // Opens the session's job at once: it gets kernel messages even if it is silent itself.
      ForwardedJob* job = nullptr;
      if (state.info.kind == OriginKind::kCondensed) job = s.open(state.info.job, now);
      std::vector<Piece>& ends = job ? job->before : s.ends;
      ends.push_back(s.end_of(state.info.id, now));
      ends.back().offset = state.size;
    }
  }
  for (const StreamState* state : of_one_job) {
    const MarkPlace mark = MarkPlace::from(*state->place);
    const auto job = s.jobs.find(state->info.job);
    if (job == s.jobs.end())
      s.ends.push_back(s.end_of(state->info.id, now));
    else
      job->second->kernel[static_cast<StreamId>(mark.stream)] = {mark.offset, false, state->info.id};
  }
}

uint64_t JobForwarder::resume_behind() const { return impl_->behind; }

size_t JobForwarder::ingest(const PieceBatch& batch, const Progress& taking, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  if (taking.first == 0)
    for (const StreamInfo& info : batch.opened) impl_->open_stream(info, taking.sequence);
  size_t next = taking.first;
  while (next < batch.pieces.size() && !full()) impl_->ingest(batch.pieces[next++], taking.sequence, now);
  return next;
}

void JobForwarder::tick(TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  for (auto& [id, job] : impl_->jobs) impl_->tick(id, *job, now);
}

void JobForwarder::answer(const std::string& job, const std::vector<int64_t>& steps) {
  CULPRIT_CHECK(impl_->owner.here());
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return;
  known->second->writer->answer(steps);
  impl_->hurry = true;
}

bool JobForwarder::empty(TimeNs now) const {
  if (!impl_->ends.empty()) return false;
  for (const auto& [id, job] : impl_->jobs)
    if (job->over || !job->writer->empty(now)) return false;
  return std::none_of(impl_->streams.begin(), impl_->streams.end(),
                      [](const auto& stream) { return stream.second.moved; });
}

bool JobForwarder::full() const {
  if (impl_->mark_bytes >= kMarkBytes) return true;
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer->full(); });
}

bool JobForwarder::urgent() const {
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer->urgent(); });
}

bool JobForwarder::hurries() const { return impl_->hurry; }

std::vector<PieceBatch> JobForwarder::flush(uint64_t sequence, TimeNs now) {
  CULPRIT_CHECK(impl_->owner.here());
  return impl_->flush(sequence, now);
}

// Also called before the worker begins: no thread owns the forwarder yet.
void JobForwarder::keep_only(const std::set<StreamId>& known) {
  Impl& s = *impl_;
  const auto end_mark = [&](StreamId mark) {
    if (mark != kNoStream) s.ends.push_back(s.end_of(mark, kNoTime));
  };
  std::erase_if(s.known_marks, [&](const auto& mark) {
    if (known.contains(mark.first)) return false;
    end_mark(mark.second.info.id);
    return true;
  });
  std::erase_if(s.streams, [&](const auto& stream) {
    if (!stream.second.live.ended || stream.second.moved || known.contains(stream.first)) return false;
    end_mark(stream.second.mark_stream);
    return true;
  });
  for (auto& [id, job] : s.jobs)
    std::erase_if(job->kernel, [&](const auto& mark) {
      if (known.contains(mark.first) || s.streams.contains(mark.first)) return false;
      end_mark(mark.second.stream);
      return true;
    });
}

void JobForwarder::refused(const PieceBatch& part) { impl_->refused(part); }

void JobForwarder::renew() {
  CULPRIT_CHECK(impl_->owner.here());
  for (auto& [id, job] : impl_->jobs) impl_->end(*job, job->last_ns);
}

void JobForwarder::reload_rules(std::shared_ptr<rules::Ruleset> rules) {
  CULPRIT_CHECK(impl_->owner.here());
  const auto before = std::exchange(impl_->options.rules, std::move(rules));
  impl_->parsing.use(impl_->options.rules.get(), impl_->options.zone);
  for (auto& [id, job] : impl_->jobs) job->writer->set_rules(impl_->options.rules.get());
}

void JobForwarder::set_ended_after(TimeNs ns) { impl_->options.ended_after_ns = ns; }

std::vector<std::string> JobForwarder::jobs() const {
  std::vector<std::string> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(id);
  return out;
}

size_t JobForwarder::streams() const { return impl_->streams.size(); }
const JobForwarderCounts& JobForwarder::counts() const { return impl_->counts; }

}  // namespace culprit::app
