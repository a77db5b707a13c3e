// Reads a pickle that holds nothing but data: None, truth values, numbers, texts, bytes, lists, tuples and
// tables, of all protocols (0 to 5). Every opcode that could name a class, call a function or ask for
// anything else is refused by its name, and so the whole file: nothing of a pickle is ever executed. The
// bytes may be anything; time and memory are bounded by their length and by base/limits.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ingest/data_tree.h"

namespace culprit::ingest {

// A reader's result: where a text is cut off or damaged, what stands before it, and what is wrong. Without a
// root there is nothing.
struct ReadTree {
  DataTree tree;
  std::optional<DataTree::Ref> root;
  std::string problem;  // empty: it was read to its end
  uint64_t offset = 0;  // of the problem
};

// Texts of the tree point into `bytes`. The error is a reason without a subject: an opcode that is refused.
Result<ReadTree> read_pickle(std::string_view bytes);

// The same of a JSON text.
ReadTree read_json_tree(std::string_view text);

}  // namespace culprit::ingest
