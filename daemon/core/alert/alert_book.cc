#include "core/alert/alert_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/hash.h"
#include "base/text.h"

namespace culprit::alert {
namespace {

constexpr TimeNs kForgetEvery = 60 * kNsPerSecond;
constexpr size_t kMemberBytes = 200;

bool among(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::ranges::find(words, word) != words.end();
}

// Whether the fault differs from the repaired one, apart from its confidence.
bool is_another(const Fault& repaired, Fault now) {
  now.confidence = repaired.confidence;
  return repaired.diagnosis != now.diagnosis || differs(repaired, now);
}

// An issue that ended waits for no storm: the storm's message counted it.
void forget_held(Issue& issue) {
  std::erase_if(issue.deliveries, [](const auto& one) { return one.second.state == Delivery::State::kHeld; });
}

bool ends_run(const Fault& fault) { return fault.symptom == "crash" || fault.symptom == "launch_failure"; }

// With one of these symptoms the run stands still, so progress ends the issue.
bool stops_run(const Fault& fault) { return ends_run(fault) || fault.symptom == "hang"; }

// A user's claim resolves only issues from the user's own job, and none from the kernel or root.
bool may_resolve(const RunNews& news, const Fault& fault) {
  return news.user.empty() || (!fault.of_host && (fault.user.empty() || fault.user == news.user));
}

// The failure of the last attempt is a new message, also to those who acknowledged an earlier attempt's.
bool is_last_failure(const Fault& before, const Fault& now) {
  const bool was_last = !before.again.empty() && now.again.empty() && !now.undecided;
  return was_last && now.failed_attempts >= before.failed_attempts;
}

// Until it is decided whether another attempt follows, the last decision is shown.
Fault shown_after(const Fault& before, Fault now) {
  if (now.undecided) now.again = before.again, now.failed_attempts = before.failed_attempts;
  return now;
}

}  // namespace

bool Route::wants(const Fault& fault) const {
  const auto owns = [&](const std::string& owner) {
    return !fault.user.empty() && (owner == "*" || owner == fault.user);
  };
  return among(categories, fault.category) && among(actions, fault.action) &&
         fault.confidence >= min_confidence && (owners.empty() || std::ranges::any_of(owners, owns)) &&
         (jobs.empty() ||
          std::ranges::any_of(jobs, [&](const std::string& glob) { return matches_glob(glob, fault.job); }));
}

bool Route::leaves_to_owner(const Fault& fault) const {
  return fault.category == "user" && owners.empty() &&
         std::ranges::find(categories, fault.category) == categories.end();
}

bool AlertBook::hears(const Route& r, const Fault& fault) const {
  if (!r.wants(fault)) return false;
  return !fault.decision.empty() || !r.leaves_to_owner(fault) ||
         std::ranges::none_of(options_.routes, [&](const Route& other) {
           return !other.owners.empty() && other.wants(fault);
         });
}

Severity AlertBook::severity_of(const Fault& fault) const {
  const bool critical = std::ranges::find(options_.critical, fault.category) != options_.critical.end();
  return critical ? Severity::kCritical : Severity::kWarning;
}

void AlertBook::set_options(BookOptions options) {
  options_ = std::move(options);
  std::map<std::string, Gates> gates;
  const StormGate gate(options_.storm_above);
  for (const Route& r : options_.routes) gates.emplace(r.name, Gates{gate, gate});
  gates_ = std::move(gates);
  std::erase_if(storms_, [&](const auto& one) { return !gates_.contains(one.first); });
  for (auto& [key, issue] : issues_) {
    if (!issue.storm.empty()) continue;
    std::erase_if(issue.deliveries, [&](const auto& one) { return !gates_.contains(one.first); });
  }
  for (const Route& r : options_.routes) recount(r.name);
}

void AlertBook::load(std::vector<Issue> issues, std::vector<Window> windows) {
  for (Window& w : windows) windows_[w.id] = std::move(w);
  std::vector<std::pair<TimeNs, std::string>> held;
  for (Issue& issue : issues) {
    if (issue.firing())
      firing_.insert(issue.key);
    else
      forget_held(issue);
    if (!issue.storm.empty()) {
      if (issue.firing() && gates_.contains(issue.storm))
        storms_[issue.storm].key = issue.key, storms_[issue.storm].shown = issue.count;
    } else {
      if (issue.fault.decision.empty()) of_run_[{issue.fault.job, issue.fault.run}].insert(issue.key);
      if (issue.firing()) held.emplace_back(issue.fired_ns, issue.key);
    }
    std::string key = issue.key;
    issues_[key] = std::move(issue);
  }
  std::ranges::sort(held);
  for (const auto& [time, key] : held)
    for (const auto& [receiver, d] : issues_[key].deliveries)
      if (d.state == Delivery::State::kHeld && gates_.contains(receiver))
        storms_[receiver].held.push_back(key);
  for (const Route& r : options_.routes) recount(r.name);
}

const Route* AlertBook::route(const std::string& name) const {
  const auto at = std::ranges::find(options_.routes, name, &Route::name);
  return at == options_.routes.end() ? nullptr : &*at;
}

std::vector<const Issue*> AlertBook::firing() const {
  std::vector<const Issue*> out;
  for (const std::string& key : firing_) out.push_back(&issues_.at(key));
  return out;
}

// An issue that changes twice is stored once.
void AlertBook::note(const Issue& issue) {
  const auto at = std::ranges::find(changes_.issues, issue.key, &Issue::key);
  if (at == changes_.issues.end())
    changes_.issues.push_back(issue);
  else
    *at = issue;
}

Issue* AlertBook::open_issue(const RunId& run) {
  const auto keys = of_run_.find(run);
  if (keys == of_run_.end()) return nullptr;
  for (const std::string& key : keys->second)
    if (Issue& issue = issues_.at(key); issue.firing()) return &issue;
  return nullptr;
}

const Issue* AlertBook::last_closed(const RunId& run) const {
  const Issue* out = nullptr;
  const auto keys = of_run_.find(run);
  if (keys == of_run_.end()) return nullptr;
  for (const std::string& key : keys->second)
    if (const Issue& issue = issues_.at(key);
        !issue.firing() && (!out || issue.resolved_ns > out->resolved_ns))
      out = &issue;
  return out;
}

// An attempt's verdict stays while the next attempt runs, so an unchanged one is no news.
bool AlertBook::awaits_decision(const RunId& run, const Issue* open, const Fault& fault, TimeNs now) {
  const bool known = open && open->fault.diagnosis == fault.diagnosis && !differs(open->fault, fault);
  if (!fault.undecided || !ends_run(fault) || known || undecided_.size() >= kIssuesMax) {
    undecided_.erase(run);
    return fault.undecided && known;
  }
  return now - undecided_.try_emplace(run, now).first->second < kDecisionWithin;
}

void AlertBook::update(const std::string& job, uint32_t run, const std::optional<Fault>& fault, End why,
                       TimeNs now) {
  const RunId id(job, run);
  Issue* open = open_issue(id);
  if (!fault) {
    undecided_.erase(id);
    if (open) return resolve(*open, why, now);
    if (const Issue* closed = last_closed(id); closed && closed->end == End::kRepaired && !closed->rearmed) {
      Issue& issue = issues_.at(closed->key);
      issue.rearmed = true;
      note(issue);
    }
    return;
  }
  if (open) {
    if (awaits_decision(id, open, *fault, now)) return;
    return is_last_failure(open->fault, *fault) ? fire(*open, *fault, now)
                                                : revise(*open, shown_after(open->fault, *fault), now);
  }
  // The verdict of a recovered run remains; only a different verdict is news.
  if (const Issue* closed = last_closed(id)) {
    const bool same_attempt = closed->fault.failed_attempts == fault->failed_attempts;
    const bool went_on = (closed->end == End::kRecovered && same_attempt) || closed->end == End::kExpired;
    const bool mended = closed->end == End::kRepaired && !closed->rearmed;
    if (closed->end == End::kLaterRun || (went_on && !differs(closed->fault, *fault))) return;
    if (mended && !is_another(closed->fault, *fault)) return;
  }
  if (awaits_decision(id, nullptr, *fault, now)) return;
  const std::string key = issue_key(*fault);
  if (!issues_.contains(key) && issues_.size() >= kIssuesMax) {
    forget_old(now);
    if (issues_.size() >= kIssuesMax) return void(++counts_.refused);
  }
  of_run_[id].insert(key);
  fire(issues_[key], *fault, now);
}

void AlertBook::fire(Issue& issue, const Fault& fault, TimeNs now) {
  if (issue.key.empty()) {
    issue.key = issue_key(fault);
    issue.category = fault.category;
    issue.component = fault.component;
  }
  issue.fault = fault;
  issue.fired_ns = issue.changed_ns = now;
  issue.resolved_ns = issue.raised_ns = kNoTime;
  issue.end = End::kNone;
  issue.severity = severity_of(fault);
  issue.handling = {};
  issue.rearmed = false;
  issue.news.clear();
  issue.deliveries.clear();
  ++issue.revision;
  ++counts_.issues;
  firing_.insert(issue.key);
  if (fault.decision.empty()) progress_.erase({fault.job, fault.run});
  for (const Route& r : options_.routes)
    if (hears(r, fault)) offer(issue, r, now);
  note(issue);
}

void AlertBook::ask(const Fault& question, TimeNs now) {
  const std::string key = issue_key(question);
  if (issues_.contains(key)) return;
  if (issues_.size() >= kIssuesMax) forget_old(now);
  if (issues_.size() >= kIssuesMax) return void(++counts_.refused);
  fire(issues_[key], question, now);
}

void AlertBook::answered(const std::string& decision, End end, const std::string& by, TimeNs now) {
  for (const std::string& key : std::vector<std::string>(firing_.begin(), firing_.end())) {
    Issue& issue = issues_.at(key);
    if (issue.fault.decision != decision || decision.empty()) continue;
    issue.handling.answered_by = by;
    resolve(issue, end, now);
  }
}

std::vector<std::string> AlertBook::asked() const {
  std::vector<std::string> out;
  for (const std::string& key : firing_)
    if (const std::string& decision = issues_.at(key).fault.decision; !decision.empty())
      out.push_back(decision);
  return out;
}

void AlertBook::revise(Issue& issue, const Fault& fault, TimeNs now) {
  const bool news = differs(issue.fault, fault) || issue.fault.again != fault.again;
  std::string owner = fault.owner.empty() ? issue.fault.owner : fault.owner;
  std::string user = fault.user.empty() ? issue.fault.user : fault.user;
  if (!news && issue.fault.diagnosis == fault.diagnosis) {
    issue.fault.owner = std::move(owner);
    issue.fault.user = std::move(user);
    issue.fault.vouched = fault.vouched;
    issue.fault.of_host = fault.of_host;
    return;
  }
  issue.fault = fault;
  issue.fault.owner = std::move(owner);
  issue.fault.user = std::move(user);
  if (news) {
    issue.changed_ns = now;
    issue.news.clear();
    if (issue.severity < severity_of(fault)) {
      issue.severity = severity_of(fault);
      issue.raised_ns = now;
    }
    ++issue.revision;
    progress_.erase({fault.job, fault.run});
    tick_issue(issue, now);
    for (const Route& r : options_.routes)
      if (!issue.deliveries.contains(r.name) && hears(r, issue.fault)) offer(issue, r, now);
  }
  note(issue);
}

void AlertBook::resolve(Issue& issue, End end, TimeNs now) {
  issue.end = end;
  issue.news.clear();
  issue.resolved_ns = issue.changed_ns = now;
  ++issue.revision;
  firing_.erase(issue.key);
  forget_held(issue);
  for (auto& [receiver, d] : issue.deliveries)
    if (const Route* r = route(receiver); r && d.state == Delivery::State::kSent && r->resolved)
      send(issue, *r, Message::Kind::kResolved, now);
  note(issue);
}

void AlertBook::settled(const std::string& receiver, const std::string& issue, bool dropped) {
  const auto known = issues_.find(issue);
  if (known == issues_.end()) return;
  const auto d = known->second.deliveries.find(receiver);
  if (d == known->second.deliveries.end() || d->second.dropped == dropped) return;
  d->second.dropped = dropped;
  note(known->second);
}

void AlertBook::delivered(const std::string& receiver, const std::string& issue, const Fault& fault,
                          std::string change) {
  const auto known = issues_.find(issue);
  if (known == issues_.end()) return;
  const auto d = known->second.deliveries.find(receiver);
  if (d == known->second.deliveries.end()) return;
  d->second.read = brief_of(fault);
  d->second.change = std::move(change);
  note(known->second);
}

bool AlertBook::silent(const Issue& issue, TimeNs now) const {
  const TimeNs until = issue.handling.silent_until_ns;
  return (until != kNoTime && now < until) || covered(issue.fault, now);
}

bool AlertBook::covered(const Fault& fault, TimeNs now) const {
  return std::ranges::any_of(
      windows_, [&](const auto& one) { return one.second.open(now) && one.second.covers(fault); });
}

void AlertBook::count_silenced(const Fault& fault, TimeNs now) {
  for (auto& [id, w] : windows_)
    if (w.open(now) && w.covers(fault)) {
      ++w.held;
      changes_.windows.push_back(w);
      return;
    }
}

// The first notification of an issue to the receiver, now or later.
void AlertBook::offer(Issue& issue, const Route& r, TimeNs now) {
  if (silent(issue, now)) {
    const bool first = std::ranges::none_of(
        issue.deliveries, [](const auto& one) { return one.second.state == Delivery::State::kSilent; });
    issue.deliveries[r.name].state = Delivery::State::kSilent;
    ++counts_.silenced;
    if (first) count_silenced(issue.fault, now);
    return;
  }
  if (!r.groups && !gates_.at(r.name).of(issue.fault).admit(issue.fault.owner, now))
    return hold(issue, r, now);
  send(issue, r, Message::Kind::kFiring, now);
}

void AlertBook::send(Issue& issue, const Route& r, Message::Kind kind, TimeNs now) {
  Delivery& d = issue.deliveries[r.name];
  d.state = Delivery::State::kSent;
  d.revision = issue.revision;
  d.made_ns = now;
  Message m;
  m.id = fmt::format("{}/{}", issue.key, issue.revision);
  m.receiver = r.name;
  m.issue = issue.key;
  m.kind = kind;
  m.created_ns = now;
  Issue shown = issue;
  shown.deliveries.clear();
  m.body = to_json(shown);
  changes_.messages.push_back(std::move(m));
}

// ---- storms

void AlertBook::hold(Issue& issue, const Route& r, TimeNs now) {
  issue.deliveries[r.name].state = Delivery::State::kHeld;
  ++counts_.held;
  Storm& storm = storms_[r.name];
  storm.held.push_back(issue.key);
  gates_.at(r.name).of(issue.fault).hold(issue.fault.owner);
  if (storm.key.empty())
    storm.key = fmt::format("storm-{}", hex64(hash64(fmt::format("{}\n{}", r.name, now))));
  Issue& own = issues_[storm.key];
  ++own.count;
  if (own.key.empty()) {
    own.key = storm.key;
    own.storm = r.name;
    own.category = own.component = "storm";
    own.fired_ns = own.changed_ns = now;
    firing_.insert(own.key);
  }
  own.severity = std::max(own.severity, issue.severity);
  own.fault.title = fmt::format("{} within short time; the rest is counted here and follows on its own",
                                counted(own.count, "more new issue"));
  note(own);
}

// Waits one second before the first message, to count the issues that arrive with the first.
void AlertBook::tick_storm(const Route& r, TimeNs now) {
  const auto at = storms_.find(r.name);
  if (at == storms_.end()) return;
  Storm& storm = at->second;
  release(r, now);
  if (storm.key.empty()) return;
  Issue& own = issues_.at(storm.key);
  if (storm.held.empty()) {
    resolve(own, End::kCalm, now);  // sends nothing if it ended before it was sent
    storm.key.clear();
    storm.shown = 0;
    return;
  }
  const bool first = storm.shown == 0;
  const TimeNs wait = first ? kNsPerSecond : kStormEvery;
  if (own.count == storm.shown || now - own.changed_ns < wait) return;
  storm.shown = own.count;
  own.changed_ns = now;
  ++own.revision;
  own.members.clear();
  for (const std::string& key : storm.held) {  // release() has put the gravest first
    if (own.members.size() >= kStormNames) break;
    const Fault& f = issues_.at(key).fault;
    own.members.push_back(
        shorten(fmt::format("{}: {}", to_terminal(f.job), to_terminal(f.title)), kMemberBytes));
  }
  send(own, r, first ? Message::Kind::kFiring : Message::Kind::kRevised, now);
  note(own);
}

// A revision may have made a held issue graver, and an ended issue is no longer held.
void AlertBook::recount(const std::string& receiver) {
  const auto storm = storms_.find(receiver);
  if (storm == storms_.end()) return;
  Gates& gates = gates_.at(receiver);
  gates.grave.forget_held();
  gates.others.forget_held();
  std::erase_if(storm->second.held, [&](const std::string& key) {
    const auto issue = issues_.find(key);
    if (issue == issues_.end() || !issue->second.firing()) return true;
    const auto d = issue->second.deliveries.find(receiver);
    return d == issue->second.deliveries.end() || d->second.state != Delivery::State::kHeld;
  });
  for (const std::string& key : storm->second.held) {
    const Fault& f = issues_.at(key).fault;
    gates.of(f).hold(f.owner);
  }
}

// Gravest first; for equal gravity, oldest first.
void AlertBook::release(const Route& r, TimeNs now) {
  Storm& storm = storms_.at(r.name);
  recount(r.name);
  std::ranges::stable_sort(storm.held, [&](const std::string& a, const std::string& b) {
    return graver(issues_.at(a).fault, issues_.at(b).fault);
  });
  using Lane = std::pair<bool, std::string>;  // whether grave, and the owner
  std::map<Lane, size_t> room;
  for (const std::string& key : storm.held) {
    Issue& issue = issues_.at(key);
    const Fault& f = issue.fault;
    StormGate& gate = gates_.at(r.name).of(f);
    const auto [left, fresh] = room.try_emplace(Lane(is_grave(f), f.owner), 0);
    if (fresh) left->second = gate.room(f.owner, now);
    if (left->second == 0) continue;
    if (silent(issue, now)) {
      issue.deliveries[r.name].state = Delivery::State::kSilent;
      ++counts_.silenced;
      count_silenced(f, now);
    } else {
      gate.sent(f.owner, now);
      send(issue, r, Message::Kind::kFiring, now);
    }
    left->second = std::min(left->second - 1, gate.room(f.owner, now));
    note(issue);
  }
  recount(r.name);
}

// ---- time

// Sends suppressed issues once no window matches, with their changes in the meantime.
void AlertBook::tick_issue(Issue& issue, TimeNs now) {
  if (!issue.storm.empty()) return;
  end_silence(issue, now);
  remind(issue, now);
  bool due = false;
  for (const auto& [receiver, d] : issue.deliveries)
    due = due || d.state == Delivery::State::kSilent ||
          (d.state == Delivery::State::kSent && d.revision < issue.revision);
  if (!due || silent(issue, now)) return;
  for (auto& [receiver, d] : issue.deliveries) {
    const Route* r = route(receiver);
    if (!r) continue;
    if (d.state == Delivery::State::kSilent)
      offer(issue, *r, now);
    else if (d.state == Delivery::State::kSent && d.revision < issue.revision)
      send(issue, *r, Message::Kind::kRevised, now);
  }
  note(issue);
}

void AlertBook::tick(TimeNs now) {
  std::vector<std::string> keys(firing_.begin(), firing_.end());
  for (const std::string& key : keys) {
    Issue& issue = issues_.at(key);
    tick_issue(issue, now);
    const auto storm = storms_.find(issue.storm);
    const bool lost = storm == storms_.end() || storm->second.key != key;
    if (!issue.storm.empty() && lost) resolve(issue, End::kCalm, now);  // its receiver was removed
    const bool runs = running_.contains({issue.fault.job, issue.fault.run});
    if (issue.storm.empty() && !runs && now - issue.changed_ns >= options_.expire_after_ns)
      resolve(issue, End::kExpired, now);
  }
  for (const Route& r : options_.routes) tick_storm(r, now);
  if (forgot_ns_ == kNoTime || now < forgot_ns_ || now - forgot_ns_ >= kForgetEvery) forget_old(now);
}

// Drops resolved issues: the old ones, and the oldest beyond the limit.
void AlertBook::forget_old(TimeNs now) {
  forgot_ns_ = now;
  std::vector<std::pair<TimeNs, std::string>> resolved;
  for (const auto& [key, issue] : issues_)
    if (!issue.firing()) resolved.emplace_back(issue.resolved_ns, key);
  std::ranges::sort(resolved);
  for (const auto& [time, key] : resolved) {
    if (issues_.size() < kIssuesMax && now - time < kResolvedRetained) break;
    const Issue& issue = issues_.at(key);
    const RunId run(issue.fault.job, issue.fault.run);
    if (const auto keys = of_run_.find(run); keys != of_run_.end()) {
      keys->second.erase(key);
      if (keys->second.empty()) of_run_.erase(keys);
    }
    issues_.erase(key);
    changes_.forgotten.push_back(key);
  }
  std::erase_if(windows_, [&](const auto& one) {
    const bool old = one.second.over(now) && now - one.second.until_ns >= kWindowRetained;
    if (old) changes_.windows_forgotten.push_back(one.first);
    return old;
  });
}

// ---- progress

void AlertBook::on_runs(const std::vector<RunNews>& runs, TimeNs now) {
  running_.clear();
  for (const RunNews& news : runs) {
    if (news.running) running_.emplace(news.job, news.run);
    follow(news, now);
  }
  std::erase_if(progress_, [&](const auto& one) { return !running_.contains(one.first); });
}

void AlertBook::follow(const RunNews& news, TimeNs now) {
  const RunId id(news.job, news.run);
  std::vector<Issue*> own, earlier;
  for (auto at = of_run_.lower_bound({news.job, 0});
       at != of_run_.end() && at->first.first == news.job && at->first.second <= news.run; ++at)
    for (const std::string& key : at->second)
      if (Issue& issue = issues_.at(key); issue.firing() && may_resolve(news, issue.fault))
        (at->first.second == news.run ? own : earlier).push_back(&issue);
  if (own.empty() && earlier.empty()) return;
  const auto goes_on = [&](const Issue& issue) {  // the next attempt is under way
    return !issue.fault.again.empty() && news.attempt > issue.fault.failed_attempts;
  };
  if (news.well) {
    for (Issue* issue : own) resolve(*issue, End::kRecovered, now);
    for (Issue* issue : earlier) resolve(*issue, End::kLaterRun, now);
    return;
  }
  if (news.attempt_well)
    for (Issue* issue : own)
      if (goes_on(*issue)) resolve(*issue, End::kRecovered, now);
  if (!news.iteration || !news.running) return;
  Progress& p = progress_[id];
  const bool advanced = p.last && *news.iteration > *p.last;
  if (!p.first) p.first = news.iteration;
  p.last = news.iteration;
  if (!advanced) {
    if (p.seen_ns != kNoTime && now - p.seen_ns >= kRecoveredAfter) p.since_ns = p.seen_ns = kNoTime;
    return;
  }
  if (p.since_ns == kNoTime || now < p.since_ns) p.since_ns = now;
  p.seen_ns = now;
  for (Issue* issue : earlier) resolve(*issue, End::kLaterRun, now);
  // An attempt that comes further than all before has made progress.
  for (Issue* issue : own)
    if (issue->firing() && goes_on(*issue)) resolve(*issue, End::kRecovered, now);
  if (now - p.since_ns < kRecoveredAfter) return;
  for (Issue* issue : own)
    if (issue->firing() && stops_run(issue->fault)) resolve(*issue, End::kRecovered, now);
}

// ---- what people do

void AlertBook::found_again(const std::string& job, uint32_t run, const std::string& source,
                            const std::string& host, TimeNs now) {
  const RunId id(job, run);
  if (open_issue(id)) return;
  const Issue* closed = last_closed(id);
  if (!closed || closed->end != End::kRepaired || closed->fault.source != source) return;
  const auto& hosts = closed->fault.hosts;
  if (!hosts.empty() && std::ranges::find(hosts, host) == hosts.end()) return;
  const Fault fault = closed->fault;
  fire(issues_.at(closed->key), fault, now);
}

Result<Issue*> AlertBook::handled(const std::string& key) {
  const auto known = issues_.find(key);
  if (known == issues_.end())
    return fail(ErrorCode::kNotFound, fmt::format("no alert {}", shorten(to_terminal(key), 40)));
  Issue& issue = known->second;
  if (!issue.storm.empty())
    return fail(ErrorCode::kInvalid, "a storm has no fault of its own: handle the alerts that it counts");
  if (!issue.firing())
    return fail(ErrorCode::kInvalid, fmt::format("alert {} is over: {}", key, end_of(issue)));
  return &issue;
}

Result<Issue> AlertBook::acknowledge(const std::string& key, const std::string& by, TimeNs now) {
  const auto issue = handled(key);
  if (!issue) return tl::unexpected(issue.error());
  Handling& h = (*issue)->handling;
  if (h.acknowledged_by.empty()) {  // the first acknowledgement counts
    h.acknowledged_by = by;
    h.acknowledged_ns = now;
    note(**issue);
  }
  return **issue;
}

Result<Issue> AlertBook::silence(const std::string& key, TimeNs until, const std::string& by, TimeNs now) {
  const auto issue = handled(key);
  if (!issue) return tl::unexpected(issue.error());
  if (until > now && until - now > kSilentLongest)
    return fail(ErrorCode::kInvalid, "the silence is longer than 30 days: add a maintenance window");
  (*issue)->handling.silenced_by = by;
  (*issue)->handling.silent_until_ns = until;
  // A receiver that repeats alerts itself must be silenced there.
  if (until > now)
    for (auto& [receiver, d] : (*issue)->deliveries)
      if (const Route* r = route(receiver); r && r->groups && d.state == Delivery::State::kSent)
        send(**issue, *r, Message::Kind::kRevised, now);
  note(**issue);
  tick_issue(**issue, now);
  return **issue;
}

Result<Issue> AlertBook::repaired(const std::string& key, const std::string& by, TimeNs now) {
  const auto issue = handled(key);
  if (!issue) return tl::unexpected(issue.error());
  if (const std::string& decision = (*issue)->fault.decision; !decision.empty())
    return fail(ErrorCode::kInvalid, fmt::format("a question is not repaired: answer it on the page, or with "
                                                 "`culprit recover approve {}`",
                                                 decision));
  (*issue)->handling.repaired_by = by;
  resolve(**issue, End::kRepaired, now);
  return **issue;
}

// Repeats firing issues that are not acknowledged.
void AlertBook::end_silence(Issue& issue, TimeNs now) {
  Handling& h = issue.handling;
  if (h.silent_until_ns == kNoTime || now < h.silent_until_ns) return;
  h.silent_until_ns = kNoTime;
  h.silenced_by.clear();
  if (h.acknowledged_by.empty()) {
    issue.news = "it still fires, and its silence is over";
    ++issue.revision;
  }
  note(issue);
}

// A receiver that groups alerts also repeats them itself.
void AlertBook::remind(Issue& issue, TimeNs now) {
  const TimeNs every = options_.remind_every_ns;
  if (every <= 0 || !issue.handling.acknowledged_by.empty() || silent(issue, now)) return;
  // The last attempt's failure calls; but what the host shows is no user's to silence.
  if (!issue.fault.again.empty() && !issue.fault.of_host) return;
  const bool due = std::ranges::any_of(issue.deliveries, [&](const auto& one) {
    const Route* r = route(one.first);
    return r && !r->groups && one.second.state == Delivery::State::kSent && one.second.made_ns != kNoTime &&
           now - one.second.made_ns >= every;
  });
  if (!due) return;
  issue.news =
      fmt::format("a reminder: it fires since {} and is not acknowledged", format_time(issue.fired_ns));
  ++issue.revision;
}

// ---- windows

Result<Window> AlertBook::add_window(Window window, TimeNs now) {
  if (std::string why = trouble_of(window, now); !why.empty()) return fail(ErrorCode::kInvalid, why);
  const auto current =
      std::ranges::count_if(windows_, [&](const auto& one) { return !one.second.over(now); });
  if (static_cast<size_t>(current) >= kWindows)
    return fail(ErrorCode::kLimit, fmt::format("there are {} maintenance windows already", kWindows));
  if (windows_.size() >= 2 * kWindows) {  // ended windows stay for a while: the oldest is removed
    const auto over = std::ranges::find_if(windows_, [&](const auto& one) { return one.second.over(now); });
    changes_.windows_forgotten.push_back(over->first);
    windows_.erase(over);
  }
  window.id = windows_.empty() ? 1 : windows_.rbegin()->first + 1;
  window.ended = false;
  window.held = 0;
  windows_[window.id] = window;
  changes_.windows.push_back(window);
  return window;
}

Result<Window> AlertBook::end_window(int64_t id, TimeNs now) {
  const auto at = windows_.find(id);
  if (at == windows_.end()) return fail(ErrorCode::kNotFound, fmt::format("no maintenance window {}", id));
  if (at->second.over(now)) return fail(ErrorCode::kNotFound, fmt::format("window {} is over already", id));
  at->second.ended = true;
  changes_.windows.push_back(at->second);
  return at->second;
}

}  // namespace culprit::alert
