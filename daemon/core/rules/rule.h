// A fault pattern as an operator writes it (rules/README.md), read and checked. Plain values, immutable after
// loading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/report.h"

namespace culprit::rules {

// Where the text that a rule looks at comes from. A rule names one or several.
enum class Source : uint8_t { kLog = 1, kKernel = 2, kFinding = 4, kEvent = 8, kMetric = 16 };
using SourceSet = uint8_t;
constexpr SourceSet bit(Source s) { return static_cast<SourceSet>(s); }

enum class Role : uint8_t { kRoot, kCascade };
enum class Scope : uint8_t { kHost, kRank, kDevice, kJob };
// Where the fault sits: on the host that tells of it, in the whole job, or on the host if few tell of it.
enum class Blame : uint8_t { kHost, kJob, kFew };

std::string_view word(Source);
std::string_view word(Role);
std::string_view word(Scope);

// One wording. `regex` is RE2 syntax over bytes; for a template it was made of it.
struct Pattern {
  std::string text;  // as written
  bool is_template = false;
  std::string regex;
  std::vector<std::string> literals;  // lower case; each match holds one of them. Empty: nothing supports it
};

struct Window {
  Scope by = Scope::kHost;
  TimeNs span_ns = 0;
  uint32_t at_least = 1;
  std::string distinct;       // a hole, whose different values count instead of lines; empty: lines
  std::string after, unless;  // ids of other rules
};

struct RulePlace {
  std::string file;
  uint32_t line = 0;  // of the call, from 1
};

// What a rule had before a site's override at `place` changed it.
struct Overridden {
  RulePlace place;
  Severity severity = Severity::kError;
  ActionKind action = ActionKind::kNone;
  bool enabled = true;
};

struct Rule {
  std::string id, title, remedy;
  Category category = Category::kUnknown;
  Component component = Component::kUnknown;
  Severity severity = Severity::kError;
  Symptom symptom = Symptom::kCrash;
  ActionKind action = ActionKind::kNone;
  Role role = Role::kRoot;
  Blame blame = Blame::kFew;
  SourceSet sources = bit(Source::kLog) | bit(Source::kKernel);
  bool general = false;   // gives way to other rules on the same line
  bool scan_all = false;  // no literal supports it: every line is tried
  bool enabled = true;    // a site may switch it off
  std::vector<Pattern> any, except;
  std::vector<std::string> holes;  // names, in the order in which captures come
  std::optional<Window> window;
  int when = 0;          // function in its file's Sandbox; 0: none
  uint32_t sandbox = 0;  // which one
  std::vector<std::string> hit, miss;
  RulePlace place;
  std::vector<Overridden> overridden;  // in the order in which they were applied
  uint64_t text_hash = 0;  // of all that decides when it fires: a reload with the same keeps its windows
};

// What is wrong in a rule file. `code` is stable and names the kind, for scripts.
struct RuleError {
  std::string file;
  uint32_t line = 0, column = 0, width = 0;  // from 1; width 0: no caret
  std::string code;                          // "unknown-key"
  std::string what;                          // one sentence, no final full stop
  std::string source;                        // the line's text, for the caret
};

// A file's text, as the loader takes it: reading it is not the core's business.
struct RuleText {
  std::string file;
  std::string text;
};

}  // namespace culprit::rules
