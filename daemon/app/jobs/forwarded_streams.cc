#include "app/jobs/forwarded_streams.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace culprit::app {
namespace {

// Limit of mark bytes between two flushes. A block has at most some 3 MiB and shares a frame with the marks
// of its sources. A frame holds 6 MiB, and up to JobForwarderOptions::part_bytes of it are already in use.
constexpr size_t kMarkBytes = 2 << 20;
// Stream number of the mark of the whole evidence.
constexpr uint64_t kAllStreams = UINT64_MAX;
// Flags in a mark's place: the gap or the end at its offset is already forwarded.
constexpr uint64_t kGapReported = 1, kEndReported = 2;

}  // namespace

bool ForwardedStream::cut(Piece& piece) {
  if (!resumes) return true;
  const uint64_t piece_end = piece.offset + piece.bytes.size();
  const bool at_mark = piece.offset == resume;
  if (piece.offset < resume || (at_mark && (resume_reported & kGapReported))) piece.gap.reset();
  if (piece_end <= resume) {
    if (piece_end == resume && (resume_reported & kEndReported)) piece.ends = false;
    if (piece_end < resume || (!piece.gap && !piece.ends)) return false;
  }
  if (piece.offset < resume) {
    piece.bytes.erase(0, resume - piece.offset);
    piece.offset = resume;
  }
  resumes = false;
  return true;
}

bool ForwardedStream::advance(const Piece& piece, uint64_t sequence, bool pending) {
  const uint64_t before = mark;
  const OriginKind kind = live.info.kind;
  const bool incomplete = mark < end;
  if (!incomplete) since = sequence;
  if (piece.gap) {
    if (incomplete) ++lines;
    mark = piece.offset;
    since = sequence;
  }
  end = piece.offset + piece.bytes.size();
  const size_t last = piece.bytes.rfind('\n');
  if (kind == OriginKind::kDump) {
    if (!pending) mark = end;
  } else if (kind != OriginKind::kFile && kind != OriginKind::kSocket) {
    mark = end;
  } else if (last != std::string::npos) {
    mark = piece.offset + last + 1;
    lines += static_cast<uint64_t>(std::count(piece.bytes.begin(), piece.bytes.end(), '\n'));
    since = sequence;
  }
  if (piece.ends && mark < end) {
    ++lines;
    mark = end;
  }
  CULPRIT_CHECK(mark >= before && mark <= end);
  if (mark != before) reported_at_mark = 0;
  if (piece.gap && mark == piece.offset) reported_at_mark |= kGapReported;
  if (piece.ends) reported_at_mark |= kEndReported;
  live.ended = piece.ends;
  return mark != before || piece.gap || piece.ends;
}

bool ForwardedStreams::resume(const StreamState& state) {
  const MarkPlace place = MarkPlace::from(*state.place);
  if (place.stream == kAllStreams) {
    all_stream_ = state.info.id;
    behind_ = place.offset;
    return true;
  }
  if (place.flags == kOfOneJob || place.stream >= kNoStream) return false;
  known_marks_[static_cast<StreamId>(place.stream)] = state;
  return true;
}

void ForwardedStreams::open(const StreamInfo& info, uint64_t sequence) {
  const auto [at, fresh] = streams_.try_emplace(info.id);
  ForwardedStream& stream = at->second;
  stream.live.info = info;
  if (!fresh) return;
  stream.since = sequence;
  const auto known = known_marks_.find(info.id);
  if (known == known_marks_.end()) return;
  const MarkPlace place = MarkPlace::from(*known->second.place);
  stream.mark_stream = known->second.info.id;
  stream.resume = stream.mark = stream.end = place.offset;
  stream.lines = place.lines;
  stream.resume_reported = stream.reported_at_mark = place.flags;
  stream.resumes = true;
  known_marks_.erase(known);
}

ForwardedStream* ForwardedStreams::find(StreamId id) {
  const auto known = streams_.find(id);
  return known == streams_.end() ? nullptr : &known->second;
}

void ForwardedStreams::advance(ForwardedStream& stream, const Piece& piece, uint64_t sequence, bool pending) {
  if (stream.advance(piece, sequence, pending)) move(stream);
}

void ForwardedStreams::complete_dump(ForwardedStream& stream) {
  stream.mark = stream.end;
  stream.reported_at_mark = 0;
  move(stream);
}

void ForwardedStreams::complete_line(StreamId id) {
  ForwardedStream* stream = find(id);
  if (!stream || stream->mark == stream->end) return;
  stream->mark = stream->end;
  stream->reported_at_mark = 0;
  ++stream->lines;
  move(*stream);
}

void ForwardedStreams::move(ForwardedStream& stream) {
  if (!std::exchange(stream.moved, true))
    mark_bytes_ += FlushParts::kRecordBytes + stream.live.info.path.size() + stream.live.info.job.size();
}

bool ForwardedStreams::any_moved() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream.second.moved; });
}

bool ForwardedStreams::full() const { return mark_bytes_ >= kMarkBytes; }

std::map<std::string_view, std::vector<ForwardedStream*>> ForwardedStreams::moved() {
  std::map<std::string_view, std::vector<ForwardedStream*>> out;
  for (auto& [id, stream] : streams_) {
    if (is_of_host(stream.live.info.kind))
      stream.moved = false;
    else if (stream.moved)
      out[job_of(stream.live)].push_back(&stream);
  }
  return out;
}

void ForwardedStreams::write(ForwardedStream& stream, FlushParts& out) {
  stream.moved = false;
  const StreamInfo& info = stream.live.info;
  MarkPlace place;
  place.stream = info.id;
  place.offset = stream.mark;
  place.lines = stream.lines;
  place.flags = stream.reported_at_mark;
  out.add(ForwardMark{stream.mark_stream, info.job, info.path, place});
}

void ForwardedStreams::write_rest(uint64_t sequence, FlushParts& out) {
  for (auto& [id, stream] : streams_) {
    if (!stream.moved) continue;
    out.may_part();
    write(stream, out);
  }
  for (const auto& [id, stream] : streams_)
    if (stream.mark < stream.end) sequence = std::min(sequence, stream.since);
  MarkPlace place;
  place.stream = kAllStreams;
  place.offset = sequence;
  out.add(ForwardMark{all_stream_, "", "", place});
  mark_bytes_ = 0;
}

void ForwardedStreams::refused(const Lost& lost) {
  lost(all_stream_);
  for (auto& [id, stream] : streams_)
    if (lost(stream.mark_stream)) move(stream);
}

void ForwardedStreams::keep_only(const std::set<StreamId>& known,
                                 const std::function<void(StreamId mark)>& end) {
  std::erase_if(known_marks_, [&](const auto& mark) {
    if (known.contains(mark.first)) return false;
    end(mark.second.info.id);
    return true;
  });
  std::erase_if(streams_, [&](const auto& stream) {
    if (!stream.second.live.ended || stream.second.moved || known.contains(stream.first)) return false;
    end(stream.second.mark_stream);
    return true;
  });
}

}  // namespace culprit::app
