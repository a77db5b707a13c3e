// Makes a rule from a diagnosis that a person confirmed, so its lines name the cause next time: the pattern
// of the cause alone, generalised and proven. Pure; logs are searched through callbacks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/detect/logs/pool.h"
#include "core/rules/ruleset.h"
#include "model/report.h"

namespace culprit::app {

using rules::kFillIn;

// Begins the note on what a line has before its message.
constexpr std::string_view kMessageAlone = "rules see the message alone: ";

// Where one pattern is met in the logs of a job: all lines count, and some are kept.
struct Occurrence {
  std::string message, host;  // host empty: unknown
  TimeNs time_ns = kNoTime;
};
struct Occurrences {
  uint64_t count = 0;
  std::vector<Occurrence> lines;  // the first ones
};
// The lines of a job that match each of the templates.
using SearchLogs = std::function<std::vector<Occurrences>(const std::vector<std::string>& patterns)>;

// Logs of another job, to try the rule on.
struct TriedJob {
  std::string name;
  bool healthy = true;
  std::string verdict;  // of a failed one: its verdict; empty: unknown
  SearchLogs search;
  std::vector<SeenFinding> findings = {};  // of its report
};

// A rule of the library that fired on a line of the job.
struct FiredRule {
  std::string rule, line, host;
  TimeNs time_ns = kNoTime;
};

// What the operator says; empty: left open.
struct RuleWords {
  std::string id, title, cause, remedy, category, component, action;
  std::string by;         // who confirmed it
  std::string line = {};  // that tells the fault, as it stands in a log; empty: the best of the diagnosis
};

struct ConfirmContext {
  const detect::Pool* pool = nullptr;           // of successful jobs; null: none
  const rules::Ruleset* known = nullptr;        // rules in use: cascades, and what is known already
  SearchLogs job = {};                          // the failed job's own logs; empty: only the quoted lines
  std::vector<std::string> job_templates = {};  // mined from them, with holes "<*>"
  std::vector<std::string> job_hosts = {};      // that wrote them
  std::vector<FiredRule> fired = {};            // warnings and errors among them, not cascades
  std::vector<TriedJob> others = {};
};

struct ConfirmedRule {
  std::string id, text;            // a rule file that loads
  std::string pattern, title;      // title: the proposal, where the operator gave none
  std::vector<std::string> notes;  // one sentence for each part left out, with the reason
  std::vector<std::string> proof;  // one sentence for each trial
  bool open = false;               // some text is left to fill in
};

// A line of the diagnosis that its rule may be made of.
struct LineChoice {
  std::string line;
  std::string why_not;  // why it is not taken unless a person says so, in a sentence; empty: it may be
};
// The likeliest first; at most a screen of them.
std::vector<LineChoice> lines_of(const Report& report, const Diagnosis& diagnosis,
                                 const ConfirmContext& context);

// A diagnosis without a line of its own becomes a rule on findings. The id is built from the component and
// a hash of the pattern where `words.id` is empty. Errors: kNotFound: no line and no finding is suitable, so
// that a person has to choose one; kInvalid: a rule knows the diagnosis; the chosen line has nothing fixed,
// or successful jobs write it; the id is invalid.
Result<ConfirmedRule> rule_of(const Report& report, const Diagnosis& diagnosis, const RuleWords& words,
                              const ConfirmContext& context);

}  // namespace culprit::app
