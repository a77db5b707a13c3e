#include "app/daemon/event_delivery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/daemon/daemon_api.h"
#include "model/report_json.h"

namespace culprit::app {
namespace {

Status put_diagnosis(store::Index& index, const LiveEvent& event, const DiagnosisChange& change) {
  store::DiagnosisRow row;
  row.job = event.job;
  row.run = event.run;
  row.id = event.id;
  row.kind = change.diagnosis ? kind_of(*change.diagnosis) : "";
  row.first_ns = row.last_ns = event.time_ns;
  row.json = to_json(event);
  const bool gone = event.kind == LiveEventKind::kDiagnosisGone;
  row.state = gone ? "withdrawn" : "open";
  Status status = index.put_diagnosis(row);
  if (status && gone) status = index.remove_device_faults(event.job, event.run, event.id);
  for (const LiveEvent::Device& device : event.devices)
    if (status)
      status = index.add_device_fault(
          {device.name, device.host, event.job, event.run, event.id, event.step, event.time_ns});
  return status;
}

// The row is written before anything else about the job.
Status put_job(store::Index& index, const JobChange& job) {
  const store::JobRow row = job_row(job.summary);
  Status status = index.upsert_job(row);
  if (!status || !job.report) return status;
  return index.put_report(row.id, row.run, culprit::to_json(*job.report, Charts::kIncluded));
}

}  // namespace

store::JobRow job_row(const LiveJobSummary& job) {
  store::JobRow row;
  row.id = job.id;
  row.run = job.run;
  row.state = job.state == JobState::kRunning  ? store::JobState::kRunning
              : job.state == JobState::kFailed ? store::JobState::kFailed
              : job.well                       ? store::JobState::kEndedWell
                                               : store::JobState::kEnded;
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
  std::vector<LiveEvent> findings;  // a fault on all hosts brings one or more for each
  for (const LiveEvent& event : events) {
    if (event.kind == LiveEventKind::kStepsWanted) {
      if (parts_.collector) parts_.collector->want_steps(event.hosts, {event.job, event.steps});
      continue;
    }
    if (event.kind == LiveEventKind::kStacksWanted) {
      if (parts_.collector) parts_.collector->want_stacks(event.hosts, event.stacks);
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

// Also for diagnoses that may still change: hosts keep evidence only for a while.
void EventDelivery::want_evidence(const LiveEvent& event) {
  if (parts_.collector && (event.kind == LiveEventKind::kFinding || event.kind == LiveEventKind::kDiagnosis))
    parts_.collector->want(event.hosts, event.known_until_ns, "a fault was found in job " + event.job);
}

void EventDelivery::publish(const LiveEvent& event) {
  if (api_)
    api_->events().publish({std::string(to_string(event.kind)), event.job, to_json(event), event.time_ns});
  if (!event.sentence.empty()) parts_.log->info(fmt::format("job {}: {}", event.job, event.sentence));
}

// The process before may have been killed before it made this diagnosis.
void EventDelivery::publish_if_new(const LiveEvent& event) {
  const auto known = std::make_shared<bool>(true);
  parts_.recorder->query(
      [event, known](store::Spool&, store::Index& index) {
        const auto rows = index.diagnoses({.job = event.job, .run = event.run});
        *known = !rows || std::any_of(rows->begin(), rows->end(), [&](const store::DiagnosisRow& row) {
          return row.id == event.id && was_announced(row.json);
        });
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
  parts_.recorder->record([event](store::Index& index) -> Status {
    if (const auto* job = std::get_if<JobChange>(&event.content)) return put_job(index, *job);
    if (const auto* diagnosis = std::get_if<DiagnosisChange>(&event.content))
      return put_diagnosis(index, event, *diagnosis);
    return {};
  });
}

// In one transaction: each costs more than its rows.
void EventDelivery::record_findings(std::vector<LiveEvent> findings) {
  if (findings.empty()) return;
  parts_.recorder->record([findings = std::move(findings)](store::Index& index) {
    std::vector<store::FindingRow> rows;
    for (const LiveEvent& event : findings)
      rows.push_back({event.job, event.run, event.id, event.time_ns, to_json(event)});
    return index.add_findings(rows);
  });
}

void EventDelivery::record_pool(const std::shared_ptr<const PoolChange>& change) {
  const TaughtJob& taught = change->taught;
  parts_.log->info(fmt::format("pool: job {}, run {}, of {} taught {} forms: {}", taught.job, taught.run,
                               taught.owner, taught.pool.forms.size(), taught.why));
  parts_.recorder->record([change](store::Index& index) -> Status {
    const TaughtJob& t = change->taught;
    auto text = t.pool.save();
    if (!text) return tl::unexpected(text.error());
    std::vector<store::Index::JobRunId> gone;
    for (const NormalPools::Run& run : change->gone) gone.emplace_back(run.job, run.run);
    return index.teach({t.job, t.run, t.owner, t.why, t.time_ns, t.pool.forms.size(), std::move(*text)},
                       gone);
  });
}

}  // namespace culprit::app
