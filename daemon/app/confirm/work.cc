#include "app/confirm/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "app/config/rule_files.h"
#include "app/confirm/pattern.h"
#include "core/logs/header.h"

namespace culprit::app {
namespace {

// Limit of lines that match rules in use and may accompany a finding.
constexpr size_t kFiredRules = 1000;
constexpr size_t kPlaces = 20;  // limit of lines that are read for their header

}  // namespace

Status ConfirmWork::gather(StoredJobs* stored) {
  if (const auto own = own_logs(stored); own)
    job_ = *own;
  else
    notes_.push_back(own.error().text + ": the pattern rests on the quoted lines alone");
  for (const auto& [paths, healthy] : {std::pair(&from_.healthy, true), std::pair(&from_.failed, false)})
    for (const std::string& path : *paths) {
      auto logs = JobLogs::open({path}, from_.reading);
      if (!logs) return tl::unexpected(logs.error());
      add(path, healthy, "", *logs);
    }
  if (stored) gather_stored(*stored);
  context_.pool = from_.pool ? &*from_.pool : nullptr;
  context_.known = from_.known.get();
  if (job_) take_own();
  return {};
}

void ConfirmWork::take_own() {
  context_.job = [this](const std::vector<std::string>& patterns) { return job_->search(patterns); };
  JobLogs::Facts facts = job_->facts();
  context_.job_templates = std::move(facts.templates);
  context_.job_hosts = std::move(facts.hosts);
  for (const core::RuleFired& fired : job_->match(from_.known).fired) {
    const rules::Rule& rule = from_.known->rules()[fired.hit.rule];
    if (rule.severity < Severity::kWarning || rule.role == rules::Role::kCascade || rule.general()) continue;
    if (context_.fired.size() >= kFiredRules) break;
    context_.fired.push_back({rule.id, fired.hit.text, fired.hit.host, fired.hit.time_ns});
  }
}

std::string ConfirmWork::header_of(const std::string& pattern) const {
  std::vector<std::string> places;
  for (const Evidence& e : d_.evidence)
    if (e.line) places.push_back(fmt::format("{}:{}", e.file, *e.line));
  for (const Indicating& i : report_.indicating)
    for (const LinePlace& p : i.where) places.push_back(fmt::format("{}:{}", p.file, p.line));
  if (places.size() > kPlaces) places.resize(kPlaces);
  const Fires fires(pattern);
  for (const std::string& place : places)
    if (const auto line = read_line(place); line && fires.in(line->text))
      return logs::begins_after(line->text);
  return "";
}

std::vector<std::string> ConfirmWork::remarks(const ConfirmedRule& rule) const {
  std::vector<std::string> out = rule.notes;
  const bool told =
      std::ranges::any_of(out, [](const auto& note) { return note.starts_with(kMessageAlone); });
  if (const std::string begins = told ? "" : header_of(rule.pattern); !begins.empty())
    out.push_back(std::string(kMessageAlone) + begins);
  out.insert(out.end(), rule.proof.begin(), rule.proof.end());
  const bool tried = from_.pool || std::any_of(context_.others.begin(), context_.others.end(),
                                               [](const TriedJob& job) { return job.healthy; });
  if (!tried) out.emplace_back("the rule was not tried on successful jobs: none is known; --pool FILE does");
  if (rule.open)
    out.push_back(
        fmt::format("texts marked {} are left open: the rule does not run until they are written", kFillIn));
  return out;
}

Result<std::shared_ptr<JobLogs>> ConfirmWork::own_logs(StoredJobs* stored) const {
  if (!from_.logs.empty()) return JobLogs::open(from_.logs, from_.reading);
  if (stored) return JobLogs::fetch(*stored, from_.job, from_.reading, from_.fetch);
  std::set<std::string> files;
  std::error_code error;
  for (const Evidence& e : d_.evidence)
    if (std::filesystem::is_regular_file(e.file, error)) files.insert(e.file);
  for (const Indicating& i : report_.indicating)
    for (const LinePlace& p : i.where)
      if (std::filesystem::is_regular_file(p.file, error)) files.insert(p.file);
  if (files.empty())
    return fail(ErrorCode::kNotFound, "the files of the report are not here; --logs PATH names them");
  return JobLogs::open({files.begin(), files.end()}, from_.reading);
}

void ConfirmWork::add(const std::string& name, bool healthy, const std::string& verdict,
                      std::shared_ptr<JobLogs> logs) {
  context_.others.push_back({name, healthy, verdict, [logs](const std::vector<std::string>& patterns) {
                               return logs->search(patterns);
                             }});
}

// Reads the newest other jobs with stored evidence.
void ConfirmWork::gather_stored(StoredJobs& stored) {
  const auto jobs = stored.jobs();
  if (!jobs) return notes_.push_back(jobs.error().text);
  size_t healthy = 0, failed = 0;
  std::set<std::string> seen{from_.job};
  for (const auto& job : items_of(*jobs)) {
    const std::string id = job.value("id", ""), state = job.value("state", "");
    const bool well = job.value("well", false);
    if (id.empty() || state == "running" || !seen.insert(id).second) continue;
    size_t& count = well ? healthy : failed;
    if (count >= from_.stored_jobs) continue;
    auto logs = JobLogs::fetch(stored, id, from_.reading, from_.fetch);
    if (!logs) continue;  // the evidence is gone
    ++count;
    const bool verdict = job.contains("verdict") && job["verdict"].is_string();
    add(id, well, verdict ? job["verdict"].template get<std::string>() : "", *logs);
  }
}

}  // namespace culprit::app
