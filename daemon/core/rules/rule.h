// A fault pattern written by an operator (rules/README.md), parsed and checked. Plain values, immutable after
// loading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "model/finding.h"

namespace culprit::rules {

// Placeholder for a text that a person must still write: a rule with one is proven, but never runs.
constexpr std::string_view kFillIn = "FILL IN";

// The source of the text that a rule matches. A rule has one or several.
enum class TextSource : uint8_t {
  kLog = 1,
  kKernel = 2,
  kFinding = 4,
  kEvent = 8,
  kMetric = 16,
  kFatal = 32
};
using SourceSet = uint8_t;
constexpr SourceSet bit(TextSource s) { return static_cast<SourceSet>(s); }

enum class Role : uint8_t { kRoot, kCascade };
enum class Scope : uint8_t { kHost, kRank, kDevice, kJob };
// The location of the fault: the reporting host, the whole job, or the host if few hosts report it.
enum class Blame : uint8_t { kHost, kJob, kFew };

// What the wording states about a failure, in ascending rank. If several rules match a line, only those of
// the highest rank count.
enum class Says : uint8_t {
  kNotice,   // a warning to plan for; it ends no job
  kOrigin,   // which program reports a failure
  kFailure,  // what failed, without a reason
  kErrno,    // the error that the system returned, and the operation
  kCause,    // why
};

std::string_view to_string(TextSource);
std::string_view to_string(Says);
std::string_view to_string(Role);
std::string_view to_string(Scope);

// One wording. `regex` is RE2 syntax over bytes, generated from a template if the wording is one.
struct Pattern {
  std::string text;  // as written
  bool is_template = false;
  std::string regex;
  std::vector<std::string> literals;  // lower case; each match contains one. Empty: every line is checked
  std::vector<std::vector<std::string>> also;  // likewise one of each; see Wording
};

struct Window {
  Scope by = Scope::kHost;
  TimeNs span_ns = 0;
  uint32_t at_least = 1;
  // A hole: hits count together only if they have the same value of it; empty: any.
  std::string same;
  std::string distinct;       // a hole whose different values are counted; empty: lines are counted
  std::string after, unless;  // ids of other rules
  std::string with;           // id of another rule; only for rules on findings
};

// When the state that a hit reports ends by itself.
struct Recovery {
  std::string rule;  // a hit of this rule on the same host ends the state
  std::string same;  // a hole of both rules that must have equal values; empty: none
  // A state that ends within this time causes no failure; -1: every state may cause one.
  TimeNs within_ns = -1;
};

struct RulePlace {
  std::string file;
  uint32_t line = 0;  // of the call, from 1
};

// The values before the site's override at `place`.
struct Overridden {
  RulePlace place;
  Severity severity = Severity::kError;
  ActionKind action = ActionKind::kNone;
  Restart restart = Restart::kUnknown, restart_after_steps = Restart::kUnknown;
  bool enabled = true;
};

struct Rule {
  std::string id, title, remedy;
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Severity severity = Severity::kError;
  Symptom symptom = Symptom::kCrash;
  ActionKind action = ActionKind::kNone;
  // What must differ for the next attempt of the job: before its first step, and after it.
  Restart restart = Restart::kUnknown, restart_after_steps = Restart::kUnknown;
  // `restart` is in the rule's table; else it is derived from category and action. Library rules must state
  // it.
  bool restart_stated = false;
  Role role = Role::kRoot;
  ProcessEnd ends = ProcessEnd::kUnknown;
  Observes observes = Observes::kNothing;
  Blame blame = Blame::kFew;
  SourceSet sources = bit(TextSource::kLog) | bit(TextSource::kKernel);
  Says says = Says::kCause;  // the rule gives way to rules that rank higher on the same line
  // Whether the rule states no cause; then its finding never leads over one that does.
  bool general() const { return says <= Says::kFailure; }
  // Whether its finding gives way to findings that state a cause elsewhere. An error returned by the system
  // is often the cause, but less certain than the program's own words.
  bool gives_way() const { return says <= Says::kErrno; }
  bool scan_all = false;  // no literals: every line is checked
  bool enabled = true;    // a site may disable it
  std::vector<Pattern> any, except;
  // With `observes`: regexes for further holes of a matching line (core/rules/observed_holes.h). They decide
  // no match.
  std::vector<Pattern> reads;
  std::vector<std::string> holes;  // names, in the order of captures
  std::optional<Window> window;
  std::optional<Recovery> recovery;
  int when = 0;          // function in its file's Sandbox; 0: none
  uint32_t sandbox = 0;  // index of that Sandbox
  std::vector<std::string> hit, miss;
  RulePlace place;
  std::vector<Overridden> overridden;  // in order of application
  // Hash of everything that decides when it fires: a reload with equal hash keeps its windows.
  uint64_t text_hash = 0;
};

// An error in a rule file. `code` is stable and names the kind, for scripts.
struct RuleError {
  std::string file;
  uint32_t line = 0, column = 0, width = 0;  // from 1; width 0: no caret
  std::string code;                          // "unknown-key"
  std::string what;                          // one sentence, no final full stop
  std::string source;                        // the line's text, for the caret
};

// The text of a rule file for the loader; the core reads no files.
struct RuleText {
  std::string file;
  std::string text;
};

}  // namespace culprit::rules
