// The calls that ranks of one group made under one number: whether they prove different calls. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/detect/hang/rank_states.h"

namespace culprit::hang {

// Rank states by call_key(); borrows them. Not empty.
using NumberedCalls = std::map<std::string, std::vector<const RankState*>>;

// Whether the calls prove a mismatch. In an unnamed group, different sizes under one number may belong to
// several groups, unless most ranks agree.
bool proves(const Group& group, const NumberedCalls& calls);
// For an unnamed group: nearly all ranks called one operation under the number, and the others called another
// operation with data of the same size.
bool one_data(const NumberedCalls& calls);

}  // namespace culprit::hang
