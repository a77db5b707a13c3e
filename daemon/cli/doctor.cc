#include "cli/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "model/json_text.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kDoctorExamples = R"(
Examples:
  culprit doctor
  sudo culprit doctor --exit-code && systemctl start culpritd
  culprit doctor --format json | jq -r 'select(.health != "ok") | .remedy')";

constexpr size_t kWidth = 100;

struct DoctorOptions {
  app::DoctorOptions doctor;
  std::string format = "text";
  bool exit_code = false;
};

Ink ink_of(app::Health health) {
  return health == app::Health::kOk ? Ink::kDim : health == app::Health::kWarn ? Ink::kCaution : Ink::kAlarm;
}

std::string json_row(const app::DoctorRow& row) {
  JsonWriter w;
  w.object([&] {
    w.field("check", row.check);
    w.field("health", app::to_string(row.health));
    w.field("what", row.what);
    w.text_or_null("remedy", row.remedy);
  });
  return w.finish() + "\n";
}

}  // namespace

std::string render_doctor(const std::vector<app::DoctorRow>& rows, bool color) {
  size_t widest = 0, warned = 0, failed = 0;
  for (const app::DoctorRow& row : rows) widest = std::max(widest, row.check.size());
  const std::string margin(widest + 8, ' ');
  std::string out;
  for (const app::DoctorRow& row : rows) {
    warned += row.health == app::Health::kWarn;
    failed += row.health == app::Health::kFail;
    const std::string word = padded(app::to_string(row.health), 6);
    out += inked(word, ink_of(row.health), color) + padded(row.check, widest + 2);
    bool first = true;
    for (const std::string& line : wrap(to_terminal(row.what), kWidth - margin.size())) {
      out += (first ? "" : margin) + line + "\n";
      first = false;
    }
    // Not wrapped, so that the command can be copied.
    if (!row.remedy.empty())
      out += margin + inked(fmt::format("mend: {}", to_terminal(row.remedy)), Ink::kAccent, color) + "\n";
  }
  if (failed + warned == 0) return out + inked("\nNothing stands in the way.\n", Ink::kBold, color);
  return out + inked(fmt::format("\n{} and {} of {}.\n", counted(failed, "failure"),
                                 counted(warned, "warning"), counted(rows.size(), "check")),
                     Ink::kBold, color);
}

namespace {

int doctor(const DoctorOptions& o) {
  const auto rows = app::examine(o.doctor, app::machine_probes());
  std::string out;
  if (o.format == "json")
    for (const app::DoctorRow& row : rows) out += json_row(row);
  else
    out = render_doctor(rows, wants_color());
  if (!print(out)) return kUnable;
  const bool failed = std::any_of(rows.begin(), rows.end(),
                                  [](const app::DoctorRow& row) { return row.health == app::Health::kFail; });
  return o.exit_code && failed ? kFound : kDone;
}

}  // namespace

void add_doctor(Command& app, Run& run) {
  auto o = std::make_shared<DoctorOptions>();
  Command* verb = app.add_subcommand(
      "doctor", "Tell what would stop culpritd from seeing a job, and the command that mends it");
  verb->footer(kDoctorExamples);
  verb->add_option("--config", o->doctor.config,
                   fmt::format("Configuration of the daemon (default: {})", app::kConfigFile));
  verb->add_option("--user", o->doctor.user,
                   "Whom the daemon runs as (default: culprit where there is such a user, else the caller)");
  verb->add_option("--format,-f", o->format, "text, or json: one object a line")
      ->one_of({"text", "json"})
      ->show_default();
  verb->add_flag("--exit-code", o->exit_code, "Exit with 1 when a check fails");
  verb->callback([o, &run] { run = [o] { return doctor(*o); }; });
}

}  // namespace culprit::cli
