#include "cli/run_end.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/client.h"
#include "app/offline/diagnose.h"
#include "app/run/end_log.h"
#include "app/run/keep.h"
#include "app/run/members.h"
#include "app/run/slurm.h"
#include "base/text.h"
#include "cli/environment.h"
#include "cli/narrative.h"
#include "cli/reading.h"
#include "cli/verbs.h"
#include "model/report_json.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr int kReadWithinMs = 3000;    // limit of waiting until the daemon has read the last lines
constexpr int kSettleWithinMs = 1500;  // and to have a verdict
constexpr std::chrono::milliseconds kOthersWithin{10'000}, kRunLookEvery{250};
constexpr size_t kShownMost = 3;  // shown entries of each list
constexpr size_t kLinesMost = 4;  // shown lines of evidence
constexpr size_t kCommandBytes = 80;

void say(const std::string& sentence) { report_error(sentence); }

std::string duration_text(TimeNs ns) {
  const int64_t seconds = ns / kNsPerSecond;
  if (seconds < 120) return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
  if (seconds < 7200) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

std::string how_it_ended(const EndedRun& run) {
  const std::string how = run.end.signal != 0
                              ? fmt::format("was killed by {}", app::signal_name(run.end.signal))
                              : fmt::format("ended with exit code {}", run.end.code);
  return fmt::format("{} {} after {}", quoted_command(run.words), how, duration_text(run.lasted_ns));
}

// The daemon's last report, after it has read the end of the output.
std::optional<Report> daemon_report(const EndedRun& run) {
  if (run.server.empty()) return std::nullopt;
  auto client = app::Client::make({run.server, "", ""});
  if (!client) return std::nullopt;
  if (!app::wait_until_read(*client, run.launch.job, run.log_paths[0], 1, kReadWithinMs)) return std::nullopt;
  (void)app::wait_until_read(*client, run.launch.job, run.log_paths[0], run.log.written, kReadWithinMs);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kSettleWithinMs);
  std::optional<Report> out;
  for (;;) {
    const auto text = client->get("/v1/jobs/" + app::url_escaped(run.launch.job) + "/report?charts=1");
    if (auto read = text ? report_from_json(*text) : Result<Report>(tl::unexpected(text.error())))
      out = std::move(*read);
    if ((out && out->verdict) || std::chrono::steady_clock::now() >= until) break;
    std::this_thread::sleep_for(kRunLookEvery);
  }
  if (const auto stored = app::keep_evidence(*client, run.launch.job, run.folder.logs()); !stored)
    say(stored.error().text);
  return out;
}

// The report with paths of files that a reader can open.
Report with_path(const Report& report, const std::string& from, const std::string& to) {
  std::string text = to_json(report);
  std::string name = nlohmann::json(to).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  name = name.substr(1, name.size() - 2);
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += name.size())
    text.replace(at, from.size(), name);
  auto read = report_from_json(text);
  return read ? std::move(*read) : report;
}

void say_log_trouble(const EndedRun& run) {
  if (run.log.dropped == 0) return;
  say(fmt::format("{} of the output are not in the run's copy: {}", format_bytes(run.log.dropped),
                  run.log.trouble));
}

void report_run(const EndedRun& run, const std::optional<Report>& found) {
  say(how_it_ended(run));
  say_log_trouble(run);
  if (!found || !leading(*found)) {
    say(run.log.dropped == 0 ? "nothing in its output says why"
                             : "the copy of its output is incomplete: what is in it does not say why");
  } else {
    show_report(*found, run.choices, run.zone, run.folder.held());
  }
  say("files: " + run.folder.path());
  say("again: culprit diagnose " + run.folder.inputs().path());
}

// Whether this member reports for the job. `others`: the other members' ends.
bool speaks(app::Members& members, const app::CommandEnd& end, std::vector<app::MemberEnd>& others) {
  const auto until = std::chrono::steady_clock::now() + kOthersWithin;
  for (;;) {
    others = members.ends();
    if (members.all_ended(others)) break;
    if (end.status() == 0) return false;  // a later one does
    if (std::chrono::steady_clock::now() >= until) break;
    std::this_thread::sleep_for(kRunLookEvery);
  }
  return members.claim();
}

void say_failed(const std::vector<app::MemberEnd>& ends, const app::Members& members) {
  std::vector<std::string> failed;
  size_t count = 0;
  for (const app::MemberEnd& one : ends)
    if (one.status != 0 && ++count <= 4)
      failed.push_back(fmt::format("{} on {} ({})", one.member, one.host, one.status));
  if (count > failed.size()) failed.push_back(fmt::format("{} more", count - failed.size()));
  say(fmt::format("{} of {} tasks failed: {}", count, members.expected(), fmt::join(failed, ", ")));
}

void clear_up_run(const EndedRun& run) {
  if (run.choices.keep)
    say("files: " + run.folder.path());
  else
    run.folder.remove();
}

void remove_older(const EndedRun& run) {
  const auto removed = app::remove_old_runs(run.folder.root(), run.choices.keep_runs, variable);
  if (!removed.empty())
    say(fmt::format("{} removed: the newest {} are kept (--keep-runs)", counted(removed.size(), "older run"),
                    run.choices.keep_runs));
}

}  // namespace

std::string quoted_command(const std::vector<std::string>& words) {
  return "`" + shorten(fmt::format("{}", fmt::join(words, " ")), kCommandBytes) + "`";
}

std::optional<Report> report_of_inputs(const app::HeldFolder& inputs, bool exposed, const Zone& zone) {
  app::DiagnoseOptions options;
  // Opens the folder by its descriptor, since its path may lead elsewhere now.
  const std::string held = fmt::format("/proc/self/fd/{}/.", inputs.descriptor());
  options.paths = {exposed ? held : inputs.path()};
  options.parse.zone = zone;
  const auto threads = app::thread_count(std::getenv("CULPRIT_THREADS"));
  options.threads = threads ? *threads : 1;
  app::ReadProgress progress;
  const Watch watch(progress, false);
  auto done = app::diagnose(options, progress);
  if (!done) return say(done.error().text), std::nullopt;
  if (exposed) return with_path(done->report, held, inputs.path());
  return std::move(done->report);
}

std::optional<Report> better_report(std::optional<Report> live, std::optional<Report> files,
                                    bool spans_hosts) {
  if (!files) return live;
  if (!live || !live->verdict) return files;
  if (!files->verdict) return live;
  if (spans_hosts) return files;
  const double of_live = live->diagnoses[*live->verdict].confidence;
  return of_live > files->diagnoses[*files->verdict].confidence ? live : files;
}

void show_report(const Report& report, const RunChoices& choices, const Zone& zone,
                 const app::HeldFolder& run) {
  RenderOptions options;
  options.color = choices.color;
  options.width = page_width();
  options.zone = zone;
  options.zone_name = "local time";
  options.lines_max = kLinesMost;
  Report top = report;
  keep_top(top, kShownMost);
  std::fputs(("\n" + render_text(top, options) + "\n").c_str(), stderr);
  RenderOptions of_page;
  of_page.zone = zone;
  of_page.zone_name = "local time";
  constexpr const char* kPage = "report.html";
  if (Status written = run.write(kPage, render_html(report, of_page)); !written)
    return say(written.error().text);
  (void)run.write("report.json", to_json(report) + "\n");
  say("page:  " + run.path() + "/" + kPage);
}

void hand_over_report(int fd, const Report& report) {
  const std::string json = to_json(report);
  std::string_view text = json;
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // the reader rejects an incomplete report
    text.remove_prefix(static_cast<size_t>(n));
  }
}

int finish_run(const EndedRun& run, const std::function<void()>& stop_daemon) {
  const int status = run.end.status();
  app::Members members(run.folder.members(), run.launch, run.folder.shared());
  std::vector<app::MemberEnd> ends;
  if (Status told = members.tell(run.end); !told) say(told.error().text);
  std::optional<Report> live;
  if (run.live_report)
    if (auto read = report_from_json(*run.live_report)) live = std::move(*read);
  if (live && !live->verdict) live.reset();
  // A command with exit code 0 did not hang.
  if (live && status == 0 && live->diagnoses[*live->verdict].symptom == Symptom::kHang) live.reset();
  // Output of a job during its termination is no cause of an earlier problem.
  const bool ended_by_user = run.end.interrupted || run.end.terminated != 0;
  // Ctrl-C, or the output's reader exited, as `head` does: no failure of the job.
  const bool wanted = run.end.interrupted || run.end.signal == SIGPIPE;
  const bool told_before = live.has_value();
  if (status != 0 && !wanted && !(ended_by_user && told_before)) live = daemon_report(run);
  stop_daemon();
  std::error_code ignored;
  if (const std::string& own = run.folder.private_folder(); !own.empty())
    std::filesystem::remove_all(own + "/state", ignored);
  if (run.is_part) {
    if (run.report_to >= 0 && live) hand_over_report(run.report_to, *live);
    return status;
  }
  if (run.launch.in_team && !speaks(members, run.end, ends)) return status;
  const bool others_failed =
      std::ranges::any_of(ends, [](const app::MemberEnd& one) { return one.status != 0; });
  const bool failed = status != 0 || others_failed || told_before;
  if (!failed || (wanted && !told_before)) {
    say_log_trouble(run);
    if (run.choices.verbose) say(how_it_ended(run));
    clear_up_run(run);
    return status;
  }
  if (others_failed && run.launch.in_team) say_failed(ends, members);
  const bool live_only = told_before && (ended_by_user || status == 0);
  const std::optional<Report> files =
      live_only ? std::nullopt : report_of_inputs(run.folder.inputs(), run.folder.exposed(), run.zone);
  auto found = live_only ? live : better_report(live, files, app::spans_hosts(run.words, variable));
  // The whole log has the last step, even if the daemon was queried before it read the end.
  if (found && files) found->job.iteration = files->job.iteration;
  report_run(run, found);
  if (run.report_to >= 0 && found) hand_over_report(run.report_to, *found);
  remove_older(run);
  return status;
}

}  // namespace culprit::cli
