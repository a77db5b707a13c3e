#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "app/offline/job_split.h"
#include "app/offline/source_lines.h"
#include "base/text.h"
#include "cli/jobs_table.h"
#include "cli/look.h"
#include "cli/narrative.h"
#include "cli/near.h"
#include "cli/reading.h"
#include "cli/render.h"
#include "cli/rules.h"
#include "cli/spelling.h"
#include "cli/verbs.h"
#include "core/fuse/trace.h"
#include "model/report_json.h"

namespace culprit::cli {
namespace {

constexpr const char* kDiagnoseExamples = R"(
Examples:
  culprit diagnose runs/failed --healthy runs/ok1      # logs, traces, metrics, stacks: as the job left them
  culprit diagnose node-*.log --since 2026-11-21T02:00 --timezone Europe/Berlin
  culprit diagnose --exit-code --format json runs/failed | jq .verdict.title)";

struct DiagnoseOptions {
  ReadingOptions reading;
  std::string format = "text", job;
  size_t top = 0;
  bool exit_code = false, why = false;
  std::vector<std::string> without;
};

Status leave_out(const std::vector<std::string>& names, detect::Steps& steps) {
  for (const std::string& name : names) {
    if (name == "cross-job")
      steps.cross_job = false;
    else if (name == "spatial")
      steps.spatial = false;
    else if (name == "temporal")
      steps.temporal = false;
    else if (name == "order")
      steps.order = false;
    else if (name == "silence")
      steps.silence = false;
    else if (name == "shapes")
      steps.shapes = false;
    else
      return fail(ErrorCode::kInvalid, "--without " + name + ": no such step");
  }
  return {};
}

// Adds the lines around the evidence to a page.
void add_lines(const Report& report, const DiagnoseOptions& o, RenderOptions& options) {
  app::ReadProgress progress;
  Watch watch(progress, !o.reading.quiet);
  app::WindowsRead read = app::read_windows(app::windows_around(app::places_shown(report)), progress);
  options.lines = std::move(read.windows);
  if (read.left_out > 0)
    options.notes.push_back(
        fmt::format("The lines around {} of evidence are not in this file: they lie deep in "
                    "large sources, or these cannot be read again.",
                    counted(read.left_out, "piece")));
}

// The steps from findings to one diagnosis, pass by pass.
std::string steps_text(const std::vector<core::fuse::PassStep>& steps) {
  std::string out = "\nHow the findings became this answer\n";
  if (steps.empty()) out += "  no detector and no rule found anything\n";
  for (const core::fuse::PassStep& step : steps)
    out += fmt::format("  {:<20} {}\n", step.pass, to_terminal(step.what));
  return out;
}

std::string render(const Report& report, const DiagnoseOptions& o) {
  if (o.format == "json") return to_json(report) + "\n";
  RenderOptions options;
  if (o.format == "html") add_lines(report, o, options);
  options.color = wants_color();
  options.width = page_width();
  options.zone = o.reading.diagnose.parse.zone;
  options.zone_name = o.reading.timezone;
  options.look = look_in_file;
  return o.format == "html" ? render_html(report, options) : render_text(report, options);
}

// The result of one job.
struct JobOutcome {
  int status = kDone;
  bool found = false;
  bool empty = false;                  // the input held nothing
  std::optional<Report> report = {};   // none: nothing was read, or another job was requested
  std::string steps = {};              // set with --why
  std::string name = {};               // the job's id, else its folder's name
  std::vector<std::string> jobs = {};  // this job, then others in the same paths
};

// `job`: one of the jobs in the paths; empty: the first. `several`: also report the others.
struct DiagnoseRequest {
  app::JobPaths part;
  std::string job;
  bool several = false;
};

std::string name_of(const Report& report, const app::JobPaths& part) {
  if (report.job.id) return *report.job.id;
  std::filesystem::path path = part.paths.empty() ? "" : part.paths[0];
  if (!path.has_filename()) path = path.parent_path();
  return path.filename().string();
}

JobOutcome diagnose_job(const DiagnoseOptions& o, const DiagnoseRequest& asked) {
  app::DiagnoseOptions options = o.reading.diagnose;
  options.paths = asked.part.paths;
  options.only = asked.part.files;
  options.id = asked.part.id;
  options.note = asked.part.note;
  options.job = asked.job;
  core::fuse::Trace trace;
  if (o.why) options.passes = &trace;
  app::ReadProgress progress;
  Result<app::Diagnosed> done = [&] {
    Watch watch(progress, !o.reading.quiet);
    return app::diagnose(options, progress);
  }();
  if (!done) return report_error(done.error().text), JobOutcome{kUnable};
  for (const Error& error : done->errors) report_error(error.text);
  JobOutcome out;
  if (!done->errors.empty()) out.status = kUnable;
  out.name = name_of(done->report, asked.part);
  out.jobs = {done->report.job.id.value_or(out.name)};
  if (o.job.empty()) out.jobs.insert(out.jobs.end(), done->other_jobs.begin(), done->other_jobs.end());
  if ((asked.several || out.jobs.size() > 1) && o.format == "html")
    return report_error("--format html: a page shows one job, and the paths hold several: --job picks one"),
           JobOutcome{kUnable};
  const bool chosen = o.job.empty() || o.job == done->report.job.id.value_or(out.name);
  if (!done->anything || !chosen) return out;
  out.found = !done->report.diagnoses.empty();
  out.empty = outcome(done->report) == Outcome::kEmpty;
  if (o.top) keep_top(done->report, o.top);
  out.report = std::move(done->report);
  if (o.why) out.steps = steps_text(trace.steps());
  return out;
}

// A row for each job, then each report with the job's name.
std::string render_all(const std::vector<JobOutcome>& shown, const DiagnoseOptions& o) {
  if (shown.size() == 1) return render(*shown[0].report, o) + shown[0].steps;
  std::vector<JobRow> rows;
  for (const JobOutcome& one : shown) rows.push_back({one.name, &*one.report});
  std::string out = jobs_table(rows, wants_color());
  out += "\n--job NAME shows one of them\n";
  for (const JobOutcome& one : shown)
    out += fmt::format("\n== {}\n\n", to_terminal(one.name)) + render(*one.report, o) + one.steps;
  return out;
}

// The parts to read: only the requested one if names alone identify it.
std::vector<app::JobPaths> parts_of(const DiagnoseOptions& o) {
  std::vector<app::JobPaths> parts = app::split_jobs(o.reading.diagnose.paths);
  const auto asked = [&](const app::JobPaths& part) { return part.id == o.job; };
  if (!o.job.empty() && std::ranges::any_of(parts, asked))
    std::erase_if(parts, [&](const app::JobPaths& part) { return !asked(part); });
  return parts;
}

int diagnose(DiagnoseOptions& o) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), kUnable;
  if (Status status = leave_out(o.without, o.reading.diagnose.steps); !status)
    return report_error(status.error().text), kUnable;
  if (o.why && o.format != "text") return report_error("--why: only with --format text"), kUnable;
  const std::vector<app::JobPaths> jobs = parts_of(o);
  if (jobs.size() > 1 && o.format == "html")
    return report_error(fmt::format(
               "--format html: a page shows one job, and the paths hold {}: --job picks one", jobs.size())),
           kUnable;
  int status = kDone;
  bool found = false, any = false, held = false;
  std::vector<std::string> ids;
  std::vector<JobOutcome> shown;
  const auto tell = [&](const DiagnoseRequest& asked) {
    JobOutcome one = diagnose_job(o, asked);
    status = std::max(status, one.status);
    found = found || one.found;
    any = any || one.report;
    held = held || (one.report && !one.empty);
    std::vector<std::string> named = one.jobs;
    ids.insert(ids.end(), named.begin(), named.end());
    if (one.report && o.format == "json") {
      if (!print(render(*one.report, o))) status = kUnable;
    } else if (one.report) {
      shown.push_back(std::move(one));
    }
    return named;
  };
  for (const app::JobPaths& part : jobs) {
    std::vector<std::string> named = tell({part, o.job, jobs.size() > 1});
    // Each report may reveal more jobs: files are read only as far as the requested job requires.
    for (size_t i = 1; i < named.size(); ++i)
      for (std::string& other : tell({part, named[i], true}))
        if (std::ranges::find(named, other) == named.end()) named.push_back(std::move(other));
  }
  if (!shown.empty() && !print(render_all(shown, o))) status = kUnable;
  if (!o.job.empty() && !any && status == kDone)
    return report_error("--job " + o.job + ": no such job below the paths" + did_you_mean(o.job, ids, "'")),
           kUnable;
  if (!any || status != kDone) return kUnable;
  if (o.exit_code && !held)
    return report_error(fmt::format("{}: nothing was read", fmt::join(o.reading.diagnose.paths, ", "))),
           kUnable;
  return o.exit_code && found ? kFound : kDone;
}

}  // namespace

void add_diagnose(Command& app, Run& run) {
  auto o = std::make_shared<DiagnoseOptions>();
  Command* verb =
      app.add_subcommand("diagnose", "Tell why a job failed, hangs or is slow, from its logs and traces");
  verb->footer(kDiagnoseExamples);
  add_reading_options(*verb, o->reading);
  add_rule_options(*verb, o->reading.diagnose.rules);
  verb->add_option("--healthy", o->reading.diagnose.healthy,
                   "Logs of a successful job of the same kind; repeat")
      ->one_value();
  verb->add_option("--pool", o->reading.diagnose.pool_file, "A normal pool saved by `culprit pool build`");
  verb->add_option("--format,-f", o->format, "text, json or html")
      ->one_of({"text", "json", "html"})
      ->show_default();
  verb->add_option("--job", o->job, "Of several jobs in the paths: this one only, as the table names it");
  verb->add_option("--top", o->top, "Keep the best N of each list")->between(1u, 1'000'000u);
  verb->add_flag("--why", o->why, "Also tell how the findings of all detectors became this answer");
  verb->add_flag("--exit-code", o->exit_code, "Exit with 1 when a diagnosis was made");
  verb->add_option("--without", o->without,
                   "Leave a step of the method out: cross-job, spatial, temporal, order, "
                   "silence, shapes; repeat")
      ->one_value();
  verb->callback([o, &run] { run = [o] { return diagnose(*o); }; });
}

}  // namespace culprit::cli
