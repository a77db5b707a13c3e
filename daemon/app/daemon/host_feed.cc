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
// Of blocks in one frame, which holds 6 MiB; a block has some 3 MiB at most.
constexpr size_t kPartBytes = 2 << 20;
// Of a record beside its bytes and names, at most.
constexpr size_t kRecordBytes = 128;
// Of one job's sources, in a frame with its block: what a host's job writes at a time. A kill between that
// frame and the next may tell lines of further ones twice.
constexpr size_t kMarksWithBlock = 8192;
// The mark of the evidence as a whole.
constexpr uint64_t kAllStreams = UINT64_MAX;
// Of a mark's place: what stands at its offset was told.
constexpr uint64_t kGapTold = 1, kEndTold = 2;

class WriterSink : public LiveSink {
 public:
  explicit WriterSink(core::InputWriter& writer) : writer_(writer) {}
  std::vector<core::Effect> step(core::Input& input, TimeNs now) override {
    writer_.add(input, now);
    return {};
  }

 private:
  core::InputWriter& writer_;
};

// A job's session.
struct FeedJob {
  FeedJob(uint64_t number, LiveParsing& parsing)
      : session(number), writer(number), sink(writer), sources(sink, parsing) {}
  const uint64_t session;
  core::InputWriter writer;
  WriterSink sink;
  LiveSources sources;
  StreamId stream = kNoStream;  // of its blocks
  uint64_t offset = 0;
  std::map<StreamId, bool> streams;  // its own, and whether they ended
  TimeNs last_ns = kNoTime;          // when its bytes were read
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
  std::optional<StreamId> all_stream;                     // the mark of kAllStreams
  uint64_t behind = 0;                                    // what it told at the start
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
      if (!cut(stream, piece)) {
        // The kernel's lines of shortly before a job began are told to it.
        if (stream.live.info.kind == OriginKind::kKernel)
          backlog.keep(given.stream, read_kernel(stream.live, given.bytes));
        return;
      }
      take_new(stream, piece, sequence, at);
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
    if (kind != OriginKind::kFile && kind != OriginKind::kSocket) {
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
    stream.moved = stream.moved || stream.mark != before || piece.gap || piece.ends;
  }

  void take_bytes(FeedStream& stream, const Piece& piece, TimeNs at) {
    const StreamInfo& info = stream.live.info;
    const std::string& id = info.job.empty() ? kDefault : info.job;
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
      if (trace.ends) job->writer.ends(trace.failed, at);
    } else if (info.kind == OriginKind::kFile) {
      job->sources.take_file(stream.live, piece, at);
    } else if (info.kind == OriginKind::kRing) {
      job->sources.take_ring(piece, at);
    }
  }

  void note(FeedJob& job, const FeedStream& stream, const Piece& piece, TimeNs at) {
    const bool left = stream.live.info.kind == OriginKind::kSocket && piece.ends;
    if (!left || !piece.bytes.empty()) job.last_ns = std::max(job.last_ns, at);
    if (left)
      job.streams.erase(stream.live.info.id);
    else
      job.streams[stream.live.info.id] = piece.ends;
    if (piece.gap) job.sources.take_gap(stream.live, piece, at);
  }

  FeedJob* job_for(const std::string& id, TimeNs at) {
    const auto known = jobs.find(id);
    if (known != jobs.end()) return known->second.get();
    if (jobs.size() >= options.jobs_max) return nullptr;
    FeedJob& job =
        *jobs.emplace(id, std::make_unique<FeedJob>(options.draw_session(), parsing)).first->second;
    job.writer.set_rules(options.rules.get());
    job.last_ns = at;
    backlog.give(at, [&](StreamId stream, const KernelLine& line) {
      if (const auto kernel = streams.find(stream); kernel != streams.end())
        job.sources.take_kernel(kernel->second.live, {&line, 1}, at);
    });
    return &job;
  }

  void take_kernel(FeedStream& stream, const Piece& piece, TimeNs at) {
    std::vector<KernelLine> lines = read_kernel(stream.live, piece.bytes);
    for (auto& [id, job] : jobs) job->sources.take_kernel(stream.live, lines, at);
    backlog.keep(stream.live.info.id, std::move(lines));
  }

  // ---- what time does

  void tick(const std::string& id, FeedJob& job, TimeNs now) {
    if (job.asked_ns != kNoTime && now >= job.asked_ns && now - job.asked_ns < kAskEvery) return;
    job.asked_ns = now;
    job.writer.tick(now);
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
      job.writer.alive(*alive, now);
    }
    if (silent >= (alive.value_or(true) ? kForgotten : options.ended_after_ns) && alive != true)
      end(job, now);
  }

  // Its unfinished lines are lines.
  void end(FeedJob& job, TimeNs now) {
    if (std::exchange(job.over, true)) return;
    job.sources.end(now);
    for (const auto& [id, ended] : job.streams) {
      const auto known = streams.find(id);
      if (known == streams.end() || known->second.mark == known->second.end) continue;
      known->second.mark = known->second.end;
      known->second.told_at_mark = 0;
      ++known->second.lines;
      known->second.moved = true;
      known->second.live.rest.clear();
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
    void may_part() {
      if (weight_ < kPartBytes) return;
      parts_.emplace_back();
      weight_ = 0;
    }
    std::vector<PieceBatch> take() {
      for (PieceBatch& part : parts_) part.whole = true;
      return std::move(parts_);
    }

   private:
    std::vector<PieceBatch> parts_;
    size_t weight_ = 0;
  };

  static Piece mark_piece(StreamId stream, const FilePlace& place, TimeNs now) {
    Piece out;
    out.stream = stream;
    out.time_ns = now;
    out.place = place;
    return out;
  }

  void add_mark(FeedStream& stream, Parts& out, TimeNs now) {
    stream.moved = false;
    const StreamInfo& info = stream.live.info;
    if (stream.mark_stream == kNoStream) {
      stream.mark_stream = options.allocate();
      StreamInfo mark;
      mark.id = stream.mark_stream;
      mark.kind = OriginKind::kMark;
      mark.job = info.job;
      mark.path = info.path;
      mark.opened_ns = now;
      out.open(std::move(mark));
    }
    FilePlace place;
    place.device = options.evidence_epoch;
    place.inode = info.id;
    place.offset = stream.mark;
    place.tail = stream.lines;
    place.fingerprint = stream.told_at_mark;
    out.add(mark_piece(stream.mark_stream, place, now));
  }

  void add_block(const std::string& id, FeedJob& job, Parts& out, TimeNs now) {
    for (Problem& problem : job.sources.take_broken())
      job.writer.add(core::ProblemSeen{std::move(problem)}, now);
    if (!job.writer.empty(now)) {
      if (job.stream == kNoStream) {
        StreamInfo info;
        info.id = job.stream = options.allocate();
        info.kind = OriginKind::kCondensed;
        info.job = id;
        info.path = "condensed/" + hex64(job.session);
        info.opened_ns = now;
        out.open(std::move(info));
      }
      Piece piece;
      piece.stream = job.stream;
      piece.offset = job.offset;
      piece.bytes = job.writer.flush(now);
      piece.time_ns = now;
      job.offset += piece.bytes.size();
      ++counts.blocks;
      counts.block_bytes += piece.bytes.size();
      out.add(std::move(piece));
    }
    if (!job.over || job.stream == kNoStream) return;
    Piece last;
    last.stream = job.stream;
    last.offset = job.offset;
    last.time_ns = now;
    last.ends = true;
    out.add(std::move(last));
  }

  void add_all_mark(uint64_t sequence, Parts& out, TimeNs now) {
    for (const auto& [id, stream] : streams)
      if (stream.mark < stream.end) sequence = std::min(sequence, stream.since);
    if (!all_stream) {
      all_stream = options.allocate();
      StreamInfo mark;
      mark.id = *all_stream;
      mark.kind = OriginKind::kMark;
      mark.opened_ns = now;
      out.open(std::move(mark));
    }
    FilePlace place;
    place.device = options.evidence_epoch;
    place.inode = kAllStreams;
    place.offset = sequence;
    out.add(mark_piece(*all_stream, place, now));
  }

  // A job's block and the marks of its own sources are one; marks of what all jobs have stand last.
  std::vector<PieceBatch> flush(uint64_t sequence, TimeNs now) {
    Parts out;
    for (Piece& last : std::exchange(ends, {})) {
      last.time_ns = now;
      out.add(std::move(last));
    }
    for (auto& [id, job] : jobs) {
      out.may_part();
      add_block(id, *job, out, now);
      size_t added = 0;
      for (const auto& [stream, ended] : job->streams) {
        const auto known = streams.find(stream);
        if (known == streams.end() || !known->second.moved) continue;
        if (++added > kMarksWithBlock) break;  // the rest with those of all
        add_mark(known->second, out, now);
      }
    }
    for (auto& [id, stream] : streams) {
      if (!stream.moved) continue;
      out.may_part();
      add_mark(stream, out, now);
    }
    add_all_mark(sequence, out, now);
    count();
    std::erase_if(jobs, [](const auto& job) { return job.second->over; });
    hurry = false;
    return out.take();
  }

  // What the condensers have counted, of sessions that are over and of those that go on.
  struct Counted {
    uint64_t lines = 0, bytes = 0, lines_lost = 0, notes_lost = 0;
    void add(const FeedJob& job) {
      const logs::CondenseCounts& c = job.writer.counts();
      lines += c.lines;
      bytes += c.bytes;
      lines_lost += c.dropped;
      notes_lost += job.writer.dropped_notes();
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

  static const std::string kDefault;
};

const std::string HostFeed::Impl::kDefault = kDefaultJob;

HostFeed::HostFeed(FeedOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HostFeed::~HostFeed() = default;

void HostFeed::resume(const std::vector<StreamState>& known, TimeNs now) {
  Impl& s = *impl_;
  for (const StreamState& state : known) {
    if (state.ended) continue;
    const bool ours = state.info.kind == OriginKind::kMark && state.place &&
                      state.place->device == s.options.evidence_epoch;
    if (ours && state.place->inode == kAllStreams) {
      s.all_stream = state.info.id;
      s.behind = state.place->offset;
    } else if (ours && state.place->inode < kNoStream) {
      s.known_marks[static_cast<StreamId>(state.place->inode)] = state;
    } else {  // a session of before, or the mark of another spool's
      // Its job goes on at once, in a new one: what the kernel says is told to it though it is silent itself.
      if (state.info.kind == OriginKind::kCondensed) (void)s.job_for(state.info.job, now);
      Piece last;
      last.stream = state.info.id;
      last.offset = state.size;
      last.ends = true;
      s.ends.push_back(std::move(last));
    }
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

bool HostFeed::empty(TimeNs now) const {
  if (!impl_->ends.empty()) return false;
  for (const auto& [id, job] : impl_->jobs)
    if (job->over || !job->writer.empty(now)) return false;
  return std::none_of(impl_->streams.begin(), impl_->streams.end(),
                      [](const auto& stream) { return stream.second.moved; });
}

bool HostFeed::full() const {
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer.full(); });
}

bool HostFeed::urgent() const {
  return std::any_of(impl_->jobs.begin(), impl_->jobs.end(),
                     [](const auto& job) { return job.second->writer.urgent(); });
}

bool HostFeed::hurries() const { return impl_->hurry; }

std::vector<PieceBatch> HostFeed::flush(uint64_t sequence, TimeNs now) { return impl_->flush(sequence, now); }

void HostFeed::keep_only(const std::set<StreamId>& known) {
  Impl& s = *impl_;
  const auto end_mark = [&](StreamId mark) {
    Piece last;
    last.stream = mark;
    last.ends = true;
    if (mark != kNoStream) s.ends.push_back(std::move(last));
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
}

void HostFeed::renew() {
  for (auto& [id, job] : impl_->jobs) impl_->end(*job, job->last_ns);
}

void HostFeed::reload_rules(std::shared_ptr<rules::Ruleset> rules) {
  const auto before = std::exchange(impl_->options.rules, std::move(rules));
  impl_->parsing.use(impl_->options.rules.get(), impl_->options.zone);
  for (auto& [id, job] : impl_->jobs) job->writer.set_rules(impl_->options.rules.get());
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
