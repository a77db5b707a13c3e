#include "app/daemon/alerts/alert_metrics.h"
#include "app/daemon/api/cluster_view.h"
#include "app/daemon/api/daemon_api.h"
#include "app/daemon/api/job_metrics.h"
#include "app/daemon/api/recovery_metrics.h"
#include "app/daemon/watch/copy_service.h"

namespace culprit::app {
namespace {

double seconds(TimeNs ns) { return static_cast<double>(ns) / 1e9; }
double number(uint64_t n) { return static_cast<double>(n); }

void about_itself(serve::MetricsText& m, const AgentParts& p, TimeNs mono, const SelfUsage& usage) {
  m.gauge("culprit_build_info", "The version that runs.").value(1, {{"version", CULPRIT_VERSION}});
  const Sources* sources = p.sources();
  const bool stuck = p.watch->unhealthy(mono) || (sources && sources->stuck(mono));
  m.gauge("culprit_healthy", "1 while there is progress, else 0.").value(stuck ? 0 : 1);
  m.gauge("culprit_start_time_seconds", "When it started, since the Unix epoch.")
      .value(seconds(p.counts->started_ns));
  m.gauge("culprit_anonymous_memory_bytes", "Memory that is of no file.")
      .value(number(usage.anonymous_bytes));
  m.gauge("culprit_resident_memory_bytes", "Memory in RAM.").value(number(usage.resident_bytes));
  m.gauge("culprit_open_descriptors", "Files and sockets that are open.").value(number(usage.descriptors));
  m.counter("culprit_cpu_seconds_total", "Processor time used.").value(seconds(usage.cpu_ns));
  const SelfWatch::Counters counters = p.watch->counters(mono);
  m.gauge("culprit_loop_latency_seconds", "How late the loop was at its last beat.")
      .value(seconds(counters.loop_late_ns));
  m.gauge("culprit_loop_latency_max_seconds", "How late the loop was at most since the start.")
      .value(seconds(counters.loop_late_max_ns));
  m.gauge("culprit_oldest_work_seconds", "For how long a worker has not come back.")
      .value(seconds(counters.engine_waits_ns), {{"part", "engine"}})
      .value(seconds(counters.store_waits_ns), {{"part", "store"}});
  m.gauge("culprit_queued_bytes", "Read, and not yet taken by the part.")
      .value(number(p.counts->store_bytes), {{"part", "store"}})
      .value(number(p.counts->engine_bytes), {{"part", "engine"}});
  m.counter("culprit_holds_total", "Times that sources were held because a part did not keep up.")
      .value(number(p.counts->holds));
  m.counter("culprit_complaints_total", "Sentences written to the log.")
      .value(number(p.counts->errors_reported));
  m.counter("culprit_reloads_total", "Reloads of the configuration.")
      .value(number(p.counts->reloads), {{"outcome", "done"}})
      .value(number(p.counts->reloads_refused), {{"outcome", "refused"}});
}

void about_capture(serve::MetricsText& m, const CaptureService& service) {
  const CaptureService::Counters& f = service.counters();
  m.counter("culprit_capture_total", "Captures of processes of jobs that hang.")
      .value(number(f.captures - f.failed), {{"outcome", "taken"}})
      .value(number(f.failed), {{"outcome", "failed"}})
      .value(number(f.refused), {{"outcome", "refused"}});
  m.counter("culprit_capture_processes_total", "Ranks that were captured.").value(number(f.processes));
  m.counter("culprit_capture_stacks_total", "Those whose stacks were read.").value(number(f.with_stacks));
  m.counter("culprit_capture_dropped_total", "Lines of captures beyond a limit.").value(number(f.dropped));
}

void about_copies(serve::MetricsText& m, const CopyCounters& c) {
  m.counter("culprit_copies_total", "Copies of this host's checkpoints, by outcome.")
      .value(number(c.copied), {{"outcome", "done"}})
      .value(number(c.failed), {{"outcome", "failed"}});
  m.counter("culprit_copies_sent_bytes_total", "Bytes of checkpoints sent to other hosts.")
      .value(number(c.sent_bytes));
  m.counter("culprit_copies_read_bytes_total", "Bytes of checkpoints read to copy them.")
      .value(number(c.read_bytes));
  m.counter("culprit_copies_held_seconds_total", "Time that copies waited while the job saved.")
      .value(seconds(c.held_ns));
  m.gauge("culprit_copies_pending", "Newest whole checkpoints of this host that have no copy yet.")
      .value(number(c.pending));
  if (c.last_copy_ns != kNoTime)
    m.gauge("culprit_copies_last_time_seconds", "When the last copy was complete, since the Unix epoch.")
        .value(seconds(c.last_copy_ns));
  m.gauge("culprit_copies_stored", "Complete copies of other hosts' checkpoints on this host.")
      .value(number(c.store.copies));
  m.gauge("culprit_copies_stored_bytes", "Their bytes.").value(number(c.store.bytes));
  m.gauge("culprit_copies_incomplete", "Copies that are being received, or were interrupted.")
      .value(number(c.store.partial));
  m.counter("culprit_copies_damaged_total", "Copies of other hosts that were found unreadable.")
      .value(number(c.store.damaged));
  m.counter("culprit_copies_received_bytes_total", "Bytes of other hosts' checkpoints that were stored.")
      .value(number(c.store.stored_bytes));
  m.counter("culprit_copies_refused_total", "Requests of other hosts and users that were refused.")
      .value(number(c.server.refused));
  m.counter("culprit_copies_full_total", "Copies that were refused as there was no room.")
      .value(number(c.store.refused_full));
  m.counter("culprit_copies_mismatches_total", "Files that did not arrive as they were read.")
      .value(number(c.store.mismatches));
  m.counter("culprit_copies_served_bytes_total", "Bytes of copies that were restored from this host.")
      .value(number(c.server.served_bytes));
}

void about_plugins(serve::MetricsText& m, const PluginService& service) {
  const auto rows = service.rows();
  const auto all = [&](serve::MetricsText& family, auto value) {
    for (const plughost::PluginRow& row : rows) family.value(value(row), {{"plugin", row.name}});
  };
  m.counter("culprit_plugin_dropped_batches_total",
            "Batches of input that no plugin got: their thread was late.")
      .value(number(service.dropped_batches()));
  using Row = plughost::PluginRow;
  all(m.gauge("culprit_plugin_running", "1 while the plugin runs, else 0."),
      [](const Row& r) { return r.state == "running" ? 1.0 : 0.0; });
  all(m.counter("culprit_plugin_events_total", "Events that the plugin took."),
      [](const Row& r) { return number(r.events); });
  all(m.counter("culprit_plugin_dropped_events_total",
                "Events that it did not get: it did not run, was too slow, or was over its processor time."),
      [](const Row& r) { return number(r.dropped); });
  all(m.counter("culprit_plugin_findings_total", "Findings of the plugin."),
      [](const Row& r) { return number(r.findings); });
  all(m.counter("culprit_plugin_dropped_findings_total", "Findings over its limit, and invalid ones."),
      [](const Row& r) { return number(r.findings_dropped); });
  all(m.counter("culprit_plugin_failures_total", "Times that it crashed, hung or broke a limit."),
      [](const Row& r) { return number(r.failures); });
  all(m.counter("culprit_plugin_cpu_seconds_total", "Processor time of its processes."),
      [](const Row& r) { return seconds(static_cast<TimeNs>(r.cpu_ns)); });
  all(m.gauge("culprit_plugin_memory_bytes", "Memory of its process."),
      [](const Row& r) { return number(r.memory_bytes); });
}

void about_ras(serve::MetricsText& m, const RasService::Counters& f) {
  m.counter("culprit_ras_answers_total", "Answers of NCCL's RAS service, by what became of them.")
      .value(number(f.answers), {{"outcome", "used"}})
      .value(number(f.failures), {{"outcome", "failed"}})
      .value(number(f.foreign), {{"outcome", "foreign"}});
}

void about_spool(serve::MetricsText& m, const AgentParts& p) {
  const Recorder::Counters f = p.recorder->counters();
  m.gauge("culprit_spool_bytes", "Evidence on the disk.").value(number(f.spool.bytes));
  m.gauge("culprit_spool_max_bytes", "Above this the oldest evidence goes.")
      .value(number(p.config->spool.max_size));
  m.gauge("culprit_spool_segments", "Segments on the disk.").value(number(f.spool.segments));
  m.counter("culprit_spool_raw_bytes_total", "Evidence taken.").value(number(f.spool.raw_bytes));
  m.counter("culprit_spool_stored_bytes_total", "What it was written as.")
      .value(number(f.spool.stored_bytes));
  m.counter("culprit_spool_failures_total", "Writes that failed.").value(number(f.spool.failures));
  m.counter("culprit_spool_dropped_bytes_total", "Evidence that made room for newer.")
      .value(number(f.spool.dropped_bytes));
  m.counter("culprit_spool_damaged_frames_total", "Frames found damaged at the start.")
      .value(number(f.spool.damaged_frames));
  m.counter("culprit_spool_cut_bytes_total", "Bytes behind the last sound frame, cut at the start.")
      .value(number(f.spool.cut_bytes));
  m.counter("culprit_spool_refused_batches_total", "Batches that the spool could never take.")
      .value(number(f.refused_batches));
  m.gauge("culprit_spool_waiting_batches", "Batches that wait for the disk.").value(number(f.waiting));
  m.counter("culprit_index_retries_total", "Failed writes to the index that are tried again.")
      .value(number(f.index_retries));
  m.counter("culprit_index_lost_total", "Writes to the index that were given up.")
      .value(number(f.index_lost));
  m.gauge("culprit_unreadable_rows",
          "Stored reports and diagnoses, met since the start, in a form of another version that this one "
          "cannot read.")
      .value(number(f.unreadable_rows));
}

void about_files(serve::MetricsText& m, const Sources& sources) {
  ingest::TailStats all;
  for (const Tails::Tail& tail : sources.tails().tails()) {
    all.files += tail.stats.files;
    all.bytes += tail.stats.bytes;
    all.lag_bytes += tail.stats.lag_bytes;
    all.generations += tail.stats.generations;
    all.gaps += tail.stats.gaps;
    all.gap_bytes += tail.stats.gap_bytes;
    all.refused += tail.stats.refused;
  }
  m.gauge("culprit_tail_files", "Files that are followed.").value(number(all.files));
  m.gauge("culprit_tail_lag_bytes", "Seen in files and not read yet.").value(number(all.lag_bytes));
  m.gauge("culprit_tail_refused_files", "Links, devices and unreadable files that globs match.")
      .value(number(all.refused));
  m.counter("culprit_tail_bytes_total", "Read from files.").value(number(all.bytes));
  m.gauge("culprit_tail_left_behind_threads", "Threads that hang in files which are followed no more.")
      .value(number(sources.tails().left_behind()));
  m.counter("culprit_tail_left_behind_total", "Threads left behind by reloads.")
      .value(number(sources.tails().left_behind_total()));
  m.counter("culprit_tail_rotations_total", "Files whose path another took.").value(number(all.generations));
  m.counter("culprit_tail_gaps_total", "Places where bytes of a file are missing.").value(number(all.gaps));
  m.counter("culprit_tail_gap_bytes_total", "Bytes that are missing there, as far as known.")
      .value(number(all.gap_bytes));
}

void about_pods(serve::MetricsText& m, const PodLogs::Counts& counts) {
  m.gauge("culprit_pods_followed", "Pods whose logs are followed.").value(number(counts.followed));
  m.gauge("culprit_pods_left_out", "Pods that are no jobs.").value(number(counts.left_out));
  m.gauge("culprit_pods_waiting", "Pods that the API server has not described yet.")
      .value(number(counts.waiting));
  m.counter("culprit_pods_requests_total", "Requests to the API server.").value(number(counts.asked));
}

void about_others(serve::MetricsText& m, const Sources& sources) {
  if (const PodLogs* pods = sources.pods()) about_pods(m, pods->counts());
  if (const auto* rings = sources.rings()) {
    m.gauge("culprit_rings", "Rings that are open.").value(number(rings->rings));
    m.counter("culprit_ring_records_total", "Records read from rings.").value(number(rings->records));
    m.counter("culprit_ring_dropped_records_total", "Records that found their ring full.")
        .value(number(rings->dropped));
    m.counter("culprit_ring_lost_records_total", "Records that a ring's counts made unreadable.")
        .value(number(rings->lost));
  }
  if (const auto* journal = sources.journal()) {
    const ingest::JournalStats& s = journal->stats();
    m.counter("culprit_journal_entries_total", "Entries of the journal.").value(number(s.entries));
    m.counter("culprit_journal_left_out_entries_total",
              "Entries of other units, of the daemon, or of the kernel where it has a source of its own.")
        .value(number(s.left_out));
    m.counter("culprit_journal_lost_entries_total",
              "Entries that were removed before they were read; at most so many.")
        .value(number(s.lost));
    m.counter("culprit_journal_cut_entries_total", "Entries whose message was cut.").value(number(s.cut));
    m.counter("culprit_journal_malformed_lines_total", "Lines of journalctl that are no entry.")
        .value(number(s.malformed));
    m.counter("culprit_journal_starts_total", "Starts of journalctl.").value(number(journal->starts()));
  }
  if (const auto* kernel = sources.kernel()) {
    m.counter("culprit_kernel_records_total", "Records of the kernel's log.").value(number(kernel->records));
    m.counter("culprit_kernel_lost_records_total", "Records overwritten before they were read.")
        .value(number(kernel->lost));
  }
  if (const auto trace = sources.trace()) {
    m.gauge("culprit_trace_clients", "Clients of the trace socket.").value(number(trace->clients));
    m.counter("culprit_trace_bytes_total", "Received by the trace socket.").value(number(trace->bytes));
    m.counter("culprit_trace_broken_lines_total", "Lines that are kept and not understood.")
        .value(number(trace->broken));
    m.counter("culprit_trace_dropped_lines_total", "Lines that were not taken.")
        .value(number(trace->dropped_lines));
    m.counter("culprit_trace_refused_connections_total", "Connections beyond a limit.")
        .value(number(trace->refused));
    m.counter("culprit_trace_held_up_total", "Times that a user had to wait for its rate.")
        .value(number(trace->held_up));
  }
}

void about_jobs(serve::MetricsText& m, const EngineWorker& engine) {
  const LiveCounts& c = engine.counts();
  m.gauge("culprit_jobs", "Jobs that are known live.").value(number(engine.jobs()));
  m.counter("culprit_jobs_started_total", "Jobs that began.").value(number(c.jobs_started));
  m.counter("culprit_jobs_ended_total", "Jobs that ended.").value(number(c.jobs_ended));
  m.gauge("culprit_jobs_without_engine", "Jobs whose data is kept as evidence only.")
      .value(number(c.without_engine));
  m.counter("culprit_jobs_gave_way_total", "Runs that lost their engine.")
      .value(number(c.gave_way_for_slots), {{"for", "slot"}})
      .value(number(c.gave_way_for_memory), {{"for", "memory"}});
  m.gauge("culprit_engine_memory_bytes", "Memory of all engines.").value(number(c.engine_bytes));
  m.gauge("culprit_engine_memory_max_bytes", "Limit; above it the largest job is stored as evidence only.")
      .value(number(c.engine_bytes_max));
  m.counter("culprit_lines_total", "Lines that engines took.").value(number(c.lines));
  m.counter("culprit_line_bytes_total", "Bytes of these lines.").value(number(c.bytes));
  m.counter("culprit_refused_bytes_total", "Bytes of jobs and sources beyond a limit: evidence only.")
      .value(number(c.bytes_refused));
  m.counter("culprit_kept_out_total", "Lines and records of users for jobs of others: evidence only.")
      .value(number(c.refused));
  m.counter("culprit_lost_events_total", "Findings dropped because no reader took them in time.")
      .value(number(c.events_lost));
  m.gauge("culprit_jobs_with_verdict", "Jobs whose report has a verdict; a refuted one is none.")
      .value(number(c.with_verdict));
  m.counter("culprit_reports_total", "Reports that were made.").value(number(c.reports));
  m.counter("culprit_report_seconds_total", "Time spent on them.").value(seconds(c.report_ns));
}

// Metrics of both logs have a label with the log's name.
void about_uplink(serve::MetricsText& m, const UplinkCounters& f) {
  const auto each = [&](auto&& metric, auto value) {
    for (const peer::Log log : peer::kLogs)
      metric.value(number(value(static_cast<size_t>(log))), {{"log", peer::name_of(log)}});
  };
  const bool open = f.forward.phase == forward::Phase::kOpen;
  m.gauge("culprit_forward_connected", "1 while the collector takes what is sent, else 0.")
      .value(open ? 1 : 0);
  m.counter("culprit_forward_attempts_total", "Connections that were tried.")
      .value(number(f.forward.attempts));
  m.counter("culprit_forward_sessions_total", "Connections that the collector welcomed.")
      .value(number(f.forward.sessions));
  m.gauge("culprit_forward_round_trip_seconds", "Of the last ping.").value(seconds(f.forward.round_trip_ns));
  each(m.counter("culprit_forward_sent_bytes_total",
                 "Bytes of frames that were sent, again after a reconnect."),
       [&](size_t i) { return f.forward.logs[i].bytes; });
  each(m.counter("culprit_forward_left_out_frames_total",
                 "Frames that policy did not send, or that were gone."),
       [&](size_t i) { return f.forward.logs[i].skipped_frames; });
  each(m.gauge("culprit_forward_waiting_frames", "Frames that the collector has not acknowledged."),
       [&](size_t i) {
         const Recorder::Frames& frames = f.frames[i];
         return frames.written -
                std::min(frames.written, std::max(frames.acknowledged, f.forward.logs[i].acked));
       });
  m.gauge("culprit_forward_waiting_bytes", "Of frames that the collector has not acknowledged.")
      .value(number(f.waiting_bytes));
  m.gauge("culprit_forward_unarchived_bytes",
          "Of evidence that the collector received and that is not in its bucket yet.")
      .value(number(f.unarchived_bytes));
  m.counter("culprit_forward_given_up_bytes_total", "Of such evidence, deleted since the spool was full.")
      .value(number(f.given_up_bytes));
  m.gauge("culprit_forward_waits_since_seconds",
          "When an acknowledgement last came while one is missing; else 0.")
      .value(f.waits_since_ns == kNoTime ? 0 : seconds(f.waits_since_ns));
  m.gauge("culprit_forward_certificate_expires_seconds", "When this host's certificate ends; 0 without TLS.")
      .value(f.certificate_expires_ns == kNoTime ? 0 : seconds(f.certificate_expires_ns));
  m.gauge("culprit_condensed_bytes", "The condensed log on the disk.").value(number(f.condensed.bytes));
  m.counter("culprit_condensed_lines_total", "Lines that were condensed.").value(number(f.feed.lines));
  m.counter("culprit_condensed_line_bytes_total", "Bytes of these lines.").value(number(f.feed.bytes));
  m.counter("culprit_condensed_block_bytes_total", "What they were condensed to.")
      .value(number(f.feed.block_bytes));
  m.counter("culprit_condensed_blocks_total", "Blocks of them.").value(number(f.feed.blocks));
  m.counter("culprit_condensed_dropped_total", "Lines and notes beyond what a block holds: evidence only.")
      .value(number(f.feed.dropped_lines), {{"of", "lines"}})
      .value(number(f.feed.dropped_notes), {{"of", "notes"}});
  m.counter("culprit_refused_bytes_total", "Bytes of jobs and sources beyond a limit: evidence only.")
      .value(number(f.feed.bytes_refused));
  m.gauge("culprit_jobs", "Jobs that are known live.").value(number(f.jobs));
}

}  // namespace

std::string DaemonApi::metrics_text(Counters counters) {
  const AgentParts& parts = parts_;
  serve::MetricsText m;
  about_itself(m, parts, env_.now(io::Clock::kMonotonic), read_self_usage());
  about_spool(m, parts);
  if (const Sources* sources = parts.sources()) {
    about_files(m, *sources);
    about_others(m, *sources);
  }
  if (const PluginService* plugins = parts.plugins ? parts.plugins() : nullptr) about_plugins(m, *plugins);
  if (const RasService* ras = parts.ras ? parts.ras() : nullptr) about_ras(m, ras->counters());
  if (const CaptureService* capture = parts.capture ? parts.capture() : nullptr) about_capture(m, *capture);
  if (const CopyService* copies = parts.copies ? parts.copies() : nullptr)
    about_copies(m, copies->counters());
  if (parts.engine) about_jobs(m, *parts.engine);
  if (parts.alerts && counters == Counters::kAll) about_alerts(m, *parts.alerts);
  if (parts.recovery && counters == Counters::kAll)
    about_recovery(m, *parts.recovery, env_.now(io::Clock::kWall));
  else if (parts.stopped_recovery && counters == Counters::kAll)
    about_stopped_recovery(m);
  if (parts.leases && counters == Counters::kAll) about_cluster(m, *parts.leases, *parts.shared);
  if (parts.judgements && counters == Counters::kAll) about_judgements(m, *parts.judgements);
  if (parts.shared_pools && counters == Counters::kAll) about_pools(m, *parts.shared_pools);
  if (parts.uplink) about_uplink(m, parts.uplink->counters());
  if (const std::optional<serve::HttpCounts> http = parts.http()) {
    const serve::HttpCounts& counts = *http;
    m.counter("culprit_http_answers_total", "Answers by status.");
    for (const auto& [status, n] : counts.answers) m.value(number(n), {{"status", std::to_string(status)}});
    m.counter("culprit_http_refused_total", "Requests that were refused before any handler.")
        .value(number(counts.refused));
    m.gauge("culprit_http_connections", "Connections that are open.").value(number(counts.connections));
  }
  return m.finish();
}

void DaemonApi::job_metrics(KeepJob keep, std::function<void(std::string)> answer) {
  if (!parts_.engine) return answer("");
  counters_.get([this, keep = std::move(keep), answer = std::move(answer)](const auto& counters, bool late) {
    std::vector<JobCounters> jobs = counters ? *counters : std::vector<JobCounters>();
    std::erase_if(jobs, [&](const JobCounters& job) { return !keep(job.id); });
    const auto most = static_cast<size_t>(parts_.config->http.metrics_jobs);
    std::string text = job_metrics_text(
        std::move(jobs), {most, env_.now(io::Clock::kWall), late ? counters_.age() : TimeNs{0}});
    if (parts_.recovery) text += recovery_job_metrics(*parts_.recovery, most, keep);
    answer(std::move(text));
  });
}

}  // namespace culprit::app
