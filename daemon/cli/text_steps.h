// The section on slow steps in a report for a terminal: what was slow and by whom, who waited for whom, the
// curve of step times, the ranks behind their peers. At most a screen. Pure; its rows are not yet made safe.
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
// Rows of at most `width` columns, but for long names, which the page cuts.
std::vector<TextRow> step_rows(const Report& report, size_t width);

}  // namespace culprit::cli
