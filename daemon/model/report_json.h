// The JSON form of a report, formats.md section 7 to the letter: one object on one line, no final newline.
// Text that is no valid UTF-8 has its bad bytes replaced; no time, rank or line is guessed: unknown is null.
#pragma once

#include <cstdint>
#include <string>

#include "model/report.h"

namespace culprit {
// Data for display: the member "charts" {"numerics", "comm"}, from CommSteps and NumericCurves under the
// names of their members, some hundred KB at most.
enum class Charts : uint8_t { kLeftOut, kTold };
std::string to_json(const Report& report, Charts charts = Charts::kLeftOut);
std::string to_json(const Diagnosis& diagnosis);
}  // namespace culprit
