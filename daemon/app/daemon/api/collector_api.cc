#include "app/daemon/api/collector_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/cluster_view.h"
#include "app/daemon/api/host_rows.h"

namespace culprit::app {
namespace {

double as_double(uint64_t n) { return static_cast<double>(n); }

// Like on the host itself, except that the archive lacks the number of files of a log.
std::optional<uint32_t> proven_owner(const StreamInfo& info) {
  const bool by_peer = info.kind == OriginKind::kSocket || info.kind == OriginKind::kRing;
  return info.uid && by_peer ? info.uid->uid() : std::nullopt;
}

// Age of the oldest unacknowledged frame and number of such frames, over both logs.
void put_lag(json& row, const HostFacts& facts) {
  uint64_t frames = 0, spool = 0;
  TimeNs oldest = kNoTime;
  for (const peer::LogState& log : facts.status->logs) {
    frames += log.unacked_frames;
    spool += log.bytes;
    if (log.oldest_ns != kNoTime)
      oldest = oldest == kNoTime ? log.oldest_ns : std::min(oldest, log.oldest_ns);
  }
  row["lag_frames"] = frames;
  if (frames == 0)
    row["lag_ns"] = 0;
  else if (oldest == kNoTime)
    row["lag_ns"] = nullptr;
  else
    row["lag_ns"] = std::max<TimeNs>(0, facts.status->time_ns - oldest);
  row["spool_bytes"] = spool;
}

json row_of(const HostFacts& facts) {
  json row = {{"host", facts.host},
              {"connected", facts.connected},
              {"state", facts.connected ? "healthy" : "silent"},
              {"since_ns", time_or_null(facts.since_ns)},
              {"last_ns", time_or_null(facts.seen_ns)},
              {"version", facts.program},
              {"address", facts.address},
              {"boot_id", facts.boot_id},
              {"clock_ahead_ns", facts.clock_ahead_ns},
              {"left", facts.left.empty() ? json(nullptr) : json(facts.left)}};
  if (!facts.status) return row;
  const peer::Status& s = *facts.status;
  if (facts.connected && !s.healthy) row["state"] = "unhealthy";
  row["trouble"] = s.trouble.empty() ? json(nullptr) : json(s.trouble);
  row["dropped_bytes"] = s.dropped_bytes;
  row["dropped_records"] = s.dropped_records;
  row["read_bytes"] = s.read_bytes;
  row["sources"] = s.sources;
  row["jobs"] = s.jobs;
  put_lag(row, facts);
  return row;
}

template <class Value>
json or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

json row_of(const std::string& host, const RememberedHost& of) {
  const HostAbout& about = of.about;
  return {{"host", host},
          {"connected", false},
          {"state", "silent"},
          {"since_ns", time_or_null(of.seen_ns)},
          {"last_ns", time_or_null(of.seen_ns)},
          {"version", or_null(about.program)},
          {"address", or_null(about.address)},
          {"clock_ahead_ns", or_null(about.clock_ahead_ns)},
          {"dropped_bytes", or_null(about.dropped_bytes)},
          {"dropped_records", or_null(about.dropped_records)},
          {"left", about.left.empty() ? "not heard since the collector's start" : about.left}};
}

// Order of hosts: silent ones first, the longest silence first; then by name.
bool precedes(const json& a, const json& b) {
  const bool a_silent = a.value("state", "") == "silent", b_silent = b.value("state", "") == "silent";
  if (a_silent != b_silent) return a_silent;
  const auto last = [](const json& row) {
    const json at = row.value("last_ns", json());
    return at.is_number() ? at.get<TimeNs>() : kNoTime;
  };
  if (a_silent && last(a) != last(b)) return last(a) < last(b);
  return a.value("host", "") < b.value("host", "");
}

void about_connections(serve::MetricsText& m, const collect::CollectorStats& s) {
  m.gauge("culprit_collector_hosts", "Hosts that are connected.").value(as_double(s.hosts));
  m.gauge("culprit_collector_unknown_connections", "Connections that have not said hello.")
      .value(as_double(s.unknown));
  m.gauge("culprit_collector_connections", "Connections, with those that have not said hello.")
      .value(as_double(s.connections));
  m.counter("culprit_collector_accepted_total", "Connections that came.").value(as_double(s.accepted));
  m.counter("culprit_collector_frames_total", "Frames that were received.").value(as_double(s.frames));
  m.counter("culprit_collector_frame_bytes_total", "Bytes of these frames.").value(as_double(s.bytes));
  m.counter("culprit_collector_duplicate_frames_total", "Frames that had come before.")
      .value(as_double(s.duplicates));
  m.counter("culprit_collector_skipped_frames_total", "Frames that agents do not send.")
      .value(as_double(s.skipped_frames));
  m.gauge("culprit_collector_held_bytes", "Received, and not yet taken by the archive.")
      .value(as_double(s.held_bytes));
  m.counter("culprit_collector_holds_total", "Times that all agents were paused until the archive caught up.")
      .value(as_double(s.holds));
  m.counter("culprit_collector_refused_total", "Connections that were refused, by reason.");
  for (size_t i = 1; i < peer::kRefusals; ++i)
    m.value(as_double(s.refused[i]), {{"reason", peer::name_of(static_cast<peer::Refusal>(i))}});
  m.counter("culprit_collector_tls_failures_total", "Handshakes that failed.")
      .value(as_double(s.tls_failures));
}

void about_archive(serve::MetricsText& m, const store::ArchiveStats& s, const CollectorService::Counters& f) {
  m.gauge("culprit_archive_bytes", "Of all segments on the disk.").value(as_double(s.bytes));
  m.gauge("culprit_archive_segments", "Segments on the disk.").value(as_double(s.segments));
  m.gauge("culprit_archive_logs", "Logs of hosts that are known.").value(as_double(s.logs));
  m.gauge("culprit_archive_pending_bytes", "Taken, and not yet committed.").value(as_double(s.pending_bytes));
  m.gauge("culprit_archive_waiting_batches", "Received, and waiting for the archive.")
      .value(as_double(f.waiting));
  m.gauge("culprit_archive_restoring", "1 while engines are given what was there at the start.")
      .value(f.restoring ? 1 : 0);
  m.gauge("culprit_archive_to_read_again_bytes", "Of condensed logs, in the second reading after the start.")
      .value(as_double(f.to_read_again_bytes - f.read_again_bytes));
  m.counter("culprit_archive_frames_total", "Frames taken.").value(as_double(s.frames));
  m.counter("culprit_archive_stored_bytes_total", "Bytes of these frames.").value(as_double(s.stored_bytes));
  m.counter("culprit_archive_commits_total", "Commits, by outcome.")
      .value(as_double(f.commits), {{"outcome", "done"}})
      .value(as_double(f.failed_commits), {{"outcome", "failed"}});
  m.counter("culprit_archive_duplicate_frames_total", "Frames that were there already.")
      .value(as_double(s.duplicates));
  m.counter("culprit_archive_refused_frames_total", "Frames that are none, or do not follow.")
      .value(as_double(s.refused));
  m.counter("culprit_archive_holes_total", "Places where bytes of a source never came.")
      .value(as_double(s.holes));
  m.counter("culprit_archive_hole_bytes_total", "Bytes that are missing there.")
      .value(as_double(s.hole_bytes));
  m.counter("culprit_archive_undeclared_pieces_total",
            "Pieces of sources that no frame declared: stored, but not readable.")
      .value(as_double(s.orphans));
  m.counter("culprit_archive_dropped_bytes_total", "What made room, or was too old.")
      .value(as_double(s.dropped_bytes));
  m.counter("culprit_archive_damaged_frames_total", "Frames found damaged at the start.")
      .value(as_double(s.damaged_frames));
  m.counter("culprit_archive_failures_total", "Calls of the disk that failed.").value(as_double(s.failures));
  m.gauge("culprit_archive_engine_bytes", "Under way to the engines.").value(as_double(f.engine_bytes));
  m.counter("culprit_collector_wants_total", "Times of a fault that hosts were asked for their evidence of.")
      .value(as_double(f.wants));
  m.counter("culprit_collector_wants_untaken_total",
            "Of these, those not sent at once: the host is away or unknown.")
      .value(as_double(f.wants_untaken));
  m.counter("culprit_collector_end_tasks_total", "Times that a host was asked to end a job's processes.")
      .value(as_double(f.ends.times));
  m.counter("culprit_collector_advice_total", "Times that a host was asked to advise a job.")
      .value(as_double(f.advice.times));
  m.counter("culprit_collector_checks_total", "Times that a host was asked to check itself.")
      .value(as_double(f.checks.times));
  m.counter("culprit_collector_alignments_total",
            "Times that a host was asked for an equal step, to be compared with other hosts'.")
      .value(as_double(f.alignments.times));
  m.counter("culprit_collector_stacks_wanted_total", "Times that a host was asked for stacks of a job.")
      .value(as_double(f.stacks.times));
  m.counter("culprit_collector_steps_wanted_total", "Times that a host was asked for records of steps.")
      .value(as_double(f.steps.times));
  m.counter("culprit_collector_steps_untaken_total", "Of these, those not sent: the host is away or unknown.")
      .value(as_double(f.steps.unsent));
  m.counter("culprit_archive_engine_holds_total", "Times that frames waited for the engines.")
      .value(as_double(f.engine_holds));
}

void about_engines(serve::MetricsText& m, const LiveCounts& c) {
  m.counter("culprit_condensed_blocks_total", "Blocks of condensed inputs that engines took.")
      .value(as_double(c.remote_blocks));
  m.counter("culprit_condensed_bytes_total", "Bytes of these blocks.").value(as_double(c.remote_bytes));
  m.counter("culprit_condensed_lost_blocks_total", "Blocks that could not be read.")
      .value(as_double(c.remote_blocks_lost));
}

}  // namespace

CollectorApi::CollectorApi(io::Env& env, AgentParts parts, CollectorService& collecting)
    : DaemonApi(env, std::move(parts)), collecting_(collecting) {
  lists_.set_more_sources([this](const auto& job, std::vector<SourceRow> own, Lists::SourceRows rows) {
    add_archived(job, std::move(own), std::move(rows));
  });
}

serve::Health CollectorApi::health() {
  if (const auto why = collecting_.unhealthy(env_.now(io::Clock::kMonotonic))) return {false, *why};
  return DaemonApi::health();
}

std::string CollectorApi::metrics_text(Counters counters) {
  serve::MetricsText m;
  about_connections(m, collecting_.connections());
  about_archive(m, collecting_.archive(), collecting_.counters());
  about_engines(m, parts_.engine->counts());
  if (collecting_.bucket() && counters == Counters::kAll) about_bucket(m, *collecting_.bucket());
  return DaemonApi::metrics_text(counters) + m.finish();
}

json CollectorApi::status_values() {
  json out = DaemonApi::status_values();
  const collect::CollectorStats connections = collecting_.connections();
  const store::ArchiveStats archive = collecting_.archive();
  out["role"] = parts_.config->watches() ? "both" : "collector";
  out["collector"] = {{"listen", collecting_.address()},
                      {"hosts", connections.hosts},
                      {"connections", connections.connections},
                      {"restoring", collecting_.counters().restoring},
                      {"last_refusal", connections.last_refusal},
                      {"archive_bytes", archive.bytes},
                      {"archive_max_bytes", parts_.config->collector.retention_max_size},
                      {"pending_bytes", archive.pending_bytes}};
  if (const auto counters = collecting_.counters(); counters.to_read_again_bytes > 0)
    out["collector"]["reading_again"] = {{"bytes", counters.to_read_again_bytes},
                                         {"read", counters.read_again_bytes}};
  if (collecting_.bucket()) out["collector"]["bucket"] = bucket_status(*collecting_.bucket());
  return out;
}

void CollectorApi::hosts(Answer answer) {
  named_in_index(
      *parts_.recorder, "", [this, answer = std::move(answer)](Result<std::vector<NamedHost>> found) {
        if (!found) return answer(tl::unexpected(found.error()));
        const auto named = std::make_shared<std::vector<NamedHost>>(std::move(*found));
        auto stored = std::make_shared<std::map<std::string, RememberedHost>>();
        collecting_.query(
            [stored](store::Archive& archive) {
              if (auto rows = archive.hosts())
                for (const store::HostRow& row : *rows)
                  (*stored)[row.host] = {host_about(row.about), row.seen_ns, row.bytes, row.skipped};
            },
            [this, named, stored, answer] {
              answer(dump({{"items", host_list(*named, *stored)}}));
            });
      });
}

// The rows of hosts and archive with the findings about each host; and hosts whose logs are read here.
json CollectorApi::host_list(const std::vector<NamedHost>& named,
                             const std::map<std::string, RememberedHost>& stored) {
  std::map<std::string, const NamedHost*> against;
  for (const NamedHost* one : worst_by_host(named, env_.now(io::Clock::kWall))) against[one->host] = one;
  std::map<std::string, json> rows;
  for (const auto& [host, of] : stored) rows[host] = row_of(host, of);
  for (const HostFacts& facts : collecting_.hosts()) rows[facts.host] = row_of(facts);
  for (auto& [host, row] : rows) {
    const auto worst = against.find(host);
    put_host_state(row, worst == against.end() ? nullptr : worst->second);
    const auto of = stored.find(host);
    row["archive_bytes"] = of == stored.end() ? 0 : of->second.bytes;
    row["skipped_frames"] = of == stored.end() ? 0 : of->second.skipped;
  }
  json items = json::array();
  for (auto& [host, row] : host_rows(named)) {
    const bool itself = host == parts_.config->host.name;
    if (!rows.contains(host) && (!itself || parts_.config->watches())) items.push_back(std::move(row));
  }
  for (auto& [host, row] : rows) items.push_back(std::move(row));
  std::stable_sort(items.begin(), items.end(), precedes);
  return items;
}

void CollectorApi::stored(const store::StoredQuery& query,
                          std::function<void(Result<BucketService::Found>)> done) {
  auto found = std::make_shared<Result<BucketService::Found>>();
  collecting_.query(
      [found, query](store::Archive& archive) {
        auto streams = archive.stored(query);
        if (streams)
          (*found)->streams = std::move(*streams);
        else
          *found = tl::unexpected(streams.error());
      },
      [this, found, query, done = std::move(done)] {
        const bool whole = collecting_.bucket() == nullptr || !query.places;
        if (!*found || whole) return done(std::move(*found));
        collecting_.bucket()->find(query, std::move((*found)->streams), done);
      });
}

void CollectorApi::add_archived(const std::optional<std::string>& job, std::vector<SourceRow> own,
                                Lists::SourceRows rows) {
  auto all = std::make_shared<std::vector<SourceRow>>(std::move(own));
  // With a bucket the places are needed to join the two.
  const store::StoredQuery query{.job = job.value_or(""), .places = collecting_.bucket() != nullptr && job};
  stored(query, [all, rows = std::move(rows)](Result<BucketService::Found> found) {
    if (!found) return rows(std::move(*all));
    for (auto it = found->streams.rbegin(); it != found->streams.rend(); ++it) {
      const StreamInfo& info = it->stored.state.info;
      all->push_back({info.job, it->host, info.path, info.kind, it->stored.state.size,
                      it->stored.first_offset, info.opened_ns, info.uid, proven_owner(info), info.pid,
                      it->stored.state.ended});
    }
    rows(std::move(*all));
  });
}

void CollectorApi::evidence(const serve::EvidenceQuery& query,
                            std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) {
  if (query.host == parts_.config->host.name && parts_.config->watches())
    return DaemonApi::evidence(query, std::move(answer));
  if (static_cast<size_t>(readers_.use_count()) > kEvidenceReaders)
    return answer(fail(ErrorCode::kLimit, fmt::format("{} clients read evidence already", kEvidenceReaders)));
  stored({.host = query.host, .job = query.job, .path = query.path},
         [this, query, answer = std::move(answer), share = readers_](Result<BucketService::Found> found) {
           if (!found) return answer(tl::unexpected(found.error()));
           store::EvidenceRange range;
           range.from = query.from_byte;
           range.to = query.to_byte;
           range.open_object = std::move(found->open_object);
           for (store::HostStream& stream : found->streams) range.streams.push_back(std::move(stream.stored));
           if (range.streams.empty() && !found->unread.empty())
             return answer(fail(ErrorCode::kIo, found->unread));
           if (range.streams.empty())
             return answer(fail(ErrorCode::kNotFound, fmt::format("no evidence of {} of host {} for job {}",
                                                                  query.path, query.host, query.job)));
           answer(read_evidence(env_, collecting_.evidence(), std::move(range), share));
         });
}

}  // namespace culprit::app
