// The prefix tree of stacks with sets of ranks, as text and as JSON: deviating stacks are marked and come
// first. Pure.
#pragma once

#include <span>
#include <string>

#include "model/json_writer.h"
#include "model/report.h"

namespace culprit::cli {

// A block for each chain of frames that the same ranks share, from the outermost frame inwards.
std::string stack_tree_text(std::span<const StackCluster> clusters);

// {"clusters": [...], "tree": [{"ranks": "0-10,12-63", "count", "outliers", "frames", "children"}]}, as
// fields of the open object.
void write_stack_tree(JsonWriter& json, std::span<const StackCluster> clusters);

}  // namespace culprit::cli
