#include "app/play/play.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "app/client.h"
#include "base/text.h"
#include "ingest/text_reader.h"
#include "io/uv/env.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using Json = nlohmann::json;

constexpr TimeNs kShowEvery = 500 * kNsPerMs;
// Limit of the wait for the report after the last acknowledgement, and the interval of requests for it.
constexpr TimeNs kReportPatience = 60 * kNsPerSecond;
constexpr auto kAskEvery = std::chrono::milliseconds(20);
// Descriptors in addition to one per host.
constexpr uint64_t kOtherDescriptors = 64;

Status allow_descriptors(size_t hosts) {
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < hosts + kOtherDescriptors)
    return fail(ErrorCode::kLimit, fmt::format("{} hosts need as many connections, and this process may have "
                                               "{}: raise `ulimit -n`",
                                               hosts, files.rlim_cur));
  return {};
}

// A new job name that starts with the original one.
std::string fresh_id(const std::string& of) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return fmt::format("{}-played-{:x}", of,
                     std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

// The job's last run at the collector before the play. An error if that run is still running: its lines would
// mix with the played ones.
Result<std::optional<uint64_t>> run_before(const PlayRun& run) {
  auto client = Client::make({*run.server, ""});
  if (!client) return tl::unexpected(client.error());
  const auto jobs = client->get("/v1/jobs");
  if (!jobs) return tl::unexpected(jobs.error());
  const auto row = last_run(*jobs, run.play.job);
  if (!row) return std::nullopt;
  if (row->runs)
    return fail(ErrorCode::kInvalid,
                fmt::format("job {}: runs at the collector; give the played one another id with --job",
                            to_terminal(run.play.job)));
  return row->run;
}

// The state of play() on its loop.
class Playing {
 public:
  Playing(io::Env& env, PlayRun& run, std::optional<uint64_t> before)
      : env_(env), run_(run), before_(before) {}
  ~Playing() { given_up_ = true; }

  Result<PlayOutcome> go(SlicedJob job) {
    auto player = Player::start(env_, run_.play, std::move(job));
    if (!player) return tl::unexpected(player.error());
    player_ = std::move(*player);
    auto worker = env_.worker("server");
    if (!worker) return tl::unexpected(worker.error());
    asking_ = std::move(*worker);
    player_->on_failed = [this](const Error& error) { end(error); };
    player_->on_given = [this] { request_report(); };
    player_->on_done = [this] { look_for_end(); };
    show_ = env_.timer([this] { tick(); });
    show_->start(kShowEvery, kShowEvery);
    const auto stop = [this] {
      out_.stopped = true;
      env_.stop();
    };
    auto first = env_.on_signal(SIGINT, stop), second = env_.on_signal(SIGTERM, stop);
    moved_ns_ = now();
    env_.run();
    given_up_ = true;
    out_.counters = player_->counters();
    if (error_) return tl::unexpected(*error_);
    return std::move(out_);
  }

 private:
  struct Report {
    std::string trouble;
    std::optional<std::string> verdict;
    TimeNs at_ns = kNoTime;
  };

  TimeNs now() const { return env_.now(io::Clock::kMonotonic); }
  void end(Error error) {
    error_ = std::move(error);
    env_.stop();
  }

  void tick() {
    const PlayCounters counters = player_->counters();
    if (run_.show) run_.show(counters);
    const uint64_t moved =
        counters.acknowledged + counters.connected + static_cast<uint64_t>(counters.job_ns);
    if (std::exchange(moved_, moved) != moved || counters.done_ns != kNoTime || !sends(counters))
      moved_ns_ = now();
    if (now() - moved_ns_ < run_.patience_ns) return;
    std::string why =
        counters.trouble.empty() ? fmt::format("{}: acknowledges nothing", run_.play.to) : counters.trouble;
    if (run_.play.tls_folder.empty() && counters.begun_ns == kNoTime) why += "; if it uses TLS, name --tls";
    end({ErrorCode::kIo, std::move(why)});
  }
  // Whether frames are unacknowledged; a slow job may have none for a long time.
  bool sends(const PlayCounters& counters) const {
    return counters.begun_ns == kNoTime || counters.acknowledged < counters.frames;
  }

  void request_report() {
    if (!run_.server) return;
    auto report = std::make_shared<Report>();
    const uint64_t lines = player_->counters().lines;
    asking_->submit([this, report, lines] { *report = wait_for_report(lines); },
                    [this, report] {
                      out_.report_trouble = report->trouble;
                      out_.verdict = report->verdict;
                      if (report->at_ns != kNoTime)
                        out_.report_after_ns = report->at_ns - player_->counters().given_ns;
                      reported_ = true;
                      look_for_end();
                    });
  }

  // Runs on the worker.
  Report wait_for_report(uint64_t lines) {
    Report report;
    auto client = Client::make({*run_.server, ""});
    if (!client) return report.trouble = client.error().text, report;
    const TimeNs until = now() + kReportPatience;
    for (;;) {
      const auto jobs = client->get("/v1/jobs");
      if (!jobs) return report.trouble = jobs.error().text, report;
      const auto row = last_run(*jobs, run_.play.job);
      if (row && row->run != before_ && (row->lines >= lines || !row->runs)) break;
      if (given_up_ || now() > until)
        return report.trouble =
                   fmt::format("job {}: the collector does not have all lines", to_terminal(run_.play.job)),
               report;
      std::this_thread::sleep_for(kAskEvery);
    }
    const auto answer = client->get("/v1/jobs/" + url_escaped(run_.play.job) + "/report");
    if (!answer) return report.trouble = answer.error().text, report;
    report.at_ns = now();
    const Json json = parse_json(*answer);
    static const Json::json_pointer kTitle("/verdict/title");
    if (json.is_object() && json.contains(kTitle) && json.at(kTitle).is_string())
      report.verdict = json.at(kTitle).get<std::string>();
    return report;
  }

  void look_for_end() {
    if (player_->counters().done_ns != kNoTime && (reported_ || !run_.server)) env_.stop();
  }

  io::Env& env_;
  PlayRun& run_;
  const std::optional<uint64_t> before_;  // the job's last run before the play
  PlayOutcome out_;
  std::optional<Error> error_;
  std::atomic<bool> given_up_ = false;
  bool reported_ = false;
  uint64_t moved_ = 0;
  TimeNs moved_ns_ = kNoTime;  // time of the last progress
  std::unique_ptr<io::Timer> show_;
  std::unique_ptr<Player> player_;
  std::unique_ptr<io::Worker> asking_;  // destroyed first
};

}  // namespace

std::optional<PlayedRun> last_run(const std::string& answer, const std::string& job) {
  const Json list = parse_json(answer);
  if (!list.is_object()) return std::nullopt;
  const auto items = list.find("items");
  if (items == list.end() || !items->is_array()) return std::nullopt;
  const auto number = [](const Json& row, const char* name) {
    const auto found = row.find(name);
    return found != row.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
  };
  std::optional<PlayedRun> last;
  for (const Json& row : *items) {
    if (!row.is_object()) continue;
    const auto id = row.find("id"), state = row.find("state");
    if (id == row.end() || *id != Json(job)) continue;
    const PlayedRun run{number(row, "run"), number(row, "lines"),
                        state == row.end() || *state == Json("running")};
    if (!last || run.run > last->run) last = run;
  }
  return last;
}

Result<PlayOutcome> play(PlayRun run) {
  // Folders from `culprit simulate logs` include healthy jobs, which are not played.
  std::error_code ignored;
  if (std::filesystem::is_directory(run.folder + "/job", ignored)) run.folder += "/job";
  auto job = slice_job(run.folder, kPlayStep);
  if (!job) return tl::unexpected(job.error());
  for (const LogFile& file : job->files.logs)
    if (ingest::is_stream(file.file))
      return fail(ErrorCode::kInvalid, file.file.path + ": is compressed, and plain files alone are played");
  if (const Status allowed = allow_descriptors(job->hosts.size()); !allowed)
    return tl::unexpected(allowed.error());
  run.play.root = run.folder;
  if (run.play.job.empty()) run.play.job = fresh_id(job->files.job.id.value_or("job"));
  std::optional<uint64_t> before;
  if (run.server) {
    auto known = run_before(run);
    if (!known) return tl::unexpected(known.error());
    before = *known;
  }
  auto env = io::make_uv_env();
  return Playing(*env, run, before).go(std::move(*job));
}

}  // namespace culprit::app
