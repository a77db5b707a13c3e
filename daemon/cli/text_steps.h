// The terminal report's section on slow steps: periods of slow steps and their causes, chains of waiting, the
// curve of step times, slow ranks. At most a screen. Pure; rows are not yet safe to show.
#pragma once

#include <string>
#include <vector>

#include "cli/layout.h"
#include "model/report.h"

namespace culprit::cli {

struct TextRow {
  std::string text;
  Ink ink = Ink::kPlain;
};
// Rows of at most `width` columns; long names may exceed the width, and the page cuts them.
std::vector<TextRow> step_rows(const Report& report, size_t width);

}  // namespace culprit::cli
