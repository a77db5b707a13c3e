#include "app/daemon/recover/scheduled_jobs.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace culprit::app {
namespace {

using respond::SeenHost;
using respond::SeenJob;
using State = SeenJob::State;

constexpr TimeNs kHostsEvery = 60 * kNsPerSecond;     // all hosts again: memory is reconciled with them
constexpr TimeNs kForgetAfter = 3600 * kNsPerSecond;  // that the scheduler shows no more

recover::JobEnd end_of(State state) {
  switch (state) {
    case State::kCompleted:
      return recover::JobEnd::kCompleted;
    case State::kCancelled:
      return recover::JobEnd::kCancelled;
    case State::kTimeLimit:
      return recover::JobEnd::kTimeLimit;
    case State::kPreempted:
      return recover::JobEnd::kPreempted;
    case State::kNodeFailed:
      return recover::JobEnd::kNodeFailed;
    default:
      return recover::JobEnd::kFailed;
  }
}

bool has(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

struct LastUse {
  std::vector<std::string> hosts, excluded;  // of the job's latest attempt
};

// What the cluster can give to the job.
recover::JobMeans means_of(const SeenJob& seen, const ScheduledJob& job, const LastUse& last,
                           const respond::SchedulerView& view) {
  recover::JobMeans out;
  out.job = job;
  out.means.may_requeue = seen.may_requeue;
  const std::vector<std::string_view> partitions = split(seen.partition, ',');
  uint32_t idle = 0, own = 0;
  for (const SeenHost& host : view.hosts) {
    const bool fits = (host.partitions.empty() && job.scheduler != "slurm") ||
                      std::ranges::any_of(partitions, [&](std::string_view partition) {
                        return has(host.partitions, std::string(partition));
                      });
    if (!fits || has(last.excluded, host.host)) continue;
    idle += host.idle;
    own += !host.out && !host.idle && has(last.hosts, host.host);
  }
  out.means.spares = idle;
  if (view.hosts_known) out.eligible = idle + own;
  out.needed = seen.nodes;
  out.pending = seen.state == State::kPending;
  if (out.pending) out.pending_reason = seen.reason;
  return out;
}

}  // namespace

void ScheduledJobs::load(const AttemptRecord& row) {
  if (row.closed) return;
  Known& known = jobs_[row.job.id];
  if (known.first.id == row.job.id && known.now.restarts > row.job.restarts) return;
  known.first = known.now = row.job;
  known.hosts = row.hosts;
  known.started = row.job.restarts;
  known.ended = row.end_ns != kNoTime;
  known.seen_ns = std::max(row.begin_ns, row.end_ns);
}

bool ScheduledJobs::adopt(const AttemptRecord& row) {
  const auto found = jobs_.find(row.job.id);
  if (row.closed || found == jobs_.end()) return false;
  Known& known = found->second;
  if (known.now.scheduler != row.job.scheduler || known.now.uid != row.job.uid) return false;
  if (row.job.restarts > known.now.restarts) return false;
  // A reused id begins with no restarts, and with a time of its own.
  const bool same = row.job.submit_ns == known.now.submit_ns || known.now.restarts > row.job.restarts ||
                    row.job.restarts > 0;
  if (same) known.first = row.job;
  return same;
}

// A requeue gives another time of submission and one restart more; a reused id begins at none.
bool ScheduledJobs::is_same(const Known& known, const SeenJob& seen) const {
  if (known.uid && *known.uid != seen.uid) return false;
  if (known.now.scheduler != seen.job.scheduler || known.now.uid != seen.job.uid) return false;
  // Its identity is the UID, or its name alone.
  if (seen.job.submit_ns == kNoTime) return known.now.submit_ns == kNoTime;
  if (seen.job.submit_ns == known.now.submit_ns) return true;
  return known.uid ? seen.job.restarts > known.now.restarts
                   : seen.job.restarts > 0 && seen.job.restarts >= known.now.restarts;
}

void ScheduledJobs::add_job(const SeenJob& seen, const respond::SchedulerView& view, const At& at,
                            std::vector<recover::Input>& out) {
  auto found = jobs_.find(seen.job.id);
  const bool same = found != jobs_.end() && is_same(found->second, seen);
  if (!same) {
    if (found != jobs_.end() && !found->second.ended) {
      ScheduledJob other = found->second.first;
      other.restarts = found->second.now.restarts;
      out.push_back(recover::AttemptEnded{other, recover::JobEnd::kFailed, {}, "UNKNOWN"});
    }
    if (seen.has_ended()) return;  // it ended before it was ever seen
    Known fresh;
    fresh.first = seen.job;
    fresh.ended = true;  // no attempt has begun
    found = jobs_.insert_or_assign(seen.job.id, std::move(fresh)).first;
  }
  Known& known = found->second;
  known.uid = seen.uid;
  known.owner = seen.owner;
  const bool next_attempt = seen.job.restarts > known.now.restarts && same;
  const uint32_t attempt_before = known.now.restarts;
  const State before = std::exchange(known.state, seen.state);
  known.now = seen.job;
  known.partition = seen.partition;
  known.seen_ns = at.now;
  known.ending = seen.state == State::kEnding ? seen.hosts : std::vector<std::string>{};
  ScheduledJob job = known.first;
  job.restarts = seen.job.restarts;
  if (next_attempt && !known.ended) {
    known.ended = true;  // the attempt before ended between two views; the next has not begun
    ScheduledJob requeued = job;
    requeued.restarts = attempt_before;
    out.push_back(recover::AttemptEnded{requeued, recover::JobEnd::kFailed, {}, "REQUEUED"});
  }
  if (seen.state == State::kHeld && before != State::kHeld && same)
    out.push_back(recover::JobChanged{job, recover::ForeignKind::kHeld, seen.reason});
  // An attempt that began and ended between two views has run too.
  const bool missed = seen.has_ended() && seen.state != State::kCancelled && next_attempt;
  if ((seen.state == State::kRunning && known.ended) || missed) {
    known.ended = false;
    known.hosts = seen.hosts;
    known.started = seen.job.restarts;
    out.push_back(recover::AttemptStarted{job, seen.hosts, seen.partition, {}, {}});
  }
  // Pods of a running attempt begin one by one, and are replaced. Slurm names all hosts at once.
  const bool moves = job.scheduler != "slurm" && seen.hosts != known.hosts;
  if (seen.state == State::kRunning && !known.ended && moves) {
    known.hosts = seen.hosts;
    out.push_back(recover::AttemptStarted{job, seen.hosts, seen.partition, {}, {}});
  }
  if (seen.has_ended() && !known.ended) {
    known.ended = true;
    const auto told = [](const std::string& text, bool is_told) {
      return is_told && !text.empty() ? std::optional(text) : std::nullopt;
    };
    out.push_back(recover::AttemptEnded{job,
                                        end_of(seen.state),
                                        {},
                                        seen.word,
                                        told(seen.exit_code, true),
                                        told(seen.reason, seen.reason != "None")});
  }
  if (!seen.has_ended() || seen.state == State::kFailed || seen.state == State::kNodeFailed)
    out.push_back(means_of(seen, job,
                           {known.hosts, at.excluded ? at.excluded(job) : std::vector<std::string>{}}, view));
}

void ScheduledJobs::add_hosts(const respond::SchedulerView& view, TimeNs now, TimeNs read_ns,
                              std::vector<recover::Input>& out) {
  if (!view.hosts_known) return;
  const bool all = hosts_given_ns_ == kNoTime || now - hosts_given_ns_ >= kHostsEvery;
  if (all) {
    hosts_given_ns_ = now;
    out.push_back(recover::ClusterSeen{static_cast<uint32_t>(view.hosts.size())});
  }
  std::map<std::string, SeenHost> next;
  for (const SeenHost& host : view.hosts) {
    const auto before = hosts_.find(host.host);
    const bool changed =
        before == hosts_.end() || before->second.out != host.out || before->second.op != host.op;
    if (all || changed)
      out.push_back(recover::HostSeen{host.host, host.out, host.op, host.by,
                                      host.partitions.empty() ? "" : host.partitions.front(), read_ns});
    next.emplace(host.host, host);
  }
  // A host that was removed is isolated no more.
  for (const auto& [name, host] : hosts_)
    if (!host.op.empty() && !next.contains(name))
      out.push_back(recover::HostSeen{name, false, "", "its removal from the cluster", "", read_ns});
  hosts_ = std::move(next);
}

std::vector<recover::Input> ScheduledJobs::update(const respond::SchedulerView& view, const At& at) {
  std::vector<recover::Input> out;
  add_hosts(view, at.now, view.hosts_read_ns == kNoTime ? at.read_ns : view.hosts_read_ns, out);
  ids_.clear();
  for (const SeenJob& seen : view.jobs)
    for (const std::string& alias : seen.aliases) ids_.emplace(alias, seen.job.id);
  for (const SeenJob& seen : view.jobs) add_job(seen, view, at, out);
  // A job that is shown no more while it ran was purged after its end: how it ended is unknown.
  for (auto known = jobs_.begin(); known != jobs_.end();) {
    Known& job = known->second;
    if (job.seen_ns != at.now && !job.ended) {
      job.ended = true;
      job.state = State::kFailed;
      ScheduledJob vanished = job.first;
      vanished.restarts = job.now.restarts;
      out.push_back(recover::AttemptEnded{vanished, recover::JobEnd::kFailed, {}, "UNKNOWN"});
    }
    known = at.now - job.seen_ns > kForgetAfter ? jobs_.erase(known) : std::next(known);
  }
  return out;
}

std::optional<ScheduledJob> ScheduledJobs::known(const std::string& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return std::nullopt;
  ScheduledJob job = found->second.first;
  job.restarts = found->second.now.restarts;
  return job;
}

ScheduledJob ScheduledJobs::current(const ScheduledJob& job) const {
  const auto found = jobs_.find(job.id);
  return found != jobs_.end() && found->second.first.submit_ns == job.submit_ns &&
                 found->second.first.uid == job.uid
             ? found->second.now
             : job;
}

std::optional<uint32_t> ScheduledJobs::user_of(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::nullopt : found->second.uid;
}

SeenJob::Owner ScheduledJobs::owner_of(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? SeenJob::Owner::kUser : found->second.owner;
}

const std::string& ScheduledJobs::resolve(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? name : found->second;
}

std::vector<std::string> ScheduledJobs::hosts_of(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? std::vector<std::string>{} : found->second.hosts;
}

std::vector<std::string> ScheduledJobs::hosts_of_attempt(const std::string& id) const {
  const auto found = jobs_.find(id);
  const bool started = found != jobs_.end() && found->second.started == found->second.now.restarts;
  return started ? found->second.hosts : std::vector<std::string>{};
}

bool ScheduledJobs::is_alive(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found != jobs_.end() && !found->second.ended;
}

std::vector<std::string> ScheduledJobs::not_ended(const std::string& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end() || found->second.ending.size() * 2 > found->second.hosts.size()) return {};
  return found->second.ending;
}

std::vector<std::string> ScheduledJobs::running() const {
  std::vector<std::string> out;
  for (const auto& [id, job] : jobs_)
    if (!job.ended) out.push_back(id);
  return out;
}

std::vector<std::string> ScheduledJobs::ids() const {
  std::vector<std::string> out;
  for (const auto& [id, job] : jobs_) out.push_back(id);
  return out;
}

std::vector<recover::Input> ScheduledJobs::again(const std::string& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return {};
  const Known& known = found->second;
  const bool failed = known.ended && (known.state == State::kFailed || known.state == State::kNodeFailed);
  if (known.ended && !failed) return {};  // it waits for its first attempt, or ended well
  ScheduledJob job = known.first;
  job.restarts = known.now.restarts;
  std::vector<recover::Input> out{recover::AttemptStarted{job, known.hosts, known.partition, {}, {}}};
  if (failed) out.push_back(recover::AttemptEnded{job, end_of(known.state), {}, "FAILED"});
  return out;
}

std::string ScheduledJobs::job_on(const std::string& host) const {
  for (const auto& [id, job] : jobs_)
    if (!job.ended && std::ranges::find(job.hosts, host) != job.hosts.end()) return id;
  return {};
}

}  // namespace culprit::app
