#include "core/rules/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/limits.h"

namespace culprit::rules {
namespace {

constexpr size_t kEntries = 1024;          // capacity of one window: at_least has the same limit
constexpr size_t kEntriesTotal = 131'072;  // capacity of all windows: some 16 MB with their keys
// From this number on no new windows start, so that existing ones can still fill: one window for each of
// 65,536 ranks.
constexpr size_t kEntriesNew = kEntriesTotal / 2;
constexpr size_t kFiredTotal = 262'144;  // by host, rank, device and job, for a job of 65,536 ranks
constexpr size_t kOverOfUnit = 256;      // newest ends of one unit's states
constexpr size_t kOverTotal = 65'536;
// Refused hits between two searches for stale windows; a search costs some ms.
constexpr size_t kSweepEvery = 4096;
constexpr int kOverrunsMax = 3;
constexpr Scope kScopes[] = {Scope::kHost, Scope::kRank, Scope::kDevice, Scope::kJob};

TimeNs minus(TimeNs time, TimeNs span) { return time < kNoTime + span ? kNoTime : time - span; }

// Rules get only the beginning of a very long line: texts in Lua have a size limit, and a long line must not
// make a rule fail.
Value text_of(const std::string& text) { return Value::of(text.substr(0, limits::kMessageBytes)); }

// The hash of a named hole's value; 0 if the rule lacks the hole or the value is empty.
uint64_t value_of(const Rule& rule, const RuleHit& hit, const std::string& name) {
  const auto hole = std::ranges::find(rule.holes, name);
  const auto index = static_cast<size_t>(hole - rule.holes.begin());
  return index < hit.holes.size() && !hit.holes[index].empty() ? hash64(hit.holes[index]) : 0;
}

// Identity of a state that may recover: the host, the value of a hole, and whether the kernel reported it. A
// program's line never ends a state that the kernel reported.
uint64_t unit_of(const Rule& rule, const RuleHit& hit, const std::string& same, bool kernel) {
  return mix64(mix64(hash64(hit.host), same.empty() ? 1 : value_of(rule, hit, same)), kernel ? 1 : 0);
}
uint64_t unit_of(const Rule& rule, const RuleHit& hit) {
  return unit_of(rule, hit, rule.recovery->same, hit.source == TextSource::kKernel);
}

// The time at which a unit's state that began at `began` ended; kNoTime: it has not ended.
TimeNs over_at(const std::unordered_map<uint64_t, std::vector<TimeNs>>& over, uint64_t unit, TimeNs began) {
  const auto known = over.find(unit);
  if (known == over.end()) return kNoTime;
  const auto end = std::ranges::lower_bound(known->second, began);
  return end == known->second.end() ? kNoTime : *end;
}

// The number of different values.
template <class Get>
uint64_t different(const auto& entries, Get get) {
  std::vector<decltype(get(entries[0]))> values;
  for (const auto& e : entries) values.push_back(get(e));
  std::sort(values.begin(), values.end());
  return static_cast<uint64_t>(std::unique(values.begin(), values.end()) - values.begin());
}

Value event_of(const Rule& rule, const RuleHit& hit) {
  Value out = Value::table();
  out.fields["text"] = text_of(hit.text);
  out.fields["source"] = Value::of(std::string(to_string(hit.source)));
  if (!hit.host.empty()) out.fields["host"] = Value::of(hit.host);
  if (hit.rank) out.fields["rank"] = Value::of(int64_t{*hit.rank});
  if (hit.device) out.fields["device"] = Value::of(int64_t{*hit.device});
  if (hit.step >= 0) out.fields["step"] = Value::of(hit.step);
  if (hit.time_ns != kNoTime) out.fields["time_ns"] = Value::of(hit.time_ns);
  for (size_t i = 0; i < rule.holes.size() && i < hit.holes.size(); ++i)
    if (!hit.holes[i].empty()) out.fields[rule.holes[i]] = text_of(hit.holes[i]);
  out.names = "text source host rank device step time_ns ";
  for (const std::string& hole : rule.holes) out.names += hole + " ";
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
  out.fields["down_ns"] = Value::of(firing.down_ns);
  out.names = "count distinct hosts ranks first_ns last_ns down_ns ";
  return out;
}

}  // namespace

RuleRun::RuleRun(std::shared_ptr<Ruleset> ruleset, FunctionWatch* watch) : watch_(watch) {
  replace(std::move(ruleset));
}

void RuleRun::replace(std::shared_ptr<Ruleset> ruleset) {
  std::unordered_map<uint64_t, State*> before;
  for (auto& [rule, state] : states_) before.emplace(ruleset_->rules()[rule].text_hash, &state);
  std::unordered_map<uint32_t, State> states;
  std::vector<RuleTrouble> troubles;
  std::vector<bool> asked(ruleset->rules().size());
  longest_span_ns_ = 0;
  entries_ = fired_ = over_ = 0;
  ends_.clear();
  for (uint32_t i = 0; i < asked.size(); ++i) {
    const Rule& rule = ruleset->rules()[i];
    if (const auto it = before.find(rule.text_hash); it != before.end()) {
      State& state = states.emplace(i, std::move(*it->second)).first->second;
      for (const auto& [key, entries] : state.windows) entries_ += entries.size();
      for (const auto& fired : state.fired) fired_ += fired.size();
      for (const auto& [unit, times] : state.over) over_ += times.size();
      if (state.trouble >= 0) {
        troubles.push_back(std::move(troubles_[static_cast<size_t>(state.trouble)]));
        state.trouble = static_cast<int>(troubles.size()) - 1;
      }
    }
    if (rule.recovery)
      if (const auto index = ruleset->find(rule.recovery->rule)) ends_[*index].push_back(i);
    if (!rule.window) continue;
    longest_span_ns_ = std::max(longest_span_ns_, rule.window->span_ns);
    for (const std::string* other : {&rule.window->after, &rule.window->unless, &rule.window->with})
      if (const auto index = ruleset->find(*other)) asked[*index] = true;
  }
  const auto changed = [&](const std::string& id) {
    const auto was = ruleset_->find(id), is = ruleset->find(id);
    return !was || !is || ruleset_->rules()[*was].text_hash != ruleset->rules()[*is].text_hash;
  };
  std::erase_if(overran_, changed);
  std::erase_if(barred_, changed);
  ruleset_ = std::move(ruleset);
  states_ = std::move(states);
  troubles_ = std::move(troubles);
  asked_ = std::move(asked);
}

void RuleRun::clear() {
  states_.clear();
  troubles_.clear();
  now_ = 0;
  timed_ = false;
  waited_ = 0;
  entries_ = fired_ = over_ = 0;
  dropped_ = 0;
  for (const std::string& id : barred_) bar(*ruleset_->find(id));
  for (const std::string& id : overran_) report_overrun(*ruleset_->find(id));
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
  return it != fired.end() && it->second.last >= since;
}

// Whether the finding held within the span of the other rule's firings. An unknown time fits.
bool RuleRun::fired_with(const Rule& rule, const RuleHit& hit) const {
  const Window& w = *rule.window;
  const auto index = ruleset_->find(w.with);
  const auto state = index ? states_.find(*index) : states_.end();
  if (state == states_.end()) return false;
  const auto& fired = state->second.fired[static_cast<size_t>(w.by)];
  const auto it = fired.find(key(w.by, hit));
  if (it == fired.end()) return false;
  if (hit.time_ns == kNoTime || it->second.last == kNoTime) return true;
  const TimeNs until = std::max(hit.time_ns, hit.until_ns);
  return hit.time_ns <= it->second.last + w.span_ns && until >= minus(it->second.first, w.span_ns);
}

// If all windows together are full, removes those that no later hit can join.
void RuleRun::sweep(TimeNs now) {
  if (waited_ > 0) {
    --waited_;
    return;
  }
  waited_ = kSweepEvery;
  entries_ = fired_ = 0;
  for (auto& [index, state] : states_) {
    const auto& window = ruleset_->rules()[index].window;
    if (window)
      std::erase_if(state.windows,
                    [&](const auto& w) { return w.second.back().time < minus(now, window->span_ns); });
    for (const auto& [key, entries] : state.windows) entries_ += entries.size();
    for (auto& fired : state.fired) {
      std::erase_if(fired, [&](const auto& f) { return f.second.last < minus(now, longest_span_ns_); });
      fired_ += fired.size();
    }
  }
}

// The window after adding the hit; null if the hit was dropped.
RuleRun::Entries* RuleRun::keep(const Rule& rule, State& state, const RuleHit& hit, TimeNs now) {
  const Window& window = *rule.window;
  const uint64_t where = window.same.empty() ? key(window.by, hit)
                                             : mix64(key(window.by, hit), value_of(rule, hit, window.same));
  if (entries_ >= kEntriesNew && !state.windows.contains(where)) sweep(now);
  const auto known = state.windows.find(where);
  if (known == state.windows.end() && entries_ >= kEntriesNew) return nullptr;
  Entries& entries = known == state.windows.end() ? state.windows[where] : known->second;
  if (!entries.empty() && now < minus(entries.back().time, window.span_ns)) return nullptr;
  const uint64_t value = window.distinct.empty() ? 0 : value_of(rule, hit, window.distinct);
  const uint64_t unit = rule.recovery ? unit_of(rule, hit) : 0;
  const auto at = std::upper_bound(entries.begin(), entries.end(), now,
                                   [](TimeNs time, const Entry& e) { return time < e.time; });
  entries.insert(at, {now, value, hash64(hit.host), hit.rank ? int64_t{*hit.rank} : -1, unit});
  ++entries_;
  const TimeNs since = minus(entries.back().time, window.span_ns);
  auto first = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.time >= since; });
  if (first == entries.begin() && (entries.size() > kEntries || entries_ > kEntriesTotal)) {
    ++first;
    ++dropped_;
  }
  entries_ -= static_cast<size_t>(first - entries.begin());
  entries.erase(entries.begin(), first);
  return &entries;
}

// Overlapping states of one unit are counted once.
TimeNs RuleRun::down(const State& state, const Entries& entries) const {
  TimeNs sum = 0;
  std::unordered_map<uint64_t, TimeNs> counted;  // by unit: end of the counted time
  for (const Entry& e : entries) {
    const TimeNs over = over_at(state.over, e.unit, e.time);
    const TimeNs until = over == kNoTime ? entries.back().time : over;
    TimeNs& from = counted.try_emplace(e.unit, e.time).first->second;
    from = std::max(from, e.time);
    if (until <= from) continue;
    sum += until - from;
    from = until;
  }
  return sum;
}

void RuleRun::end_states(const RuleHit& hit, TimeNs now) {
  const auto rules = ends_.find(hit.rule);
  if (rules == ends_.end()) return;
  const Rule& by = ruleset_->rules()[hit.rule];
  for (const uint32_t rule : rules->second) {
    const Rule& of = ruleset_->rules()[rule];
    end_state(states_[rule], unit_of(by, hit, of.recovery->same, false), now);
    if (hit.source == TextSource::kKernel)
      end_state(states_[rule], unit_of(by, hit, of.recovery->same, true), now);
  }
}

void RuleRun::end_state(State& state, uint64_t unit, TimeNs now) {
  const auto known = state.over.find(unit);
  if (over_ >= kOverTotal && known == state.over.end()) {
    ++dropped_;
    return;
  }
  std::vector<TimeNs>& times = known == state.over.end() ? state.over[unit] : known->second;
  times.insert(std::ranges::upper_bound(times, now), now);
  if (times.size() > kOverOfUnit || over_ >= kOverTotal)
    times.erase(times.begin());
  else
    ++over_;
}

bool RuleRun::recovered(const RuleHit& hit) const {
  const Rule& rule = ruleset_->rules()[hit.rule];
  const auto state = states_.find(hit.rule);
  if (!rule.recovery || hit.time_ns == kNoTime || state == states_.end()) return false;
  const TimeNs over = over_at(state->second.over, unit_of(rule, hit), hit.time_ns);
  return over != kNoTime && over - hit.time_ns <= rule.recovery->within_ns;
}

Firing RuleRun::count(const Rule& rule, const State& state, const Entries& entries) const {
  Firing out;
  out.count = out.distinct = entries.size();
  if (!rule.window->distinct.empty()) {
    const bool lacking =
        std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return e.value == 0; });
    out.distinct = different(entries, [](const Entry& e) { return e.value; }) - (lacking ? 1 : 0);
  }
  if (out.distinct < rule.window->at_least)
    return out;  // the threshold is reached; the exact count does not matter
  out.hosts = different(entries, [](const Entry& e) { return e.host; });
  const bool unranked =
      std::any_of(entries.begin(), entries.end(), [](const Entry& e) { return e.rank < 0; });
  out.ranks = different(entries, [](const Entry& e) { return e.rank; }) - (unranked ? 1 : 0);
  if (timed_) {
    out.first_ns = entries.front().time;
    out.last_ns = entries.back().time;
    if (rule.recovery) out.down_ns = down(state, entries);
  }
  return out;
}

void RuleRun::remember(State& state, const RuleHit& hit, TimeNs now) {
  // A finding without a time does not inherit the time of the previous hit.
  const bool untimed = hit.source == TextSource::kFinding && hit.time_ns == kNoTime;
  const TimeNs at = untimed ? kNoTime : now;
  for (Scope scope : kScopes) {
    if (fired_ >= kFiredTotal) sweep(now);
    auto& fired = state.fired[static_cast<size_t>(scope)];
    const auto it = fired.find(key(scope, hit));
    if (it != fired.end()) {
      it->second.first = std::min(it->second.first, at);
      it->second.last = std::max({it->second.last, at, hit.until_ns});
    } else if (fired_ < kFiredTotal) {
      fired.emplace(key(scope, hit), FiredSpan{at, std::max(at, hit.until_ns)});
      ++fired_;
    } else {
      ++dropped_;
    }
  }
}

RuleTrouble& RuleRun::trouble_of(State& state, const Rule& rule) {
  if (state.trouble < 0) {
    state.trouble = static_cast<int>(troubles_.size());
    troubles_.push_back({rule.id, {}, 0, 0, false, 0});
  }
  return troubles_[static_cast<size_t>(state.trouble)];
}

void RuleRun::report(State& state, const Rule& rule, std::string what, bool over) {
  RuleTrouble& trouble = trouble_of(state, rule);
  ++(over ? trouble.overruns : trouble.errors);
  trouble.what = std::move(what);
  if (!over || ++state.overruns < kOverrunsMax) return;
  trouble.quarantined = state.quarantined = true;
  trouble.what += fmt::format("; after {} overruns it is not evaluated any more", state.overruns);
}

void RuleRun::report_overrun(uint32_t rule) {
  const Rule& r = ruleset_->rules()[rule];
  report(states_[rule], r, fmt::format("{}:{}: rule {} took too long", r.place.file, r.place.line, r.id),
         true);
}

void RuleRun::bar(uint32_t rule) {
  const Rule& r = ruleset_->rules()[rule];
  State& state = states_[rule];
  RuleTrouble& trouble = trouble_of(state, r);
  trouble.quarantined = state.quarantined = true;
  trouble.what = fmt::format(
      "{}:{}: rule {} was running when the process died; it is not evaluated until it "
      "is changed",
      r.place.file, r.place.line, r.id);
}

bool RuleRun::agrees(const Rule& rule, State& state, const RuleHit& hit, const Firing& firing) {
  if (rule.when == 0) return true;
  const Value event = event_of(rule, hit), window = window_of(firing);
  if (watch_) watch_->enter(rule);
  const auto answer = ruleset_->sandbox(rule).call(rule.when, event, window);
  if (watch_) watch_->leave();
  if (answer) return *answer;
  const ScriptError& e = answer.error();
  report(state, rule,
         fmt::format("{}:{}: rule {}: when: {}", rule.place.file, e.line ? e.line : rule.place.line, rule.id,
                     e.text),
         e.overrun != Overrun::kNone);
  trouble_of(state, rule).line = e.line;
  return false;
}

void RuleRun::overrun(const std::string& rule) {
  const auto index = ruleset_->find(rule);
  if (!index) return;
  if (std::count(overran_.begin(), overran_.end(), rule) < kOverrunsMax) overran_.push_back(rule);
  report_overrun(*index);
}

void RuleRun::quarantine(const std::string& rule) {
  const auto index = ruleset_->find(rule);
  if (!index || std::find(barred_.begin(), barred_.end(), rule) != barred_.end()) return;
  barred_.push_back(rule);
  bar(*index);
}

std::optional<Firing> RuleRun::add(const RuleHit& hit) {
  const Rule& rule = ruleset_->rules()[hit.rule];
  State& state = states_[hit.rule];
  if (!rule.enabled || state.quarantined) return std::nullopt;
  if (hit.time_ns != kNoTime) {
    now_ = hit.time_ns;
    timed_ = true;
  }
  const TimeNs now = now_;
  end_states(hit, now);
  Firing firing;
  firing.first_ns = firing.last_ns = timed_ ? now : kNoTime;
  firing.ranks = hit.rank ? 1 : 0;
  if (rule.window) {
    const Window& w = *rule.window;
    if (const Entries* entries = keep(rule, state, hit, now))
      firing = count(rule, state, *entries);
    else
      ++dropped_;
    if (firing.distinct < w.at_least) return std::nullopt;
    if (!w.after.empty() && !fired_before(w.after, w.by, hit, minus(now, w.span_ns))) return std::nullopt;
    if (!w.with.empty() && !fired_with(rule, hit)) return std::nullopt;
    if (!w.unless.empty() && fired_before(w.unless, w.by, hit, minus(now, w.span_ns))) return std::nullopt;
  }
  if (!agrees(rule, state, hit, firing)) return std::nullopt;
  if (asked_[hit.rule]) remember(state, hit, now);
  return firing;
}

}  // namespace culprit::rules
