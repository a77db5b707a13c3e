// Derives the hang answer from a RasState: ranks that left, ranks behind their peers, and communicators under
// construction. Counts are host launches per function. Send, recv, all-to-all and unfinished device work are
// invisible. If the counts distinguish no rank, none is named.
//
// Pure; accepts any state. The caller decides whether the job stands still: a running job shows such
// differences momentarily.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/finding.h"
#include "model/rank_place.h"
#include "model/ras.h"

namespace culprit::ras {

struct RasContext {
  PlaceOfRank place = {};  // of a global rank; may be empty
  // Host name by address; may be empty.
  std::function<std::optional<std::string>(const std::string& address)> host = {};
  std::string file = {};                // source of the answers, for evidence
  std::optional<uint64_t> offset = {};  // of the last answer in the file
  bool once = true;                     // false: evidence from a single answer gives no finding
};

struct RasVerdict {
  std::vector<Finding> findings;
  std::vector<HangAnswer> answers;   // the hang answer of each finding
  std::vector<std::string> missing;  // information that RAS does not have
};

// Findings that depend on a user's claim (RasState::user) are marked.
RasVerdict judge(const RasState& state, const RasContext& context);

}  // namespace culprit::ras
