// Renders a report for people. Text for a terminal or a pipe starts with the fault, its place and the remedy.
// HTML is one self-contained file of at most a MiB: the components of the daemon's page, the report as their
// data, and the text for a browser without scripts. The file loads nothing from elsewhere. Both are pure
// functions of the report and the options: equal bytes for equal input.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/run/attempt_history.h"
#include "model/report.h"
#include "model/source_lines.h"

namespace culprit::cli {

struct RenderOptions {
  bool color = false;
  size_t width = 100;  // columns
  Zone zone;           // zone of displayed times
  std::string zone_name = "UTC";
  size_t lines_max = 8;  // limit of evidence and indicating lines
  // The command that shows a line of evidence with its surroundings (look.h); null or empty text: none.
  std::function<std::string(const Evidence&)> look = nullptr;
  bool settling = false;       // report of a running job: recent evidence may still change the diagnosis
  std::string origin = {};     // where a collector has the report from (shared_jobs.h); empty: its own
  std::string scheduler = {};  // what the scheduler says of the job (scheduler_text.h); empty: nothing
  // Only for HTML: lines around the evidence; job and run at a daemon, for its commands (empty: made from
  // files); sentences at the start.
  std::vector<SourceLines> lines = {};
  std::string job = {};
  std::optional<uint32_t> run = {};
  std::vector<std::string> notes = {};
  const app::AttemptHistory* attempts = nullptr;  // of a job that runs again; null: one attempt
};

std::string render_text(const Report& report, const RenderOptions& options);
std::string render_html(const Report& report, const RenderOptions& options);

}  // namespace culprit::cli
