// Renders a report for people. Text for a terminal or a pipe starts with the fault, its place and the remedy.
// HTML is one self-contained file. Both are pure functions of the report.
#pragma once

#include <functional>
#include <string>

#include "model/report.h"

namespace culprit::cli {

struct RenderOptions {
  bool color = false;
  size_t width = 100;  // columns
  Zone zone;           // of displayed times
  std::string zone_name = "UTC";
  size_t lines_max = 8;  // limit of evidence and indicating lines
  // The command that shows a line of evidence with its surroundings (look.h); null or empty text: none.
  std::function<std::string(const Evidence&)> look = nullptr;
  bool settling = false;  // of a running job: recent evidence may still change the diagnosis
};

std::string render_text(const Report& report, const RenderOptions& options);
std::string render_html(const Report& report, const RenderOptions& options);

}  // namespace culprit::cli
