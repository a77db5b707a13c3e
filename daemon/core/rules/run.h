// What rules remember while a job goes on: windows of hits, who fired when, which rule overran its budget.
// Fed with hits in order of time; time is that of the hits, never a clock. One thread.
#pragma once

#include <deque>
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
  uint64_t distinct = 1;  // values of its hole among them
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

class RuleRun {
 public:
  explicit RuleRun(std::shared_ptr<Ruleset> ruleset);

  std::optional<Firing> add(const RuleHit& hit);
  // The shell's watchdog saw this rule take too long: an input like any other, so that a replay repeats it.
  void overrun(uint32_t rule);
  // Takes other rules; those whose text is the same keep their windows and their quarantine.
  void replace(std::shared_ptr<Ruleset> ruleset);
  // Forgets all windows.
  void clear();

  const Ruleset& ruleset() const { return *ruleset_; }
  const std::vector<RuleTrouble>& troubles() const { return troubles_; }
  uint64_t dropped() const { return dropped_; }  // hits that a full window did not take

 private:
  struct Entry {
    TimeNs time;
    uint64_t value, host;
    int64_t rank;
  };
  using Keyed = std::unordered_map<uint64_t, std::deque<Entry>>;
  struct State {
    Keyed windows;
    // For each Scope, by key, when it last fired: what `after` and `unless` of others ask.
    std::unordered_map<uint64_t, TimeNs> fired[4];
    int overruns = 0;
    bool quarantined = false;
    int trouble = -1;  // index into troubles_
  };

  static uint64_t key(Scope scope, const RuleHit& hit);
  bool fired_before(const std::string& rule, Scope scope, const RuleHit& hit, TimeNs since) const;
  Firing count(const Rule& rule, State& state, const RuleHit& hit, TimeNs now);
  bool agrees(const Rule& rule, State& state, const RuleHit& hit, const Firing& firing);
  void tell(State& state, const Rule& rule, std::string what, bool over);

  std::shared_ptr<Ruleset> ruleset_;
  std::unordered_map<uint32_t, State> states_;  // of rules with hits
  std::vector<bool> asked_;                     // rules that another one's window names
  std::vector<RuleTrouble> troubles_;
  TimeNs now_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace culprit::rules
