// How common a text is in logs of training jobs and of other systems: from counts over real logs
// (tests/eval/common_grams). Pure; any thread.
#pragma once

#include <string_view>

namespace culprit::rules {

// An estimate of the share of lines that contain `text` in any case, 0..1: the share of its rarest piece of
// four characters. A piece that was not counted has kRareShare, and each further one in the text halves it:
// long texts are rarer, and the counts know only the logs that they are from. 1 for a text of less than four
// characters.
double line_share(std::string_view text);

constexpr double kRareShare = 0.001;

}  // namespace culprit::rules
