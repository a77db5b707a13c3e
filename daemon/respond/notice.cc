#include "respond/notice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/shell.h"
#include "base/text.h"

namespace culprit::respond {
namespace {

using nlohmann::json;

constexpr size_t kValueBytes = 1000;              // Slack, Teams and PagerDuty cut longer ones
constexpr const char* kTestKey = "culprit-test";  // those of issues are of 16 hex digits
constexpr size_t kListed = 8;                     // hosts, reasons
constexpr size_t kLabelBytes = 200;
// Time without a repeat after which Alertmanager considers an alert resolved: five missed repeats, and a
// long restart.
constexpr TimeNs kActiveNs = 600 * kNsPerSecond;

std::string listed(const std::vector<std::string>& names, std::string_view separator) {
  const size_t n = std::min(names.size(), kListed);
  std::string out =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(n), separator));
  if (names.size() > n) out += fmt::format("{}and {} more", separator, names.size() - n);
  return out;
}

// As encodeURIComponent writes it.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : to_utf8(text)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    plain ? out += c : out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string evidence_of(const alert::Fault::Line& line) {
  if (line.file.empty()) return "";
  std::string out = line.host.empty() ? line.file : fmt::format("{} {}", line.host, line.file);
  if (line.number > 0) out += fmt::format(":{}", line.number);
  return line.text.empty() ? out : fmt::format("{}: {}", out, line.text);
}

std::string summary_of(const alert::Issue& issue) {
  const alert::Fault& f = issue.fault;
  if (!issue.storm.empty()) return f.title;
  if (!f.decision.empty())
    return issue.firing() ? fmt::format("{}; answer until {}", f.headline, rfc3339(f.answer_by_ns))
                          : f.headline;
  std::string what = f.headline;
  if (const std::string where = where_of(f); what.empty())
    what = where.empty() ? f.title : f.title + " on " + where;
  std::string out = f.run > 0 ? fmt::format("job {} run {}: {}", f.job, f.run, what)
                              : fmt::format("job {}: {}", f.job, what);
  if (f.confidence > 0) out += fmt::format(" ({:.0f} %)", 100 * f.confidence);
  if (!f.again.empty()) return out + "; " + f.again;
  if (f.failed_attempts > 0 && !f.undecided && issue.firing())
    out += fmt::format("; not started again after attempt {}", f.failed_attempts);
  return out;
}

std::string command_of(const alert::Fault& f) {
  if (!f.decision.empty()) return "culprit recover approve " + shell_word(f.decision);
  if (f.job.empty()) return "culprit jobs";
  const std::string run = f.run > 0 ? fmt::format(" --run {}", f.run) : "";
  if (f.job.starts_with('-')) return fmt::format("culprit report{} {}", run, last_argument(f.job));
  return fmt::format("culprit report {}{}", shell_word(f.job), run);
}

}  // namespace

std::string rfc3339(TimeNs time) {
  if (time == kNoTime) return "";
  const Civil c = civil_from_ns(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", c.year, c.month, c.day, c.hour, c.minute,
                     c.second, c.nanosecond / 1'000'000);
}

std::string job_link(const alert::Fault& f, const std::string& url) {
  if (url.empty()) return "";
  // The link answers nothing: the person does, on the page.
  if (!f.decision.empty()) return fmt::format("{}/#/recover/{}", url, escaped(f.decision));
  if (f.job.empty()) return url + "/#/";
  return fmt::format("{}/#/jobs/{}{}", url, escaped(f.job), f.run > 0 ? fmt::format("?run={}", f.run) : "");
}

std::string alert_link(const alert::Issue& issue, const std::string& url) {
  const std::string link = job_link(issue.fault, url);
  if (link.empty() || issue.fault.job.empty() || !issue.fault.decision.empty()) return link;
  return fmt::format("{}{}alert={}", link, issue.fault.run > 0 ? "&" : "?", escaped(issue.key));
}

std::string line_link(const alert::Fault& f, const std::string& url) {
  if (url.empty() || f.line.file.empty() || f.line.number == 0) return job_link(f, url);
  return fmt::format("{}/#/lines?job={}&host={}&path={}&line={}", url, escaped(f.job), escaped(f.line.host),
                     escaped(f.line.file), f.line.number);
}

alert::Issue test_issue(const std::string& host, TimeNs now) {
  alert::Issue out;
  out.key = kTestKey;
  out.fault.job = "culprit-test";
  out.fault.title = "This is only a test of Culprit on " + host;
  out.fault.category = out.category = "unknown";
  out.fault.component = out.component = "unknown";
  out.fault.symptom = "other";
  out.fault.action = "none";
  out.fault.remedy = "This is only a test: there is no such job, and nothing is to be done.";
  out.fault.source = "test";
  out.revision = 1;
  out.fired_ns = out.changed_ns = now;
  return out;
}

Values values_of(const alert::Issue& issue, const alert::Message& m, const NoticeContext& context) {
  const alert::Fault& f = issue.fault;
  const alert::Change change = m.kind == alert::Message::Kind::kFiring    ? alert::Change::kFiring
                               : m.kind == alert::Message::Kind::kRevised ? alert::Change::kRevised
                                                                          : alert::Change::kResolved;
  Values out{{"state", std::string(to_string(change))},
             {"title", f.title},
             {"headline", f.headline.empty() ? f.title : f.headline},
             {"summary", summary_of(issue)},
             {"severity", std::string(to_string(issue.severity))},
             {"change", issue.news},
             {"owner", f.user},
             {"acknowledged", issue.handling.acknowledged_by},
             {"again", f.again},
             {"failed_attempts", std::to_string(f.failed_attempts)},
             {"job", f.job},
             {"run", std::to_string(f.run)},
             {"diagnosis", f.diagnosis},
             {"source", f.source},
             {"category", f.category},
             {"component", f.component},
             {"symptom", f.symptom},
             {"action", f.action},
             {"remedy", f.remedy},
             {"place", f.place},
             {"where", where_of(f)},
             {"hosts", listed(f.hosts, ", ")},
             {"targets", listed(f.targets, ", ")},
             {"why", listed(f.why, "; ")},
             {"confidence", fmt::format("{:.0f}", 100 * f.confidence)},
             {"evidence", evidence_of(f.line)},
             {"command", command_of(f)},
             {"link", job_link(f, context.url)},
             {"alert_link", alert_link(issue, context.url)},
             {"line_link", line_link(f, context.url)},
             {"key", issue.key},
             {"id", m.id},
             {"revision", std::to_string(issue.revision)},
             {"since", rfc3339(issue.fired_ns)},
             {"changed", rfc3339(issue.changed_ns)},
             {"resolved", rfc3339(issue.resolved_ns)},
             {"end", end_of(issue)},
             {"count", std::to_string(issue.count)},
             {"members", listed(issue.members, "; ")},
             {"decision", f.decision},
             {"answer_by", rfc3339(f.answer_by_ns)},
             {"host", context.host}};
  if (issue.key.starts_with(kTestKey))  // there is no such job
    out["command"] = out["link"] = out["alert_link"] = out["line_link"] = "";
  for (auto& [name, value] : out) value = shorten(to_terminal(value), kValueBytes);
  return out;
}

std::string webhook_body(const alert::Issue& issue, const Values& values) {
  const alert::Fault& f = issue.fault;
  json out = json::object();
  for (const char* name :
       {"state",  "title",    "headline",  "summary", "severity",   "job",       "diagnosis",
        "source", "category", "component", "symptom", "action",     "remedy",    "place",
        "where",  "evidence", "command",   "link",    "alert_link", "line_link", "key",
        "id",     "since",    "changed",   "host"})
    out[name] = values.at(name);
  out["failed_attempts"] = f.failed_attempts;
  for (const char* name : {"change", "owner", "acknowledged", "again", "decision", "answer_by"})
    out[name] = values.at(name).empty() ? json(nullptr) : json(values.at(name));
  out["resolved"] = issue.resolved_ns == kNoTime ? json(nullptr) : json(values.at("resolved"));
  out["end"] = issue.firing() ? json(nullptr) : json(values.at("end"));
  out["format"] = "culprit.alert/1";
  out["run"] = f.run;
  out["revision"] = issue.revision;
  out["confidence"] = f.confidence;
  out["storm"] = !issue.storm.empty();
  out["count"] = issue.storm.empty() ? json(nullptr) : json(issue.count);
  const auto texts = [](const std::vector<std::string>& from) {
    json list = json::array();
    for (const std::string& one : from) list.push_back(shorten(to_terminal(one), kValueBytes));
    return list;
  };
  out["hosts"] = texts(f.hosts);
  out["targets"] = texts(f.targets);
  out["why"] = texts(f.why);
  out["members"] = texts(issue.members);
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string alertmanager_body(const std::vector<alert::Issue>& issues, const NoticeContext& context,
                              TimeNs now) {
  json out = json::array();
  for (const alert::Issue& issue : issues) {
    alert::Message m;
    m.kind = issue.firing() ? alert::Message::Kind::kFiring : alert::Message::Kind::kResolved;
    const Values v = values_of(issue, m, context);
    const auto label = [](const std::string& text) { return shorten(text, kLabelBytes); };
    json alert = {{"labels",
                   {{"alertname", issue.fault.decision.empty() ? "CulpritVerdict" : "CulpritQuestion"},
                    {"job", label(v.at("job"))},
                    {"run", v.at("run")},
                    {"issue", issue.key},
                    {"category", label(issue.category)},
                    {"component", label(issue.component)},
                    {"severity", v.at("severity")}}},
                  {"startsAt", v.at("since")}};
    json notes = json::object();
    for (const char* name : {"summary",      "severity", "title",      "headline",   "change",    "symptom",
                             "place",        "hosts",    "confidence", "action",     "remedy",    "why",
                             "again",        "evidence", "command",    "alert_link", "line_link", "owner",
                             "acknowledged", "end",      "decision",   "answer_by"})
      if (!v.at(name).empty()) notes[name] = v.at(name);
    alert["annotations"] = std::move(notes);
    alert["endsAt"] = issue.firing() ? rfc3339(now + kActiveNs) : v.at("resolved");
    if (!v.at("link").empty()) alert["generatorURL"] = v.at("link");
    if (issue.raised_ns != kNoTime && now - issue.raised_ns < kActiveNs) {
      json before = alert;
      before["labels"]["severity"] = to_string(alert::Severity::kWarning);
      before["endsAt"] = rfc3339(issue.raised_ns);
      out.push_back(std::move(before));
    }
    out.push_back(std::move(alert));
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string alertmanager_silence(const alert::Issue& issue, TimeNs now) {
  const std::string by = shorten(to_terminal(issue.handling.silenced_by), kLabelBytes);
  return json{{"matchers", {{{"name", "issue"}, {"value", issue.key}, {"isRegex", false}}}},
              {"startsAt", rfc3339(now)},
              {"endsAt", rfc3339(issue.handling.silent_until_ns)},
              {"createdBy", by},
              {"comment", "Culprit: silenced by " + by}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace culprit::respond
