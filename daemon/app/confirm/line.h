// Decides whether a line can identify a fault, or why not. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/rules/ruleset.h"

namespace culprit::app {

// Vocabulary of the library for lines that only follow from a fault.
class ConsequenceWords {
 public:
  // Null: no library.
  explicit ConsequenceWords(const rules::Ruleset* known);
  // Number of the line's words that no cascade of the library contains.
  size_t own_words(const std::string& line) const;

 private:
  std::set<std::string> words_;
};

// Why the line does not identify a fault, in a sentence; empty: it may. `count`: number of its occurrences.
std::string why_no_mark(const std::string& line, const std::string& pattern, uint64_t count,
                        const ConsequenceWords& words);

// Whether the line itself reports a failure, so that one such line is enough.
bool speaks_of_failure(const std::string& line);

}  // namespace culprit::app
