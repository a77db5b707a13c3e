// The JSON form of a report, FORMATS.md section 7 to the letter: one object on one line, no final newline.
// Text that is no valid UTF-8 has its bad bytes replaced; no time, rank or line is guessed: unknown is null.
#pragma once

#include <string>

#include "model/report.h"

namespace culprit {
std::string to_json(const Report& report);
std::string to_json(const Diagnosis& diagnosis);
}  // namespace culprit
