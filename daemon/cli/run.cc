#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "app/checkpoint/look.h"
#include "app/config/options.h"
#include "app/run/armed.h"
#include "app/run/attempt_event.h"
#include "app/run/disk_facts.h"
#include "app/run/end_log.h"
#include "app/run/error_files.h"
#include "app/run/follow.h"
#include "app/run/private_daemon.h"
#include "app/run/slurm.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/attempt_process.h"
#include "cli/environment.h"
#include "cli/narrative.h"
#include "cli/run_end.h"
#include "cli/run_members.h"
#include "cli/run_retries.h"
#include "cli/verbs.h"
#include "cli/zone.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kRunExamples = R"(
Runs the command with a culpritd of its own, in folders of yours. Output, signals and exit code stay as they
are. If the command fails, hangs or is killed, standard error says why, and a page is kept. If all goes well,
nothing is printed and nothing is left. Needs no root and no configuration.

With --retries the diagnosis decides whether a command that failed runs again: never for a mistake of the
program (once, where the diagnosis is not certain), later where a service was away, at once where it may go
well. Nothing of an attempt is left when the next begins. The command gets CULPRIT_ATTEMPT,
CULPRIT_ATTEMPTS_LEFT, CULPRIT_RESUME and CULPRIT_LAST_REASON; its words may hold {attempt}, {resume}, {port},
{hosts}, {nhosts}, {node_rank} and {master}, and with --min-gpus {gpus} and {ngpus}.

With --nodes, one culprit on each host is a member of the job. The members agree by files in the folder of
--shared on whether another attempt follows and where. A host whose hardware failed is left out, and one of
--spares, which wait, takes its place.

Examples:
  culprit run -- torchrun --nproc-per-node 8 train.py
  culprit run --retries 3 --checkpoints ckpt -- torchrun train.py --resume {resume}
  srun -N 9 culprit run --retries 3 --nodes 8 --spares 1 --shared /nfs -- ./train)";

constexpr uint64_t kLogBytes = 256 << 20;  // limit of each stream's log, twice with the previous file
constexpr int kToldMost = 6;               // limit of verdict changes printed while the command runs
constexpr int kNotFound = 127, kDenied = 126;

struct RunOptions {
  std::vector<std::string> command;
  std::string job, dir, shared, hang_after;
  int report_to = -1;    // in an attempt: descriptor for the report
  bool is_part = false;  // of an attempt on several hosts
  bool no_arm = false, show_env = false, no_color = false;
  RunChoices choices;
  RetryOptions retry;
};

std::string machine_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && *name ? name : "localhost";
}

std::string moment_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%m%d-%H%M%S", &parts);
  return text;
}

app::ArmedPlaces places_of(const app::RunFolder& folder, const app::Launch& launch) {
  app::ArmedPlaces out;
  out.dumps = folder.dumps();
  out.pipes = folder.pipes();
  out.logs = folder.files();
  if (!folder.private_folder().empty())
    out.error_file = fmt::format("{}/error_{}.json", folder.private_folder(), launch.member);
  if (!folder.runtime().empty()) out.trace_socket = folder.runtime() + "/trace.sock";
  out.rings = folder.rings();
  out.job = launch.job;
  return out;
}

// Prints the environment without creating a folder.
int show_environment(const RunOptions& o, const app::Launch& launch) {
  const std::string root = !o.shared.empty() ? o.shared
                           : !o.dir.empty()  ? o.dir
                                             : app::default_run_root(variable);
  const std::string run = root + "/" + launch.job, logs = run + "/job/" + launch.host;
  app::ArmedPlaces places;
  places.dumps = logs + "/dumps";
  places.logs = logs;
  places.error_file = fmt::format("{}/private/{}/error_{}.json", run, launch.host, launch.member);
  places.pipes = "RUNTIME/pipes";
  places.trace_socket = "RUNTIME/trace.sock";
  places.rings = "/dev/shm/RUNTIME";
  places.job = launch.job;
  return print(app::show_armed(app::armed_variables(places, variable))) ? kDone : kUnable;
}

// Runs the command in place of this program, as if without `culprit run`.
int run_plainly(const RunOptions& o, const std::string& why) {
  report_error(why + ": the command runs without culprit");
  std::signal(SIGPIPE, SIG_DFL);
  std::vector<char*> words;
  for (const std::string& word : o.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  const int error = errno;
  report_error(fmt::format("{}: {}", o.command[0], std::generic_category().message(error)));
  return error == ENOENT ? kNotFound : kDenied;
}

// The file that names the job and the hosts for `culprit diagnose`.
void write_job_file(const app::RunFolder& folder, const app::Launch& launch, bool spans_hosts) {
  constexpr const char* kName = "job.toml";
  if (folder.inputs().has(kName)) return;
  // The output of several hosts belongs to none of them: a line's host is the one that it names.
  const char* hosts = spans_hosts ? "" : "host_pattern = '^(?P<host>[^/]+)/'\n";
  if (Status written = folder.inputs().write(kName, fmt::format("[job]\nid = \"{}\"\n{}", launch.job, hosts));
      !written)
    report_error(written.error().text);
}

// A command with its daemon, from start to end.
class Session {
 public:
  Session(const RunOptions& o, app::Launch launch, app::RunFolder folder, Zone zone)
      : o_(o), launch_(std::move(launch)), folder_(std::move(folder)), zone_(std::move(zone)) {}

  int run() {
    if (const int refused = start_command(); refused != kDone) return refused;
    start_log();
    write_job_file(folder_, launch_, app::spans_hosts(o_.command, variable));
    if (launch_.local == 0) command_->call_after(kDaemonAfter, [this] { start_daemon(); });
    const app::CommandEnd end =
        command_->wait([this](size_t stream, std::string_view bytes) { log_->add(stream, bytes); });
    const TimeNs lasted =
        std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1) - began_ns_;
    log_->finish(kLogWithinMs);
    write_end(end);
    command_.reset();
    const EndedRun ended{launch_,
                         folder_,
                         o_.choices,
                         o_.command,
                         end,
                         lasted,
                         daemon_lives() && folder_.logs().is_there() ? server_ : "",
                         last_report_,
                         log_->counters(),
                         log_paths_,
                         zone_,
                         o_.report_to,
                         o_.is_part};
    return finish_run(ended, [this] { stop_daemon(); });
  }

  ~Session() { stop_daemon(); }

 private:
  static constexpr int kLogWithinMs = 5000;
  static constexpr TimeNs kDiskWithin = 2 * kNsPerSecond;
  static constexpr std::streamoff kTailBytes = 64 * 1024;  // last part of each stream, in which failures are
                                                           // printed
  static constexpr TimeNs kHangAfter = 60 * kNsPerSecond;  // equals the daemon's default
  // Time for stacks, dumps and the report of a hang before the command is ended, and time for it to end by
  // itself.
  static constexpr TimeNs kHangEvidence = 10 * kNsPerSecond, kHangPatience = 5 * kNsPerSecond;
  // A command that ends within this time needs no daemon: its output is read at its end.
  static constexpr TimeNs kDaemonAfter = kNsPerSecond;
  static constexpr TimeNs kAttemptEvery = kNsPerSecond / 5;
  static constexpr int kAttemptTries = 50;

  // Writes logs of facts that are known only at the end.
  void write_end(const app::CommandEnd& end) {
    if (const auto rank = app::first_rank_of(o_.command, variable))
      (void)app::replace_error_files(folder_.files() + "/torchrun", folder_.logs(), *rank);
    if (const uint64_t lost = folder_.collect())
      report_error(fmt::format("{}: {} of what the command wrote could not be copied to it",
                               folder_.logs().path(), format_bytes(lost)));
    const std::string& program = o_.command[0];
    std::string lines =
        app::end_lines(end, program.substr(program.rfind('/') + 1), wall_now(), kills_, app::memory_kills());
    if (end.status() != 0)
      lines += app::disk_lines_within(kDiskWithin, last_lines(), std::filesystem::current_path().string(),
                                      wall_now());
    if (lines.empty()) return;
    if (Status written = folder_.logs().write(launch_.log + ".end.log", lines); !written)
      report_error(written.error().text);
  }

  std::string last_lines() const {
    std::string out;
    for (const std::string& path : log_paths_) {
      std::ifstream file(path, std::ios::binary | std::ios::ate);
      const auto size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
      std::string part(static_cast<size_t>(std::min(size, kTailBytes)), '\0');
      file.seekg(size - static_cast<std::streamoff>(part.size()));
      file.read(part.data(), static_cast<std::streamsize>(part.size()));
      out += part + "\n";
    }
    return out;
  }

  int start_command() {
    app::CommandOptions options;
    options.words = o_.command;
    if (!o_.no_arm)
      for (const app::ArmedVariable& v : app::armed_variables(places_of(folder_, launch_), variable))
        options.environment.push_back(v.name + "=" + v.value);
    kills_ = app::memory_kills();
    began_ns_ = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    auto command = app::ChildCommand::start(options);
    if (command) return command_ = std::move(*command), kDone;
    report_error(command.error().text);
    if (!launch_.in_team) folder_.remove();
    return command.error().code == ErrorCode::kNotFound ? kNotFound : kDenied;
  }

  void start_log() {
    std::vector<std::string> names = {launch_.log + ".log"};
    if (command_->has_two_streams()) names = {launch_.log + ".out.log", launch_.log + ".err.log"};
    for (const std::string& name : names) log_paths_.push_back(folder_.logs().path() + "/" + name);
    log_ = std::make_unique<app::OutputLog>(folder_.logs(), std::move(names), kLogBytes);
  }

  void start_daemon() {
    auto daemon = app::start_daemon(folder_, launch_, {o_.hang_after, app::may_read_kernel()});
    if (!daemon) return tell(without_daemon(daemon.error().text));
    daemon_ = daemon->pid;
    server_ = daemon->server;
    follow_ = std::make_unique<app::Follow>(server_, launch_.job);
    announce_attempt(kAttemptTries);
    command_->watch_descriptor(follow_->descriptor(), [this] { announce(); });
    command_->watch(daemon_, [this](int status) {
      daemon_ = -1;
      const std::string words = app::last_daemon_words(folder_);
      tell(without_daemon(
          WIFSIGNALED(status)
              ? fmt::format("culpritd was killed by {}", app::signal_name(WTERMSIG(status)))
              : fmt::format("culpritd ended with exit code {}: {}", WEXITSTATUS(status), words)));
    });
  }

  // Of an attempt; the trace socket is there once the daemon has started.
  void announce_attempt(int tries) {
    const auto attempt = app::begun_attempt(launch_.job, variable);
    if (o_.report_to < 0 || !attempt || tries <= 0) return;
    if (!app::send_to_trace(folder_.runtime() + "/trace.sock", app::to_line(*attempt)))
      command_->call_after(kAttemptEvery, [this, tries] { announce_attempt(tries - 1); });
  }

  static std::string without_daemon(const std::string& why) {
    return why + "; the command runs on, hangs are not watched, and if it fails its output is read";
  }

  bool daemon_lives() const { return daemon_ > 0; }

  // The daemon reads the logs by path. A user who moves the folder may put other logs there.
  bool reads_our_logs() {
    if (folder_.logs().is_there()) return true;
    if (!std::exchange(told_moved_, true))
      tell(folder_.path() + ": was moved or replaced: what its logs say live is left out");
    return false;
  }

  void stop_daemon() {
    // The daemon's data is already saved or useless, so no orderly end is needed.
    if (daemon_ > 0) {
      ::kill(daemon_, SIGKILL);
      ::waitpid(std::exchange(daemon_, -1), nullptr, 0);
    }
    follow_.reset();
  }

  // Call only before the command has ended.
  void tell(const std::string& sentence) { command_->tell("culprit: " + to_terminal(sentence) + "\n"); }

  void announce() {
    const auto text = follow_->take();
    if (!text || !reads_our_logs()) return;
    const auto report = report_from_json(*text);
    if (!report) return;
    const Diagnosis* verdict = report->verdict ? &report->diagnoses[*report->verdict] : nullptr;
    const std::string title = verdict ? verdict->title : "";
    last_report_ = verdict ? text : std::nullopt;
    watch_hang(verdict && verdict->symptom == Symptom::kHang);
    if (title == told_ || told_count_ >= kToldMost) return;
    ++told_count_;
    if (!verdict) return tell("no longer so: " + std::exchange(told_, ""));
    told_ = title;
    RenderOptions options;
    options.zone = zone_;
    options.zone_name = "local time";
    tell(headline(*report, options));
    const Advice what = advice(*verdict);
    for (const std::string& sentence : {what.action, what.remedy})
      if (!sentence.empty()) tell("  " + sentence);
    tell(fmt::format("  more: culprit report {} --server {}", launch_.job, server_));
  }

  // Ends a command that hangs too long; the report with its stacks is complete by then.
  void watch_hang(bool hangs) {
    if (o_.report_to < 0 || hangs == hangs_) return;
    hangs_ = hangs;
    const TimeNs after = app::parse_duration(o_.retry.end_hang).value_or(0);
    const TimeNs held = app::parse_duration(o_.hang_after).value_or(kHangAfter);
    if (hangs) command_->call_after(std::max(after - held, kHangEvidence), [this] { end_hang(); });
  }

  void end_hang() {
    if (!hangs_) return;
    tell("it still hangs, and is ended");
    ::kill(command_->pid(), std::exchange(ended_hang_, true) ? SIGKILL : SIGTERM);
    command_->call_after(kHangPatience, [this] { end_hang(); });
  }

  const RunOptions& o_;
  app::Launch launch_;
  app::RunFolder folder_;
  Zone zone_;
  std::unique_ptr<app::ChildCommand> command_;
  std::unique_ptr<app::OutputLog> log_;
  std::vector<std::string> log_paths_;
  pid_t daemon_ = -1;
  std::string server_;
  std::unique_ptr<app::Follow> follow_;
  std::optional<std::string> last_report_;
  std::string told_;
  int told_count_ = 0;
  bool told_moved_ = false;
  bool hangs_ = false, ended_hang_ = false;
  std::optional<app::MemoryKills> kills_;
  TimeNs began_ns_ = 0;
};

Status check_run_options(const RunOptions& o) {
  if (!o.job.empty())
    if (const std::string why = app::check_run_name(o.job); !why.empty())
      return fail(ErrorCode::kInvalid, "--job " + why);
  if (!o.hang_after.empty()) {
    const auto after = app::parse_duration(o.hang_after);
    if (!after || *after < kNsPerSecond)
      return fail(ErrorCode::kInvalid, "--hang-after must be a duration of 1s or more, as 90s or 5m");
  }
  if (Status checked = check_retry_options(o.retry); !checked) return checked;
  if (o.retry.nodes > 0 && o.shared.empty())
    return fail(ErrorCode::kInvalid, "--nodes needs --shared DIR, a folder that all hosts of the job see");
  if (o.command.empty() && !o.show_env)
    return fail(ErrorCode::kInvalid, "no command: culprit run -- COMMAND...; see `culprit run --help`");
  return {};
}

std::optional<ResumeFrom> newest_checkpoint(const std::string& folder, std::optional<int64_t> before,
                                            LeftOut* left_out) {
  app::CheckpointOptions options;
  if (left_out) options.left_out = [left_out](const auto& one) { left_out->push_back(one); };
  options.bytes = true;
  options.settled = true;  // no attempt runs
  options.now = wall_now();
  auto found = app::newest_whole_checkpoint(folder, options, before);
  if (found) return ResumeFrom{std::move(found->path), found->step};
  if (found.error().code != ErrorCode::kNotFound) report_error(found.error().text);
  return std::nullopt;
}

TimeNs newest_saved_ns(const std::string& folder) {
  app::CheckpointOptions options;
  options.settled = true;
  options.now = wall_now();
  TimeNs out = kNoTime;
  const auto look = app::look_at_checkpoints(folder, options);
  if (!look) return out;
  for (const app::SeriesLook& series : look->series)
    if (const checkpoint::Judged* newest = checkpoint::newest_whole(series.checkpoints))
      out = std::max(out, newest->checked.changed_ns);
  return out;
}

// The folder of the run; a successor job goes on in that of the job before, with its attempts.
Result<app::RunFolder> open_folder(const RunOptions& o, app::Launch& launch, EarlierAttempts& earlier) {
  earlier.handover = app::handover_of(o.command, variable);
  for (const char* name : {app::kSuccessorVariable, app::kAttemptVariable, app::kResumeVariable})
    if (earlier.handover) ::unsetenv(name);
  if (earlier.handover && o.retry.used()) {
    app::Launch before = launch;
    before.job = earlier.handover->run;
    before.continues = true;
    auto folder = app::RunFolder::create({o.dir, o.shared, variable}, before);
    const auto lines = folder ? folder->held().read("attempts.jsonl", app::kLedgerBytes)
                              : Result<std::string>(tl::unexpected(folder.error()));
    if (lines) earlier.attempts = app::attempts_of(*lines);
    if (app::goes_on(earlier.attempts, variable("SLURM_JOB_ID").value_or(""))) {
      launch = std::move(before);
      return folder;
    }
    if (lines) earlier = {};  // this job is another one
    if (!lines) report_error("the attempts before this one are not counted: " + lines.error().text);
  }
  return app::RunFolder::create({o.dir, o.shared, variable}, launch);
}

int run_attempts(const RunOptions& o, const app::Launch& launch, app::RunFolder& folder, const Zone& zone,
                 EarlierAttempts earlier) {
  if (launch.in_team && o.retry.nodes == 0) {
    report_error(
        "--retries: this is one of several tasks of a job; run one culprit in front of srun, mpirun or "
        "torchrun, or one on each host with --nodes N --shared DIR");
    return kUnable;
  }
  RunAgain again{o.retry, launch, folder, {}, o.command, o.choices.keep, zone, {}, {}};
  if (!o.retry.checkpoints.empty()) {
    again.newest = [&o](std::optional<int64_t> before, LeftOut* left_out) {
      return newest_checkpoint(o.retry.checkpoints, before, left_out);
    };
    again.saved_ns = [&o] { return newest_saved_ns(o.retry.checkpoints); };
  }
  again.earlier = std::move(earlier);
  if (!o.hang_after.empty()) again.passed_on = {"--hang-after", o.hang_after};
  if (o.no_arm) again.passed_on.emplace_back("--no-arm");
  if (o.no_color) again.passed_on.emplace_back("--no-color");
  if (o.choices.verbose) again.passed_on.emplace_back("--verbose");
  if (o.retry.nodes > 0) return run_as_member(again, o.choices, zone);
  const int code = run_with_retries(again);
  if (code != 0) (void)app::remove_old_runs(folder.root(), o.choices.keep_runs, variable);
  return code;
}

int run_command(RunOptions& o) {
  if (Status checked = check_run_options(o); !checked) return report_error(checked.error().text), kUnable;
  app::LaunchRequest request{o.command, o.job, machine_name(), moment_now(), variable};
  app::Launch launch = app::understand_launch(request);
  if (o.show_env) return show_environment(o, launch);
  if (o.retry.nodes > 0)
    if (Status joined = join_members(o.retry, !o.job.empty(), launch); !joined)
      return report_error(joined.error().text), kUnable;
  if (const auto part = take_attempt_member()) {
    o.is_part = launch.in_team = true;
    launch.member = part->number, launch.members = part->count;
    launch.local = 0, launch.local_members = 1;
  }
  o.choices.color = !o.no_color && !std::getenv("NO_COLOR") && ::isatty(STDERR_FILENO);
  const auto zone = zone_named("local");
  EarlierAttempts earlier;
  auto folder = open_folder(o, launch, earlier);
  // Alone, a command of several hosts would wait for them in vain.
  if (!folder && o.retry.nodes > 0) return report_error(folder.error().text), kUnable;
  if (!folder) return run_plainly(o, folder.error().text);
  if (!folder->note().empty()) report_error(folder->note());
  o.report_to = take_report_descriptor();
  if (o.retry.used()) return run_attempts(o, launch, *folder, zone ? *zone : Zone(), std::move(earlier));
  return Session(o, std::move(launch), std::move(*folder), zone ? *zone : Zone()).run();
}

}  // namespace

void add_run_command(Command& app, Run& run) {
  auto o = std::make_shared<RunOptions>();
  Command* verb = app.add_subcommand("run", "Run a command and say why it failed or hangs; without root");
  verb->footer(kRunExamples);
  verb->add_option("COMMAND", o->command, "What to run, behind --, with its arguments");
  verb->add_option("--job", o->job, "Name of the job; default: Slurm's, else the program and the time");
  verb->add_option("--dir", o->dir, "Folder of the run's folder; default: $XDG_STATE_HOME/culprit/run")
      ->type_name("DIR");
  verb->add_option("--shared", o->shared, "The same, on a file system that all hosts of the job see")
      ->type_name("DIR");
  verb->add_option("--hang-after", o->hang_after, "Without progress for so long, the job hangs; default: 60s")
      ->type_name("DURATION");
  verb->add_flag("--no-arm", o->no_arm, "Add nothing to the command's environment");
  verb->add_flag("--show-env", o->show_env, "Print what is added to the environment, with reasons, and exit");
  verb->add_flag("--keep", o->choices.keep, "Keep the folder of the run also when all went well");
  verb->add_option("--keep-runs", o->choices.keep_runs, "Failed runs that are kept; older ones are removed")
      ->show_default();
  verb->add_option(
          "--retries", o->retry.retries,
          "Run it again after a failure that another attempt may not have; so many attempts in a row "
          "without progress")
      ->type_name("N");
  verb->add_option(
          "--nodes", o->retry.nodes,
          "With --retries, one attempt runs on so many hosts: one such culprit on each, with --shared")
      ->type_name("N");
  verb->add_option("--spares", o->retry.spares,
                   "Hosts besides --nodes that wait and take the place of one that is left out")
      ->type_name("S");
  verb->add_option("--end-others", o->retry.end_others,
                   "With --nodes, time for the other hosts to end after one failed")
      ->type_name("DURATION")
      ->show_default();
  verb->add_option(
          "--checkpoints", o->retry.checkpoints,
          "Folder of checkpoints: the newest whole one is CULPRIT_RESUME and {resume} of the command")
      ->type_name("DIR");
  verb->add_option("--code", o->retry.code,
                   "job.toml whose [code] has the program's revision, and one that is pending: the attempt "
                   "after a failure takes it; CULPRIT_REVISION and {revision} of the command")
      ->type_name("FILE");
  verb->add_option("--code-within", o->retry.code_within,
                   "A revision that is pending for so long ends a running attempt after its next checkpoint; "
                   "0s: never")
      ->type_name("DURATION")
      ->show_default();
  verb->add_option("--end-hang", o->retry.end_hang, "With --retries, a hang is ended after so long")
      ->type_name("DURATION")
      ->show_default();
  verb->add_option("--min-gpus", o->retry.min_gpus,
                   "An attempt may leave out GPUs that the diagnosis names, by UUID, while so many remain; "
                   "{ngpus} of the command is their number")
      ->type_name("M");
  verb->add_option("--min-time", o->retry.min_time, "No attempt with less left of Slurm's allocation")
      ->type_name("DURATION")
      ->show_default();
  verb->add_option("--no-retry-on", o->retry.no_retry_on,
                   "A rule that ends the attempts; 'pytorch.*' for all of a kind")
      ->type_name("RULE");
  verb->add_flag(
      "--verdict-exit", o->retry.verdict_exit,
      "Exit with 93 where another attempt will not help, with 138 where it may; else as the command");
  verb->add_flag(
      "--successor", o->retry.successor,
      "With --retries in a batch job of Slurm: where no attempt is left for this job, submit its script once "
      "more, without the hosts that failed");
  verb->add_flag("--verbose", o->choices.verbose, "Print a line also when all went well");
  verb->add_flag("--no-color", o->no_color, "Print no colours");
  verb->callback([o, &run] { run = [o] { return run_command(*o); }; });
}

}  // namespace culprit::cli
