#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "app/plugins/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/layout.h"
#include "cli/plugin_verbs.h"
#include "cli/rules.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kPluginCheckExamples = R"(
Runs the plugin in its host program as the daemon does, with built-in events of each kind and those of --log:
what it exports, its description, the words of its findings, whether two runs give the same ones, time, memory,
saved state, and what it does when allocations fail. The last line has the verdict and the cost. The exit status
is 1 if a check fails.

Examples:
  culprit plugin check build/fan_watch.so
  culprit plugin check --option limit=3 --log node-3.log build/fan_watch.so
  culprit plugin check --format json fan_watch.so | jq -r '.checks[] | select(.outcome == "wrong") | .text')";

constexpr size_t kLogLines = 100'000;

struct PluginCheckVerb {
  std::string library, format = "text";
  std::vector<std::string> values, logs;
  std::string host_program;
};

std::string_view word(app::PluginCheckRow::Outcome outcome) {
  using Outcome = app::PluginCheckRow::Outcome;
  return outcome == Outcome::kOk ? "ok" : outcome == Outcome::kNote ? "note" : "wrong";
}

std::string to_text(const app::PluginCheckRow& row, bool color) {
  using Outcome = app::PluginCheckRow::Outcome;
  const Ink ink = row.outcome == Outcome::kOk     ? Ink::kDim
                  : row.outcome == Outcome::kNote ? Ink::kCaution
                                                  : Ink::kAlarm;
  return fmt::format("{}  {}  {}\n", inked(padded(word(row.outcome), 5), ink, color), padded(row.check, 11),
                     to_terminal(row.text));
}

// False: an error was printed.
bool prepare(const PluginCheckVerb& o, app::PluginCheckOptions& out) {
  out.library = o.library;
  out.host_program = o.host_program;
  for (const std::string& value : o.values) {
    const size_t at = value.find('=');
    if (at == value.npos) return report_error(value + ": an option is NAME=VALUE"), false;
    out.values.emplace_back(value.substr(0, at), value.substr(at + 1));
  }
  for (const std::string& path : o.logs) {
    std::ifstream file(path);
    if (!file) return report_error(path + ": it cannot be read"), false;
    for (std::string line; out.lines.size() < kLogLines && std::getline(file, line);)
      out.lines.push_back(line.substr(0, limits::kLineBytes));
  }
  return true;
}

size_t count_of(const std::vector<app::PluginCheckRow>& rows, app::PluginCheckRow::Outcome outcome) {
  return static_cast<size_t>(
      std::ranges::count_if(rows, [&](const app::PluginCheckRow& row) { return row.outcome == outcome; }));
}

// "passed: 12 checks, 1 note; 0.44 us an event, 3.7 MB"
std::string summary(const std::vector<app::PluginCheckRow>& rows, const app::PluginCost& cost, bool color) {
  const size_t wrong = count_of(rows, app::PluginCheckRow::Outcome::kWrong);
  const size_t notes = count_of(rows, app::PluginCheckRow::Outcome::kNote);
  std::string out = wrong > 0 ? fmt::format("{}: {} of {}", inked("failed", Ink::kAlarm, color), wrong,
                                            counted(rows.size(), "check"))
                              : fmt::format("passed: {}", counted(rows.size(), "check"));
  if (notes > 0) out += ", " + counted(notes, "note");
  std::string measured;
  if (cost.event_ns > 0) measured += fmt::format("{:.2f} us an event", cost.event_ns * 1e-3);
  if (cost.memory_bytes > 0) measured += (measured.empty() ? "" : ", ") + format_bytes(cost.memory_bytes);
  return out + (measured.empty() ? "" : "; " + measured) + "\n";
}

std::string to_json(const std::vector<app::PluginCheckRow>& rows, const app::PluginCost& cost) {
  JsonWriter w;
  w.object([&] {
    w.field("passed", count_of(rows, app::PluginCheckRow::Outcome::kWrong) == 0);
    cost.event_ns > 0 ? w.field("event_ns", cost.event_ns) : w.null("event_ns");
    cost.memory_bytes > 0 ? w.field("memory_bytes", cost.memory_bytes) : w.null("memory_bytes");
    w.list("checks", rows, [&](const app::PluginCheckRow& row) {
      w.object([&] {
        w.field("check", row.check);
        w.field("outcome", word(row.outcome));
        w.field("text", row.text);
      });
    });
  });
  return w.finish() + "\n";
}

int check(const PluginCheckVerb& o) {
  app::PluginCheckOptions options;
  if (!prepare(o, options)) return kUnable;
  std::vector<app::PluginCheckRow> rows;
  bool printed = true;
  const bool text = o.format == "text", color = wants_color();
  const auto cost = app::check_plugin(options, [&](app::PluginCheckRow row) {
    if (text && printed) printed = print(to_text(row, color));
    rows.push_back(std::move(row));
  });
  if (!cost) return report_error(cost.error().text), kUnable;
  if (printed) printed = print(text ? summary(rows, *cost, color) : to_json(rows, *cost));
  if (!printed) return kUnable;
  return count_of(rows, app::PluginCheckRow::Outcome::kWrong) > 0 ? kFound : kDone;
}

}  // namespace

void add_plugin_check(Command& plugin, Run& run) {
  auto o = std::make_shared<PluginCheckVerb>();
  Command* verb =
      plugin.add_subcommand("check", "Try a plugin as the daemon will run it, before it is installed");
  verb->footer(kPluginCheckExamples);
  verb->add_option("LIBRARY", o->library, "The library, NAME.so")->required();
  verb->add_option("--option", o->values, "NAME=VALUE: a value of an option; repeat")->one_value();
  verb->add_option("--log", o->logs, "A plain log whose lines become events too; repeat")->one_value();
  verb->add_option("--host-program", o->host_program,
                   "culprit-plugin-host, if it is not the one that belongs to this program");
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->callback([o, &run] { run = [o] { return check(*o); }; });
}

}  // namespace culprit::cli
