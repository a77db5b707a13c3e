// How common a text is in logs of training jobs and of other systems: from counts over real logs
// (tests/eval/common_grams). Pure; any thread.
#pragma once

#include <string_view>

namespace culprit::rules {

// Estimates the share (0..1) of log lines that contain `text` in any case: the share of its rarest
// four-character gram. Grams without a count have kRareShare, and each further uncounted gram halves the
// result: the counts cover only the sampled logs, and long texts are rarer. Returns 1 for a text below four
// characters.
double line_share(std::string_view text);

constexpr double kRareShare = 0.001;

}  // namespace culprit::rules
