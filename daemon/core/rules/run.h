// The state of rules during a job: windows of hits, times of firings, overruns. Time comes from the hits,
// never from a clock. Hits that arrive out of order within a window's span count like ordered ones. One
// thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::rules {

// One line (or finding, event, metric) that matches a rule's wording.
struct RuleHit {
  uint32_t rule = 0;
  TimeNs time_ns = kNoTime;  // kNoTime: counts as the time of the previous hit
  TextSource source = TextSource::kLog;
  std::string text;                // the message
  std::vector<std::string> holes;  // in the order of Rule::holes
  std::string host;                // empty: unknown
  std::optional<uint32_t> rank, device;
  int64_t step = -1;          // iteration; -1: unknown
  TimeNs until_ns = kNoTime;  // of a finding: when it last held
};

// A rule whose conditions hold at this hit. A rule without a window fires at every hit.
struct Firing {
  uint64_t count = 1;     // hits in the window
  uint64_t distinct = 1;  // different values of the rule's hole in the window; without a hole: hits
  uint64_t hosts = 1, ranks = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
  // Total duration of the states that the window's hits report. A state that has not ended lasts to the last
  // hit.
  TimeNs down_ns = 0;
};

// A rule that could not be evaluated.
struct RuleTrouble {
  std::string rule;
  std::string what;  // one sentence
  uint64_t errors = 0, overruns = 0;
  bool quarantined = false;  // after the third overrun: it is no longer evaluated
  uint32_t line = 0;         // in the rule's file, where its function failed; 0: unknown
};

// Callbacks around every call of a rule's function, so that the shell knows the running rule after a crash.
class FunctionWatch {
 public:
  virtual ~FunctionWatch() = default;
  virtual void enter(const Rule& rule) = 0;
  virtual void leave() = 0;
};

class RuleRun {
 public:
  // `watch` is borrowed; null: none.
  explicit RuleRun(std::shared_ptr<Ruleset> ruleset, FunctionWatch* watch = nullptr);

  std::optional<Firing> add(const RuleHit& hit);
  // Whether the state that the hit reports ended within the time the rule allows, judged by the hits so far.
  bool recovered(const RuleHit& hit) const;
  // The shell's watchdog measured an overrun of this rule. An input, so that a replay repeats it.
  void overrun(const std::string& rule);
  // Excludes a rule until its text changes: the process died in it.
  void quarantine(const std::string& rule);
  // Replaces the rules. Rules with unchanged text keep their windows, troubles and quarantine; others lose
  // them.
  void replace(std::shared_ptr<Ruleset> ruleset);
  // Clears the results of hits: windows, troubles, overruns. Overruns and exclusions reported by the shell
  // remain.
  void clear();

  const Ruleset& ruleset() const { return *ruleset_; }
  const std::vector<RuleTrouble>& troubles() const { return troubles_; }
  // Hits that no window stored: a window or the total was full, or the hit was older than the window's span.
  uint64_t dropped() const { return dropped_; }
  size_t entries() const { return entries_; }  // in all windows

 private:
  struct Entry {
    TimeNs time;
    uint64_t value, host;
    int64_t rank;
    uint64_t unit;  // identity of the state that may recover (unit_of)
  };
  using Entries = std::vector<Entry>;  // by time, never empty
  struct FiredSpan {
    TimeNs first, last;
  };
  struct State {
    std::unordered_map<uint64_t, Entries> windows;  // by key
    // Times of firing, for each Scope, by key. Other rules read them for `after`, `unless` and `with`.
    std::unordered_map<uint64_t, FiredSpan> fired[4];
    std::unordered_map<uint64_t, std::vector<TimeNs>> over;  // by unit: when its states ended, ascending
    int overruns = 0;
    bool quarantined = false;
    int trouble = -1;  // index into troubles_
  };

  static uint64_t key(Scope scope, const RuleHit& hit);
  void end_states(const RuleHit& hit, TimeNs now);
  void end_state(State& state, uint64_t unit, TimeNs now);
  TimeNs down(const State& state, const Entries& entries) const;
  bool fired_before(const std::string& rule, Scope scope, const RuleHit& hit, TimeNs since) const;
  bool fired_with(const Rule& rule, const RuleHit& hit) const;
  Entries* keep(const Rule& rule, State& state, const RuleHit& hit, TimeNs now);
  Firing count(const Rule& rule, const State& state, const Entries& entries) const;
  void sweep(TimeNs now);
  void remember(State& state, const RuleHit& hit, TimeNs now);
  bool agrees(const Rule& rule, State& state, const RuleHit& hit, const Firing& firing);
  RuleTrouble& trouble_of(State& state, const Rule& rule);
  void report(State& state, const Rule& rule, std::string what, bool over);
  void report_overrun(uint32_t rule);
  void bar(uint32_t rule);

  std::shared_ptr<Ruleset> ruleset_;
  FunctionWatch* watch_;
  std::vector<std::string> overran_, barred_;   // ids, as the shell reported
  std::unordered_map<uint32_t, State> states_;  // of rules with hits
  // By rule: whether another rule's window names it.
  std::vector<bool> asked_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> ends_;  // by rule: the rules whose states its hit ends
  std::vector<RuleTrouble> troubles_;
  TimeNs now_ = 0;
  bool timed_ = false;                         // some hit had a time
  size_t waited_ = 0;                          // hits until the next sweep
  TimeNs longest_span_ns_ = 0;                 // of all windows
  size_t entries_ = 0, fired_ = 0, over_ = 0;  // in all states
  uint64_t dropped_ = 0;
};

}  // namespace culprit::rules
