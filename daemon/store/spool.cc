#include "store/spool.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/hash.h"
#include "base/limits.h"

namespace culprit::store {

namespace {

// Content at which a frame is packed. Larger ones compress little better (zstd's window at level 1 is 512
// KiB), and a damaged frame costs this much evidence.
constexpr size_t kFrameBytes = 512 << 10;
// Shortest match: lines repeat in long parts. Without short matches frames are 1 % smaller and 3 % faster.
constexpr int kMinMatch = 7;
// Hash table size: the table and the text then fit the first-level cache, for 7 % less time and 1.5 % larger
// frames.
constexpr int kHashLog = 13;
// Bytes that wait while the disk fails: a packed frame and the current one.
constexpr size_t kPendingBytes = kFrameRawMax;
static_assert(kBatchBytes + kFrameBytes <= kPendingBytes);

}  // namespace

struct Spool::Packer {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::unique_ptr<char[]> place;  // output of zstd: a string would be zeroed for each frame
  size_t size = 0;
  ~Packer() { ZSTD_freeCCtx(context); }

  char* place_for(size_t bound) {
    // Releases the memory of a frame that waited for the disk.
    if (size < bound || size > 4 * kFrameBytes) {
      size = std::max(bound, ZSTD_COMPRESSBOUND(kFrameBytes + limits::kPieceBytes));
      place.reset();
      place = std::make_unique_for_overwrite<char[]>(size);
    }
    return place.get();
  }
};

Spool::Spool(io::Files& files, SpoolOptions options)
    : files_(files), options_(std::move(options)), packer_(std::make_unique<Packer>()) {
  ZSTD_CCtx_setParameter(packer_->context, ZSTD_c_compressionLevel, options_.level);
  ZSTD_CCtx_setParameter(packer_->context, ZSTD_c_minMatch, kMinMatch);
  ZSTD_CCtx_setParameter(packer_->context, ZSTD_c_hashLog, kHashLog);
}

Spool::~Spool() = default;

Result<std::unique_ptr<Spool>> Spool::open(io::Files& files, SpoolOptions options, TimeNs now) {
  std::unique_ptr<Spool> spool(new Spool(files, std::move(options)));
  if (const Status status = spool->recover(now); !status) return tl::unexpected(status.error());
  return spool;
}

// ---- streams

KeptStream Spool::kept(const Stream& s) const {
  return {{s.info, s.committed.size, s.committed.place, s.committed.ended, s.committed.past}, s.first_offset};
}

std::vector<KeptStream> Spool::streams() const {
  std::vector<KeptStream> found;
  for (const auto& [id, stream] : streams_)
    if (stream.declared) found.push_back(kept(stream));
  return found;
}

std::vector<StreamState> Spool::appended() const {
  std::vector<StreamState> found;
  for (const auto& [id, s] : streams_)
    found.push_back({s.info, s.appended.size, s.appended.place, s.appended.ended, s.appended.past});
  return found;
}

std::vector<KeptStream> Spool::streams_of(const std::string& job, const std::string& path) const {
  std::vector<KeptStream> found;
  for (const auto& [id, s] : streams_) {
    const bool of_host = s.info.kind == OriginKind::kKernel || s.info.kind == OriginKind::kDump;
    const bool of_job = s.info.job == job || (s.info.job.empty() && of_host);
    if (s.declared && of_job && (path.empty() || s.info.path == path)) found.push_back(kept(s));
  }
  return found;
}

SpoolStats Spool::stats() const {
  SpoolStats stats = stats_;
  stats.bytes = bytes_;
  stats.segments = segments_.size();
  stats.pending_bytes = raw_.size() + ready_.size();
  for (size_t i = 0; options_.hold && i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    const uint64_t last = i + 1 < segments_.size() ? segments_[i + 1].before : written_sequence_;
    if (last <= acknowledged_ || last <= segment.before) continue;
    const double share = static_cast<double>(last - std::max(acknowledged_, segment.before)) /
                         static_cast<double>(last - segment.before);
    stats.waiting_bytes += static_cast<uint64_t>(share * static_cast<double>(segment.size));
  }
  return stats;
}

uint64_t Spool::first_sequence() const {
  return (segments_.empty() ? written_sequence_ : segments_.front().before) + 1;
}

void Spool::retain_after(uint64_t acknowledged) { acknowledged_ = std::max(acknowledged_, acknowledged); }

void Spool::raise_sequence(uint64_t sequence) {
  sequence = std::min(sequence, kSequenceMax / 2);
  sequence_ = std::max(sequence_, sequence);
  if (!ready_.empty() && ready_header_.sequence <= sequence) ready_header_.sequence = ++sequence_;
}

Status Spool::note(Status status, TimeNs now) {
  if (status) {
    stats_.failing_since_ns = kNoTime;
    return status;
  }
  stats_.failures += 1;
  stats_.last_error = status.error().text;
  if (stats_.failing_since_ns == kNoTime) stats_.failing_since_ns = now;
  return status;
}

// ---- taking batches

Status Spool::append(const PieceBatch& batch, TimeNs now) {
  CULPRIT_CHECK(owner_.here());
  const size_t size = encoded_size_max(batch);
  if (size > kBatchBytes)
    return fail(ErrorCode::kInvalid,
                fmt::format("batch of {} bytes: at most {} are taken", size, kBatchBytes));
  crash_point("store.before_append");
  if (raw_.size() + size > kPendingBytes || !ready_.empty()) {
    const Status written = write_pending(now);
    if (!written && raw_.size() + size > kPendingBytes) return written;
  }
  if (const Status declared = declare(batch); !declared) return declared;
  if (const Status checked = check_pieces(batch); !checked) {
    for (const StreamInfo& stream : batch.opened) streams_.erase(stream.id);
    return checked;
  }
  advance_streams(batch, now);
  crash_point("store.after_append");
  return {};
}

Status Spool::declare(const PieceBatch& batch) {
  if (streams_.size() + batch.opened.size() > kStreamsMax)
    return fail(ErrorCode::kLimit,
                fmt::format("{}: more than {} sources at a time", options_.folder, kStreamsMax));
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
  return {};
}

Status Spool::check_pieces(const PieceBatch& batch) {
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

void Spool::advance_streams(const PieceBatch& batch, TimeNs now) {
  const auto touch = [this](Stream& stream) {
    raw_mask_ |= stream_bit(stream.info.id);
    if (!std::exchange(stream.touched, true)) touched_.push_back(stream.info.id);
  };
  for (const StreamInfo& info : batch.opened) {
    put_stream(raw_, info);
    raw_declares_ = true;
    touch(streams_.at(info.id));
    StreamId next = next_id_.load(std::memory_order_relaxed);
    while (next <= info.id && !next_id_.compare_exchange_weak(next, info.id + 1)) {
    }
  }
  for (const Piece& piece : batch.pieces) {
    Stream& stream = streams_.at(piece.stream);
    put_piece(raw_, piece);
    stats_.raw_bytes += piece.bytes.size();
    const uint64_t size = stream.appended.size;
    advance(stream.appended, piece, stream.info.kind, piece.bytes.size());
    CULPRIT_CHECK(stream.appended.size >= size);
    touch(stream);
    // The failure is recorded; the batch is taken and waits.
    if (!batch.whole && raw_.size() >= kFrameBytes && stats_.failing_since_ns == kNoTime)
      (void)write_pending(now);
  }
}

// ---- writing frames

Result<std::vector<CommittedOffset>> Spool::commit(TimeNs now) {
  CULPRIT_CHECK(owner_.here());
  if (const Status written = write_pending(now); !written) return tl::unexpected(written.error());
  std::vector<CommittedOffset> moved;
  for (const StreamId id : moved_) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) continue;
    found->second.moved = false;
    moved.push_back({id, found->second.committed.size});
  }
  moved_.clear();
  forget_streams();
  return moved;
}

Status Spool::write_pending(TimeNs now) {
  if (const Status written = write_ready(now); !written) return written;
  if (raw_.empty()) return note({}, now);
  if (const Status packed = pack_pending(now); !packed) return note(packed, now);
  return write_ready(now);
}

// Appends header and payload to `out`; `raw` is at most kFrameRawMax.
Status Spool::pack(FrameHeader& header, std::string_view raw, std::string& out) {
  const size_t bound = ZSTD_compressBound(raw.size());
  char* const place = packer_->place_for(bound);
  const size_t size = ZSTD_compress2(packer_->context, place, bound, raw.data(), raw.size());
  if (ZSTD_isError(size))
    return fail(ErrorCode::kIo, fmt::format("{}: zstd: {}", options_.folder, ZSTD_getErrorName(size)));
  CULPRIT_CHECK(raw.size() <= kFrameRawMax);
  header.raw_size = static_cast<uint32_t>(raw.size());
  header.stored_size = static_cast<uint32_t>(size);
  header.epoch = epoch_;
  header.payload_hash = hash64({place, size});
  out += encode(header);
  out.append(place, size);
  return {};
}

Status Spool::pack_pending(TimeNs now) {
  ready_header_ = {};
  ready_header_.sequence = sequence_ + 1;
  ready_header_.time_ns = now;
  ready_header_.stream_mask = raw_mask_;
  ready_header_.declares = raw_declares_;
  if (const Status packed = pack(ready_header_, raw_, ready_); !packed) return packed;
  sequence_ += 1;
  raw_.clear();
  if (raw_.capacity() > 4 * kFrameBytes) raw_.shrink_to_fit();  // it had waited for the disk
  raw_mask_ = 0;
  raw_declares_ = false;
  ready_marks_.clear();
  for (const StreamId id : touched_) {
    Stream& stream = streams_.at(id);
    stream.touched = false;
    ready_marks_.push_back({id, stream.appended});
  }
  touched_.clear();
  return {};
}

Status Spool::write_ready(TimeNs now) {
  if (ready_.empty()) return {};
  Status written = try_write_ready(now);
  while (!written && make_room_on_disk(ready_.size())) written = try_write_ready(now);
  if (!written) return note(written, now);
  ready_stands();
  return note({}, now);
}

Status Spool::try_write_ready(TimeNs now) {
  if (const Status there = ensure_segment(now); !there) return there;
  if (const Status room = room_for(ready_.size()); !room) return room;
  CULPRIT_CHECK(!segments_.empty() && ready_.size() >= kFrameHeaderBytes);
  ready_header_.segment = segments_.back().number;
  ready_.replace(0, kFrameHeaderBytes, encode(ready_header_));
  return append_frame();
}

void Spool::ready_stands() {
  for (const Mark& mark : ready_marks_) {
    const auto found = streams_.find(mark.stream);
    if (found == streams_.end()) continue;
    Stream& stream = found->second;
    CULPRIT_CHECK(mark.position.size >= stream.committed.size);
    stream.committed = mark.position;
    stream.declared = true;
    if (!std::exchange(stream.moved, true)) moved_.push_back(mark.stream);
  }
  ready_marks_.clear();
  CULPRIT_CHECK(ready_header_.sequence > written_sequence_);
  written_sequence_ = ready_header_.sequence;
  stats_.frames += 1;
  stats_.stored_bytes += ready_.size();
  ready_.clear();
  if (ready_.capacity() > 4 * kFrameBytes) ready_.shrink_to_fit();
}

}  // namespace culprit::store
