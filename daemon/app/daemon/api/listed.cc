#include "app/daemon/api/listed.h"

#include "app/daemon/api/api_json.h"

namespace culprit::app {
namespace {

json text_or_none(const std::optional<std::string>& text) { return text ? json(*text) : json(nullptr); }

json live_json(const LiveJobSummary& job) {
  const bool runs = job.state == JobState::kRunning;
  json out = {{"id", job.id},
              {"run", job.run},
              {"state", to_string(job.state)},
              {"well", job.well},
              {"hangs", job.hangs},
              {"hosts", job.hosts},
              {"ranks", job.ranks},
              {"sources", job.sources},
              {"lines", job.lines},
              {"bytes", job.bytes},
              {"first_ns", time_or_null(job.first_ns)},
              {"last_ns", time_or_null(job.last_ns)},
              {"ended_ns", runs ? json(nullptr) : time_or_null(job.last_ns)},
              {"iteration", job.iteration ? json(*job.iteration) : json(nullptr)},
              {"headline", job.headline.empty() ? json(nullptr) : json(job.headline)},
              {"note", text_or_none(job.note)}};
  if (job.saved) out["saved_ns"] = time_or_null(job.saved->at_ns);
  for (const AdviceSummary& one : job.advice)
    out["advice"].push_back({{"id", one.id},
                             {"advice", one.kind},
                             {"taken", one.taken},
                             {"achieved", one.achieved},
                             {"refused", one.refused},
                             {"not_applied", one.not_applied}});
  if (job.attempts) {
    out["attempt"] = job.attempts->attempt;
    out["attempts"] = job.attempts->of;
    out["excluded"] = job.attempts->excluded;
    if (!job.attempts->member.empty()) out["member"] = job.attempts->member;
    if (job.attempts->state == AttemptState::kAgain && !job.attempts->successor.empty())
      out["successor"] = job.attempts->successor;
  }
  return out;
}

json stored_json(const records::JobRow& row) {
  const bool well = row.state == records::JobState::kEndedWell;
  return {{"id", row.id},
          {"run", row.run},
          {"state", well ? records::to_string(records::JobState::kEnded) : records::to_string(row.state)},
          {"well", well},
          {"hosts", row.hosts ? json(*row.hosts) : json(nullptr)},
          {"first_ns", time_or_null(row.first_ns)},
          {"last_ns", time_or_null(row.last_ns)},
          {"ended_ns", time_or_null(row.ended_ns)},
          {"lines", row.lines ? json(*row.lines) : json(nullptr)},
          {"headline", row.headline.empty() ? json(nullptr) : json(row.headline)},
          {"note", nullptr}};
}

}  // namespace

json to_json(const SourceRow& row) {
  return {{"job", row.job.empty() ? json(nullptr) : json(row.job)},
          {"host", row.host},
          {"path", row.path},
          {"kind", to_string(row.kind)},
          {"bytes", row.bytes},
          {"lost_bytes", row.lost_bytes},
          {"lost_records", nullptr},
          {"first_ns", time_or_null(row.first_ns)},
          {"last_ns", nullptr},
          {"uid", uid_json(row.writer)},
          {"pod", pod_json(row.writer)},
          {"owner", row.owner ? json(*row.owner) : json(nullptr)},
          {"pid", row.pid ? json(*row.pid) : json(nullptr)},
          {"ended", row.ended}};
}

json to_json(const std::vector<SourceRow>& rows) {
  json items = json::array();
  for (const SourceRow& row : rows) items.push_back(to_json(row));
  return {{"items", std::move(items)}};
}

records::JobRunId ListedJob::run() const {
  return std::visit([](const auto& job) { return records::JobRunId(job.id, job.run); }, of);
}

TimeNs ListedJob::first_ns() const {
  return std::visit([](const auto& job) { return job.first_ns; }, of);
}

json to_json(const ListedJob& job) {
  const auto* live = std::get_if<LiveJobSummary>(&job.of);
  json out = live ? live_json(*live) : stored_json(std::get<records::JobRow>(job.of));
  out["verdict"] = text_or_none(job.verdict);
  return out;
}

}  // namespace culprit::app
