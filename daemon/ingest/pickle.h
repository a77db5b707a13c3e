// Reads a pickle that has only data: None, truth values, numbers, texts, bytes, lists, tuples and tables, of
// all protocols (0 to 5). An opcode that could name a class or call a function is an error with its name; the
// file is then rejected, and nothing is ever executed. The bytes are untrusted; time and memory are bounded
// by their length and by base/limits.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ingest/data_tree.h"

namespace culprit::ingest {

// The values before a cut or damage, and the problem. No root: no values.
struct ReadTree {
  DataTree tree;
  std::optional<DataTree::Ref> root;
  std::string problem;  // empty: read to the end
  uint64_t offset = 0;  // offset of the problem
};

// Texts of the tree point into `bytes`. The error is a reason without a subject: a forbidden opcode.
Result<ReadTree> read_pickle(std::string_view bytes);

// Reads a JSON text into the same form.
ReadTree read_json_tree(std::string_view text);

}  // namespace culprit::ingest
