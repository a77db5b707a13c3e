#include "store/archive.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/crash_point.h"
#include "base/hash.h"
#include "base/limits.h"
#include "store/archive_impl.h"

namespace culprit::store {

namespace {

// Bytes per write; a commit writes the rest.
constexpr size_t kWriteBytes = 1 << 20;
// Bytes per kind of log that wait in memory while the disk fails.
constexpr size_t kPendingBytes = 16 << 20;
// Bytes of an origin frame before packing: 5,000 sources.
constexpr size_t kOriginPartBytes = 1 << 20;
// Bytes of the names of a log's sources: 131,072 of 200 bytes, the most of our spools.
constexpr size_t kLogStreamsMax = 1 << 20;  // including ended ones
constexpr size_t kLogTextBytes = 32 << 20;
constexpr size_t kLogsOfHostMax = 1024;  // a host that wipes its spool (two logs) every hour for three weeks

}  // namespace

Archive::Archive(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Archive::~Archive() = default;

Archive::Impl::Impl(io::Files& its_files, ArchiveOptions its_options)
    : files(its_files), options(std::move(its_options)), index(options.folder + "/archive.db") {}

Result<std::unique_ptr<Archive>> Archive::open(io::Files& files, ArchiveOptions options) {
  auto impl = std::make_unique<Impl>(files, std::move(options));
  if (const Status recovered = impl->recover(); !recovered) return tl::unexpected(recovered.error());
  return std::unique_ptr<Archive>(new Archive(std::move(impl)));
}

const std::string& Archive::moved_aside() const { return impl_->index.database().moved_aside(); }

ArchiveStats Archive::stats() const {
  ArchiveStats stats = impl_->stats;
  stats.bytes = impl_->left_bytes;
  stats.segments = impl_->left.size();
  stats.logs = impl_->logs.size();
  for (const Impl::Lane& lane : impl_->lanes) {
    stats.segments += lane.handle != nullptr;
    stats.bytes += lane.row.size;
    stats.pending_bytes += lane.buffer.size();
  }
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

ArchivedLog& Archive::Impl::add_log(const LogOrigin& origin) {
  ArchivedLog& log = logs[origin.epoch];
  log.origin = origin;
  log.row = next_row++;
  log.loaded = true;
  of_host[origin.host].push_back(origin.epoch);
  return log;
}

Result<std::optional<uint64_t>> Archive::begin(const LogOrigin& origin, TimeNs now) {
  Impl& a = *impl_;
  if (origin.epoch == 0 || origin.host.empty() || origin.host.size() > limits::kNameBytes)
    return fail(ErrorCode::kInvalid, fmt::format("host '{}': its log has no number or no name", origin.host));
  note_host(origin.host, now, {});
  if (const auto found = a.logs.find(origin.epoch); found != a.logs.end()) {
    const LogOrigin& known = found->second.origin;
    if (known.host != origin.host || known.kind != origin.kind)
      return fail(ErrorCode::kDenied, fmt::format("host {}: the log {} is {}'s, or of another kind",
                                                  origin.host, hex64(origin.epoch), known.host));
    if (found->second.committed == 0) return std::nullopt;
    return std::optional(found->second.committed);
  }
  // Logs without any frame are removed first.
  std::vector<uint64_t>& of_host = a.of_host[origin.host];
  std::erase_if(of_host, [&](uint64_t epoch) {
    const ArchivedLog& log = a.logs.at(epoch);
    const bool empty = !log.in_index && !log.touched && log.origin.kind == origin.kind;
    if (empty) a.logs.erase(epoch);
    return empty;
  });
  if (of_host.size() >= kLogsOfHostMax)
    return fail(ErrorCode::kLimit,
                fmt::format("host {}: more than {} logs are kept of it", origin.host, kLogsOfHostMax));
  a.add_log(origin);
  return std::nullopt;
}

void Archive::note_host(const std::string& host, TimeNs now, std::string about) {
  HostNote& note = impl_->hosts[host];
  note.seen_ns = now;
  if (about.empty()) return;
  note.about = std::move(about);
  note.reported = true;
}

void Archive::Impl::touch(ArchivedLog& log) {
  if (!std::exchange(log.touched, true)) touched.push_back(log.origin.epoch);
}

// ---- taking frames

Status Archive::Impl::check(const FrameHeader& header, const ArchivedLog& log) const {
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

namespace {

// Reads the whole frame before any part of it is taken.
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
  const auto found = a.logs.find(header->epoch);
  if (found == a.logs.end())
    return a.refuse(fmt::format("a frame of log {}, which was never opened", hex64(header->epoch)));
  ArchivedLog& log = found->second;
  if (header->kind == FrameKind::kData && header->sequence <= log.sequence) {
    a.stats.duplicates += 1;
    return {};
  }
  if (const Status follows = a.check(*header, log); !follows) return a.refuse(follows.error().text);
  // The streams decide which part is new; the index may have to load them.
  if (const Status ready = a.make_ready(log, now); !ready) return a.note(ready, now);
  if (const Status sound = a.unpack(frame, *header, log); !sound) return sound;
  Impl::Lane& lane = a.lane_of(log);
  const FramePlace place{lane.row.number, lane.end()};
  LogTaker taker({log, a.stats, taken}, place, header->kind);
  const size_t streams = log.streams.size();
  (void)read_records(a.content, taker);
  a.streams_in_memory += log.streams.size() - streams;
  if (header->kind == FrameKind::kData) {
    CULPRIT_CHECK(header->sequence > log.sequence);
    log.sequence = header->sequence;
  } else if (log.streams.size() == streams) {
    a.stats.duplicates += 1;  // a checkpoint without news
    return {};
  }
  lane.buffer += frame;
  lane.row.newest_ns = now;
  log.parts[lane.row.number] += frame.size();
  a.touch(log);
  a.stats.frames += 1;
  a.stats.stored_bytes += frame.size();
  return {};
}

// Returns a segment with room; it begins with the owners of the following frames.
Status Archive::Impl::make_ready(ArchivedLog& log, TimeNs now) {
  Lane& lane = lane_of(log);
  if (lane.buffer.size() >= kWriteBytes) {
    const Status written = flush(lane);
    if (!written && lane.buffer.size() >= kPendingBytes) return written;
  }
  if (const Status there = ensure_segment(lane, segment_kind(log.origin.kind), now); !there) return there;
  if (!log.loaded) {
    if (const Status loaded = index.load_streams(log); !loaded) return loaded;
    streams_in_memory += log.streams.size();
  }
  if (log.declared_in != lane.row.number) put_origin_of(log, now);
  return {};
}

void Archive::Impl::put_own_frame(ArchivedLog& log, std::string_view raw, TimeNs now) {
  Lane& lane = lane_of(log);
  FrameHeader header;
  header.kind = FrameKind::kOrigin;
  header.epoch = log.origin.epoch;
  header.segment = lane.row.number;
  header.sequence = log.sequence;
  header.time_ns = now;
  const std::string frame = pack_frame(header, raw);
  log.parts[lane.row.number] += frame.size();
  lane.buffer += frame;
  touch(log);
}

void Archive::Impl::put_origin_of(ArchivedLog& log, TimeNs now) {
  log.declared_in = lane_of(log).row.number;
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
  const auto found = a.logs.find(epoch);
  if (found == a.logs.end())
    return a.refuse(fmt::format("frames of log {} are left out, which was never opened", hex64(epoch)));
  ArchivedLog& log = found->second;
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
  Status done = a.sync_lanes();
  if (done) {
    crash_point("store.archive_before_transaction");
    done = a.write_index();
    // On a full disk the oldest segment is deleted, as for frames.
    while (!done && a.make_room_on_disk(0)) done = a.write_index();
  }
  if (!a.note(done, now)) return tl::unexpected(done.error());
  crash_point("store.archive_after_transaction");
  return a.committed();
}

Status Archive::Impl::write_index() {
  if (touched.empty() && hosts.empty() && unindexed.empty()) return {};
  ArchiveIndex::Changes changes;
  for (const uint64_t epoch_of_log : touched) changes.logs.push_back(&logs.at(epoch_of_log));
  changes.segments = unindexed;
  for (const Lane& lane : lanes)
    if (lane.handle && lane.unindexed) changes.segments.push_back(lane.row);
  changes.hosts = &hosts;
  return index.write(changes);
}

std::vector<CommittedLog> Archive::Impl::committed() {
  std::vector<CommittedLog> moved;
  for (const uint64_t epoch_of_log : touched) {
    ArchivedLog& log = logs.at(epoch_of_log);
    for (const StreamId id : log.touched_streams) {
      ArchivedStream& stream = log.streams.at(id);
      stream.touched = false;
      stream.in_index = true;
      stream.extent = {};
    }
    log.touched_streams.clear();
    log.parts.clear();
    log.left_extents.clear();
    log.new_holes.clear();
    log.new_skips.clear();
    log.touched = false;
    log.in_index = true;
    CULPRIT_CHECK(log.sequence >= log.committed);
    if (std::exchange(log.committed, log.sequence) != log.sequence)
      moved.push_back({epoch_of_log, log.sequence});
  }
  touched.clear();
  hosts.clear();
  unindexed.clear();
  for (Lane& lane : lanes) lane.unindexed = false;
  if (streams_in_memory <= kArchiveStreamsInMemory) return moved;
  for (auto& [key, log] : logs) {
    if (!log.in_index) continue;
    log.streams.clear();
    log.text_bytes = 0;
    log.loaded = false;
  }
  streams_in_memory = 0;
  return moved;
}

void Archive::set_retention(uint64_t max_bytes, TimeNs max_age_ns) {
  impl_->options.max_bytes = max_bytes;
  impl_->options.max_age_ns = max_age_ns;
}

Status Archive::retain(const std::vector<std::string>& running, TimeNs now) {
  return impl_->retain(running, now);
}

// ---- queries

Result<std::vector<HostRow>> Archive::hosts() { return impl_->index.hosts(); }
Result<std::vector<HostStream>> Archive::kept(const KeptQuery& query) { return impl_->index.kept(query); }
Result<std::vector<SkippedFrames>> Archive::skipped(const std::string& host, LogKind kind) {
  return impl_->index.skipped(host, kind);
}

Result<ReplayPlan> Archive::replay_plan(const std::vector<std::string>& of_hosts) {
  Impl& a = *impl_;
  ReplayPlan plan;
  std::vector<int64_t> rows;
  for (const auto& [epoch, log] : a.logs) {
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
