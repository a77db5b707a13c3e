// The JSON form of a report, exactly as in formats.md section 7: one object on one line, without final
// newline. Invalid UTF-8 bytes are replaced. Unknown times, ranks and lines are null.
#pragma once

#include <cstdint>
#include <string>

#include "model/report.h"

namespace culprit {
// Whether to write data for display: the member "charts" {"numerics", "comm"}, with the members of
// NumericCurves and CommSteps. At most some hundred KB.
enum class Charts : uint8_t { kLeftOut, kIncluded };
std::string to_json(const Report& report, Charts charts = Charts::kLeftOut);
std::string to_json(const Diagnosis& diagnosis);
}  // namespace culprit
