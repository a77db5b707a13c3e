#include "core/rules/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"

namespace culprit::rules {
namespace {

constexpr size_t kEntries = 4096;  // of one window: four times what at_least may ask
constexpr size_t kKeys = 65'536;   // windows of one rule: ranks of a large job
constexpr int kOverrunsMax = 3;
constexpr Scope kScopes[] = {Scope::kHost, Scope::kRank, Scope::kDevice, Scope::kJob};

Value event_of(const Rule& rule, const RuleHit& hit) {
  Value out = Value::table();
  out.fields["text"] = Value::of(hit.text);
  out.fields["source"] = Value::of(std::string(word(hit.source)));
  if (!hit.host.empty()) out.fields["host"] = Value::of(hit.host);
  if (hit.rank) out.fields["rank"] = Value::of(int64_t{*hit.rank});
  if (hit.device) out.fields["device"] = Value::of(int64_t{*hit.device});
  if (hit.step >= 0) out.fields["step"] = Value::of(hit.step);
  if (hit.time_ns != kNoTime) out.fields["time_ns"] = Value::of(hit.time_ns);
  for (size_t i = 0; i < rule.holes.size() && i < hit.holes.size(); ++i)
    if (!hit.holes[i].empty()) out.fields[rule.holes[i]] = Value::of(hit.holes[i]);
  return out;
}

Value window_of(const Firing& firing) {
  Value out = Value::table();
  out.fields["count"] = Value::of(static_cast<int64_t>(firing.count));
  out.fields["distinct"] = Value::of(static_cast<int64_t>(firing.distinct));
  out.fields["hosts"] = Value::of(static_cast<int64_t>(firing.hosts));
  out.fields["ranks"] = Value::of(static_cast<int64_t>(firing.ranks));
  if (firing.first_ns != kNoTime) out.fields["first_ns"] = Value::of(firing.first_ns);
  if (firing.last_ns != kNoTime) out.fields["last_ns"] = Value::of(firing.last_ns);
  return out;
}

}  // namespace

RuleRun::RuleRun(std::shared_ptr<Ruleset> ruleset) { replace(std::move(ruleset)); }

void RuleRun::replace(std::shared_ptr<Ruleset> ruleset) {
  std::unordered_map<uint64_t, State*> before;
  for (auto& [rule, state] : states_) before.emplace(ruleset_->rules()[rule].text_hash, &state);
  std::unordered_map<uint32_t, State> states;
  std::vector<bool> asked(ruleset->rules().size());
  for (uint32_t i = 0; i < asked.size(); ++i) {
    const Rule& rule = ruleset->rules()[i];
    if (const auto it = before.find(rule.text_hash); it != before.end())
      states.emplace(i, std::move(*it->second));
    if (!rule.window) continue;
    for (const std::string* other : {&rule.window->after, &rule.window->unless})
      if (const auto index = ruleset->find(*other)) asked[*index] = true;
  }
  ruleset_ = std::move(ruleset);
  states_ = std::move(states);
  asked_ = std::move(asked);
}

void RuleRun::clear() {
  states_.clear();
  troubles_.clear();
  now_ = 0;
  dropped_ = 0;
}

uint64_t RuleRun::key(Scope scope, const RuleHit& hit) {
  switch (scope) {
    case Scope::kHost:
      return hash64(hit.host);
    case Scope::kRank:
      return mix64(hit.rank ? uint64_t{*hit.rank} + 1 : hash64(hit.host), 1);
    case Scope::kDevice:
      return mix64(hash64(hit.host), hit.device ? uint64_t{*hit.device} + 1 : 0);
    case Scope::kJob:
      break;
  }
  return 0;
}

bool RuleRun::fired_before(const std::string& rule, Scope scope, const RuleHit& hit, TimeNs since) const {
  const auto index = ruleset_->find(rule);
  if (!index) return false;
  const auto state = states_.find(*index);
  if (state == states_.end()) return false;
  const auto& fired = state->second.fired[static_cast<size_t>(scope)];
  const auto it = fired.find(key(scope, hit));
  return it != fired.end() && it->second >= since;
}

Firing RuleRun::count(const Rule& rule, State& state, const RuleHit& hit, TimeNs now) {
  const Window& window = *rule.window;
  const uint64_t where = key(window.by, hit);
  if (!state.windows.contains(where) && state.windows.size() >= kKeys)
    std::erase_if(state.windows, [&](const auto& w) { return w.second.back().time < now - window.span_ns; });
  Firing out;
  if (state.windows.size() >= kKeys && !state.windows.contains(where)) {
    ++dropped_;
    out.first_ns = out.last_ns = now;
    return out;
  }
  std::deque<Entry>& entries = state.windows[where];
  uint64_t value = 0;
  const auto hole = std::find(rule.holes.begin(), rule.holes.end(), window.distinct);
  if (hole != rule.holes.end()) value = hash64(hit.holes[static_cast<size_t>(hole - rule.holes.begin())]);
  entries.push_back({now, value, hash64(hit.host), hit.rank ? int64_t{*hit.rank} : -1});
  while (entries.front().time < now - window.span_ns) entries.pop_front();
  if (entries.size() > kEntries) {
    entries.pop_front();
    ++dropped_;
  }
  std::set<uint64_t> values, hosts;
  std::set<int64_t> ranks;
  // What is asked of a window is seen in its last few hits; all are looked at where a function asks.
  for (const Entry& e : entries) {
    if (!window.distinct.empty()) values.insert(e.value);
    if (rule.when == 0) continue;
    hosts.insert(e.host);
    if (e.rank >= 0) ranks.insert(e.rank);
  }
  out.count = entries.size();
  out.distinct = window.distinct.empty() ? out.count : values.size();
  out.hosts = std::max<size_t>(hosts.size(), 1);
  out.ranks = ranks.size();
  out.first_ns = entries.front().time;
  out.last_ns = now;
  return out;
}

void RuleRun::tell(State& state, const Rule& rule, std::string what, bool over) {
  if (state.trouble < 0) {
    state.trouble = static_cast<int>(troubles_.size());
    troubles_.push_back({rule.id, {}, 0, 0, false});
  }
  RuleTrouble& trouble = troubles_[static_cast<size_t>(state.trouble)];
  ++(over ? trouble.overruns : trouble.errors);
  trouble.what = std::move(what);
  if (over && ++state.overruns >= kOverrunsMax) trouble.quarantined = state.quarantined = true;
}

bool RuleRun::agrees(const Rule& rule, State& state, const RuleHit& hit, const Firing& firing) {
  if (rule.when == 0) return true;
  const auto answer = ruleset_->sandbox(rule).call(rule.when, event_of(rule, hit), window_of(firing));
  if (answer) return *answer;
  const ScriptError& e = answer.error();
  tell(state, rule,
       fmt::format("{}:{}: rule {}: when: {}", rule.place.file, e.line ? e.line : rule.place.line, rule.id,
                   e.text),
       e.overrun != Overrun::kNone);
  return false;
}

void RuleRun::overrun(uint32_t rule) {
  const Rule& r = ruleset_->rules()[rule];
  tell(states_[rule], r, fmt::format("{}:{}: rule {} took too long", r.place.file, r.place.line, r.id), true);
}

std::optional<Firing> RuleRun::add(const RuleHit& hit) {
  const Rule& rule = ruleset_->rules()[hit.rule];
  State& state = states_[hit.rule];
  if (!rule.enabled || state.quarantined) return std::nullopt;
  now_ = hit.time_ns == kNoTime ? now_ : hit.time_ns;
  const TimeNs now = now_;
  Firing firing;
  firing.first_ns = firing.last_ns = hit.time_ns;
  firing.ranks = hit.rank ? 1 : 0;
  if (rule.window) {
    const Window& w = *rule.window;
    firing = count(rule, state, hit, now);
    if (firing.distinct < w.at_least) return std::nullopt;
    if (!w.after.empty() && !fired_before(w.after, w.by, hit, now - w.span_ns)) return std::nullopt;
    if (!w.unless.empty() && fired_before(w.unless, w.by, hit, now - w.span_ns)) return std::nullopt;
  }
  if (!agrees(rule, state, hit, firing)) return std::nullopt;
  if (asked_[hit.rule])
    for (Scope s : kScopes) {
      auto& fired = state.fired[static_cast<size_t>(s)];
      if (fired.size() < kKeys || fired.contains(key(s, hit))) fired[key(s, hit)] = now;
    }
  return firing;
}

}  // namespace culprit::rules
