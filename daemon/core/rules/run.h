// What rules remember while a job goes on: windows of hits, who fired when, which rule overran its budget.
// Time is that of the hits, never a clock; hits that come out of order within a window's span count as if
// they had come in order. One thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::rules {

// One line (or finding, event, metric) in which a rule's wording was found.
struct RuleHit {
  uint32_t rule = 0;
  TimeNs time_ns = kNoTime;  // kNoTime counts as the time of the hit before it
  Source source = Source::kLog;
  std::string text;                // the message
  std::vector<std::string> holes;  // in the order of Rule::holes
  std::string host;                // empty: not known
  std::optional<uint32_t> rank, device;
  int64_t step = -1;  // iteration, -1 where none is known
};

// A rule whose conditions hold with this hit. A rule without a window fires with every hit.
struct Firing {
  uint64_t count = 1;     // hits in the window
  uint64_t distinct = 1;  // values of its hole among them; without one: hits
  uint64_t hosts = 1, ranks = 0;
  TimeNs first_ns = kNoTime, last_ns = kNoTime;
};

// A rule that could not be evaluated.
struct RuleTrouble {
  std::string rule;
  std::string what;  // one sentence
  uint64_t errors = 0, overruns = 0;
  bool quarantined = false;  // after the third overrun: it is not evaluated any more
};

// Stands round every call of a rule's function: for a shell that must know, after a crash, who was running.
class FunctionWatch {
 public:
  virtual ~FunctionWatch() = default;
  virtual void enter(const Rule& rule) = 0;
  virtual void leave() = 0;
};

class RuleRun {
 public:
  // `watch` is borrowed; null: nobody looks.
  explicit RuleRun(std::shared_ptr<Ruleset> ruleset, FunctionWatch* watch = nullptr);

  std::optional<Firing> add(const RuleHit& hit);
  // The shell's watchdog saw this rule take too long: an input like any other, so that a replay repeats it.
  void overrun(const std::string& rule);
  // A rule that is not evaluated any more as long as its text stays: the process died in it.
  void quarantine(const std::string& rule);
  // Takes other rules; those whose text is the same keep their windows, troubles and quarantine, of all
  // others they are forgotten.
  void replace(std::shared_ptr<Ruleset> ruleset);
  // Forgets what came of hits: windows, troubles, overruns. What the shell told stays.
  void clear();

  const Ruleset& ruleset() const { return *ruleset_; }
  const std::vector<RuleTrouble>& troubles() const { return troubles_; }
  // Hits that no window kept: it was full, all were, or the hit came later than the window's span.
  uint64_t dropped() const { return dropped_; }
  size_t entries() const { return entries_; }  // that all windows hold

 private:
  struct Entry {
    TimeNs time;
    uint64_t value, host;
    int64_t rank;
  };
  using Entries = std::vector<Entry>;  // in order of time, never empty
  struct State {
    std::unordered_map<uint64_t, Entries> windows;  // by key
    // For each Scope, by key, when it last fired: what `after` and `unless` of others ask.
    std::unordered_map<uint64_t, TimeNs> fired[4];
    int overruns = 0;
    bool quarantined = false;
    int trouble = -1;  // index into troubles_
  };

  static uint64_t key(Scope scope, const RuleHit& hit);
  bool fired_before(const std::string& rule, Scope scope, const RuleHit& hit, TimeNs since) const;
  Entries* keep(const Rule& rule, State& state, const RuleHit& hit, TimeNs now);
  Firing count(const Rule& rule, const Entries& entries) const;
  void sweep(TimeNs now);
  void remember(State& state, const RuleHit& hit, TimeNs now);
  bool agrees(const Rule& rule, State& state, const RuleHit& hit, const Firing& firing);
  RuleTrouble& trouble_of(State& state, const Rule& rule);
  void tell(State& state, const Rule& rule, std::string what, bool over);
  void tell_overrun(uint32_t rule);
  void bar(uint32_t rule);

  std::shared_ptr<Ruleset> ruleset_;
  FunctionWatch* watch_;
  std::vector<std::string> overran_, barred_;   // ids, as the shell told
  std::unordered_map<uint32_t, State> states_;  // of rules with hits
  std::vector<bool> asked_;                     // rules that another one's window names
  std::vector<RuleTrouble> troubles_;
  TimeNs now_ = 0;
  bool timed_ = false;              // some hit told its time
  size_t waited_ = 0;               // hits until the next sweep
  TimeNs longest_span_ns_ = 0;      // of all windows
  size_t entries_ = 0, fired_ = 0;  // held in all states
  uint64_t dropped_ = 0;
};

}  // namespace culprit::rules
