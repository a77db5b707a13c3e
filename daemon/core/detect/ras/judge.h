// What a RasState says of a hang: which ranks left, which are behind their peers, which communicators are
// still being made. Counts are launches of the host, per function; send, recv, all-to-all and what a device
// does not finish are invisible. If the counts distinguish no rank, none is named.
//
// Pure; accepts any state. The caller decides whether the job stands: a running job shows the same for
// moments.
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
  // The name of a host by its address; may be empty.
  std::function<std::optional<std::string>(const std::string& address)> host = {};
  std::string file = {};                // for evidence: where the answers are from
  std::optional<uint64_t> offset = {};  // of the last answer there
  bool once = true;                     // false: what one answer alone shows is no finding
};

struct RasVerdict {
  std::vector<Finding> findings;
  std::vector<HangAnswer> answers;   // what each finding says of the hang
  std::vector<std::string> missing;  // what RAS cannot tell
};

// Findings that rest on a user's word (RasState::user) say so.
RasVerdict judge(const RasState& state, const RasContext& context);

}  // namespace culprit::ras
