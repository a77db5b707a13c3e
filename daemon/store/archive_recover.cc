// Recovery of an archive at a start. Segments are the primary data: rows without a file are deleted, and the
// unindexed end of each file is read and taken as if it came now. A lost index is the same case, from the
// beginning of each file.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "base/hash.h"
#include "store/archive_impl.h"

namespace culprit::store {

Status Archive::Impl::recover() {
  if (const Status made = files.make_folder(options.folder); !made) return made;
  if (const Status seen = look_at_segments(); !seen) return seen;
  if (const Status opened = index.open(); !opened) return opened;
  std::random_device random;
  while (epoch == 0) epoch = mix64(random(), random());
  const auto own = index.epoch();
  if (!own) return tl::unexpected(own.error());
  rebuilding = !*own;
  epoch = own->value_or(epoch);
  auto known = index.logs();
  if (!known) return tl::unexpected(known.error());
  logs = std::move(*known);
  for (const auto& [key, log] : logs) {
    of_host[log.origin.host].push_back(key);
    next_row = std::max(next_row, log.row + 1);
  }
  if (const Status adopted = adopt_segments(); !adopted) return adopted;
  return rebuilding ? index.put_epoch(epoch) : Status{};
}

// Checks, before anything is changed.
Status Archive::Impl::look_at_segments() {
  const auto numbers = list_segments(files, options.folder);
  if (!numbers) return tl::unexpected(numbers.error());
  for (const uint64_t number : *numbers) {
    auto reader = SegmentReader::open(files, options.folder, number);
    if (!reader) return tl::unexpected(reader.error());
    next_number = number + 1;
    const auto& header = reader->header();
    left[number] = {number, reader->size(), SegmentKind::kEvidence, kNoTime};
    if (!header) continue;
    if (header->version > kSegmentVersion)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: written by a newer culpritd (format {}, this one knows {})", path(number),
                              header->version, kSegmentVersion));
    if (header->kind != SegmentKind::kEvidence && header->kind != SegmentKind::kCondensed)
      return fail(ErrorCode::kInvalid, fmt::format("{}: of a spool, and no archive", path(number)));
    left[number].kind = header->kind;
    left[number].newest_ns = header->created_ns;
    epoch = header->epoch;
  }
  return {};
}

Status Archive::Impl::adopt_segments() {
  const auto rows = index.segments();
  if (!rows) return tl::unexpected(rows.error());
  std::map<uint64_t, uint64_t> indexed;  // sizes
  for (const SegmentRow& row : *rows) {
    indexed[row.number] = row.size;
    next_number = std::max(next_number, row.number + 1);
    if (const auto file = left.find(row.number); file != left.end()) {
      file->second.newest_ns = row.newest_ns;
      file->second.kind = row.kind;  // also if its header is damaged
      continue;
    }
    stats.missing_segments += 1;
    if (const auto dropped = index.drop_segment(row.number); !dropped) return tl::unexpected(dropped.error());
  }
  std::array<uint64_t, kLogKinds> newest = {};
  for (auto& [number, row] : left) {
    const uint64_t on_disk = std::exchange(row.size, indexed[number]);
    if (on_disk > row.size)
      if (const Status adopted = adopt(row); !adopted) return adopted;
    row.size = std::min(row.size, on_disk);  // shorter: the missing part is reported when it is read
    left_bytes += row.size;
    newest[row.kind == SegmentKind::kCondensed] = number;
  }
  for (const uint64_t number : newest)
    if (number != 0) go_on_in(left.at(number));
  return {};
}

// Takes the frames after row.size, and advances row.size to their end.
Status Archive::Impl::adopt(SegmentRow& row) {
  auto reader = SegmentReader::open(files, options.folder, row.number);
  if (!reader) return tl::unexpected(reader.error());
  reader->accept_any_origin();
  const uint64_t begin = std::max<uint64_t>(row.size, kSegmentHeaderBytes);
  reader->seek(begin);
  uint64_t end = std::min(begin, reader->size());
  for (;;) {
    const auto more = reader->next({});
    if (!more) return tl::unexpected(more.error());
    // Hosts resend uncommitted frames, so frames after a hole are not taken.
    if (!*more || (!rebuilding && reader->damaged_bytes() > 0)) break;
    if (!adopt_frame(*reader, row.number)) {
      if (!rebuilding) break;
      continue;
    }
    row.newest_ns = std::max(row.newest_ns, reader->frame().time_ns);
    end = reader->sound_end();
  }
  stats.damaged_frames += reader->damaged_frames();
  stats.cut_bytes += reader->size() - end;
  row.size = end;
  // The data of a killed process may be in the page cache only.
  const auto file = files.open(path(row.number), io::OpenFor::kAppend);
  if (!file) return tl::unexpected(file.error());
  if (const Status synced = (*file)->sync(); !synced) return synced;
  if (const Status synced = files.sync_folder(options.folder); !synced) return synced;
  unindexed.push_back(row);
  if (const Status written = write_index(); !written) return written;
  (void)committed();
  return {};
}

namespace {

// Applies an archive's own frame to its log.
struct OwnFrame : RecordSink {
  std::optional<OriginRecord> origin;
  std::optional<SkippedRecord> skipped;
  void on_origin(const OriginRecord& record) override { origin = record; }
  void on_skipped(const SkippedRecord& record) override { skipped = record; }
  // Hosts resend frames that it counts and that a power loss took.
  bool follows(uint64_t sequence) const {
    return (!origin || origin->sequence <= sequence) && (!skipped || skipped->from <= sequence + 1);
  }
};

}  // namespace

// False if the frame cannot follow the known ones.
bool Archive::Impl::adopt_frame(const SegmentReader& reader, uint64_t segment) {
  const FrameHeader& frame = reader.frame();
  auto found = logs.find(frame.epoch);
  if (frame.kind == FrameKind::kOrigin) {
    OwnFrame own;
    if (!read_records(reader.content(), own)) return false;
    if (!rebuilding && !own.follows(found == logs.end() ? 0 : found->second.sequence)) return false;
    if (found == logs.end() && own.origin)
      add_log({frame.epoch, own.origin->host, static_cast<LogKind>(own.origin->kind & 1)});
    found = logs.find(frame.epoch);
  }
  if (found == logs.end()) return false;
  ArchivedLog& log = found->second;
  if (!log.loaded) {
    if (!index.load_streams(log)) return false;
    streams_in_memory += log.streams.size();
  }
  if (frame.kind == FrameKind::kData) {
    if (frame.sequence <= log.sequence) return true;  // a duplicate in the file
    if (frame.sequence != log.sequence + 1 && !rebuilding) return false;
  }
  LogTaker taker({log, stats}, {segment, reader.frame_at()}, frame.kind);
  if (frame.kind == FrameKind::kData) taker.note_lost(frame.sequence, frame.time_ns);
  const size_t streams = log.streams.size();
  if (!read_records(reader.content(), taker)) return false;
  streams_in_memory += log.streams.size() - streams;
  if (frame.kind == FrameKind::kData) log.sequence = frame.sequence;
  log.parts[segment] += kFrameHeaderBytes + frame.stored_size;
  touch(log);
  stats.adopted_frames += 1;
  return true;
}

// If this fails, the next frame starts a segment, and the torn part stays in place.
void Archive::Impl::go_on_in(const SegmentRow& row) {
  const SegmentRow newest = row;
  auto reader = SegmentReader::open(files, options.folder, newest.number);
  if (!reader || !reader->header() || reader->size() < newest.size) return;
  auto file = files.open(path(newest.number), io::OpenFor::kAppend);
  if (!file || (reader->size() != newest.size && !(*file)->truncate(newest.size))) return;
  Lane& lane = lanes[newest.kind == SegmentKind::kCondensed];
  lane.row = newest;
  lane.handle = std::move(*file);
  left_bytes -= newest.size;
  left.erase(newest.number);
}

}  // namespace culprit::store
