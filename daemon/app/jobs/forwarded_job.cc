#include "app/jobs/forwarded_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace culprit::app {

std::vector<core::Effect> WriterSink::step(core::Input& input, TimeNs now) {
  if (const auto* received = std::get_if<core::ReceivedTraceCount>(&input)) {
    received_.push_back(*received);
    return {};
  }
  while (received_sent_ < received_.size()) writer_->add(received_[received_sent_++], now);
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

void WriterSink::begin_session() {
  next_ = received_sent_ = 0;
  dropped_lines_ = 0;  // already counted with the ended session
  for (WrittenSource& source : sources_) source.number.reset();
}

void WriterSink::declare(WrittenSource& source, TimeNs now) {
  if (!writer_->has_room_for_source()) return;
  source.number = next_++;
  writer_->add(core::SourceOpened{source.info}, now);
}

void WriterSink::write_lines(logs::LogBatch& batch, TimeNs now) {
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

SessionCounts& SessionCounts::operator+=(const SessionCounts& other) {
  lines += other.lines;
  bytes += other.bytes;
  lines_lost += other.lines_lost;
  notes_lost += other.notes_lost;
  return *this;
}

RefusedPart::RefusedPart(const PieceBatch& part) {
  for (const StreamInfo& info : part.opened) undeclared.insert(info.id);
  for (const Piece& piece : part.pieces) retained.try_emplace(piece.stream, piece.offset);
}

bool RefusedPart::lost(StreamId& mark) const {
  if (mark == kNoStream || !retained.contains(mark)) return false;
  if (undeclared.contains(mark)) mark = kNoStream;
  return true;
}

ForwardedJob::ForwardedJob(std::string id, const JobForwarderOptions& options, LiveParsing& parsing)
    : id_(std::move(id)),
      options_(options),
      session_(options.draw_session()),
      writer_(session_),
      sink_(writer_),
      sources_(id_, sink_, parsing) {
  writer_->set_rules(options.rules.get());
}

void ForwardedJob::note(const LiveStream& from, const Piece& piece, TimeNs now) {
  if (shows_life(from.info, piece)) last_ns = std::max(last_ns, now);
  streams_.note(from.info, piece);
  note_owner(from, piece, now);
}

// A session has one owner. If the next piece belongs to another user, it starts a new session.
void ForwardedJob::note_owner(const LiveStream& from, const Piece& piece, TimeNs now) {
  const auto before_it = pool_owner_.uid();
  pool_owner_.add(from.info, piece, options_.uid);
  if (pool_owner_.uid() == before_it || stream_ == kNoStream) return;
  if (!writer_->empty(now)) {
    Piece& block = before.emplace_back();
    block.stream = stream_;
    block.offset = offset_;
    block.bytes = writer_->flush(now);
    offset_ += block.bytes.size();
  }
  before.push_back(end_of(stream_, offset_));
  begin_session();
}

void ForwardedJob::ingest(const LiveStream& from, const Piece& piece, TimeNs now) {
  note(from, piece, now);
  sources_.ingest(from, piece, now);
}

void ForwardedJob::ingest_trace(const LiveStream& from, TraceBatch& batch, const Piece& piece, TimeNs now) {
  note(from, piece, now);
  if (piece.gap) sources_.ingest_gap(from, piece, now);
  sources_.ingest_trace(from, batch, now);
  if (batch.ends) writer_->ends(batch.failed, now);
}

// Informs the collector of each user once; the counts are this host's.
void ForwardedJob::keep_out(Principal user, const LiveStream& from, const Piece& piece) {
  if (piece.bytes.empty()) return;
  if (!owner.refused(user, piece, from.info.kind)) return;
  std::string what =
      fmt::format("lines or records of {} for this job are kept as evidence only: the job is another user's",
                  to_string(user));
  writer_->add(core::ProblemSeen{{"", std::nullopt, std::move(what)}}, last_ns);
}

void ForwardedJob::ingest_host_lines(LiveStream& from, const Piece& piece, std::span<const HostLine> lines,
                                     TimeNs now) {
  HostMark& mark = host_marks[from.info.id];
  const uint64_t end = piece.offset + piece.bytes.size();
  if (end <= mark.reported) return;
  if (mark.reported <= piece.offset) {
    sources_.ingest_host_lines(from, lines, now);
  } else {
    const std::string_view rest = std::string_view(piece.bytes).substr(mark.reported - piece.offset);
    sources_.ingest_host_lines(from, read_host_lines(from, rest, mark.reported), now);
  }
  CULPRIT_CHECK(end >= mark.reported);
  mark.reported = end;
  mark.moved = true;
}

// Starts another session of the same sources, which may be in the middle of a line. The previous session ends
// with the first block of the new one: a collector drops a session once the next one begins. After a kill the
// job is found by the previous session.
void ForwardedJob::begin_session() {
  earlier_ = counts();
  session_ = options_.draw_session();
  writer_.emplace(session_);
  writer_->set_rules(options_.rules.get());
  sink_.begin_session();
  stream_ = kNoStream;
  offset_ = 0;
  reported.reset();
}

void ForwardedJob::add_block(FlushParts& out, JobForwarderCounts& totals) {
  const TimeNs now = out.now();
  for (Problem& problem : sources_.drain_broken()) writer_->add(core::ProblemSeen{std::move(problem)}, now);
  const bool has_blocks = std::ranges::any_of(before, [](const Piece& p) { return !p.bytes.empty(); });
  if (over || has_blocks || !writer_->empty(now))
    for (Piece& last : std::exchange(before, {})) {
      totals.blocks += last.bytes.empty() ? 0 : 1;
      totals.block_bytes += last.bytes.size();
      out.add(std::move(last));
    }
  if (!writer_->empty(now)) {
    if (stream_ == kNoStream) {
      stream_ = out.open(OriginKind::kCondensed, id_, "condensed/" + hex64(session_), pool_owner_.uid());
      began_ns_ = now;
    }
    Piece piece;
    piece.stream = stream_;
    piece.offset = offset_;
    piece.bytes = writer_->flush(now);
    offset_ += piece.bytes.size();
    ++totals.blocks;
    totals.block_bytes += piece.bytes.size();
    out.add(std::move(piece));
  }
  if (stream_ == kNoStream) return;
  const bool is_long = offset_ >= options_.session_bytes || now - began_ns_ >= options_.session_ns;
  if (over) {
    out.add(end_of(stream_, offset_));
  } else if (is_long) {
    before.push_back(end_of(stream_, offset_));
    begin_session();
  }
}

void ForwardedJob::add_host_marks(FlushParts& out, ForwardedStreams& streams) {
  for (auto& [stream, mark] : host_marks) {
    if (over && mark.stream != kNoStream) out.add(end_of(mark.stream));
    const bool has_block = stream_ != kNoStream || !before.empty();
    if (over || !has_block || !std::exchange(mark.moved, false)) continue;
    const ForwardedStream* known = streams.find(stream);
    MarkPlace place;
    place.stream = stream;
    place.offset = mark.reported;
    place.flags = kOfOneJob;
    out.add(ForwardMark{mark.stream, id_, known ? known->live.info.path : "", place});
  }
}

void ForwardedJob::refused(const RefusedPart& part) {
  for (auto& [stream, mark] : host_marks)
    if (part.lost(mark.stream)) mark.moved = true;
  // A block after a lost one is useless.
  std::erase_if(before, [&](const Piece& last) {
    return part.undeclared.contains(last.stream) ||
           (!last.bytes.empty() && part.retained.contains(last.stream));
  });
  for (Piece& last : before)
    if (const auto at = part.retained.find(last.stream); at != part.retained.end()) last.offset = at->second;
  if (stream_ == kNoStream) return;
  const auto block = part.retained.find(stream_);
  if (block == part.retained.end()) return;
  if (!part.undeclared.contains(stream_)) before.push_back(end_of(stream_, block->second));
  begin_session();
}

SessionCounts ForwardedJob::counts() const {
  const wire::CondenseCounts& c = writer_->counts();
  SessionCounts out{c.lines, c.bytes, c.dropped + sink_.dropped_lines(), writer_->dropped_notes()};
  out += earlier_;
  return out;
}

}  // namespace culprit::app
