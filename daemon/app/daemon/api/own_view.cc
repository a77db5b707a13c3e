#include "app/daemon/api/own_view.h"

#include <fmt/format.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include "app/daemon/api/api_json.h"

namespace culprit::app {
namespace {

// A filter of rows by job, which may run on another thread.
serve::ApiSource::KeepJob only(std::set<std::string> jobs) {
  return [jobs = std::move(jobs)](const std::string& job) { return jobs.contains(job); };
}

// Calls `then` with the user's jobs: all of them, or only `job` if it is one of them.
void with_jobs(Lists& lists, const std::optional<std::string>& job, uint32_t uid,
               std::function<void(Result<std::set<std::string>>)> then) {
  lists.source_rows(job, [uid, then = std::move(then)](Result<std::vector<SourceRow>> rows) {
    if (!rows) return then(tl::unexpected(rows.error()));
    then(jobs_of_user(*rows, uid));
  });
}

tl::unexpected<Error> no_job(const std::string& job, uint32_t uid) {
  return fail(ErrorCode::kNotFound, fmt::format("no job {} of uid {}", job, uid));
}

}  // namespace

bool ReadAccess::sees_all(const serve::Reader& reader) const {
  if (!users || !reader.uid) return true;
  if (*reader.uid == 0 || *reader.uid == geteuid()) return true;
  return group && std::find(reader.groups.begin(), reader.groups.end(), *group) != reader.groups.end();
}

// Root and the daemon's user may always read everything.
ReadAccess read_access(const Config& config, const std::function<void(const std::string&)>& report_error) {
  ReadAccess out;
  out.users = config.http.acl.users;
  if (!out.users) return out;
  const std::string& name = config.http.acl.group;
  errno = 0;
  if (const ::group* found = getgrnam(name.c_str()))
    out.group = found->gr_gid;
  else
    report_error(
        fmt::format("http.acl.group: no group {}: only root and the daemon's user see all jobs", name));
  return out;
}

std::map<std::string, std::optional<uint32_t>> users_of_jobs(std::span<const SourceRow> sources) {
  const auto is_of_daemon = [](OriginKind kind) {
    return kind == OriginKind::kKernel || kind == OriginKind::kCondensed || kind == OriginKind::kMark;
  };
  std::map<std::string, std::optional<uint32_t>> out;
  for (const SourceRow& source : sources) {
    if (source.job.empty() || is_of_daemon(source.kind)) continue;
    const auto [at, fresh] = out.try_emplace(source.job, source.owner);
    if (at->second != source.owner) at->second.reset();
  }
  return out;
}

std::set<std::string> jobs_of_user(std::span<const SourceRow> sources, uint32_t uid) {
  std::set<std::string> out;
  for (const auto& [job, user] : users_of_jobs(sources))
    if (user == uid) out.insert(job);
  return out;
}

void OwnView::refuse(const Answer& answer) {
  answer(fail(ErrorCode::kDenied, "this is for readers who may see all jobs: members of http.acl.group"));
}

void OwnView::jobs(Answer answer) {
  with_jobs(lists_, std::nullopt, uid_, [&lists = lists_, uid = uid_, answer = std::move(answer)](auto jobs) {
    if (!jobs) return answer(tl::unexpected(jobs.error()));
    lists.jobs_of({only(std::move(*jobs)), uid}, answer);
  });
}

void OwnView::job_metrics(KeepJob keep, std::function<void(std::string)> answer) {
  with_jobs(lists_, std::nullopt, uid_,
            [&all = all_, keep = std::move(keep), answer = std::move(answer)](auto jobs) {
              if (!jobs) return answer("");
              all.job_metrics([keep, own = only(std::move(*jobs))](
                                  const std::string& job) { return own(job) && keep(job); },
                              answer);
            });
}

void OwnView::report(const serve::ReportQuery& query, Answer answer) {
  with_jobs(lists_, query.of.job, uid_,
            [&lists = lists_, uid = uid_, query, answer = std::move(answer)](auto jobs) {
              if (!jobs) return answer(tl::unexpected(jobs.error()));
              const std::string job = query.of.job;
              const bool is_own = jobs->contains(job);
              lists.report_of(query, {only(std::move(*jobs)), uid},
                              [job, uid, is_own, answer](Result<std::string> report) {
                                report || is_own ? answer(std::move(report)) : answer(no_job(job, uid));
                              });
            });
}

void OwnView::diagnoses(const serve::DiagnosisQuery& query, Answer answer) {
  with_jobs(lists_, query.job, uid_, [&lists = lists_, query, answer = std::move(answer)](auto jobs) {
    if (!jobs) return answer(tl::unexpected(jobs.error()));
    lists.diagnoses_of(query, only(std::move(*jobs)), answer);
  });
}

void OwnView::suspects(const std::optional<std::string>& job, Answer answer) {
  with_jobs(lists_, job, uid_, [&lists = lists_, job, answer = std::move(answer)](auto jobs) {
    if (!jobs) return answer(tl::unexpected(jobs.error()));
    lists.suspects_of(job, only(std::move(*jobs)), answer);
  });
}

void OwnView::sources(const std::optional<std::string>& job, Answer answer) {
  lists_.source_rows(job, [uid = uid_, answer = std::move(answer)](Result<std::vector<SourceRow>> rows) {
    if (!rows) return answer(tl::unexpected(rows.error()));
    std::erase_if(*rows, [&](const SourceRow& row) { return row.owner != uid; });
    answer(dump(to_json(*rows)));
  });
}

// A path of a job may have several sources in sequence: all must be the user's.
void OwnView::evidence(const serve::EvidenceQuery& query,
                       std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) {
  lists_.source_rows(query.job, [&all = all_, uid = uid_, query,
                                 answer = std::move(answer)](Result<std::vector<SourceRow>> rows) {
    if (!rows) return answer(tl::unexpected(rows.error()));
    size_t own = 0, others = 0;
    for (const SourceRow& row : *rows) {
      if (row.host != query.host || row.path != query.path) continue;
      ++(row.owner == uid ? own : others);
    }
    if (own == 0 || others > 0)
      return answer(
          fail(ErrorCode::kNotFound, fmt::format("no evidence of {} of host {} for job {} of uid {}",
                                                 query.path, query.host, query.job, uid)));
    all.evidence(query, answer);
  });
}

}  // namespace culprit::app
