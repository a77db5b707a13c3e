// Checks the table of a rule key by key and builds a Rule. Reports all errors of the table, not only the
// first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/error_list.h"
#include "core/rules/keys.h"
#include "core/rules/rule.h"
#include "core/rules/value.h"

namespace culprit::rules {

// What must differ for the next attempt: before the job's first step, and after it.
struct Restarts {
  Restart first = Restart::kUnknown, after_steps = Restart::kUnknown;
};

// A site's change of a rule: its severity, action or restart, or whether it is enabled.
struct Override {
  std::string id;
  std::optional<Severity> severity;
  std::optional<ActionKind> action;
  std::optional<Restarts> restart;
  bool enabled = true;
  RulePlace place;
};

class Reader {
 public:
  // `file` is needed for the positions of keys; errors are appended.
  Reader(const RuleText& file, LoadWork& work, ErrorList& errors)
      : file_(file), work_(work), errors_(errors) {}

  // Returns a rule even with errors, so that its id is known; do not use such a rule.
  Rule rule(const Value& table, uint32_t line);
  Override override_of(const Value& table, uint32_t line);

 private:
  void check(std::span<const Key> keys, const Value& table, std::string_view prefix);
  bool has_type(const Key& key, const Value& value, std::string_view path);
  void unknown(std::span<const Key> keys, std::string_view prefix, std::string_view name);
  bool is_word_of(const Key& key, const Value& value, std::string_view path);
  void error(std::string_view path, bool value, std::string_view code, std::string what);

  std::string text(const Value& table, std::string_view path) const;
  std::vector<std::string> texts(const Value& table, std::string_view path) const;
  void read_match(const Value& table, Rule& out);
  void add_pattern(const std::string& text, std::string_view path, Rule& out);
  void add_reading(const std::string& pattern, Rule& out);
  void read_observes(const Value& table, Rule& out);
  void read_window(const Value& table, Rule& out);
  void read_recovery(const Value& table, Rule& out);
  void check_hole(std::string_view path, const std::string& hole, const Rule& rule);
  void check_id(const Rule& rule);
  std::optional<Restarts> restarts(const Value& table);
  void check_title(const Rule& rule);

  const RuleText& file_;
  LoadWork& work_;
  ErrorList& errors_;
  uint32_t line_ = 0;
};

}  // namespace culprit::rules
