// All rules of one load, proven: every key checked, every example tested. A load succeeds completely or
// reports all errors. The rules and the matcher are immutable and shared by threads. Functions `when` (see
// RuleRun) run on one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/rules/error_list.h"
#include "core/rules/matcher.h"
#include "core/rules/rule.h"
#include "core/rules/sandbox.h"
#include "core/rules/work.h"

namespace culprit::rules {

struct LoadOptions {
  // number of leading files whose examples were tested before (a test covers the shipped library)
  size_t proven_files = 0;
  uint64_t work = kLoadWork;        // see LoadWork
  std::function<bool()> stop = {};  // polled often; true ends the load with the error "stopped"
};

// A text marked kFillIn, to be written by a person.
struct OpenText {
  std::string rule, key;
  RuleError error;  // "left-open"
};

class Ruleset {
 public:
  // Rules are sorted by id, whatever the order of files and tables.
  static tl::expected<std::shared_ptr<Ruleset>, std::vector<RuleError>> load(std::span<const RuleText> files,
                                                                             LoadOptions options = {});

  // Only the shipped library. Null only if it is broken, which a test rules out.
  static std::shared_ptr<Ruleset> shipped();

  std::span<const Rule> rules() const { return rules_; }
  // Index of a rule, if it exists.
  std::optional<uint32_t> find(std::string_view id) const;
  const std::shared_ptr<const Matcher>& matcher() const { return matcher_; }
  // The state of a rule with `when`.
  Sandbox& sandbox(const Rule& rule) { return *sandboxes_[rule.sandbox]; }
  size_t files() const { return files_; }
  // Rules with a text still to be filled in: proven, but disabled. In the order of rules().
  std::span<const OpenText> left_open() const { return left_open_; }

 private:
  friend class Loader;
  Ruleset() = default;
  std::vector<Rule> rules_;
  std::shared_ptr<const Matcher> matcher_;
  std::vector<std::unique_ptr<Sandbox>> sandboxes_;  // of files with functions
  size_t files_ = 0;
  std::vector<OpenText> left_open_;
};

// "file:12:3: error[unknown-key]: ..." with the line and a caret below, like a compiler.
std::string format_error(const RuleError& error);

// Tests whether the examples of the rules in `files` match as stated; failures are appended to `errors`. The
// proof of a rule scans only for that rule, the rules its window names, and one rule it gives way to. Total
// cost is therefore linear in the number of rules.
void prove(Ruleset& ruleset, std::span<const RuleText> files, LoadWork& work, ErrorList& errors);

// The rules of `files` with the default `restart`. Rules of the library must state it.
std::vector<RuleError> unstated(const Ruleset& ruleset, std::span<const RuleText> files);

// An error at this key of the rule.
RuleError error_at(std::span<const RuleText> files, const Rule& rule, std::string_view path, bool value);
// An error on this line of the rule's file.
RuleError error_on(std::span<const RuleText> files, const Rule& rule, uint32_t line);

}  // namespace culprit::rules
