// The writers of a diagnosis's evidence. Users can write any line, number or record, so their claims alone
// prove no host fault. One host's logs about another host are hearsay. Neither takes a host out of service:
// the action becomes a check, and the confidence is capped.
//
// Pure. Offline, writers are unknown and nothing is capped.
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

// The users who wrote these lines; empty if any line has another or an unknown writer.
std::vector<Principal> users_of(const logs::JobLog& log, std::span<const logs::RuleLine* const> lines);
// The hosts whose agents read these lines; empty if one of them is `accused` (units of view.hosts).
std::vector<std::string> hearsay_of(const detect::View& view, std::span<const logs::RuleLine* const> lines,
                                    std::span<const uint32_t> accused);

// Whether the finding asks to isolate a host, or repeats the kernel, on the evidence of users alone or of
// hearsay.
bool is_claim(const Finding& finding);
// Caps the confidence of a diagnosis made from this finding, and names the person to ask.
void cap_claim(const Finding& finding, Diagnosis& diagnosis);
// As above, for a finding emitted alone.
void cap_claim(Finding& finding);

}  // namespace culprit::diagnose
