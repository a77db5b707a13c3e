// A report for people. Text is for a terminal or a pipe: the first lines say what failed, where, and what to
// do. HTML is one self-contained file. Both are pure functions of the report.
#pragma once

#include <string>

#include "model/report.h"

namespace culprit::cli {

struct RenderOptions {
  bool color = false;
  size_t width = 100;  // columns
  Zone zone;           // in which times are shown
  std::string zone_name = "UTC";
  size_t lines_max = 8;   // evidence and indicating lines shown
  bool settling = false;  // of a running job: new evidence came seconds ago, the answer may still change
};

std::string render_text(const Report& report, const RenderOptions& options);
std::string render_html(const Report& report, const RenderOptions& options);

}  // namespace culprit::cli
