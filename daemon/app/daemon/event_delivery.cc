#include "app/daemon/event_delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/daemon/api/daemon_api.h"

namespace culprit::app {
namespace {

Status put_verdict(records::Records& index, const LiveEvent& event, const DiagnosisChange& change) {
  const Verdict verdict = verdict_of(event, change);
  Status status = index.put_verdict(verdict);
  if (status && verdict.state == VerdictState::kWithdrawn)
    status = index.remove_device_faults(event.job, event.run, event.id);
  for (const LiveEvent::Device& device : event.devices)
    if (status)
      status = index.add_device_fault(
          {device.name, device.host, event.job, event.run, event.id, event.step, event.time_ns});
  return status;
}

// Writes the job's row before all its other data.
Status put_job(records::Records& index, const JobChange& job) {
  const records::JobRow row = job_row(job.summary);
  Status status = index.upsert_job(row);
  if (!status || !job.report) return status;
  return index.put_report(row.id, row.run, *job.report);
}

}  // namespace

records::JobRow job_row(const LiveJobSummary& job) {
  records::JobRow row;
  row.id = job.id;
  row.run = job.run;
  row.state = job.state == JobState::kRunning  ? records::JobState::kRunning
              : job.state == JobState::kFailed ? records::JobState::kFailed
              : job.well                       ? records::JobState::kEndedWell
                                               : records::JobState::kEnded;
  row.first_ns = job.first_ns;
  row.last_ns = job.last_ns;
  if (job.state != JobState::kRunning) row.ended_ns = job.last_ns;
  row.hosts = job.hosts;
  row.lines = job.lines;
  row.verdict = job.verdict.value_or("");
  row.headline = job.headline;
  return row;
}

void EventDelivery::deliver(const std::vector<LiveEvent>& events) {
  std::vector<LiveEvent> findings;  // a fault on all hosts causes one or more findings per host
  for (const LiveEvent& event : events) {
    if (event.kind == LiveEventKind::kStepsWanted) {
      if (parts_.collector) parts_.collector->ask(event.hosts, peer::StepsWanted{event.job, event.steps});
      continue;
    }
    if (event.kind == LiveEventKind::kStacksWanted) {
      if (parts_.collector) parts_.collector->ask(event.hosts, event.stacks);
      if (event.here && parts_.capture) parts_.capture(event.stacks);
      continue;
    }
    if (event.kind == LiveEventKind::kDiagnosis && event.replayed && event.publish) publish_if_new(event);
    if (event.kind == LiveEventKind::kFinding) {
      findings.push_back(event);
    } else {
      record_findings(std::exchange(findings, {}));
      record(event);
    }
    if (event.replayed || event.kind == LiveEventKind::kPoolChanged) continue;
    want_evidence(event);
    if (event.publish) publish(event);
  }
  record_findings(std::move(findings));
  if (parts_.recorded) parts_.recorded(events);
}

// Also requests evidence for diagnoses that may still change, since hosts keep evidence only for a while.
void EventDelivery::want_evidence(const LiveEvent& event) {
  if (parts_.collector && (event.kind == LiveEventKind::kFinding || event.kind == LiveEventKind::kDiagnosis))
    parts_.collector->want(event.hosts, event.known_until_ns, "a fault was found in job " + event.job);
}

void EventDelivery::publish(const LiveEvent& event) {
  if (api_)
    api_->events().publish({std::string(to_string(event.kind)), event.job, to_json(event), event.time_ns});
  if (!event.sentence.empty()) parts_.log->info(fmt::format("job {}: {}", event.job, event.sentence));
}

// The previous process may have been killed before it made this diagnosis.
void EventDelivery::publish_if_new(const LiveEvent& event) {
  const auto known = std::make_shared<bool>(true);
  parts_.recorder->query(
      [event, known](store::Spool&, records::Records& index) {
        const auto rows = index.verdicts({.job = event.job, .run = event.run});
        *known = !rows || std::ranges::any_of(
                              *rows, [&](const Verdict& one) { return one.id() == event.id && one.settled; });
      },
      [this, event, known] {
        if (*known) return;
        want_evidence(event);
        publish(event);
      });
}

void EventDelivery::record(const LiveEvent& event) {
  if (const auto* change = std::get_if<std::shared_ptr<const PoolChange>>(&event.content))
    return record_pool(*change);
  if (event.kind == LiveEventKind::kDiagnosis && !event.replayed)
    parts_.recorder->pin(event.job, event.time_ns);
  parts_.recorder->record([event](records::Records& index) -> Status {
    if (const auto* job = std::get_if<JobChange>(&event.content)) return put_job(index, *job);
    if (const auto* diagnosis = std::get_if<DiagnosisChange>(&event.content))
      return put_verdict(index, event, *diagnosis);
    return {};
  });
}

// Uses one transaction, since each transaction costs more than its rows.
void EventDelivery::record_findings(std::vector<LiveEvent> findings) {
  if (findings.empty()) return;
  parts_.recorder->record([findings = std::move(findings)](records::Records& index) {
    std::vector<records::FindingRow> rows;
    for (const LiveEvent& event : findings)
      rows.push_back({event.job, event.run, event.id, event.time_ns, to_json(event)});
    return index.add_findings(rows);
  });
}

void EventDelivery::record_pool(const std::shared_ptr<const PoolChange>& change) {
  const TaughtJob& taught = change->taught;
  parts_.log->info(fmt::format("pool: job {}, run {}, of {} taught {} forms: {}", taught.job, taught.run,
                               taught.owner, taught.pool.forms.size(), taught.why));
  parts_.recorder->record([change](records::Records& index) -> Status {
    const TaughtJob& t = change->taught;
    auto text = t.pool.save();
    if (!text) return tl::unexpected(text.error());
    std::vector<records::JobRunId> removed;
    for (const NormalPools::Run& run : change->removed) removed.emplace_back(run.job, run.run);
    return index.pools().teach(
        {t.job, t.run, t.owner, t.why, t.time_ns, t.pool.forms.size(), std::move(*text)}, removed);
  });
}

}  // namespace culprit::app
