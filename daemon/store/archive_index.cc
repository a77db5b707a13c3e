#include "store/archive_index.h"

#include <set>

#include "store/archive_schema.h"
#include "store/record.h"

namespace culprit::store {

namespace {

using Statement = Database::Statement;

// SQLite's page cache: the streams and extents of a thousand hosts that write concurrently.
constexpr int kCacheKib = 16 << 10;

int64_t as_row(uint64_t value) { return static_cast<int64_t>(value); }
uint64_t number(const Statement& row, int column) { return static_cast<uint64_t>(row.integer(column)); }

}  // namespace

// Prepared statements of a commit, reused until a commit fails.
struct ArchiveIndex::Writers {
  explicit Writers(Database& db)
      : log(db,
            "INSERT INTO logs (log, epoch, host, kind, sequence) VALUES (?, ?, ?, ?, ?) ON CONFLICT (log) DO "
            "UPDATE SET sequence = excluded.sequence"),
        part(db,
             "INSERT INTO parts (segment, log, bytes) VALUES (?, ?, ?) ON CONFLICT (segment, log) DO UPDATE "
             "SET bytes = bytes + excluded.bytes"),
        new_stream(db,
                   "INSERT OR REPLACE INTO streams (log, stream, kind, job, path, uid, pid, opened_ns, "
                   "boot_ns, size, first, ended) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
        stream(db,
               "UPDATE streams SET size = ?, first = max(first, ?), ended = ? WHERE log = ? AND stream = ?"),
        extent(db,
               "INSERT INTO extents (log, segment, stream, begins, ends, first_at, last_at) VALUES (?, ?, ?, "
               "?, ?, ?, ?) ON CONFLICT (log, segment, stream) DO UPDATE SET ends = excluded.ends, last_at = "
               "excluded.last_at"),
        gap(db, "INSERT OR REPLACE INTO gaps (log, stream, offset, bytes, reason) VALUES (?, ?, ?, ?, ?)"),
        longer_skip(db,
                    "UPDATE skips SET last = ?1 WHERE log = ?2 AND last = ?3 AND reason = ?4 AND "
                    "first = (SELECT max(first) FROM skips WHERE log = ?2)"),
        skip(db, "INSERT OR REPLACE INTO skips (log, first, last, time_ns, reason) VALUES (?, ?, ?, ?, ?)"),
        segment(db, "INSERT OR REPLACE INTO segments (segment, size, kind, newest_ns) VALUES (?, ?, ?, ?)"),
        host(db,
             "INSERT INTO hosts (host, first_ns, seen_ns, about) VALUES (?1, ?2, ?2, ?3) ON CONFLICT (host) "
             "DO UPDATE SET seen_ns = excluded.seen_ns, about = CASE WHEN ?4 THEN ?3 ELSE about END") {}
  Statement log, part, new_stream, stream, extent, gap, longer_skip, skip, segment, host;
};

ArchiveIndex::ArchiveIndex(std::string path)
    : database_(
          {.path = std::move(path), .steps = kArchiveSteps, .full_sync = true, .cache_kib = kCacheKib}) {}
ArchiveIndex::~ArchiveIndex() = default;

// ---- reading

Result<std::optional<uint64_t>> ArchiveIndex::epoch() {
  Statement get(database_, "SELECT epoch FROM archive");
  std::optional<uint64_t> found;
  if (get.row()) found = number(get, 0);
  if (!get.good()) return tl::unexpected(get.status().error());
  return found;
}

Status ArchiveIndex::put_epoch(uint64_t epoch) {
  return database_.in_transaction([&] {
    return Statement(database_, "INSERT INTO archive (epoch) VALUES (?)").bind(as_row(epoch)).run();
  });
}

Result<std::vector<SegmentRow>> ArchiveIndex::segments() {
  Statement get(database_, "SELECT segment, size, kind, newest_ns FROM segments ORDER BY segment");
  return get.rows<SegmentRow>([](const Statement& row) {
    return SegmentRow{number(row, 0), number(row, 1), static_cast<SegmentKind>(row.integer(2)), row.time(3)};
  });
}

Result<std::map<uint64_t, ArchivedLog>> ArchiveIndex::logs() {
  std::map<uint64_t, ArchivedLog> logs;
  Statement get(database_, "SELECT log, epoch, host, kind, sequence FROM logs");
  while (get.row()) {
    const uint64_t epoch = number(get, 1);
    ArchivedLog& log = logs[epoch];
    log.row = get.integer(0);
    log.origin = {epoch, get.text(2), static_cast<LogKind>(get.integer(3) & 1)};
    log.sequence = log.committed = number(get, 4);
    log.in_index = true;
  }
  if (!get.good()) return tl::unexpected(get.status().error());
  return logs;
}

static StreamInfo stream_of(const Statement& row) {
  StreamInfo info;
  info.id = static_cast<StreamId>(row.integer(0));
  info.job = row.text(2);
  info.path = row.text(3);
  info.kind = kind_of(static_cast<uint64_t>(row.integer(1)), info.path);
  if (!row.null(4)) info.uid = Principal::from(static_cast<uint64_t>(row.integer(4)));
  if (!row.null(5)) info.pid = static_cast<uint32_t>(row.integer(5));
  info.opened_ns = row.time(6);
  info.boot_ns = row.time(7);
  return info;
}

Status ArchiveIndex::load_streams(ArchivedLog& log) {
  Statement get(
      database_,
      "SELECT stream, kind, job, path, uid, pid, opened_ns, boot_ns, size, first, ended FROM streams "
      "WHERE log = ?");
  get.bind(log.row);
  while (get.row()) {
    ArchivedStream stream;
    stream.info = stream_of(get);
    stream.size = number(get, 8);
    stream.first = number(get, 9);
    stream.ended = get.integer(10) != 0;
    stream.in_index = stream.begun = true;
    log.text_bytes += stream.info.job.size() + stream.info.path.size();
    log.streams.emplace(stream.info.id, std::move(stream));
  }
  if (!get.good()) return get.status();
  // Skip reasons are not kept per stream; a gap has the most recent reason.
  Statement skips(database_, "SELECT reason FROM skips WHERE log = ? ORDER BY first DESC LIMIT 1");
  if (skips.bind(log.row).row()) {
    log.skips = 1;
    log.skip_reason = skips.text(0);
  }
  log.loaded = skips.good();
  return skips.status();
}

// ---- a commit

Status ArchiveIndex::write(const Changes& changes) {
  const Status done = database_.in_transaction([&]() -> Status {
    if (!writers_) writers_ = std::make_unique<Writers>(database_);
    Statement& segment = writers_->segment;
    for (const SegmentRow& row : changes.segments) {
      segment.again().bind(as_row(row.number)).bind(as_row(row.size)).bind(static_cast<int64_t>(row.kind));
      if (const Status put = segment.bind_time(row.newest_ns).run(); !put) return put;
    }
    for (const ArchivedLog* log : changes.logs)
      if (const Status put = write_log(*log); !put) return put;
    return write_hosts(changes);
  });
  if (!done) writers_.reset();  // a statement keeps its first error
  return done;
}

Status ArchiveIndex::write_log(const ArchivedLog& log) {
  Writers& w = *writers_;
  const LogOrigin& origin = log.origin;
  w.log.again().bind(log.row).bind(as_row(origin.epoch)).bind(origin.host);
  Status done = w.log.bind(static_cast<int64_t>(origin.kind)).bind(as_row(log.sequence)).run();
  for (auto it = log.parts.begin(); done && it != log.parts.end(); ++it)
    done = w.part.again().bind(as_row(it->first)).bind(log.row).bind(as_row(it->second)).run();
  const auto put_extent = [&](StreamId stream, const Extent& e) {
    w.extent.again().bind(log.row).bind(as_row(e.segment)).bind(int64_t{stream}).bind(as_row(e.from));
    return w.extent.bind(as_row(e.to)).bind(as_row(e.first_at)).bind(as_row(e.last_at)).run();
  };
  for (const auto& left : log.left_extents)
    if (done) done = put_extent(left.stream, left.extent);
  for (const StreamId id : log.touched_streams) {
    if (!done) return done;
    const ArchivedStream& s = log.streams.at(id);
    bool there = s.in_index;
    if (there) {
      w.stream.again().bind(as_row(s.size)).bind(as_row(s.first)).bind(int64_t{s.ended});
      done = w.stream.bind(log.row).bind(int64_t{id}).run();
      // No row: the stream had ended, and its row was deleted with a segment.
      there = database_.changes() > 0;
    }
    if (done && !there) {
      const auto kind = static_cast<int64_t>(stored_kind(s.info.kind));
      w.new_stream.again().bind(log.row).bind(int64_t{id}).bind(kind);
      w.new_stream.bind(s.info.job)
          .bind(s.info.path)
          .bind_number(s.info.uid ? std::optional(s.info.uid->value) : std::nullopt)
          .bind(s.info.pid);
      w.new_stream.bind_time(s.info.opened_ns).bind_time(s.info.boot_ns).bind(as_row(s.size));
      done = w.new_stream.bind(as_row(s.first)).bind(int64_t{s.ended}).run();
    }
    if (done && s.extent.segment != 0) done = put_extent(id, s.extent);
  }
  for (const auto& [stream, hole] : log.new_holes) {
    w.gap.again().bind(log.row).bind(int64_t{stream}).bind(as_row(hole.offset)).bind(as_row(hole.bytes));
    if (done) done = w.gap.bind(hole.reason).run();
  }
  for (const SkippedFrames& skip : log.new_skips) {
    if (!done) return done;
    w.longer_skip.again().bind(as_row(skip.to)).bind(log.row).bind(as_row(skip.from - 1)).bind(skip.reason);
    done = w.longer_skip.run();
    if (!done || database_.changes() > 0) continue;
    w.skip.again().bind(log.row).bind(as_row(skip.from)).bind(as_row(skip.to)).bind_time(skip.time_ns);
    done = w.skip.bind(skip.reason).run();
  }
  return done;
}

Status ArchiveIndex::write_hosts(const Changes& changes) {
  if (changes.hosts == nullptr) return {};
  Statement& seen = writers_->host;
  for (const auto& [host, note] : *changes.hosts) {
    seen.again().bind(host).bind_time(note.seen_ns).bind(note.about).bind(int64_t{note.has_about});
    if (const Status put = seen.run(); !put) return put;
  }
  return {};
}

// ---- deleting

Result<ArchiveIndex::Dropped> ArchiveIndex::drop_segment(uint64_t segment) {
  Dropped dropped;
  const Status done = database_.in_transaction([&]() -> Status {
    std::vector<int64_t> logs;
    {
      Statement get(database_, "SELECT log, epoch FROM parts JOIN logs USING (log) WHERE segment = ?");
      get.bind(as_row(segment));
      while (get.row()) {
        logs.push_back(get.integer(0));
        dropped.epochs.push_back(number(get, 1));
      }
      if (!get.good()) return get.status();
    }
    for (const int64_t log : logs)
      if (const Status went = drop_from_log(log, segment); !went) return went;
    for (const char* sql : {"DELETE FROM parts WHERE segment = ?", "DELETE FROM segments WHERE segment = ?"})
      if (const Status went = Statement(database_, sql).bind(as_row(segment)).run(); !went) return went;
    return forget_logs(dropped, logs);
  });
  if (!done) return tl::unexpected(done.error());
  return dropped;
}

Status ArchiveIndex::drop_from_log(int64_t log, uint64_t segment) {
  const std::string_view of_segment = "(SELECT stream FROM extents WHERE log = ?1 AND segment = ?2)";
  for (const std::string& sql :
       {std::string(
            "UPDATE streams SET first = max(first, (SELECT ends FROM extents AS e WHERE e.log = ?1 AND "
            "e.segment = ?2 AND e.stream = streams.stream)) WHERE log = ?1 AND stream IN ") +
            std::string(of_segment),
        std::string("DELETE FROM gaps WHERE log = ?1 AND stream IN ") + std::string(of_segment) +
            " AND offset + bytes <= (SELECT first FROM streams AS s WHERE s.log = ?1 AND s.stream = "
            "gaps.stream)",
        std::string("DELETE FROM streams WHERE log = ?1 AND ended AND first >= size AND stream IN ") +
            std::string(of_segment),
        std::string("DELETE FROM extents WHERE log = ?1 AND segment = ?2")}) {
    Statement drop(database_, sql);
    if (const Status went = drop.bind(log).bind(as_row(segment)).run(); !went) return went;
  }
  return {};
}

Status ArchiveIndex::forget_logs(Dropped& dropped, const std::vector<int64_t>& logs) {
  Statement empty(
      database_,
      "SELECT epoch FROM logs AS l WHERE log = ?1 AND NOT EXISTS (SELECT 1 FROM parts WHERE log = "
      "?1) AND EXISTS (SELECT 1 FROM logs AS n WHERE n.host = l.host AND n.kind = l.kind AND n.log > "
      "l.log)");
  for (const int64_t log : logs) {
    empty.again().bind(log);
    if (!empty.row()) {
      if (!empty.good()) return empty.status();
      continue;
    }
    dropped.removed.push_back(number(empty, 0));
    for (const char* table : {"streams", "extents", "gaps", "skips", "logs"}) {
      Statement drop(database_, std::string("DELETE FROM ") + table + " WHERE log = ?");
      if (const Status went = drop.bind(log).run(); !went) return went;
    }
  }
  return {};
}

Result<bool> ArchiveIndex::holds_jobs(uint64_t segment, const std::vector<std::string>& jobs) {
  Statement any(database_,
                "SELECT 1 FROM streams CROSS JOIN extents USING (log, stream) WHERE job = ? AND segment = ? "
                "LIMIT 1");
  for (const std::string& job : jobs) {
    if (any.again().bind(job).bind(as_row(segment)).row()) return true;
    if (!any.good()) return tl::unexpected(any.status().error());
  }
  return false;
}

Status ArchiveIndex::forget_hosts(TimeNs before) {
  return database_.in_transaction([&] {
    return Statement(database_,
                     "DELETE FROM hosts WHERE seen_ns < ? AND host NOT IN (SELECT host FROM logs JOIN parts "
                     "USING (log))")
        .bind(before)
        .run();
  });
}

// ---- queries

Result<std::vector<HostRow>> ArchiveIndex::hosts() {
  Statement get(
      database_,
      "SELECT host, first_ns, seen_ns, about, (SELECT total(bytes) FROM logs JOIN parts USING (log) "
      "WHERE logs.host = hosts.host), (SELECT total(last - first + 1) FROM logs JOIN skips USING "
      "(log) WHERE logs.host = hosts.host) FROM hosts ORDER BY host");
  return get.rows<HostRow>([](const Statement& row) {
    return HostRow{row.text(0), row.time(1), row.time(2), row.text(3), number(row, 4), number(row, 5)};
  });
}

Result<std::vector<HostStream>> ArchiveIndex::stored(const StoredQuery& query) {
  std::vector<HostStream> found;
  std::vector<int64_t> logs;
  Statement get(
      database_,
      "SELECT stream, streams.kind, job, path, uid, pid, opened_ns, boot_ns, size, first, ended, host, "
      "epoch, log FROM streams JOIN logs USING (log) WHERE logs.kind = ?1 AND (?2 = '' OR host = ?2) "
      "AND (?3 = '' OR job = ?3 OR (job = '' AND streams.kind IN (?4, ?5, ?7))) AND (?6 = '' OR path = ?6) "
      "ORDER BY host, log, stream");
  get.bind(static_cast<int64_t>(query.kind)).bind(query.host).bind(query.job);
  get.bind(static_cast<int64_t>(OriginKind::kKernel)).bind(static_cast<int64_t>(OriginKind::kDump));
  get.bind(query.path).bind(static_cast<int64_t>(OriginKind::kPlugin));
  while (get.row()) {
    HostStream& stream = found.emplace_back();
    StreamState& state = stream.stored.state;
    state.info = stream_of(get);
    state.size = number(get, 8);
    state.ended = get.integer(10) != 0;
    stream.stored.first_offset = number(get, 9);
    stream.host = get.text(11);
    stream.stored.epoch = number(get, 12);
    logs.push_back(get.integer(13));
  }
  if (!get.good()) return tl::unexpected(get.status().error());
  if (query.places)
    if (const Status added = add_places(found, logs); !added) return tl::unexpected(added.error());
  return found;
}

// `logs` has one entry per stream, in order.
Status ArchiveIndex::add_places(std::vector<HostStream>& streams, const std::vector<int64_t>& logs) {
  Statement extents(
      database_,
      "SELECT stream, segment, begins, ends, first_at, last_at FROM extents WHERE log = ? ORDER "
      "BY segment");
  Statement gaps(database_, "SELECT stream, offset, bytes, reason FROM gaps WHERE log = ? ORDER BY offset");
  for (size_t i = 0; i < streams.size();) {
    std::map<StreamId, StoredStream*> wanted;
    const int64_t log = logs[i];
    for (; i < streams.size() && logs[i] == log; ++i)
      wanted[streams[i].stored.state.info.id] = &streams[i].stored;
    const auto stream_at = [&](const Statement& row) {
      const auto found = wanted.find(static_cast<StreamId>(row.integer(0)));
      return found == wanted.end() ? nullptr : found->second;
    };
    extents.again().bind(log);
    while (extents.row())
      if (StoredStream* stored = stream_at(extents))
        stored->extents.push_back({number(extents, 1), number(extents, 2), number(extents, 3),
                                   number(extents, 4), number(extents, 5)});
    gaps.again().bind(log);
    while (gaps.row())
      if (StoredStream* stored = stream_at(gaps))
        stored->holes.push_back({number(gaps, 1), number(gaps, 2), gaps.text(3)});
    if (!extents.good()) return extents.status();
    if (!gaps.good()) return gaps.status();
  }
  return {};
}

Result<std::vector<SkippedFrames>> ArchiveIndex::skipped(const std::string& host, LogKind kind) {
  Statement get(
      database_,
      "SELECT first, last, time_ns, reason FROM logs JOIN skips USING (log) WHERE host = ? AND kind = ? "
      "ORDER BY log, first");
  get.bind(host).bind(static_cast<int64_t>(kind));
  return get.rows<SkippedFrames>([](const Statement& row) {
    return SkippedFrames{number(row, 0), number(row, 1), row.time(2), row.text(3)};
  });
}

Result<std::vector<uint64_t>> ArchiveIndex::segments_of(const std::vector<int64_t>& logs) {
  std::set<uint64_t> found;
  Statement get(database_, "SELECT segment FROM parts WHERE log = ?");
  for (const int64_t log : logs) {
    get.again().bind(log);
    while (get.row()) found.insert(number(get, 0));
  }
  if (!get.good()) return tl::unexpected(get.status().error());
  return std::vector<uint64_t>(found.begin(), found.end());
}

}  // namespace culprit::store
