// The calls of ranks of one group under one number: whether they prove that the ranks called different ones.
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/detect/hang/rank_states.h"

namespace culprit::hang {

// By call_key(); borrows the stands. Not empty.
using NumberedCalls = std::map<std::string, std::vector<const RankState*>>;

// Sizes that differ under one number of an unnamed group may be of several groups, unless most ranks agree.
bool proves(const Group& group, const NumberedCalls& calls);
// Of an unnamed group, nearly all ranks with one number called one operation, and the others another one
// with data of the same size.
bool one_data(const NumberedCalls& calls);

}  // namespace culprit::hang
