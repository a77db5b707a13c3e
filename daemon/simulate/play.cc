#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "app/play/play.h"
#include "base/text.h"
#include "cli/verbs.h"
#include "model/json_writer.h"
#include "simulate/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kSimulatePlayExamples = R"(
Examples:
  culprit simulate play --hosts 64 --fault gpu-lost --to localhost:7421 --speed 10
  culprit simulate play /tmp/demo --to collector.example:7421 --tls /etc/culprit/played --speed 0
  culprit simulate play /tmp/demo --to localhost:7421 --server unix:/run/culprit/api.sock

Each host of the job gets an agent of its own, with a connection of its own, in this process. To the
collector they are hosts and a job like any others: they stay in its lists, a host that the job's fault names
stays suspected, and a job that ends well becomes part of what it knows as normal. Play to one that is there
to be tried.)";

struct SimulatePlayOptions {
  sim::LogJobOptions job;
  app::PlayRun run;
  std::string format = "text";
  double patience_s = 60;
  bool quiet = false;
};

double seconds(TimeNs ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerSecond); }

// On a terminal each line overwrites the previous one.
void show(const app::PlayCounters& f) {
  const std::string text =
      f.begun_ns == kNoTime
          ? fmt::format("{} of {} hosts are connected", f.connected, f.hosts)
          : fmt::format("{} of {} hosts, {} of {} of the job, {} of {} acknowledged", f.connected, f.hosts,
                        format_duration(f.job_ns), format_duration(f.job_all_ns), f.acknowledged,
                        counted(f.frames, "frame"));
  fmt::print(stderr, "\r\x1b[K{}", text.substr(0, page_width() - 1));
}

// A generated job if no folder was named; deleted at the end.
class MadeJob {
 public:
  static Result<std::string> make(const sim::LogJobOptions& job, std::optional<MadeJob>& made) {
    std::error_code error;
    std::string folder = std::filesystem::temp_directory_path(error).string() + "/culprit-play-XXXXXX";
    if (error || mkdtemp(folder.data()) == nullptr)
      return fail(ErrorCode::kIo, folder + ": no folder can be made for the job's logs");
    made.emplace(folder);
    if (const Status written = sim::simulate_logs(job, folder); !written)
      return tl::unexpected(written.error());
    return folder;
  }
  explicit MadeJob(std::string folder) : folder_(std::move(folder)) {}
  ~MadeJob() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  MadeJob(const MadeJob&) = delete;
  MadeJob& operator=(const MadeJob&) = delete;

 private:
  const std::string folder_;
};

std::string json_of(const app::PlayOutcome& o, double took) {
  const app::PlayCounters& f = o.counters;
  JsonWriter w;
  w.object([&] {
    w.field("hosts", f.hosts);
    w.field("lines", f.lines);
    w.field("log_bytes", f.log_bytes);
    w.field("frames", f.frames);
    w.field("bytes", f.bytes);
    w.field("acknowledged", f.acknowledged);
    w.field("seconds", took);
    w.field("report_after_ns", o.report_after_ns);
    w.field("verdict", o.verdict);
  });
  return w.finish() + "\n";
}

std::string text_of(const app::PlayOutcome& o, double took) {
  const app::PlayCounters& f = o.counters;
  std::string out =
      fmt::format("{}, {} in {} for {} of logs, {} acknowledged, {:.1f} s", counted(f.hosts, "host"),
                  counted(f.frames, "frame"), format_bytes(f.bytes), format_bytes(f.log_bytes),
                  f.acknowledged == f.frames ? "all" : fmt::format("{}", f.acknowledged), took);
  if (o.report_after_ns)
    out += fmt::format("; the report {:.2f} s after the last frame: {}", seconds(*o.report_after_ns),
                       o.verdict ? to_terminal(*o.verdict) : "no verdict");
  return out + "\n";
}

int play(SimulatePlayOptions o) {
  if (o.format == "json" || !isatty(2)) o.quiet = true;
  std::optional<MadeJob> made;
  if (o.run.folder.empty()) {
    auto folder = MadeJob::make(o.job, made);
    if (!folder) return report_error(folder.error().text), kUnable;
    o.run.folder = std::move(*folder);
  }
  o.run.patience_ns = static_cast<TimeNs>(o.patience_s * static_cast<double>(kNsPerSecond));
  o.run.play.rules = rules::Ruleset::shipped();
  if (!o.quiet) o.run.show = show;
  const auto played = app::play(o.run);
  if (!o.quiet) fmt::print(stderr, "\r\x1b[K");
  if (!played) return report_error("simulate play: " + played.error().text), kUnable;
  const app::PlayCounters& f = played->counters;
  const double took = f.begun_ns == kNoTime || f.done_ns == kNoTime ? 0 : seconds(f.done_ns - f.begun_ns);
  const bool printed = print(o.format == "json" ? json_of(*played, took) : text_of(*played, took));
  if (played->stopped) return report_error("simulate play: stopped before all was acknowledged"), kUnable;
  if (!played->report_trouble.empty())
    return report_error("simulate play: " + played->report_trouble), kUnable;
  return printed ? kDone : kUnable;
}

}  // namespace

void add_simulate_play(Command& simulate, Run& run) {
  auto o = std::make_shared<SimulatePlayOptions>();
  o->job.layout = "host-dirs";
  o->job.healthy = 0;
  Command* verb =
      simulate.add_subcommand("play", "A job's hosts as agents that send to a collector, for load");
  verb->footer(kSimulatePlayExamples);
  Option* folder =
      verb->add_option("FOLDER", o->run.folder,
                       "Of `culprit simulate logs`, or a job's logs; without: one is made of the options");
  verb->add_option("--to", o->run.play.to, "HOST:PORT of the collector")->required();
  verb->add_option(
      "--tls", o->run.play.tls_folder,
      "Folder with ca.pem, and HOST.pem and HOST.key for each host, as\nexamples/collector/make-certificates "
      "makes it; without: plain, to loopback only");
  verb->add_option("--speed", o->run.play.speed,
                   "Times as fast as the job's own clock; 0: as fast as it goes")
      ->between(0.0, 1e6)
      ->show_default();
  verb->add_option("--job", o->run.play.job,
                   "Its id at the collector; default: a new one each time, after that of its job.toml");
  verb->add_flag("--evidence", o->run.play.evidence, "Send the lines' bytes too, as policy \"all\" does");
  verb->add_option("--server", o->run.server,
                   "unix:PATH or http://HOST:PORT of the collector: wait for its report of the job");
  verb->add_option("--patience", o->patience_s, "Seconds without an acknowledgement after which it gives up")
      ->between(0.1, 1e6)
      ->show_default();
  verb->add_flag("--quiet,-q", o->quiet, "No progress");
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  for (Option* option : add_job_options(*verb, o->job)) option->excludes(folder);
  verb->callback([o, &run] { run = [o] { return play(*o); }; });
}

}  // namespace culprit::cli
