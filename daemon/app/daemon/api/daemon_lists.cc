#include "app/daemon/api/daemon_lists.h"

#include <algorithm>
#include <set>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"

namespace culprit::app {
namespace {

// The only uid that wrote a source; none: unknown. The next file at a path may belong to another user, so a
// rotated or rewritten log has no known owner.
std::optional<uint32_t> owner_of(const store::StoredStream& stream) {
  const StreamInfo& info = stream.state.info;
  const bool by_peer = info.kind == OriginKind::kSocket || info.kind == OriginKind::kRing;
  const bool one_file = info.kind == OriginKind::kFile && stream.state.past.empty();
  return info.uid && (by_peer || one_file) ? info.uid->uid() : std::nullopt;
}

}  // namespace

void DaemonLists::jobs_of(Scope scope, Answer answer) {
  live_jobs([this, scope = std::move(scope), answer = std::move(answer)](std::shared_ptr<Jobs> jobs) {
    add_stored_jobs(jobs, [this, jobs, scope, answer] {
      std::erase_if(*jobs, [&](const ListedJob& job) { return !scope.own(job.run().first); });
      json out = {{"items", items_of(*jobs, scope.uid)}};
      if (parts_.shared && parts_.shared->away_since() != kNoTime)
        out["database_away_since_ns"] = parts_.shared->away_since();
      answer(dump(out));
    });
  });
}

// Data read by the store's worker, which may hold the last reference.
struct DaemonLists::StoredJobs {
  std::vector<records::JobRow> rows;
  std::set<JudgedTitles::Run> live, listed;
  JudgedTitles::Answer judged;
};

void DaemonLists::add_stored_jobs(std::shared_ptr<Jobs> jobs, std::function<void()> done) {
  const auto found = std::make_shared<StoredJobs>();
  for (const ListedJob& job : *jobs) found->live.insert(job.run());
  parts_.recorder->query(
      [found, judged = judged_](store::Spool&, records::Records& index) {
        if (auto stored = index.jobs()) found->rows = std::move(*stored);
        found->listed = found->live;
        for (const records::JobRow& row : found->rows) found->listed.emplace(row.id, row.run);
        found->judged = judged->of(index, found->listed);
      },
      [this, found, jobs = std::move(jobs), done = std::move(done)] { finish_judged(found, jobs, done); });
}

// Reads in short works, so that other disk work is not delayed.
void DaemonLists::finish_judged(const std::shared_ptr<StoredJobs>& found, const std::shared_ptr<Jobs>& jobs,
                                const std::function<void()>& done) {
  if (!found->judged.complete)
    return parts_.recorder->query(
        [found, judged = judged_](store::Spool&, records::Records& index) {
          found->judged = judged->of(index, found->listed);
        },
        [this, found, jobs, done] { finish_judged(found, jobs, done); });
  merge(*found, *jobs);
  done();
}

void DaemonLists::merge(const StoredJobs& found, Jobs& jobs) {
  for (const records::JobRow& row : found.rows)
    if (!found.live.contains({row.id, row.run})) jobs.emplace_back(row);
  const JudgedTitles::Titles& titles = found.judged.titles;
  for (ListedJob& job : jobs)
    if (const auto at = titles.find(job.run()); at != titles.end()) job.verdict = at->second;
  std::ranges::stable_sort(jobs, std::ranges::greater(), &ListedJob::first_ns);
}

void DaemonLists::source_rows(const std::optional<std::string>& job, SourceRows rows) {
  auto retained = std::make_shared<std::vector<store::StoredStream>>();
  parts_.recorder->query(
      [retained, job](store::Spool& spool, records::Records&) {
        *retained = job ? spool.streams_of(*job) : spool.streams();
      },
      [this, retained, job, rows = std::move(rows)] {
        std::vector<SourceRow> out;
        for (auto it = retained->rbegin(); it != retained->rend(); ++it) {
          const StreamInfo& info = it->state.info;
          out.push_back({info.job, parts_.config->host.name, info.path, info.kind, it->state.size,
                         it->first_offset, info.opened_ns, info.uid, owner_of(*it), info.pid,
                         it->state.ended});
        }
        more_sources_ ? more_sources_(job, std::move(out), rows) : rows(std::move(out));
      });
}

void DaemonLists::live_jobs(std::function<void(std::shared_ptr<Jobs>)> done) {
  auto jobs = std::make_shared<Jobs>();
  parts_.engine->query(
      [jobs](LiveJobs& live, TimeNs) {
        for (LiveJobSummary& job : live.jobs()) jobs->emplace_back(std::move(job));
      },
      [jobs, done = std::move(done)] { done(jobs); });
}

}  // namespace culprit::app
