// The sentence for a hang: who waits, in which operation, for whom, since when. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "model/report.h"

namespace culprit::hang {

// "Rank 11 (node-7, GPU 3)".
using NameOfRank = std::function<std::string(uint32_t rank)>;

// Built from the answer, the operation and the ranks of the hang; empty without an operation. `name` may be
// empty.
std::string sentence_of(const Hang& hang, const NameOfRank& name);
// "; 63 ranks wait since 03:12:44 UTC"; empty without ranks that wait.
std::string waiting_words(const Hang& hang);
// "29:55", "1:05:10", "30 min" of whole minutes.
std::string shown_span(TimeNs span_ns);
// "ranks 3, 5 and 2 more".
std::string shown_ranks(std::span<const uint32_t> ranks);

}  // namespace culprit::hang
