#include "cli/attempt_report.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/run/attempt_json.h"
#include "cli/attempt_text.h"
#include "cli/environment.h"
#include "cli/render.h"
#include "cli/verbs.h"
#include "model/json_text.h"
#include "model/report_json.h"

namespace culprit::cli {
namespace {

std::string note_of(const app::AttemptHistory& history, uint32_t of) {
  const app::Attempt& last = history.attempts.back();
  if (last.status == 0)
    return fmt::format("Attempt {} ended well. What follows is the report of attempt {}.", last.number, of);
  return history.attempts.size() == 1 ? "" : fmt::format("What follows is the report of attempt {}.", of);
}

// What was decided after the last attempt; empty: it ended well, or a person ended it.
std::string decision_note(const app::Attempt& last) {
  if (last.status == 0 || last.decision.why.empty()) return "";
  return fmt::format("After attempt {}: {}{}.", last.number, last.decision.again ? "run again " : "",
                     last.decision.why);
}

}  // namespace

Status write_attempt_report(const app::RunFolder& folder, app::AttemptHistory history, const Report& report,
                            uint32_t of, const Zone& zone) {
  for (std::string& page : history.pages)
    if (std::error_code error; !std::filesystem::exists(folder.path() + "/" + page, error)) page.clear();
  RenderOptions options;
  options.zone = zone;
  options.zone_name = "local time";
  options.attempts = &history;
  if (const std::string note = note_of(history, of); !note.empty()) options.notes.push_back(note);
  if (std::string note = decision_note(history.attempts.back()); !note.empty())
    options.notes.push_back(std::move(note));
  if (Status written = folder.held().write("report.html", render_html(report, options)); !written)
    return written;
  nlohmann::ordered_json json = parse_ordered_json(to_json(report));
  json["attempts"] = parse_ordered_json(app::to_json(history));
  return folder.held().write("report.json",
                             json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void write_ledger(const app::RunFolder& folder, const std::vector<app::Attempt>& attempts, bool synced) {
  std::string lines;
  for (const app::Attempt& attempt : attempts) lines += app::ledger_line(attempt);
  if (Status written = folder.held().write("attempts.jsonl", lines, synced); !written)
    report_error(written.error().text);
}

void print_attempts(const app::AttemptHistory& history, const std::string& folder, bool page,
                    const Zone& zone) {
  const app::Attempt& last = history.attempts.back();
  if (const std::string why = stop_sentence(last); !why.empty()) report_error(why);
  if (history.attempts.size() == 1) return;
  report_error(attempt_totals(history) +
               (last.status == 0 ? fmt::format("; attempt {} ended well", last.number) : ""));
  std::fputs(attempt_table(history, {page_width(), zone}).c_str(), stderr);
  if (page) report_error("page: " + folder + "/report.html");
  report_error("attempts: " + history.ledger);
}

}  // namespace culprit::cli
