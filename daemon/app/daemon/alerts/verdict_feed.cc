#include "app/daemon/alerts/verdict_feed.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace culprit::app {
namespace {

constexpr size_t kRunsAtOnce = 64;                  // limit that lets other disk work continue in between
constexpr TimeNs kNextWithin = 600 * kNsPerSecond;  // for the next attempt of a run that ended

bool leads(const LiveEvent& event) {
  const auto* change = std::get_if<DiagnosisChange>(&event.content);
  return change && change->announcement.verdict;
}

}  // namespace

void VerdictFeed::on_events(const std::vector<LiveEvent>& events) {
  for (const LiveEvent& e : events) {
    const bool announced =
        e.kind == LiveEventKind::kDiagnosis && (e.publish || (!early_.empty() && leads(e)));
    if (announced || e.kind == LiveEventKind::kDiagnosisWithdrawn || e.kind == LiveEventKind::kJobEnded)
      waiting_.emplace(e.job, e.run);
  }
  read();
}

void VerdictFeed::look_at(const std::string& job, uint32_t run) {
  waiting_.emplace(job, run);
  read();
}

void VerdictFeed::restored(TimeNs since_ns) {
  restored_ = true;
  since_ns_ = since_ns;
  catch_up();
  read();
}

void VerdictFeed::beat() {
  if (restored_) catch_up();
  waiting_.merge(unread_);
  unread_.clear();
  read();
}

// If the records fail, they are read again at the next beat.
void VerdictFeed::catch_up() {
  if (since_ns_ == kNoTime || catching_up_) return;
  catching_up_ = true;
  const auto runs = std::make_shared<std::optional<std::vector<records::JobRunId>>>();
  recorder_.query(
      [runs, since = since_ns_](store::Spool&, records::Records& records) {
        if (auto changed = records.changed_runs(since)) *runs = std::move(*changed);
      },
      [this, runs] {
        catching_up_ = false;
        if (!*runs) return;
        since_ns_ = kNoTime;
        waiting_.insert((*runs)->begin(), (*runs)->end());
        read();
      });
}

void VerdictFeed::read() {
  if (reading_ || !restored_ || stopped_ || waiting_.empty()) return;
  reading_ = true;
  const auto runs = std::make_shared<std::vector<records::JobRunId>>();
  while (runs->size() < kRunsAtOnce && !waiting_.empty())
    runs->push_back(std::move(waiting_.extract(waiting_.begin()).value()));
  const auto verdicts = std::make_shared<std::vector<RunVerdict>>();
  recorder_.query(
      [&recorder = recorder_, runs, verdicts](store::Spool&, records::Records& records) {
        const bool stale = recorder.index_waits();  // to be read again
        for (const auto& [job, run] : *runs)
          verdicts->push_back(stale ? unread_verdict(job, run) : run_verdict(records, job, run));
      },
      [this, verdicts] { add_owners(verdicts); });
}

// Adds the owners of the jobs, which the engine knows.
void VerdictFeed::add_owners(std::shared_ptr<std::vector<RunVerdict>> verdicts) {
  const auto done = [this, verdicts] { publish(*verdicts); };
  if (!engine_) return done();
  engine_->query(
      [verdicts](LiveJobs& live, TimeNs now) {
        for (RunVerdict& v : *verdicts)
          if (v.verdict) {
            v.owner = live.owner_of_job(v.job);
            v.user = live.user_of_job(v.job);
            if (auto known = live.attempts_of_job(v.job, v.run))
              v.attempts = std::move(known->attempts), v.running = known->running;
            v.next_is_late = v.attempts && !v.running && now - v.attempts->at_ns > kNextWithin;
          }
      },
      done);
}

// A verdict that is not settled is announced within seconds.
void VerdictFeed::publish(const std::vector<RunVerdict>& verdicts) {
  reading_ = false;
  if (stopped_) return;
  std::vector<RunVerdict> settled, all;
  for (const RunVerdict& v : verdicts)
    if (v.settled)
      settled.push_back(v);
    else if (!v.known)
      unread_.emplace(v.job, v.run);
  for (const Subscriber& subscriber : subscribers_) subscriber(settled);
  if (!early_.empty())
    std::ranges::copy_if(verdicts, std::back_inserter(all),
                         [](const RunVerdict& v) { return v.known || v.settled; });
  for (const Subscriber& subscriber : early_) subscriber(all);
  read();
}

}  // namespace culprit::app
