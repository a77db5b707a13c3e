// Tells whether a line can be the mark of a fault, or why not. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::app {

// What the library says of lines that only follow from a fault.
class ConsequenceWords {
 public:
  // Null: no library.
  explicit ConsequenceWords(const rules::Ruleset* known);
  // Words of the line that no cascade of the library has.
  size_t own_words(const std::string& line) const;

 private:
  std::set<std::string> words_;
};

// Why such a line is the mark of no fault, in a sentence; empty: it may be one. `count`: of its occurrences.
std::string why_no_mark(const std::string& line, const std::string& pattern, uint64_t count,
                        const ConsequenceWords& words);

// Whether it speaks of failure by itself, so that one such line is enough.
bool speaks_of_failure(const std::string& line);

}  // namespace culprit::app
