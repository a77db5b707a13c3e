#include "app/daemon/host_feed.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "app/daemon/job_recognition.h"
#include "app/daemon/live_source.h"
#include "base/hash.h"
#include "core/wire.h"

namespace culprit::app {
namespace {

constexpr TimeNs kAskEvery = kNsPerSecond;
// A job of which nothing else comes is known to live, or not, at least so often.
constexpr TimeNs kAliveEvery = 30 * kNsPerSecond;
// Where nobody can tell whether a job's processes are there; as LiveJobs.
constexpr TimeNs kForgotten = 6 * 3600 * kNsPerSecond;
// Of a record beside its bytes and names, at most.
constexpr size_t kRecordBytes = 128;
// Of marks between two flushes. A block has some 3 MiB at most and stands in one frame with the marks of all
// that is in it; a frame holds 6 MiB, of which FeedOptions::part_bytes may be there before.
constexpr size_t kMarkBytes = 2 << 20;
constexpr size_t kFrameBytes = (6 << 20) - (64 << 10);
// The mark of the evidence as a whole.
constexpr uint64_t kAllStreams = UINT64_MAX;
// Of a mark's place: what stands at its offset was told.
constexpr uint64_t kGapTold = 1, kEndTold = 2;
// Or it tells how much of a source that all jobs have (the kernel) is in the blocks of one job.
constexpr uint64_t kOfOneJob = 4;

// A session's writer, and what the next one has to know of the sources. Those go on in a new session, in
// which each is told anew, with a number of that session, when something comes of it: all of them at once
// are more than a frame holds, and most have ended.
class WriterSink : public LiveSink {
 public:
  explicit WriterSink(std::optional<core::InputWriter>& writer) : writer_(writer) {}
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override {
    if (const auto* opened = std::get_if<core::SourceOpened>(&input)) {
      sources_.push_back({opened->info, std::nullopt});
      tell(sources_.back(), now);
    } else if (const auto* lines = std::get_if<core::LogInput>(&input)) {
      take(*lines->batch, now);
    } else {
      writer_->add(input, now);
    }
    return {};
  }
  void begin_anew() {
    next_ = 0;
    for (Source& source : sources_) source.number.reset();
  }
  uint64_t dropped_lines() const { return dropped_lines_; }

 private:
  struct Source {
    SourceInfo info;                 // with the lines so far
    std::optional<SourceId> number;  // in this session; nothing: it is not told yet
  };
  void tell(Source& source, TimeNs now) {
    if (!writer_->has_room_for_source()) return;
    source.number = next_++;
    writer_->add(core::SourceOpened{source.info}, now);
  }
  void take(logs::LogBatch& batch, TimeNs now) {
    Source& source = sources_[batch.source];
    if (!source.number) tell(source, now);
    source.info.lines_before += batch.lines.size();
    if (!source.number) {
      dropped_lines_ += batch.lines.size();
      return;
    }
    const SourceId here = std::exchange(batch.source, *source.number);
    writer_->add(core::LogInput{&batch}, now);
    batch.source = here;
  }

  std::optional<core::InputWriter>& writer_;
  std::vector<Source> sources_;  // by their numbers here
  SourceId next_ = 0;
  uint64_t dropped_lines_ = 0;
};

// How far one job was told what the kernel says.
struct KernelMark {
  uint64_t told = 0;
  bool moved = false;  // since the last flush
  StreamId stream = kNoStream;
};

// A job's session.
struct FeedJob {
  FeedJob(uint64_t number, LiveParsing& parsing)
      : session(number), writer(number), sink(writer), sources(sink, parsing) {}
  uint64_t session;
  std::optional<core::InputWriter> writer;  // always one
  WriterSink sink;
  LiveSources sources;
  StreamId stream = kNoStream;  // of its blocks
  uint64_t offset = 0;
  TimeNs began_ns = kNoTime;
  std::map<StreamId, bool> streams;  // its own, and whether they ended
  std::map<StreamId, KernelMark> kernel;
  std::vector<Piece> before;  // ends of its sessions of before, which go with the first block of this one
  TimeNs last_ns = kNoTime;   // when its bytes were read
  TimeNs asked_ns = kNoTime, told_ns = kNoTime;
  std::optional<bool> told;
  bool over = false;  // its session ends with the next flush
};

// A source, and how far it is condensed.
struct FeedStream {
  LiveStream live;
  uint64_t end = 0;           // taken up to here
  uint64_t mark = 0;          // condensed up to here: whole lines
  uint64_t lines = 0;         // that end before the mark
  uint64_t since = 0;         // frames up to it hold nothing behind the mark
  uint64_t told_at_mark = 0;  // kGapTold, kEndTold
  uint64_t resume = 0;        // what stands before it was condensed by a process before
  uint64_t resume_told = 0;
  bool resumes = false;
  bool moved = false;  // since the last flush
  StreamId mark_stream = kNoStream;
};

}  // namespace

struct HostFeed::Impl {
  FeedOptions options;
  LiveParsing parsing;
  FeedCounts counts;
  std::unordered_map<StreamId, FeedStream> streams;
  std::map<std::string, std::unique_ptr<FeedJob>> jobs;
  KernelBacklog backlog;
  std::vector<Piece> ends;  // of streams of the condensed spool, for the next flush
  std::unordered_map<StreamId, StreamState> known_marks;  // by evidence stream, of sources not seen yet
  StreamId all_stream = kNoStream;                        // the mark of kAllStreams
  uint64_t behind = 0;                                    // what it told at the start
  size_t mark_bytes = 0;                                  // of marks that the next flush has
  bool hurry = false;

  explicit Impl(FeedOptions o) : options(std::move(o)), parsing(options.host, options.roots) {
    parsing.use(options.rules.get(), options.zone);
  }

  void open(const StreamInfo& info, uint64_t sequence) {
    const auto [at, fresh] = streams.try_emplace(info.id);
    FeedStream& stream = at->second;
    stream.live.info = info;
    if (!fresh) return;
    stream.since = sequence;
    const auto known = known_marks.find(info.id);
    if (known == known_marks.end()) return;
    const FilePlace& place = *known->second.place;
    stream.mark_stream = known->second.info.id;
    stream.resume = stream.mark = stream.end = place.offset;
    stream.lines = place.tail;
    stream.resume_told = stream.told_at_mark = place.fingerprint;
    stream.resumes = true;
    known_marks.erase(known);
  }

  // What is left of a piece of a source that a process before had begun; false: nothing.
  bool cut(FeedStream& stream, Piece& piece) {
    if (!stream.resumes) return true;
    const uint64_t end = piece.offset + piece.bytes.size();
    const bool at_mark = piece.offset == stream.resume;
    if (piece.offset < stream.resume || (at_mark && (stream.resume_told & kGapTold))) piece.gap.reset();
    if (end <= stream.resume) {
      if (end == stream.resume && (stream.resume_told & kEndTold)) piece.ends = false;
      if (end < stream.resume || (!piece.gap && !piece.ends)) return false;
    }
    if (piece.offset < stream.resume) {
      piece.bytes.erase(0, stream.resume - piece.offset);
      piece.offset = stream.resume;
    }
    stream.resumes = false;
    return true;
  }

  void take(const Piece& given, uint64_t sequence, TimeNs now) {
    const auto known = streams.find(given.stream);
    if (known == streams.end()) {
      counts.bytes_refused += given.bytes.size();
      return;
    }
    FeedStream& stream = known->second;
    if (stream.resumes) {
      Piece piece = given;
      const TimeNs at = piece.time_ns == kNoTime ? now : piece.time_ns;
      if (cut(stream, piece)) take_new(stream, piece, sequence, at);
    } else {
      take_new(stream, given, sequence, given.time_ns == kNoTime ? now : given.time_ns);
    }
  }

  void take_new(FeedStream& stream, const Piece& piece, uint64_t sequence, TimeNs at) {
    if (stream.live.info.kind == OriginKind::kKernel)
      take_kernel(stream, piece, at);
    else
      take_bytes(stream, piece, at);
    advance_mark(stream, piece, sequence);
  }

  // Up to where whole lines were taken.
  void advance_mark(FeedStream& stream, const Piece& piece, uint64_t sequence) {
    const uint64_t before = stream.mark;
    const OriginKind kind = stream.live.info.kind;
    const bool pending = stream.mark < stream.end;
    if (!pending) stream.since = sequence;
    if (piece.gap) {
      if (pending) ++stream.lines;  // the line that has no end
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
    if (stream.mark != before) stream.told_at_mark = 0;
    if (piece.gap && stream.mark == piece.offset) stream.told_at_mark |= kGapTold;
    if (piece.ends) stream.told_at_mark |= kEndTold;
    stream.live.ended = piece.ends;
    if (stream.mark != before || piece.gap || piece.ends) move(stream);
  }

  // A dump is in the blocks as a whole.
  bool dump_pending(const FeedStream& stream) const {
    const auto job = jobs.find(job_of(stream.live));
    return job != jobs.end() && job->second->sources.dump_pending(stream.live.info.id);
  }

  void settle_dumps(FeedJob& job, TimeNs now) {
    if (!job.sources.settle_dumps(now)) return;
    for (auto& [id, stream] : streams) {
      if (stream.live.info.kind != OriginKind::kDump || stream.mark == stream.end || dump_pending(stream))
        continue;
      stream.mark = stream.end;
      stream.told_at_mark = 0;
      move(stream);
    }
  }

  // The stream's last line was taken although it has no newline.
  void mark_cut_line(StreamId id) {
    const auto known = streams.find(id);
    if (known == streams.end() || known->second.mark == known->second.end) return;
    known->second.mark = known->second.end;
    known->second.told_at_mark = 0;
    ++known->second.lines;
    move(known->second);
  }

  void move(FeedStream& stream) {
    if (!std::exchange(stream.moved, true))
      mark_bytes += kRecordBytes + stream.live.info.path.size() + stream.live.info.job.size();
  }

  void take_bytes(FeedStream& stream, const Piece& piece, TimeNs at) {
    const StreamInfo& info = stream.live.info;
    if (info.kind == OriginKind::kDump && begins_file(piece))
      stream.live.dump_job = jobs.size() == 1 ? jobs.begin()->first : "";
    const std::string& id = job_of(stream.live);
    const bool runs = jobs.contains(id);
    if (piece.bytes.empty() && !runs) return;
    TraceBatch trace;
    if (info.kind == OriginKind::kSocket) {
      const bool trusted = options.uid && info.uid == options.uid;
      if (piece.gap) stream.live.rest.clear();
      trace = read_trace(stream.live, piece.bytes, piece.offset, trusted);
      counts.broken_trace_lines += trace.broken.count;
      if (!runs && trace.understood == 0) {
        stream.live.broken_before.add(trace.broken);
        return;
      }
      trace.broken.add(std::exchange(stream.live.broken_before, {}));
    }
    FeedJob* job = job_for(id, at);
    if (!job) {
      counts.bytes_refused += piece.bytes.size();
      return;
    }
    if (options.seen) options.seen(id, info, piece);
    note(*job, stream, piece, at);
    stream.live.lines_before = stream.lines;
    if (info.kind == OriginKind::kSocket) {
      job->sources.take_trace(stream.live, trace, at);
      if (trace.ends) job->writer->ends(trace.failed, at);
    } else if (info.kind == OriginKind::kFile) {
      job->sources.take_file(stream.live, piece, at);
    } else if (info.kind == OriginKind::kRing) {
      job->sources.take_ring(stream.live, piece, at);
    } else if (info.kind == OriginKind::kDump) {
      job->sources.take_dump(stream.live, piece, at);
    }
  }

  void note(FeedJob& job, const FeedStream& stream, const Piece& piece, TimeNs at) {
    const bool left = stream.live.info.kind == OriginKind::kSocket && piece.ends;
    if (!left || !piece.bytes.empty()) job.last_ns = std::max(job.last_ns, at);
    if (piece.gap) job.sources.take_gap(stream.live, piece, at);
    if (stream.live.info.kind == OriginKind::kDump) return;  // it lies about after its job
    if (left)
      job.streams.erase(stream.live.info.id);
    else
      job.streams[stream.live.info.id] = piece.ends;
  }

  FeedJob* job_for(const std::string& id, TimeNs at) {
    const auto known = jobs.find(id);
    if (known != jobs.end()) return known->second.get();
    if (jobs.size() >= options.jobs_max) return nullptr;
    FeedJob& job =
        *jobs.emplace(id, std::make_unique<FeedJob>(options.draw_session(), parsing)).first->second;
    job.writer->set_rules(options.rules.get());
    job.last_ns = at;
    for (const auto& [stream, known_stream] : streams)
      if (known_stream.live.info.kind == OriginKind::kKernel)
        job.kernel[stream] = {known_stream.end, true, kNoStream};
    backlog.give(at, [&](StreamId stream, const KernelLine& line) {
      if (const auto kernel = streams.find(stream); kernel != streams.end())
        job.sources.take_kernel(kernel->second.live, {&line, 1}, at);
    });
    return &job;
  }

  void take_kernel(FeedStream& stream, const Piece& piece, TimeNs at) {
    std::vector<KernelLine> lines = read_kernel(stream.live, piece.bytes);
    const uint64_t end = piece.offset + piece.bytes.size();
    for (auto& [id, job] : jobs) {
      KernelMark& mark = job->kernel[stream.live.info.id];
      if (end <= mark.told) continue;
      if (mark.told <= piece.offset) {
        job->sources.take_kernel(stream.live, lines, at);
      } else {
        const std::string_view rest = std::string_view(piece.bytes).substr(mark.told - piece.offset);
        job->sources.take_kernel(stream.live, read_kernel(stream.live, rest), at);
      }
      mark.told = end;
      mark.moved = true;
    }
    backlog.keep(stream.live.info.id, std::move(lines));
  }

  // ---- what time does

  void tick(const std::string& id, FeedJob& job, TimeNs now) {
    settle_dumps(job, now);
    for (const StreamId cut : job.sources.settle_files(now).cut) mark_cut_line(cut);
    if (job.asked_ns != kNoTime && now >= job.asked_ns && now - job.asked_ns < kAskEvery) return;
    job.asked_ns = now;
    job.writer->tick(now);
    std::optional<bool> alive = options.alive ? options.alive(id) : std::nullopt;
    const bool all_ended =
        !job.streams.empty() &&
        std::all_of(job.streams.begin(), job.streams.end(), [](const auto& stream) { return stream.second; });
    if (!alive && all_ended) alive = false;
    const TimeNs silent = now - job.last_ns;
    if (alive && (alive != job.told || (silent >= kAliveEvery && now - job.told_ns >= kAliveEvery))) {
      hurry = hurry || alive != job.told;
      job.told = alive;
      job.told_ns = now;
      job.writer->alive(*alive, now);
    }
    if (silent >= (alive.value_or(true) ? kForgotten : options.ended_after_ns) && alive != true)
      end(job, now);
  }

  // Its unfinished lines are lines.
  void end(FeedJob& job, TimeNs now) {
    if (std::exchange(job.over, true)) return;
    job.sources.end(now);
    for (const auto& [id, ended] : job.streams) {
      mark_cut_line(id);
      if (const auto known = streams.find(id); known != streams.end()) known->second.live.rest.clear();
    }
  }

  // ---- what goes

  // Batches that fit into a frame each.
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
    // What is added next may go into another one.
    void may_part(size_t bytes) {
      if (weight_ < bytes) return;
      parts_.emplace_back();
      weight_ = 0;
    }
    bool has_room() const { return weight_ < kFrameBytes; }
    std::vector<PieceBatch> take() {
      for (PieceBatch& part : parts_) part.whole = true;
      return std::move(parts_);
    }

   private:
    std::vector<PieceBatch> parts_;
    size_t weight_ = 0;
  };

  // A mark's stream in the condensed log (kNoStream: it has none yet), and what it tells.
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

  void add_mark(FeedStream& stream, Parts& out, TimeNs now) {
    stream.moved = false;
    const StreamInfo& info = stream.live.info;
    FilePlace place;
    place.inode = info.id;
    place.offset = stream.mark;
    place.tail = stream.lines;
    place.fingerprint = stream.told_at_mark;
    add({stream.mark_stream, info.job, info.path, place}, out, now);
  }

  static Piece end_of(StreamId stream, TimeNs now) {
    Piece last;
    last.stream = stream;
    last.time_ns = now;
    last.ends = true;
    return last;
  }

  // Of a session that has told something.
  void add_kernel_marks(const std::string& id, FeedJob& job, Parts& out, TimeNs now) {
    for (auto& [stream, mark] : job.kernel) {
      if (job.over && mark.stream != kNoStream) out.add(end_of(mark.stream, now));
      const bool told = job.stream != kNoStream || !job.before.empty();
      if (job.over || !told || !std::exchange(mark.moved, false)) continue;
      const auto known = streams.find(stream);
      FilePlace place;
      place.inode = stream;
      place.offset = mark.told;
      place.fingerprint = kOfOneJob;
      add({mark.stream, id, known == streams.end() ? "" : known->second.live.info.path, place}, out, now);
    }
  }

  void open_session(const std::string& id, FeedJob& job, Parts& out, TimeNs now) {
    StreamInfo info;
    info.id = job.stream = options.allocate();
    info.kind = OriginKind::kCondensed;
    info.job = id;
    info.path = "condensed/" + hex64(job.session);
    info.opened_ns = job.began_ns = now;
    out.open(std::move(info));
  }

  // Another session of the same sources, in the middle of their lines. The one before ends with its first
  // block: a collector forgets a session when the next one is told, and after a kill the job is known by it.
  void begin_anew(FeedJob& job) {
    over.add(job);
    job.session = options.draw_session();
    job.writer.emplace(job.session);
    job.writer->set_rules(options.rules.get());
    job.sink.begin_anew();
    job.stream = kNoStream;
    job.offset = 0;
    job.told.reset();
  }

  void add_block(const std::string& id, FeedJob& job, Parts& out, TimeNs now) {
    for (Problem& problem : job.sources.take_broken())
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
      begin_anew(job);
    }
  }

  // What was told in a part that is not kept was not told: its streams are declared again, its marks told
  // again, and jobs with a block in it go on in other sessions.
  void refused(const PieceBatch& part) {
    std::set<StreamId> untold;
    for (const StreamInfo& info : part.opened) untold.insert(info.id);
    std::unordered_map<StreamId, uint64_t> kept;  // up to where, of streams that stand in it
    for (const Piece& piece : part.pieces) {
      kept.try_emplace(piece.stream, piece.offset);
      counts.blocks_refused += piece.bytes.empty() ? 0 : 1;
    }
    const auto lost = [&](StreamId& mark) {
      if (mark == kNoStream || !kept.contains(mark)) return false;
      if (untold.contains(mark)) mark = kNoStream;
      return true;
    };
    lost(all_stream);
    for (auto& [id, stream] : streams)
      if (lost(stream.mark_stream)) move(stream);
    for (auto& [id, job] : jobs) {
      for (auto& [stream, mark] : job->kernel)
        if (lost(mark.stream)) mark.moved = true;
      std::erase_if(job->before, [&](const Piece& last) { return untold.contains(last.stream); });
      for (Piece& last : job->before)
        if (const auto at = kept.find(last.stream); at != kept.end()) last.offset = at->second;
      const auto block = job->stream == kNoStream ? kept.end() : kept.find(job->stream);
      if (block == kept.end()) continue;
      Piece last = end_of(job->stream, kNoTime);  // its time is that of the flush
      last.offset = block->second;
      if (!untold.contains(job->stream)) job->before.push_back(std::move(last));
      begin_anew(*job);
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

  // A job's block and the marks of all that is in it are one, so a kill between two parts doubles nothing;
  // the mark of the evidence as a whole stands last.
  std::vector<PieceBatch> flush(uint64_t sequence, TimeNs now) {
    Parts out;
    for (Piece& last : std::exchange(ends, {})) {
      out.may_part(options.part_bytes);
      last.time_ns = now;
      out.add(std::move(last));
    }
    std::map<std::string_view, std::vector<FeedStream*>> moved;  // by job
    for (auto& [id, stream] : streams) {
      const StreamInfo& info = stream.live.info;
      if (info.kind == OriginKind::kKernel)
        stream.moved = false;  // each job has its own mark
      else if (stream.moved)
        moved[job_of(stream.live)].push_back(&stream);
    }
    for (auto& [id, job] : jobs) {
      out.may_part(options.part_bytes);
      add_block(id, *job, out, now);
      add_kernel_marks(id, *job, out, now);
      // Beyond a frame are at most those of unfinished lines that the end of a job made lines.
      for (FeedStream* stream : moved[id])
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
    return out.take();
  }

  // What the condensers have counted, of sessions that are over and of those that go on.
  struct Counted {
    uint64_t lines = 0, bytes = 0, lines_lost = 0, notes_lost = 0;
    void add(const FeedJob& job) {
      const logs::CondenseCounts& c = job.writer->counts();
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

HostFeed::HostFeed(FeedOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HostFeed::~HostFeed() = default;

void HostFeed::resume(const std::vector<StreamState>& known, TimeNs now) {
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
    } else {  // a session of before, or the mark of another spool's
      // Its job goes on at once, in a new one: what the kernel says is told to it though it is silent itself.
      FeedJob* job = nullptr;
      if (state.info.kind == OriginKind::kCondensed) job = s.job_for(state.info.job, now);
      std::vector<Piece>& ends = job ? job->before : s.ends;
      ends.push_back(s.end_of(state.info.id, now));
      ends.back().offset = state.size;
    }
  }
  for (const StreamState* state : of_one_job) {
    const auto job = s.jobs.find(state->info.job);
    if (job == s.jobs.end())
      s.ends.push_back(s.end_of(state->info.id, now));
    else
      job->second->kernel[static_cast<StreamId>(state->place->inode)] = {state->place->offset, false,
                                                                         state->info.id};
  }
}

uint64_t HostFeed::resume_behind() const { return impl_->behind; }

size_t HostFeed::take(const PieceBatch& batch, const Taking& taking, TimeNs now) {
  if (taking.first == 0)
    for (const StreamInfo& info : batch.opened) impl_->open(info, taking.sequence);
  size_t next = taking.first;
  while (next < batch.pieces.size() && !full()) impl_->take(batch.pieces[next++], taking.sequence, now);
  return next;
}

void HostFeed::tick(TimeNs now) {
  for (auto& [id, job] : impl_->jobs) impl_->tick(id, *job, now);
}

void HostFeed::answer(const std::string& job, const std::vector<int64_t>& steps) {
  const auto known = impl_->jobs.find(job);
  if (known == impl_->jobs.end()) return;
  known->second->writer->answer(steps);
  impl_->hurry = true;
}

bool HostFeed::empty(TimeNs now) const {
  if (!impl_->ends.empty()) return false;
  for (const auto& [id, job] : impl_->jobs)
    if (job->over || !job->writer->empty(now)) return false;
  return std::none_of(impl_->streams.begin(), impl_->streams.end(),
                      [](const auto& stream) { return stream.second.moved; });
}

bool HostFeed::full() const {
  if (impl_->mark_bytes >= kMarkBytes) return true;
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer->full(); });
}

bool HostFeed::urgent() const {
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer->urgent(); });
}

bool HostFeed::hurries() const { return impl_->hurry; }

std::vector<PieceBatch> HostFeed::flush(uint64_t sequence, TimeNs now) { return impl_->flush(sequence, now); }

void HostFeed::keep_only(const std::set<StreamId>& known) {
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

void HostFeed::refused(const PieceBatch& part) { impl_->refused(part); }

void HostFeed::renew() {
  for (auto& [id, job] : impl_->jobs) impl_->end(*job, job->last_ns);
}

void HostFeed::reload_rules(std::shared_ptr<rules::Ruleset> rules) {
  const auto before = std::exchange(impl_->options.rules, std::move(rules));
  impl_->parsing.use(impl_->options.rules.get(), impl_->options.zone);
  for (auto& [id, job] : impl_->jobs) job->writer->set_rules(impl_->options.rules.get());
}

void HostFeed::set_ended_after(TimeNs ns) { impl_->options.ended_after_ns = ns; }

std::vector<std::string> HostFeed::jobs() const {
  std::vector<std::string> out;
  for (const auto& [id, job] : impl_->jobs) out.push_back(id);
  return out;
}

size_t HostFeed::streams() const { return impl_->streams.size(); }
const FeedCounts& HostFeed::counts() const { return impl_->counts; }

}  // namespace culprit::app
