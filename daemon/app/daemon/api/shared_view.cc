// The lists and reports of DaemonLists where several collectors share their jobs: own answers, and what other
// members published. docs/formats.md, section 14, has the member "cluster" that tells them apart.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "app/daemon/api/daemon_api.h"
#include "base/text.h"

namespace culprit::app {
namespace {

json owner_or_null(const SharedReports& shared, const std::string& job) {
  const std::string owner = shared.owner_of(job);
  return owner.empty() ? json() : json(to_utf8(owner));
}

json cluster_of(const PublishedReport& report, const SharedReports& shared) {
  json out = {{"member", to_utf8(report.row.member)},
              {"owner", false},
              {"as_of_ns", report.row.as_of_ns},
              {"owned_by", owner_or_null(shared, report.listed["id"].get<std::string>())}};
  if (shared.away_since() != kNoTime) out["database_away_since_ns"] = shared.away_since();
  return out;
}

// As a member of the report, which is an object.
std::string with_cluster(std::string report, const json& cluster) {
  return report.insert(report.find('{') + 1, "\"cluster\":" + dump(cluster) + ",");
}

Result<std::string> text_of(const PublishedReport& report, const std::string& job,
                            const SharedReports& shared) {
  const auto text = store::postgres::unpack_report(report.row.packed);
  if (!text || !text->starts_with('{'))
    return fail(ErrorCode::kLimit, fmt::format("the report of job {} is too large to be shared: ask {}", job,
                                               report.row.member));
  return with_cluster(*text, cluster_of(report, shared));
}

}  // namespace

json DaemonLists::cluster_of(const std::string& job) const {
  json out = {{"member", parts_.shared->member()},
              {"owner", parts_.shared->owns(job)},
              {"as_of_ns", nullptr},
              {"owned_by", owner_or_null(*parts_.shared, job)}};
  if (const TimeNs since = parts_.shared->unpublished_since(job); since != kNoTime)
    out["unpublished_since_ns"] = since;
  return out;
}

json DaemonLists::items_of(const Jobs& jobs, std::optional<uint32_t> uid) const {
  json items = json::array();
  const SharedReports* shared = parts_.shared;
  if (!shared) {
    for (const ListedJob& job : jobs) items.push_back(to_json(job));
    return items;
  }
  std::map<std::string, const ListedJob*> last;  // by the key of the job
  for (const ListedJob& job : jobs) {
    const ListedJob*& one = last[store::postgres::report_key(job.run().first)];
    if (one == nullptr || one->run().second < job.run().second) one = &job;
  }
  std::map<std::string, const PublishedReport*> instead;  // by the job
  for (const auto& [key, report] : shared->published().all()) {
    if (!may_see(report, uid)) continue;
    const auto own = last.find(key);
    const std::string job = own == last.end() ? "" : own->second->run().first;
    if (own != last.end()) {
      const RunFacts facts = facts_of(to_json(*own->second));
      if (shared->instead_of(job, &facts, uid) == nullptr) continue;
      instead[job] = &report;
    }
    items.push_back(report.listed);
    items.back()["cluster"] = app::cluster_of(report, *shared);
  }
  for (const ListedJob& job : jobs) {
    json item = to_json(job);
    const auto other = instead.find(job.run().first);
    const RunFacts facts = facts_of(item);
    if (other != instead.end() && coverage(facts, other->second->facts, {}) != Coverage::kOlder) continue;
    item["cluster"] = cluster_of(job.run().first);
    items.push_back(std::move(item));
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const json& a, const json& b) { return facts_of(a).first_ns > facts_of(b).first_ns; });
  return items;
}

void DaemonLists::report_of(const serve::ReportQuery& query, Scope scope, Answer answer) {
  const std::string job = query.of.job;
  const SharedReports* shared = parts_.shared;
  if (!scope.own(job)) {
    const PublishedReport* report = shared ? shared->instead_of(job, nullptr, scope.uid) : nullptr;
    if (report && query.of.run.value_or(report->row.run) == report->row.run)
      return answer(text_of(*report, job, *shared));
    return answer(fail(ErrorCode::kNotFound, "no job " + job));
  }
  own_report(
      query, SIZE_MAX,
      [this, shared, job, run = query.of.run, uid = scope.uid, answer = std::move(answer)](OwnAnswer own) {
        if (!shared) return answer(std::move(own.report));
        const RunFacts facts = own.last ? facts_of(to_json(*own.last)) : RunFacts();
        const PublishedReport* report = shared->instead_of(job, own.last ? &facts : nullptr, uid);
        bool takes = report != nullptr;
        if (report && run && own.report)
          takes = own.last && own.last->run().second == *run &&
                  coverage(facts, report->facts, {}) != Coverage::kOlder;
        else if (report && run)
          takes = *run == report->row.run;
        if (takes) return answer(text_of(*report, job, *shared));
        if (!own.report) return answer(std::move(own.report));
        answer(with_cluster(std::move(*own.report), cluster_of(job)));
      });
}

OwnReports DaemonLists::own_reports() {
  OwnReports out;
  out.runs = [this](std::function<void(std::vector<OwnRun>)> done) {
    live_jobs([this, done = std::move(done)](std::shared_ptr<Jobs> jobs) {
      add_stored_jobs(jobs, [jobs, done] {
        std::map<std::string, const ListedJob*> last;
        for (const ListedJob& job : *jobs) {
          const auto* live = std::get_if<LiveJobSummary>(&job.of);
          if (live && !live->has_engine) continue;
          const ListedJob*& one = last[job.run().first];
          if (one == nullptr || one->run().second < job.run().second) one = &job;
        }
        std::vector<OwnRun> runs;
        for (const auto& [id, job] : last) {
          const json item = to_json(*job);
          runs.push_back({id, job->run().second, dump(item), facts_of(item)});
        }
        done(std::move(runs));
      });
    });
  };
  out.report = [this](const OwnRun& run, std::function<void(Result<OwnReport>)> done) {
    own_report({{run.job, run.run}, false}, store::postgres::kReportBytes,
               [done = std::move(done)](OwnAnswer own) {
                 if (!own.report) return done(tl::unexpected(own.report.error()));
                 done(OwnReport{std::move(*own.report), own.cut});
               });
  };
  out.user = [this](const std::string& job, std::function<void(std::optional<uint32_t>)> done) {
    if (!parts_.access.users) return done(std::nullopt);
    source_rows(job, [job, done = std::move(done)](Result<std::vector<SourceRow>> rows) {
      if (!rows) return done(std::nullopt);
      const auto users = users_of_jobs(*rows);
      const auto of = users.find(job);
      done(of == users.end() ? std::nullopt : of->second);
    });
  };
  return out;
}

}  // namespace culprit::app
