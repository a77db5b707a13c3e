#include "app/play/play_agent.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "store/record.h"
#include "store/segment.h"

namespace culprit::app {
namespace {

using forward::SourceFrame;
using peer::Log;

// Bytes per piece, as for a tailer with a backlog; bytes per frame, a fraction of the limit.
constexpr size_t kPieceBytes = 256 << 10, kFrameBytes = 1 << 20;

size_t index(Log log) { return static_cast<size_t>(log); }

}  // namespace

PlayAgent::PlayAgent(PlayAgentOptions options) : options_(std::move(options)) {
  for (size_t i = 0; i < logs_.size(); ++i) packing_[i].epoch = logs_[i].epoch = random_number();
  JobForwarderOptions feed;
  feed.host = options_.host;
  feed.roots = {options_.root};
  feed.rules = options_.rules;
  feed.evidence_epoch = packing_[index(Log::kEvidence)].epoch;
  feed.allocate = [this] { return next_id_++; };
  feed.draw_session = random_number;
  feed_ = std::make_unique<JobForwarder>(std::move(feed));
}

// ---- worker only

PlayAgent::Made PlayAgent::condense(const SlicedJob& job, const Step& step) {
  Made made;
  if (step.slices)
    for (const JobSlice& slice : *step.slices)
      if (made.read) made.read = ingest(job, slice, step.now, made);
  if (step.last) feed_->tick(step.now);  // all files have ended, so the processes are gone
  if ((step.flush || step.last || feed_->urgent()) && !feed_->empty(step.now))
    for (const PieceBatch& batch : feed_->flush(packing_[index(Log::kEvidence)].sequence, step.now))
      pack(Log::kCondensed, batch, step.now, made);
  made.log_bytes = feed_->counts().bytes;
  made.lines = feed_->counts().lines;
  return made;
}

Status PlayAgent::ingest(const SlicedJob& job, const JobSlice& slice, TimeNs now, Made& made) {
  const LogFile& file = job.files.logs[slice.file];
  auto opened = io::real_files().open(file.file.path, io::OpenFor::kRead);
  if (!opened) return tl::unexpected(opened.error());
  Stream& stream = streams_[slice.file];
  PieceBatch batch;
  if (stream.id == kNoStream) {
    stream.id = slice.file + 1;
    StreamInfo info;
    info.id = stream.id;
    info.job = options_.job;
    info.path = file.file.path;
    info.opened_ns = now;
    batch.opened.push_back(std::move(info));
  }
  while (stream.taken < slice.end || slice.last) {
    Piece piece;
    piece.stream = stream.id;
    piece.offset = stream.taken;
    piece.time_ns = now;
    piece.bytes.resize(std::min<uint64_t>(kPieceBytes, slice.end - stream.taken));
    const auto size = (*opened)->read_at(piece.bytes.data(), piece.bytes.size(), stream.taken);
    if (!size) return tl::unexpected(size.error());
    if (*size < piece.bytes.size())
      return fail(ErrorCode::kIo, file.file.path + ": became shorter while it was played");
    stream.taken += *size;
    piece.ends = slice.last && stream.taken == slice.end;
    const bool ends = piece.ends;
    batch.pieces.push_back(std::move(piece));
    if (batch.bytes() >= kFrameBytes) emit(std::exchange(batch, {}), now, made);
    if (ends) break;
  }
  if (!batch.pieces.empty()) emit(std::move(batch), now, made);
  return {};
}

void PlayAgent::emit(PieceBatch&& batch, TimeNs now, Made& made) {
  if (options_.evidence) pack(Log::kEvidence, batch, now, made);
  const uint64_t sequence = packing_[index(Log::kEvidence)].sequence;
  for (size_t next = 0; next < batch.pieces.size();) {
    next = feed_->ingest(batch, {next, sequence}, now);
    if (!feed_->full()) continue;
    for (const PieceBatch& block : feed_->flush(sequence, now)) pack(Log::kCondensed, block, now, made);
  }
}

void PlayAgent::pack(Log log, const PieceBatch& batch, TimeNs now, Made& made) {
  Packing& packing = packing_[index(log)];
  store::FrameHeader header;
  header.epoch = packing.epoch;
  header.segment = 1;
  header.sequence = ++packing.sequence;
  header.time_ns = now;
  header.declares = !batch.opened.empty();
  std::string raw;
  for (const StreamInfo& info : batch.opened) {
    store::put_stream(raw, info);
    header.stream_mask |= store::stream_bit(info.id);
  }
  for (const Piece& piece : batch.pieces) {
    store::put_piece(raw, piece);
    header.stream_mask |= store::stream_bit(piece.stream);
  }
  made.frames[index(log)].push_back(
      {peer::FrameKind::kData, header.sequence, now, store::pack_frame(header, raw)});
}

// ---- loop only

void PlayAgent::add(Made made) {
  for (size_t i = 0; i < logs_.size(); ++i)
    for (SourceFrame& frame : made.frames[i]) {
      logs_[i].next = frame.sequence + 1;
      logs_[i].bytes += frame.bytes.size();
      logs_[i].frames.push_back(std::move(frame));
    }
}

bool PlayAgent::all_given() const {
  return std::all_of(logs_.begin(), logs_.end(),
                     [](const PendingLog& log) { return log.given + 1 >= log.next; });
}

bool PlayAgent::all_acknowledged() const {
  return std::all_of(logs_.begin(), logs_.end(), [](const PendingLog& log) { return log.frames.empty(); });
}

peer::LogBounds PlayAgent::bounds(peer::Log which) const {
  const PendingLog& log = logs_[index(which)];
  return {which, log.epoch, log.frames.empty() ? log.next : log.frames.front().sequence, log.next};
}

// Returns all waiting frames, since the Player limits their number. There are no checkpoints: the first
// frames declare the streams.
void PlayAgent::read(forward::ReadRequest request, Done done) {
  PendingLog& log = logs_[index(request.log)];
  std::vector<SourceFrame> out;
  size_t bytes = 0;
  const uint64_t first = log.frames.empty() ? log.next : log.frames.front().sequence;
  for (size_t i = request.after + 1 > first ? request.after + 1 - first : 0;
       i < log.frames.size() && out.size() < request.max_frames && bytes < request.max_bytes; ++i) {
    const SourceFrame& frame = log.frames[i];
    out.push_back(frame);
    bytes += frame.bytes.size();
    log.given = std::max(log.given, frame.sequence);
  }
  done(std::move(out));
}

void PlayAgent::acknowledged(peer::Log which, uint64_t sequence) {
  PendingLog& log = logs_[index(which)];
  uint64_t frames = 0;
  for (; !log.frames.empty() && log.frames.front().sequence <= sequence; ++frames) {
    log.bytes -= log.frames.front().bytes.size();
    log.frames.pop_front();
  }
  if (on_acknowledged) on_acknowledged(frames);
}

}  // namespace culprit::app
