#include "app/daemon/alerts/alert_records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "respond/otlp.h"

namespace culprit::app {
namespace {

using respond::OtlpLog;
using respond::OtlpSeverity;

constexpr size_t kRecordHosts = 16;

std::string words(std::string_view word) { return std::string(word); }

void add_evidence(const std::vector<Evidence>& evidence, OtlpLog& out) {
  if (evidence.empty()) return;
  const Evidence& e = evidence.front();
  out.attributes.push_back({"culprit.evidence.host", e.host.value_or("")});
  out.attributes.push_back({"log.file.path", e.file});
  if (e.line) out.attributes.push_back({"culprit.evidence.line", static_cast<int64_t>(*e.line)});
  out.attributes.push_back({"culprit.evidence.text", e.text});
}

OtlpLog log_of(const LiveEvent& event, const FindingChange& change) {
  const Finding& f = change.finding;
  OtlpLog out;
  out.time_ns = f.first_ns;
  out.severity = f.fatal ? OtlpSeverity::kFatal : OtlpSeverity::kWarning;
  out.text = f.title;
  out.attributes = {{"event.name", std::string("culprit.finding")},
                    {"culprit.event.id", event.id},
                    {"culprit.rule", f.rule},
                    {"culprit.category", words(to_string(f.category))},
                    {"culprit.component", words(to_string(f.component))},
                    {"culprit.symptom", words(to_string(f.symptom))},
                    {"culprit.repeated", static_cast<int64_t>(change.repeated)}};
  add_evidence(f.evidence, out);
  return out;
}

OtlpLog log_of(const LiveEvent& event, const DiagnosisChange& change) {
  OtlpLog out;
  const Announcement& a = change.announcement;
  const bool removed = event.kind == LiveEventKind::kDiagnosisWithdrawn || a.change == Change::kWithdrawn;
  out.severity = removed ? OtlpSeverity::kInfo : a.verdict ? OtlpSeverity::kError : OtlpSeverity::kWarning;
  out.text = a.sentence;
  out.attributes = {{"event.name", std::string("culprit.diagnosis")},
                    {"culprit.event.id", event.id},
                    {"culprit.verdict", a.index && a.verdict},
                    {"culprit.change", words(to_string(removed ? Change::kWithdrawn : a.change))}};
  if (!change.diagnosis) return out;
  const Diagnosis& d = *change.diagnosis;
  out.time_ns = d.time_ns;
  std::vector<std::string> hosts;
  for (const Suspect& s : d.hosts)
    if (s.host && hosts.size() < kRecordHosts) hosts.push_back(*s.host);
  const std::initializer_list<respond::OtlpAttribute> more = {
      {"culprit.rule", d.rule.value_or("")},
      {"culprit.detector", d.detector.value_or("")},
      {"culprit.category", words(to_string(d.category))},
      {"culprit.component", words(to_string(d.component))},
      {"culprit.symptom", words(to_string(d.symptom))},
      {"culprit.action", words(to_string(d.action.kind))},
      {"culprit.hosts", fmt::format("{}", fmt::join(hosts, ","))},
      {"culprit.remedy", d.remedy},
      {"culprit.confidence", d.confidence}};
  out.attributes.insert(out.attributes.end(), more.begin(), more.end());
  add_evidence(d.evidence, out);
  return out;
}

}  // namespace

std::string otlp_record(const LiveEvent& event) {
  OtlpLog log;
  if (const auto* finding = std::get_if<FindingChange>(&event.content))
    log = log_of(event, *finding);
  else if (const auto* diagnosis = std::get_if<DiagnosisChange>(&event.content))
    log = log_of(event, *diagnosis);
  else
    return "";
  log.seen_ns = event.time_ns;
  log.attributes.push_back({"culprit.job", event.job});
  log.attributes.push_back({"culprit.run", static_cast<int64_t>(event.run)});
  return respond::otlp_log(log);
}

}  // namespace culprit::app
