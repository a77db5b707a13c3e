// Compares templates by their words alone, without holes and punctuation. So an optional part in brackets, a
// longer or shorter list, or a value of two words, does not split a template. Used by the miner alone; pure;
// the answer does not depend on the order of the rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/logs/miner_settle.h"

namespace culprit::logs {

struct SpokenRow {
  uint32_t cluster = 0;
  const std::vector<WordId>* words = nullptr;  // at most kColumns, holes among them
};

// Appends the words that prove to be values: names that vary between equal plain words, and plain words at
// whose place another template of otherwise equal words has a hole.
void find_spoken_openings(const std::vector<SpokenRow>& rows, const std::vector<Word>& words,
                          const MinerThresholds& thresholds, std::vector<Opening>& openings);

// One text for templates of equal words: between two words the longest of their texts there.
std::string union_text(const std::vector<std::string_view>& texts);

}  // namespace culprit::logs
