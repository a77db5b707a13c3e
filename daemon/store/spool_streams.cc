#include "store/spool_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace culprit::store {

void SpoolStreams::raise_next_id(StreamId at_least) {
  StreamId next = next_id();
  while (next < at_least && !next_id_.compare_exchange_weak(next, at_least)) {
  }
}

StoredStream SpoolStreams::stored(const Stream& s) {
  return {{s.info, s.committed.size, s.committed.place, s.committed.ended, s.committed.past}, s.first_offset};
}

std::vector<StoredStream> SpoolStreams::stored() const {
  std::vector<StoredStream> found;
  for (const auto& [id, stream] : streams_)
    if (stream.declared) found.push_back(stored(stream));
  return found;
}

std::vector<StreamState> SpoolStreams::appended() const {
  std::vector<StreamState> found;
  for (const auto& [id, s] : streams_)
    found.push_back({s.info, s.appended.size, s.appended.place, s.appended.ended, s.appended.past});
  return found;
}

std::vector<StoredStream> SpoolStreams::stored_of(const std::string& job, const std::string& path) const {
  std::vector<StoredStream> found;
  for (const auto& [id, s] : streams_) {
    const bool of_host = is_of_host(s.info.kind) || s.info.kind == OriginKind::kDump;
    const bool of_job = s.info.job == job || (s.info.job.empty() && of_host);
    if (s.declared && of_job && (path.empty() || s.info.path == path)) found.push_back(stored(s));
  }
  return found;
}

const StreamInfo* SpoolStreams::info(StreamId id) const {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second.info;
}

std::optional<Principal> SpoolStreams::uid_of(const std::string& job) const {
  for (const auto& [id, stream] : streams_)
    if (stream.info.job == job && stream.info.uid) return stream.info.uid;
  return std::nullopt;
}

uint64_t SpoolStreams::uncommitted_bytes(const Mark& mark) const {
  const auto found = streams_.find(mark.stream);
  return found == streams_.end() ? 0 : mark.position.size - found->second.committed.size;
}

// ---- a batch

Status SpoolStreams::declare(const PieceBatch& batch) {
  for (size_t i = 0; i < batch.opened.size(); ++i) {
    const StreamInfo& info = batch.opened[i];
    if (info.id != kNoStream) {
      const auto [at, fresh] = streams_.try_emplace(info.id);
      if (fresh) {
        at->second.info = info;
        continue;
      }
    }
    for (size_t k = 0; k < i; ++k) streams_.erase(batch.opened[k].id);
    return fail(ErrorCode::kInvalid,
                fmt::format("stream {}, {}: it was declared before", info.id, info.path));
  }
  Status checked = check(batch);
  if (!checked)
    for (const StreamInfo& info : batch.opened) streams_.erase(info.id);
  return checked;
}

Status SpoolStreams::check(const PieceBatch& batch) {
  batches_ += 1;
  for (const Piece& piece : batch.pieces) {
    const auto found = streams_.find(piece.stream);
    if (found == streams_.end())
      return fail(ErrorCode::kInvalid, fmt::format("stream {}: it was never declared", piece.stream));
    Stream& stream = found->second;
    if (stream.check_batch != batches_) stream.check_size = stream.appended.size;
    stream.check_batch = batches_;
    if (piece.offset != stream.check_size)
      return fail(ErrorCode::kInvalid,
                  fmt::format("stream {}, {}: a piece at {} cannot follow byte {}", piece.stream,
                              stream.info.path, piece.offset, stream.check_size));
    stream.check_size += piece.bytes.size();
  }
  return {};
}

void SpoolStreams::touch(Stream& stream) {
  if (!std::exchange(stream.touched, true)) touched_.push_back(stream.info.id);
}

void SpoolStreams::open(const StreamInfo& info) {
  touch(streams_.at(info.id));
  raise_next_id(info.id + 1);
}

void SpoolStreams::append(const Piece& piece) {
  Stream& stream = streams_.at(piece.stream);
  const uint64_t size = stream.appended.size;
  advance(stream.appended, piece, stream.info.kind, piece.bytes.size());
  CULPRIT_CHECK(stream.appended.size >= size);
  touch(stream);
}

// ---- frames and commits

std::vector<SpoolStreams::Mark> SpoolStreams::end_frame() {
  std::vector<Mark> marks;
  for (const StreamId id : touched_) {
    Stream& stream = streams_.at(id);
    stream.touched = false;
    marks.push_back({id, stream.appended});
  }
  touched_.clear();
  return marks;
}

void SpoolStreams::commit(const std::vector<Mark>& marks) {
  for (const Mark& mark : marks) {
    const auto found = streams_.find(mark.stream);
    if (found == streams_.end()) continue;
    Stream& stream = found->second;
    CULPRIT_CHECK(mark.position.size >= stream.committed.size);
    stream.committed = mark.position;
    stream.declared = true;
    if (!std::exchange(stream.moved, true)) moved_.push_back(mark.stream);
  }
}

std::vector<CommittedOffset> SpoolStreams::drain_moved() {
  std::vector<CommittedOffset> moved;
  for (const StreamId id : moved_) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;
    found->second.moved = false;
    moved.push_back({id, found->second.committed.size});
  }
  moved_.clear();
  return moved;
}

uint64_t SpoolStreams::forget() {
  // Forgets more than necessary, so that the batches until the next commit have room and this runs rarely.
  constexpr size_t kRetained = kStreamsMax / 2;
  uint64_t forgotten = 0;
  for (auto it = streams_.begin(); it != streams_.end() && streams_.size() > kRetained;) {
    const Stream& s = it->second;
    const bool removed = s.declared && s.committed.ended && s.appended.size == s.committed.size && !s.touched;
    it = removed ? streams_.erase(it) : std::next(it);
    forgotten += removed;
  }
  return forgotten;
}

void SpoolStreams::delete_before(StreamId id, const Position& position) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  Stream& stream = found->second;
  stream.first_offset = std::max(stream.first_offset, position.size);
  const bool over = position.ended && stream.appended.ended && stream.appended.size == position.size;
  if (over && !stream.touched && !stream.moved) streams_.erase(found);
}

// ---- recovery

void SpoolStreams::recover(const StreamInfo& info) {
  Stream& stream = streams_[info.id];
  stream.info = info;
  stream.declared = true;
  recover_next_id(info.id + 1);
}

void SpoolStreams::recover(const Piece& piece, std::string_view bytes) {
  const auto found = streams_.find(piece.stream);
  if (found == streams_.end()) {
    // The frame that declared the stream is damaged. The piece is not readable, but the stream's id must
    // not be used again.
    return recover_next_id(piece.stream + 1);
  }
  advance(found->second.committed, piece, found->second.info.kind, bytes.size());
}

void SpoolStreams::recover(StreamId id, const Position& position) {
  if (const auto found = streams_.find(id); found != streams_.end()) found->second.committed = position;
}

void SpoolStreams::recover_next_id(StreamId at_least) {
  if (at_least != kNoStream) raise_next_id(at_least);
}

void SpoolStreams::end_recovery() {
  for (auto& [id, stream] : streams_) stream.appended = stream.committed;
}

}  // namespace culprit::store
