// Makes a rule from a diagnosis that a person confirmed, so that the rule's lines identify the cause next
// time. The rule is the pattern of the cause alone, generalised and proven. Pure; logs are searched through
// callbacks.
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

// Start of the note about text that precedes the message in a line.
constexpr std::string_view kMessageAlone = "rules see the message alone: ";

// Where a pattern matches in a job's logs: all matches are counted, some lines are stored.
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
  std::string verdict;  // verdict of a failed job; empty: unknown
  SearchLogs search;
  std::vector<SeenFinding> findings = {};  // findings of the job's report
};

// A rule of the library that fired on a line of the job.
struct FiredRule {
  std::string rule, line, host;
  TimeNs time_ns = kNoTime;
};

// Texts by the operator; an empty one stays open.
struct RuleWords {
  std::string id, title, cause, remedy, category, component, action;
  std::string by;         // who confirmed it
  std::string line = {};  // log line that identifies the fault, unchanged; empty: the diagnosis's best line
};

struct ConfirmContext {
  const detect::Pool* pool = nullptr;           // pool of successful jobs; null: none
  const rules::Ruleset* known = nullptr;        // rules in use: show cascades, and faults that a rule already
                                                // covers
  SearchLogs job = {};                          // the failed job's own logs; empty: only the quoted lines
  std::vector<std::string> job_templates = {};  // templates mined from the job's logs, with holes "<*>"
  std::vector<std::string> job_hosts = {};      // that wrote them
  std::vector<FiredRule> fired = {};            // fired warnings and errors except cascades
  std::vector<TriedJob> others = {};
};

struct ConfirmedRule {
  std::string id, text;            // a rule file that loads
  std::string pattern, title;      // title: the proposal if the operator gave none
  std::vector<std::string> notes;  // one sentence for each part left out, with the reason
  std::vector<std::string> proof;  // one sentence for each trial
  bool open = false;               // some texts are still to be written
};

// A line of the diagnosis from which its rule may be made.
struct LineChoice {
  std::string line;
  std::string why_not;  // why only a person may choose the line, in a sentence; empty: no doubt
};
// The likeliest line first; at most one screen of lines.
std::vector<LineChoice> lines_of(const Report& report, const Diagnosis& diagnosis,
                                 const ConfirmContext& context);

// A diagnosis without a suitable line becomes a rule on findings. If `words.id` is empty, the id consists of
// the component and a hash of the pattern. Errors: kNotFound: no line and no finding is suitable, so a person
// has to choose. kInvalid: a rule already covers the diagnosis; the chosen line has no fixed word, or
// successful jobs write it; or the id is invalid.
Result<ConfirmedRule> rule_of(const Report& report, const Diagnosis& diagnosis, const RuleWords& words,
                              const ConfirmContext& context);

}  // namespace culprit::app
