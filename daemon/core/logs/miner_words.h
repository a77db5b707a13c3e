// Compares templates by their words alone, without holes and punctuation. So optional parts in brackets,
// lists of any length, and values of two words do not split a template. Only for the miner; pure; the result
// does not depend on the order of rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/logs/miner_settle.h"

namespace culprit::logs {

struct SpokenRow {
  uint32_t cluster = 0;
  const std::vector<WordId>* words = nullptr;  // at most kColumns, with holes
};

// Appends the words that are values: names that vary between equal plain words, and plain words in the
// position of another template's hole.
void find_spoken_openings(const std::vector<SpokenRow>& rows, const std::vector<Word>& words,
                          const MinerThresholds& thresholds, std::vector<Opening>& openings);

// The hash of a word's singular: after a number, both are one word ("1 file", "2 files").
uint64_t singular_hash(std::string_view word);

// One text for templates of equal words, with the longest text between two words and the plural of a counted
// word.
std::string union_text(const std::vector<std::string_view>& texts);

}  // namespace culprit::logs
