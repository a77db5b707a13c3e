// Decides which forms of one shape are one template: their words are rows of a table, and a column becomes a
// hole where the rest of the rows agrees and the column shows many values. Used by the miner alone; pure; the
// answer does not depend on the order of the rows.
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
  bool settled = false;  // its bare holes were found by an earlier round: they prove that the column varies
  const std::vector<WordId>* words = nullptr;
};

struct Opening {
  uint32_t cluster = 0;
  uint64_t columns = 0;  // one bit each: those that become holes
};

// Columns beyond this are not compared: such forms are dumps.
constexpr size_t kColumns = 64;

// Appends the rows that become one template with others when their columns are opened, by cluster.
void find_openings(std::vector<FormRow> rows, const std::vector<Word>& words,
                   const MinerThresholds& thresholds, std::vector<Opening>& openings);

}  // namespace culprit::logs
