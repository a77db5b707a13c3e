#include "store/archive_recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace culprit::store {

Result<uint64_t> ArchiveRecovery::run() {
  if (const Status made = to_.files.make_folder(folder_); !made) return tl::unexpected(made.error());
  if (const Status seen = look_at_segments(); !seen) return tl::unexpected(seen.error());
  if (const Status opened = to_.index.open(); !opened) return tl::unexpected(opened.error());
  if (epoch_ == 0) epoch_ = random_number();
  const auto own = to_.index.epoch();
  if (!own) return tl::unexpected(own.error());
  rebuilding_ = !*own;
  epoch_ = own->value_or(epoch_);
  auto known = to_.index.logs();
  if (!known) return tl::unexpected(known.error());
  to_.logs.add_known(std::move(*known));
  if (const Status adopted = adopt_segments(); !adopted) return tl::unexpected(adopted.error());
  if (rebuilding_)
    if (const Status put = to_.index.put_epoch(epoch_); !put) return tl::unexpected(put.error());
  return epoch_;
}

// Checks, before anything is changed.
Status ArchiveRecovery::look_at_segments() {
  const auto numbers = list_segments(to_.files, folder_);
  if (!numbers) return tl::unexpected(numbers.error());
  for (const uint64_t number : *numbers) {
    auto reader = SegmentReader::open(to_.files, folder_, number);
    if (!reader) return tl::unexpected(reader.error());
    to_.segments.use_number(number);
    const auto& header = reader->header();
    SegmentRow& row = to_.segments.found()[number];
    row = {number, reader->size(), SegmentKind::kEvidence, kNoTime};
    if (!header) continue;
    if (header->version > kSegmentVersion)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: written by a newer culpritd (format {}, this one knows {})",
                              to_.segments.path(number), header->version, kSegmentVersion));
    if (header->kind != SegmentKind::kEvidence && header->kind != SegmentKind::kCondensed)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: of a spool, and no archive", to_.segments.path(number)));
    row.kind = header->kind;
    row.newest_ns = header->created_ns;
    epoch_ = header->epoch;
  }
  return {};
}

Status ArchiveRecovery::adopt_segments() {
  auto& found = to_.segments.found();
  const auto rows = to_.index.segments();
  if (!rows) return tl::unexpected(rows.error());
  std::map<uint64_t, uint64_t> indexed;  // sizes
  for (const SegmentRow& row : *rows) {
    indexed[row.number] = row.size;
    to_.segments.use_number(row.number);
    if (const auto file = found.find(row.number); file != found.end()) {
      file->second.newest_ns = row.newest_ns;
      file->second.kind = row.kind;  // also if its header is damaged
      continue;
    }
    to_.stats.missing_segments += 1;
    const auto dropped = to_.index.drop_segment(row.number);
    if (!dropped) return tl::unexpected(dropped.error());
  }
  for (auto& [number, row] : found) {
    const uint64_t on_disk = std::exchange(row.size, indexed[number]);
    if (on_disk > row.size)
      if (const Status adopted = adopt(row); !adopted) return adopted;
    row.size = std::min(row.size, on_disk);  // a shorter file: readers report the missing part
  }
  to_.segments.end_recovery();
  return {};
}

// Takes the frames from offset row.size on, and advances row.size past them.
Status ArchiveRecovery::adopt(SegmentRow& row) {
  auto reader = SegmentReader::open(to_.files, folder_, row.number);
  if (!reader) return tl::unexpected(reader.error());
  reader->accept_any_origin();
  const uint64_t begin = std::max<uint64_t>(row.size, kSegmentHeaderBytes);
  reader->seek(begin);
  uint64_t end = std::min(begin, reader->size());
  for (;;) {
    const auto more = reader->next({});
    if (!more) return tl::unexpected(more.error());
    // Frames after a hole are ignored: hosts resend uncommitted frames.
    if (!*more || (!rebuilding_ && reader->damaged_bytes() > 0)) break;
    if (!adopt_frame(*reader, row.number)) {
      if (!rebuilding_) break;
      continue;
    }
    row.newest_ns = std::max(row.newest_ns, reader->frame().time_ns);
    end = reader->sound_end();
  }
  to_.stats.damaged_frames += reader->damaged_frames();
  to_.stats.cut_bytes += reader->size() - end;
  row.size = end;
  if (const Status synced = to_.segments.sync_found(row); !synced) return synced;
  const std::map<std::string, HostNote> hosts;
  const Status written = to_.index.write({to_.logs.touched(), to_.segments.changes(), &hosts});
  if (!written) return written;
  to_.segments.indexed();
  (void)to_.logs.committed();
  return {};
}

namespace {

// Applies an archive's own frame to its log.
struct OwnFrame : RecordSink {
  std::optional<OriginRecord> origin;
  std::optional<SkippedRecord> skipped;
  void on_origin(const OriginRecord& record) override { origin = record; }
  void on_skipped(const SkippedRecord& record) override { skipped = record; }
  // False if the frame counts sequences that a power loss removed; hosts resend these.
  bool follows(uint64_t sequence) const {
    return (!origin || origin->sequence <= sequence) && (!skipped || skipped->from <= sequence + 1);
  }
};

}  // namespace

// False if the frame's sequence does not follow the known frames.
bool ArchiveRecovery::adopt_frame(const SegmentReader& reader, uint64_t segment) {
  const FrameHeader& frame = reader.frame();
  ArchivedLog* log = to_.logs.find(frame.epoch);
  if (frame.kind == FrameKind::kOrigin) {
    OwnFrame own;
    if (!read_records(reader.content(), own)) return false;
    if (!rebuilding_ && !own.follows(log ? log->sequence : 0)) return false;
    if (!log && own.origin)
      log = &to_.logs.add({frame.epoch, own.origin->host, static_cast<LogKind>(own.origin->kind & 1)});
  }
  if (!log || !to_.logs.load(*log, to_.index)) return false;
  if (frame.kind == FrameKind::kData) {
    if (frame.sequence <= log->sequence) return true;  // a duplicate in the file
    if (frame.sequence != log->sequence + 1 && !rebuilding_) return false;
  }
  LogTaker taker({*log, to_.stats}, {segment, reader.frame_at()}, frame.kind);
  if (frame.kind == FrameKind::kData) taker.note_lost(frame.sequence, frame.time_ns);
  if (!to_.logs.read(reader.content(), *log, taker)) return false;
  if (frame.kind == FrameKind::kData) log->sequence = frame.sequence;
  log->parts[segment] += kFrameHeaderBytes + frame.stored_size;
  to_.logs.touch(*log);
  to_.stats.adopted_frames += 1;
  return true;
}

}  // namespace culprit::store
