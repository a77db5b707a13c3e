// Decides which forms of one shape belong to one template. Their words are the rows of a table. A column
// becomes a hole if the other columns agree and it has many values. Only for the miner; pure; the result does
// not depend on the order of rows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/logs/miner_pieces.h"
#include "core/logs/miner_thresholds.h"

namespace culprit::logs {

using WordId = uint32_t;

struct Word {
  std::string_view text;
  WordTraits traits;
};

struct FormRow {
  uint32_t cluster = 0;
  bool settled = false;    // its bare holes are from an earlier round: they prove that the column varies
  bool bracketed = false;  // begins with punctuation: its first word is not the name of the event
  const std::vector<WordId>* words = nullptr;
};

struct Opening {
  uint32_t cluster = 0;
  uint64_t columns = 0;  // bit set of the columns that become holes
};

// Later columns are not compared: such forms are dumps.
constexpr size_t kColumns = 64;

// Appends the rows, by cluster, that form one template with others if these columns become holes.
void find_openings(std::vector<FormRow> rows, const std::vector<Word>& words,
                   const MinerThresholds& thresholds, std::vector<Opening>& openings);

}  // namespace culprit::logs
