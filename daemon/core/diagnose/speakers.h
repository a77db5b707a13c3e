// Who said what a diagnosis rests on. What users alone said proves no fault of a host: they may write any
// line, number or record. What one host's logs say of another is hearsay. Either takes no host out of
// service: the action becomes a check, and the confidence is capped.
//
// Pure. Offline no writer is known, and nothing is capped.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/detect/logs/view.h"
#include "core/logs/job_log.h"
#include "model/finding.h"
#include "model/report.h"

namespace culprit::diagnose {

// Confidence of an accusation that no kernel, root or other host confirms.
constexpr double kClaimed = 0.5;

// The users who alone wrote these lines; none if one line is of another writer or of an unknown one.
std::vector<Principal> users_of(const logs::JobLog& log, std::span<const logs::RuleLine* const> lines);
// The hosts whose agents read these lines, if none of them is `accused` (units of view.hosts); else none.
std::vector<std::string> hearsay_of(const detect::View& view, std::span<const logs::RuleLine* const> lines,
                                    std::span<const uint32_t> accused);

// Whether the finding asks to isolate a host, or repeats the kernel, by what users alone or hearsay said.
bool is_claim(const Finding& finding);
// Caps a diagnosis made of this finding, and says whom to ask.
void cap_claim(const Finding& finding, Diagnosis& diagnosis);
// The same for a finding that is emitted by itself.
void cap_claim(Finding& finding);

}  // namespace culprit::diagnose
