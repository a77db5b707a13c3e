#include "app/daemon/recover/job_verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/daemon/recover/schedulers.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kForgetVerdict = 600 * kNsPerSecond;  // of a job that the scheduler does not show
// A slow host counts as measured twice when it is the verdict for so long.
constexpr TimeNs kMeasuredAgain = 60 * kNsPerSecond;
constexpr size_t kVerdictsMost = 10'000;

bool is_same_cause(const RunVerdict& a, const RunVerdict& b) {
  if (!a.verdict || !b.verdict || a.run != b.run) return false;
  const auto host = [](const RunVerdict& v) {
    const auto& hosts = v.verdict->diagnosis.hosts;
    return hosts.empty() ? std::nullopt : hosts[0].host;
  };
  return kind_of(a.verdict->diagnosis) == kind_of(b.verdict->diagnosis) && host(a) == host(b);
}

// Whether the controller would learn nothing from the second.
bool are_same(const RunVerdict& a, const RunVerdict& b) {
  const auto text = [](const Verdict& v) {
    Verdict bare = v;
    bare.settled = true;
    bare.change = Change::kNew;
    bare.replaces_id = bare.replaces_title = "";
    return to_json(bare);
  };
  return a.job == b.job && a.run == b.run && a.user == b.user &&
         a.verdict.has_value() == b.verdict.has_value() &&
         (!a.verdict || (a.verdict->state == b.verdict->state && text(*a.verdict) == text(*b.verdict)));
}

}  // namespace

void JobVerdicts::put(std::span<const RunVerdict> verdicts, TimeNs now) {
  for (const RunVerdict& v : verdicts) {
    const std::string id = id_of(v.job);
    if (!v.known || id.empty()) continue;
    // A job that the scheduler does not show yet may appear; others are forgotten in take().
    const bool shown = parts_.jobs->known(parts_.jobs->resolve(id)).has_value();
    if (!shown && !verdicts_.contains(v.job) && verdicts_.size() >= kVerdictsMost) continue;
    if (!v.settled && !is_final(v)) {
      put_unsettled(v, now);
      continue;
    }
    unsettled_.erase(v.job);
    Stored& stored = verdicts_[v.job];  // another user's job of the name has an entry of its own
    if (!is_same_cause(stored.verdict, v)) stored.since_ns = now, stored.measured = 1;
    stored.taken = stored.taken && are_same(stored.verdict, v);
    stored.verdict = v;
    stored.at_ns = now;
  }
}

void JobVerdicts::put_unsettled(const RunVerdict& v, TimeNs now) {
  if (!v.verdict || (!unsettled_.contains(v.job) && unsettled_.size() >= kVerdictsMost))
    return void(unsettled_.erase(v.job));
  const Diagnosis& d = v.verdict->diagnosis;
  Unsettled& one = unsettled_[v.job];
  if (one.title != d.title) one.since_ns = now;
  one.title = d.title, one.confidence = d.confidence, one.at_ns = now;
}

std::string JobVerdicts::resolve(const std::string& job) const {
  const std::string id = id_of(job);
  return id.empty() ? job : parts_.jobs->resolve(id);
}

std::vector<std::string> JobVerdicts::waits(const std::string& id) const {
  std::vector<std::string> out;
  const auto is_of = [&](const std::string& job) { return parts_.jobs->resolve(id_of(job)) == id; };
  for (const auto& [job, one] : unsettled_)
    if (is_of(job))
      out.push_back(
          fmt::format("{} (confidence {:.2f}): since {} it waits to settle, for other data may change it",
                      to_terminal(one.title), one.confidence, format_time(one.since_ns)));
  for (const auto& [job, stored] : verdicts_)
    if (!stored.taken && stored.verdict.verdict && is_of(job)) {
      const Diagnosis& d = stored.verdict.verdict->diagnosis;
      const bool other = parts_.is_own && !parts_.is_own(id);
      out.push_back(fmt::format("{} (confidence {:.2f}): {}", to_terminal(d.title), d.confidence,
                                other ? "another member of the cluster acts for the job, or none does now: "
                                        "culprit cluster status"
                                      : "it waits for a view of the scheduler"));
    }
  return out;
}

// Whether a verdict may decide about the scheduler's job of its name: its data is the job's own user's alone,
// or it rests on what no user can write. Anyone can name a process or a log after a job.
bool JobVerdicts::counts(const RunVerdict& v) const {
  const std::string id = parts_.jobs->resolve(id_of(v.job));
  const auto user = parts_.jobs->user_of(id);
  if (!user) return false;
  const auto owner = parts_.jobs->owner_of(id);
  if (owner == respond::SeenJob::Owner::kNamed) return true;
  if (owner == respond::SeenJob::Owner::kUser && !v.user.empty())
    return v.user == fmt::format("user {}", *user);
  const auto name = names_.find(id);
  if (!v.verdict) return name != names_.end() && name->second == v.job;  // withdraws its own
  return v.verdict->has_proof() && recover::authors_of(v.verdict->diagnosis, {}).independent();
}

// The engine looks at a running job again and again, and withdraws what no longer holds. So a slow host that
// is still the verdict after a while was measured more than once.
void JobVerdicts::measure_again(TimeNs now) {
  for (auto& [job, stored] : verdicts_)
    if (stored.verdict.verdict && stored.verdict.verdict->diagnosis.step_share > 0 && stored.measured == 1 &&
        now - stored.since_ns >= kMeasuredAgain && parts_.jobs->is_alive(parts_.jobs->resolve(id_of(job)))) {
      stored.measured = 2;
      stored.taken = false;
    }
}

// Whether waiting for the announcement cannot make the verdict better: the kernel or a plugin of one host
// names a lost device there, with the confidence of an isolation.
bool JobVerdicts::is_final(const RunVerdict& v) const {
  if (!v.verdict || v.verdict->state == VerdictState::kRefuted) return false;
  const recover::Case c = recover::case_of(v.verdict->diagnosis, {});
  return c.fault == recover::FaultClass::kDevice && c.hosts.size() == 1 && c.confirmed == c.hosts &&
         c.authors.independent() && c.confidence * 100 >= static_cast<double>(parts_.config->act.confidence);
}

// Whether the verdict accuses only hosts that our last order left out of the job, and the job does not run on
// them since: it is of an earlier attempt. Its lines go on arriving while the next attempt starts, and it is
// read again after a restart of the collector.
bool JobVerdicts::is_acted_on(const ScheduledJob& job, const Diagnosis& diagnosis) const {
  const ActionRecord* order = parts_.last_start(job.id);
  if (order == nullptr || order->state == ActionState::kFailed) return false;
  if (recover::key_of(order->order.job) != recover::key_of(job)) return false;
  const std::vector<std::string> accused = recover::case_of(diagnosis, {}).hosts;
  const std::vector<std::string> on = order->order.job.restarts == job.restarts
                                          ? std::vector<std::string>{}  // the next attempt is not seen yet
                                          : parts_.jobs->hosts_of_attempt(job.id);
  const auto has = [](const std::vector<std::string>& all, const std::string& one) {
    return std::ranges::find(all, one) != all.end();
  };
  return !accused.empty() && std::ranges::all_of(accused, [&](const std::string& host) {
    return has(order->order.excluded, host) && !has(on, host);
  });
}

// The controller forgets it. What was done stays until a person or a node check returns the host.
void JobVerdicts::withdraw(const ScheduledJob& job, const Diagnosis& diagnosis) {
  for (const std::string& host : recover::case_of(diagnosis, {}).hosts) {
    const MachineRecord* machine = parts_.controller->machines().find(host);
    if (machine == nullptr || machine->op.empty() || machine->last_root != recover::root_of(diagnosis))
      continue;
    const std::string text = fmt::format(
        "{} is isolated for a verdict that is withdrawn; `culprit recover undo "
        "{}` returns it",
        host, machine->op);
    parts_.warn("controller: " + text);
    parts_.note({recover::NoteKind::kRecord, recover::key_of(job), "", text, {}});
  }
}

// Nothing: the verdict says nothing that the controller has to know.
std::optional<recover::VerdictSeen> JobVerdicts::seen_of(const ScheduledJob& job, Stored& stored) {
  const RunVerdict& v = stored.verdict;
  recover::VerdictSeen seen;
  seen.job = job;
  seen.alive = parts_.jobs->is_alive(job.id);
  seen.withdrawn = !v.verdict || v.verdict->state == VerdictState::kRefuted;
  if (!v.verdict && !stored.given) return std::nullopt;
  seen.diagnosis = v.verdict ? v.verdict->diagnosis : *stored.given;
  if (seen.withdrawn) withdraw(job, seen.diagnosis);
  if (!seen.withdrawn && is_acted_on(job, seen.diagnosis)) return std::nullopt;
  stored.given = seen.diagnosis;
  seen.step_share = seen.diagnosis.step_share;
  seen.measured = stored.measured;
  return seen;
}

std::vector<recover::VerdictSeen> JobVerdicts::take(TimeNs now) {
  measure_again(now);
  std::vector<recover::VerdictSeen> out;
  for (auto& [name, stored] : verdicts_) {
    const std::string id = parts_.jobs->resolve(id_of(name));
    const auto job = parts_.jobs->known(id);
    if (stored.taken || !job || !parts_.jobs->user_of(id)) continue;
    if (parts_.is_own && !parts_.is_own(id)) continue;
    stored.taken = true;
    if (!counts(stored.verdict)) {
      parts_.note(
          {recover::NoteKind::kRecord,
           recover::key_of(*job),
           "",
           fmt::format("a verdict of {} is not used: its data may be another user's", stored.verdict.job),
           {}});
      continue;
    }
    names_[id] = stored.verdict.job;
    if (auto seen = seen_of(*job, stored)) out.push_back(std::move(*seen));
  }
  forget(now);
  return out;
}

void JobVerdicts::give_again(std::span<const std::string> jobs) {
  if (jobs.empty()) return;
  for (auto& [name, stored] : verdicts_)
    if (std::ranges::binary_search(jobs, parts_.jobs->resolve(id_of(name)))) stored.taken = false;
}

void JobVerdicts::forget(TimeNs now) {
  std::erase_if(verdicts_, [&](const auto& one) {
    return !parts_.jobs->known(parts_.jobs->resolve(id_of(one.first))) &&
           now - one.second.at_ns > kForgetVerdict;
  });
  std::erase_if(unsettled_, [&](const auto& one) {
    return !parts_.jobs->known(parts_.jobs->resolve(id_of(one.first))) &&
           now - one.second.at_ns > kForgetVerdict;
  });
  std::erase_if(names_, [&](const auto& one) { return !parts_.jobs->known(one.first); });
}

// Another user's job of the name has another id, and is no job of this scheduler's.
std::string JobVerdicts::id_of(const std::string& job) const {
  return scheduled_id(parts_.config->act.scheduler, job);
}

const RunVerdict* JobVerdicts::of(const std::string& job) const {
  const auto stored = verdicts_.find(name_of(job));
  return stored == verdicts_.end() || !stored->second.verdict.verdict ? nullptr : &stored->second.verdict;
}

std::string JobVerdicts::name_of(const std::string& job) const {
  const auto name = names_.find(job);
  return name == names_.end() ? job : name->second;
}

}  // namespace culprit::app
