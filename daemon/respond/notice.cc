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
// An alert that is not sent again for so long is over for Alertmanager: five misses, and a long restart.
constexpr TimeNs kStandsNs = 600 * kNsPerSecond;

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

std::string evidence_of(const Fault::Line& line) {
  if (line.file.empty()) return "";
  std::string out = line.host.empty() ? line.file : fmt::format("{} {}", line.host, line.file);
  if (line.number > 0) out += fmt::format(":{}", line.number);
  return line.text.empty() ? out : fmt::format("{}: {}", out, line.text);
}

std::string summary_of(const Issue& issue) {
  const Fault& f = issue.fault;
  if (!issue.storm.empty()) return f.title;
  std::string what = f.headline;
  if (what.empty()) what = f.place.empty() ? f.title : f.title + " on " + f.place;
  std::string out = f.run > 0 ? fmt::format("job {} run {}: {}", f.job, f.run, what)
                              : fmt::format("job {}: {}", f.job, what);
  if (f.confidence > 0) out += fmt::format(" ({:.0f} %)", 100 * f.confidence);
  return out;
}

std::string command_of(const Fault& f) {
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

std::string job_link(const Fault& f, const std::string& url) {
  if (url.empty()) return "";
  if (f.job.empty()) return url + "/#/";
  return fmt::format("{}/#/jobs/{}{}", url, escaped(f.job), f.run > 0 ? fmt::format("?run={}", f.run) : "");
}

std::string line_link(const Fault& f, const std::string& url) {
  if (url.empty() || f.line.file.empty() || f.line.number == 0) return job_link(f, url);
  return fmt::format("{}/#/lines?job={}&host={}&path={}&line={}", url, escaped(f.job), escaped(f.line.host),
                     escaped(f.line.file), f.line.number);
}

std::string_view severity_of(const Issue& issue) {
  const std::string& s = issue.fault.symptom;
  if (!issue.storm.empty() || s == "crash" || s == "hang" || s == "launch_failure") return "critical";
  return s == "slowdown" ? "warning" : "error";
}

Issue test_issue(const std::string& host, TimeNs now) {
  Issue out;
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

Values values_of(const Issue& issue, const Message& m, const NoticeContext& context) {
  const Fault& f = issue.fault;
  const Change change = m.kind == Message::Kind::kFiring    ? Change::kFiring
                        : m.kind == Message::Kind::kRevised ? Change::kRevised
                                                            : Change::kResolved;
  Values out{{"state", std::string(to_string(change))},
             {"title", f.title},
             {"headline", f.headline.empty() ? f.title : f.headline},
             {"summary", summary_of(issue)},
             {"severity", std::string(severity_of(issue))},
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
             {"hosts", listed(f.hosts, ", ")},
             {"targets", listed(f.targets, ", ")},
             {"why", listed(f.why, "; ")},
             {"confidence", fmt::format("{:.0f}", 100 * f.confidence)},
             {"evidence", evidence_of(f.line)},
             {"command", command_of(f)},
             {"link", job_link(f, context.url)},
             {"line_link", line_link(f, context.url)},
             {"key", issue.key},
             {"id", m.id},
             {"revision", std::to_string(issue.revision)},
             {"since", rfc3339(issue.fired_ns)},
             {"changed", rfc3339(issue.changed_ns)},
             {"resolved", rfc3339(issue.resolved_ns)},
             {"end", std::string(sentence_of(issue.end))},
             {"count", std::to_string(issue.count)},
             {"members", listed(issue.members, "; ")},
             {"host", context.host}};
  if (issue.key.starts_with(kTestKey)) out["command"] = out["link"] = out["line_link"] = "";  // no such job
  for (auto& [name, value] : out) value = shorten(to_terminal(value), kValueBytes);
  return out;
}

std::string webhook_body(const Issue& issue, const Values& values) {
  const Fault& f = issue.fault;
  json out = json::object();
  for (const char* name :
       {"state",    "title",     "headline", "summary", "severity", "job",     "diagnosis", "source",
        "category", "component", "symptom",  "action",  "remedy",   "place",   "evidence",  "command",
        "link",     "line_link", "key",      "id",      "since",    "changed", "host"})
    out[name] = values.at(name);
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

std::string alertmanager_body(const std::vector<Issue>& issues, const NoticeContext& context, TimeNs now) {
  json out = json::array();
  for (const Issue& issue : issues) {
    Message m;
    m.kind = issue.firing() ? Message::Kind::kFiring : Message::Kind::kResolved;
    const Values v = values_of(issue, m, context);
    const auto label = [](const std::string& text) { return shorten(text, kLabelBytes); };
    json alert = {{"labels",
                   {{"alertname", "CulpritVerdict"},
                    {"job", label(v.at("job"))},
                    {"run", v.at("run")},
                    {"issue", issue.key},
                    {"category", label(issue.category)},
                    {"component", label(issue.component)}}},
                  {"startsAt", v.at("since")}};
    json notes = json::object();
    for (const char* name :
         {"summary", "severity", "title", "headline", "symptom", "place", "hosts", "confidence", "action",
          "remedy", "why", "evidence", "command", "line_link", "end"})
      if (!v.at(name).empty()) notes[name] = v.at(name);
    alert["annotations"] = std::move(notes);
    alert["endsAt"] = issue.firing() ? rfc3339(now + kStandsNs) : v.at("resolved");
    if (!v.at("link").empty()) alert["generatorURL"] = v.at("link");
    out.push_back(std::move(alert));
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace culprit::respond
