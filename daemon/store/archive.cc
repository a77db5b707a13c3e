#include "store/archive.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/archive_index.h"
#include "store/archive_logs.h"
#include "store/archive_recover.h"
#include "store/archive_segments.h"

namespace culprit::store {

namespace {

// Bytes per write; a commit writes the rest.
constexpr size_t kWriteBytes = 1 << 20;
// Limit of bytes per kind of log that are buffered in memory while the disk fails.
constexpr size_t kArchivePendingBytes = 16 << 20;
// Raw bytes of one origin frame; enough for 5,000 sources.
constexpr size_t kOriginPartBytes = 1 << 20;
// Limits of a log's sources and of their names: 131,072 names of 200 bytes, the most that our spools write.
constexpr size_t kLogStreamsMax = 1 << 20;  // including ended ones
constexpr size_t kLogTextBytes = 32 << 20;
constexpr size_t kLogsOfHostMax = 1024;  // a host that wipes its spool (two logs) every hour for three weeks

}  // namespace

struct Archive::Impl {
  Impl(io::Files& files, ArchiveOptions its_options);

  Status unpack(std::string_view frame, const FrameHeader& header, const ArchivedLog& log);
  Status refuse(std::string why);
  Status make_ready(ArchivedLog& log, TimeNs now);
  void put_own_frame(ArchivedLog& log, std::string_view raw, TimeNs now);
  void put_origin_of(ArchivedLog& log, TimeNs now);
  Status write_index();
  Status hold_size(TimeNs now);
  bool make_room_on_disk(uint64_t needed);
  Status drop(uint64_t number);
  Status note(Status status, TimeNs now);

  ArchiveOptions options;
  ArchiveIndex index;
  ArchiveSegments segments;
  ArchiveLogs logs;
  uint64_t epoch = 0;
  std::map<std::string, HostNote> hosts;  // since the last commit
  Unpacker unpacker;
  std::string content;  // of the current frame
  ArchiveStats stats;
};

Archive::Archive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Archive::~Archive() = default;

Archive::Impl::Impl(io::Files& files, ArchiveOptions its_options)
    : options(std::move(its_options)),
      index(options.folder + "/archive.db"),
      segments(files, options, [this](uint64_t needed) { return make_room_on_disk(needed); }) {}

Result<std::unique_ptr<Archive>> Archive::open(io::Files& files, ArchiveOptions options) {
  auto impl = std::make_unique<Impl>(files, std::move(options));
  ArchiveRecovery recovery({files, impl->index, impl->segments, impl->logs, impl->stats},
                           impl->options.folder);
  const auto epoch = recovery.run();
  if (!epoch) return tl::unexpected(epoch.error());
  impl->epoch = *epoch;
  return std::unique_ptr<Archive>(new Archive(std::move(impl)));
}

const std::string& Archive::moved_aside() const { return impl_->index.database().moved_aside(); }

ArchiveStats Archive::stats() const {
  ArchiveStats stats = impl_->stats;
  stats.bytes = impl_->segments.bytes();
  stats.segments = impl_->segments.size();
  stats.logs = impl_->logs.all().size();
  for (const LogKind kind : {LogKind::kEvidence, LogKind::kCondensed})
    stats.pending_bytes += impl_->segments.pending_bytes(kind);
  return stats;
}

Status Archive::Impl::note(Status status, TimeNs now) {
  if (status) {
    stats.failing_since_ns = kNoTime;
    return status;
  }
  stats.failures += 1;
  stats.last_error = status.error().text;
  if (stats.failing_since_ns == kNoTime) stats.failing_since_ns = now;
  return status;
}

Status Archive::Impl::refuse(std::string why) {
  stats.refused += 1;
  return fail(ErrorCode::kInvalid, std::move(why));
}

// ---- logs

Result<std::optional<uint64_t>> Archive::begin(const LogOrigin& origin, TimeNs now) {
  Impl& a = *impl_;
  if (origin.epoch == 0 || origin.host.empty() || origin.host.size() > limits::kNameBytes)
    return fail(ErrorCode::kInvalid, fmt::format("host '{}': its log has no number or no name", origin.host));
  note_host(origin.host, now, {});
  if (const ArchivedLog* const log = a.logs.find(origin.epoch)) {
    const LogOrigin& known = log->origin;
    if (known.host != origin.host || known.kind != origin.kind)
      return fail(ErrorCode::kDenied, fmt::format("host {}: the log {} is {}'s, or of another kind",
                                                  origin.host, hex64(origin.epoch), known.host));
    if (log->committed == 0) return std::nullopt;
    return std::optional(log->committed);
  }
  if (a.logs.remove_empty(origin) >= kLogsOfHostMax)
    return fail(ErrorCode::kLimit,
                fmt::format("host {}: more than {} logs are kept of it", origin.host, kLogsOfHostMax));
  a.logs.add(origin);
  return std::nullopt;
}

void Archive::note_host(const std::string& host, TimeNs now, std::string about) {
  HostNote& note = impl_->hosts[host];
  note.seen_ns = now;
  if (about.empty()) return;
  note.about = std::move(about);
  note.has_about = true;
}

// ---- taking frames

namespace {

// Whether the frame can follow those of its log.
Status check(const FrameHeader& header, const ArchivedLog& log) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::kInvalid, fmt::format("host {}: frame {} of log {}: {}", log.origin.host,
                                                 header.sequence, hex64(header.epoch), why));
  };
  if (header.kind == FrameKind::kOrigin) return wrong("no host sends such");
  if (header.kind == FrameKind::kData && header.sequence != log.sequence + 1)
    return wrong(fmt::format("it does not follow {}", log.sequence));
  if (header.kind != FrameKind::kData && header.sequence > log.sequence)
    return wrong(fmt::format("a checkpoint that is ahead of {}", log.sequence));
  return {};
}

// Decodes a whole frame before any of its records is applied.
class Look : public RecordSink {
 public:
  explicit Look(const ArchivedLog& log) : log_(log) {}
  size_t streams = 0, text = 0;
  void on_stream(const StreamInfo& info) override {
    if (log_.streams.count(info.id) > 0) return;
    streams += 1;
    text += info.job.size() + info.path.size();
  }

 private:
  const ArchivedLog& log_;
};

}  // namespace

Status Archive::Impl::unpack(std::string_view frame, const FrameHeader& header, const ArchivedLog& log) {
  Look look(log);
  if (!unpacker.unpack(header, frame.substr(kFrameHeaderBytes), content) || !read_records(content, look))
    return refuse(fmt::format("host {}: frame {} of log {} is damaged", log.origin.host, header.sequence,
                              hex64(header.epoch)));
  if (log.streams.size() + look.streams <= kLogStreamsMax && log.text_bytes + look.text <= kLogTextBytes)
    return {};
  return refuse(fmt::format("host {}: log {}: the names of its sources take more than {} bytes",
                            log.origin.host, hex64(header.epoch), kLogTextBytes));
}

Status Archive::append(std::string_view frame, TimeNs now, PieceBatch* taken) {
  Impl& a = *impl_;
  const auto header = decode_frame_header(frame);
  if (!header || frame.size() != kFrameHeaderBytes + header->stored_size)
    return a.refuse("a frame is damaged");
  ArchivedLog* const found = a.logs.find(header->epoch);
  if (found == nullptr)
    return a.refuse(fmt::format("a frame of log {}, which was never opened", hex64(header->epoch)));
  ArchivedLog& log = *found;
  if (header->kind == FrameKind::kData && header->sequence <= log.sequence) {
    a.stats.duplicates += 1;
    return {};
  }
  if (const Status follows = check(*header, log); !follows) return a.refuse(follows.error().text);
  // The known streams decide which bytes of the frame are new; the index may have to load these streams.
  if (const Status ready = a.make_ready(log, now); !ready) return a.note(ready, now);
  if (const Status sound = a.unpack(frame, *header, log); !sound) return sound;
  const LogKind kind = log.origin.kind;
  const FramePlace place = a.segments.end(kind);
  LogTaker taker({log, a.stats, taken}, place, header->kind);
  const size_t streams = log.streams.size();
  (void)a.logs.read(a.content, log, taker);
  if (header->kind == FrameKind::kData) {
    CULPRIT_CHECK(header->sequence > log.sequence);
    log.sequence = header->sequence;
  } else if (log.streams.size() == streams) {
    a.stats.duplicates += 1;  // a checkpoint without news
    return {};
  }
  a.segments.append(kind, frame);
  a.segments.note_arrival(kind, now);
  log.parts[place.segment] += frame.size();
  a.logs.touch(log);
  a.stats.frames += 1;
  a.stats.stored_bytes += frame.size();
  return {};
}

// Provides a segment with room for a frame; it starts with the origins of the logs whose frames follow.
Status Archive::Impl::make_ready(ArchivedLog& log, TimeNs now) {
  const LogKind kind = log.origin.kind;
  if (segments.pending_bytes(kind) >= kWriteBytes) {
    const Status written = segments.flush(kind);
    if (!written && segments.pending_bytes(kind) >= kArchivePendingBytes) return written;
  }
  if (const Status there = segments.ensure(kind, epoch, now); !there) return there;
  if (const Status loaded = logs.load(log, index); !loaded) return loaded;
  if (log.declared_in != segments.end(kind).segment) put_origin_of(log, now);
  return {};
}

void Archive::Impl::put_own_frame(ArchivedLog& log, std::string_view raw, TimeNs now) {
  const uint64_t segment = segments.end(log.origin.kind).segment;
  FrameHeader header;
  header.kind = FrameKind::kOrigin;
  header.epoch = log.origin.epoch;
  header.segment = segment;
  header.sequence = log.sequence;
  header.time_ns = now;
  const std::string frame = pack_frame(header, raw);
  log.parts[segment] += frame.size();
  segments.append(log.origin.kind, frame);
  logs.touch(log);
}

void Archive::Impl::put_origin_of(ArchivedLog& log, TimeNs now) {
  log.declared_in = segments.end(log.origin.kind).segment;
  const OriginRecord origin{static_cast<uint8_t>(log.origin.kind), log.sequence, log.origin.host};
  std::string raw;
  put_origin(raw, origin);
  for (const auto& [id, stream] : log.streams) {
    if (stream.ended) continue;
    put_stream(raw, stream.info);
    Position position;
    position.size = stream.size;
    put_position(raw, id, position);
    if (raw.size() < kOriginPartBytes) continue;
    put_own_frame(log, raw, now);
    raw.clear();
    put_origin(raw, origin);
  }
  put_own_frame(log, raw, now);
}

Status Archive::skip(uint64_t epoch, const SkippedFrames& skipped) {
  Impl& a = *impl_;
  ArchivedLog* const found = a.logs.find(epoch);
  if (found == nullptr)
    return a.refuse(fmt::format("frames of log {} are left out, which was never opened", hex64(epoch)));
  ArchivedLog& log = *found;
  if (skipped.to <= log.sequence) return {};
  if (skipped.from > log.sequence + 1 || skipped.to > kSequenceMax)
    return a.refuse(fmt::format("host {}: frames from {} on are left out, but those behind {} are awaited",
                                log.origin.host, skipped.from, log.sequence));
  if (const Status ready = a.make_ready(log, skipped.time_ns); !ready) return a.note(ready, skipped.time_ns);
  const SkippedRecord record{log.sequence + 1, skipped.to, skipped.time_ns,
                             skipped.reason.substr(0, limits::kNameBytes)};
  std::string raw;
  put_skipped(raw, record);
  LogTaker({log, a.stats}, {}, FrameKind::kOrigin).on_skipped(record);
  a.put_own_frame(log, raw, skipped.time_ns);
  return {};
}

// ---- commit

Result<std::vector<CommittedLog>> Archive::commit(TimeNs now) {
  Impl& a = *impl_;
  Status done = a.segments.sync();
  if (done) {
    crash_point("store.archive_before_transaction");
    done = a.write_index();
    // On a full disk the oldest segment is deleted, as for frames.
    while (!done && a.make_room_on_disk(0)) done = a.write_index();
  }
  if (!a.note(done, now)) return tl::unexpected(done.error());
  crash_point("store.archive_after_transaction");
  a.hosts.clear();
  a.segments.indexed();
  // Hosts may send many frames between two calls of retain(). An error is only recorded: the frames are
  // already committed.
  (void)a.hold_size(now);
  return a.logs.committed();
}

Status Archive::Impl::write_index() {
  if (!logs.has_changes() && hosts.empty() && !segments.has_new_finished()) return {};
  return index.write({logs.touched(), segments.changes(), &hosts});
}

// ---- deleting

// On a full disk the oldest segments are deleted. Returns whether any was deleted.
bool Archive::Impl::make_room_on_disk(uint64_t needed) {
  const SegmentRow* const row = segments.oldest_on_full_disk(needed);
  return row != nullptr && drop(row->number).has_value();
}

// Deletes the file before its row. After a crash between the two, a start recognises a row without a file.
// It would take a file without a row for uncommitted data.
Status Archive::Impl::drop(uint64_t number) {
  crash_point("store.archive_before_drop");
  if (const Status removed = segments.remove_file(number); !removed) return removed;
  crash_point("store.archive_file_dropped");
  const auto dropped = index.drop_segment(number);
  if (!dropped) return tl::unexpected(dropped.error());
  logs.forget(*dropped);
  if (const auto size = segments.forget(number)) {
    stats.dropped_segments += 1;
    stats.dropped_bytes += *size;
  }
  crash_point("store.archive_dropped");
  return {};
}

void Archive::set_retention(uint64_t max_bytes, TimeNs max_age_ns) {
  impl_->options.max_bytes = max_bytes;
  impl_->options.max_age_ns = max_age_ns;
}

Status Archive::Impl::hold_size(TimeNs now) {
  for (const SegmentKind kind : {SegmentKind::kEvidence, SegmentKind::kCondensed})
    while (segments.bytes() > options.max_bytes) {
      const SegmentRow* const row = segments.oldest(kind);
      if (row == nullptr) break;
      if (const Status dropped = drop(row->number); !dropped) return note(dropped, now);
    }
  return {};
}

Status Archive::retain(const std::vector<std::string>& running, TimeNs now) {
  Impl& a = *impl_;
  if (const Status held = a.hold_size(now); !held) return held;
  if (a.options.max_age_ns <= 0) return {};
  const TimeNs before = now - a.options.max_age_ns;
  const std::map<uint64_t, SegmentRow> looked_at = a.segments.finished();
  for (const auto& [number, row] : looked_at) {
    if (row.newest_ns == kNoTime || row.newest_ns >= before) continue;
    if (row.kind == SegmentKind::kCondensed) {
      const auto needed = a.index.holds_jobs(number, running);
      if (!needed) return tl::unexpected(needed.error());
      if (*needed) continue;
    }
    if (const Status dropped = a.drop(number); !dropped) return a.note(dropped, now);
  }
  return a.index.forget_hosts(before);
}

// ---- queries

Result<std::vector<HostRow>> Archive::hosts() { return impl_->index.hosts(); }
Result<std::vector<HostStream>> Archive::stored(const StoredQuery& query) {
  return impl_->index.stored(query);
}
Result<std::vector<SkippedFrames>> Archive::skipped(const std::string& host, LogKind kind) {
  return impl_->index.skipped(host, kind);
}

uint64_t Archive::epoch() const { return impl_->epoch; }

Result<std::vector<ReplayPlan::Part>> Archive::evidence_segments() {
  const auto all = impl_->index.segments();
  if (!all) return tl::unexpected(all.error());
  std::vector<ReplayPlan::Part> out;
  for (const SegmentRow& row : *all)
    if (row.kind == SegmentKind::kEvidence) out.push_back({row.number, row.size});
  return out;
}

std::map<uint64_t, uint64_t> Archive::evidence_logs() const {
  std::map<uint64_t, uint64_t> out;
  for (const auto& [epoch, log] : impl_->logs.all())
    if (log.origin.kind == LogKind::kEvidence && log.committed > 0) out[epoch] = log.committed;
  return out;
}

Result<ReplayPlan> Archive::replay_plan(const std::vector<std::string>& of_hosts) {
  Impl& a = *impl_;
  ReplayPlan plan;
  std::vector<int64_t> rows;
  for (const auto& [epoch, log] : a.logs.all()) {
    const bool wanted =
        of_hosts.empty() || std::find(of_hosts.begin(), of_hosts.end(), log.origin.host) != of_hosts.end();
    if (log.origin.kind != LogKind::kCondensed || !log.in_index || !wanted) continue;
    plan.logs[epoch] = log.origin;
    rows.push_back(log.row);
  }
  const auto segments = a.index.segments_of(rows);
  if (!segments) return tl::unexpected(segments.error());
  const auto all = a.index.segments();
  if (!all) return tl::unexpected(all.error());
  for (const SegmentRow& row : *all)
    if (std::binary_search(segments->begin(), segments->end(), row.number))
      plan.segments.push_back({row.number, row.size});
  return plan;
}

}  // namespace culprit::store
