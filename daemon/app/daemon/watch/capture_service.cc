#include "app/daemon/watch/capture_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/daemon/watch/capture_findings.h"
#include "ingest/live/trace_lines.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

constexpr size_t kWaitingJobs = 16;
constexpr TimeNs kLookPatience = 5 * kNsPerSecond;  // limit of the wait for the job's process list
constexpr size_t kErrorsReported = 32;
constexpr size_t kTroubles = 256;  // limit of jobs whose last capture is stored

constexpr std::string_view kRemedy = "; `sudo culprit doctor` has the remedy";

// culprit-capture's reason for the first process that it could not inspect.
std::string why_none(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const auto json = parse_json(line);
    if (json.is_object() && json.contains("why") && json["why"].is_string())
      return json["why"].get<std::string>();
  }
  return "culprit-capture gives no reason";
}

}  // namespace

struct CaptureService::Done {
  size_t targets = 0;
  Result<HelperLines> lines = HelperLines{};
};

CaptureService::CaptureService(io::Env& env, CaptureServiceOptions options)
    : env_(env), options_(std::move(options)), source_(*options_.recorder, kCaptureSource) {}

CaptureService::~CaptureService() {
  if (worker_) worker_->abandon();
}

void CaptureService::capture(const peer::StacksWanted& wanted) {
  if (stopping_ || !options_.config->capture.enabled) return;
  const auto same =
      std::find_if(waiting_.begin(), waiting_.end(), [&](const Asked& a) { return a.job == wanted.job; });
  if (same != waiting_.end()) return void(*same = wanted);
  if (waiting_.size() >= kWaitingJobs) return void(++counters_.refused);
  waiting_.push_back(wanted);
  begin();
}

void CaptureService::begin() {
  if (busy_ || waiting_.empty()) return;
  if (!worker_) {
    auto made = env_.worker("capture");
    if (!made) {
      ++counters_.failed;
      return waiting_.clear();
    }
    worker_ = std::move(*made);
  }
  busy_ = true;
  const Asked asked = std::move(waiting_.front());
  waiting_.pop_front();
  const Config& config = *options_.config;
  capture::Request request;
  request.job = asked.job;
  request.host = config.host.name;
  request.sample = asked.sample;
  request.rings = config.trace.rings;
  request.tools = config.capture.tools;
  request.budget_ns = config.capture.budget_ns;
  request.at_once = static_cast<uint32_t>(config.capture.at_once);
  auto done = std::make_shared<Done>();
  worker_->submit(
      [way = options_.way, processes = options_.processes, request = std::move(request), done,
       since = env_.now(io::Clock::kWall)]() mutable {
        for (const auto& process : processes->processes_of(request.job, since, kLookPatience))
          if (request.targets.size() < capture::kTargets && process.pid > 1)
            request.targets.push_back({process.pid, process.start_ticks});
        done->targets = request.targets.size();
        if (!request.targets.empty()) done->lines = run_capture(way, request);
      },
      [this, asked, done] {
        busy_ = false;
        ended(asked, *done);
        begin();
      });
}

void CaptureService::ended(const Asked& asked, Done& done) {
  if (stopping_) return;
  ++counters_.captures;
  std::string trouble;
  if (!done.lines)
    trouble = done.lines.error().text;
  else if (done.targets == 0)
    trouble = "no process of the job is known on this host";
  else if (done.lines->lines.empty())
    trouble = "culprit-capture found no rank among the processes of the job";
  if (!trouble.empty()) {
    keep_trouble(asked.job, done.lines ? trouble : trouble + std::string(kRemedy));
    ++counters_.failed;
    const bool is_new =
        errors_reported_.size() < kErrorsReported && errors_reported_.insert(asked.job + trouble).second;
    if (is_new)
      options_.log(LogLevel::kWarning, fmt::format("job {} is not captured: {}", asked.job, trouble));
    return;
  }
  counters_.dropped += done.lines->dropped;
  const uint64_t before = counters_.with_stacks;
  std::string bytes;
  for (const std::string& line : done.lines->lines) add_line(asked, line, bytes);
  keep_trouble(asked.job,
               counters_.with_stacks > before ? "" : why_none(done.lines->lines) + std::string(kRemedy));
  options_.log(LogLevel::kInfo, fmt::format("job {}{}: {} captured, {} with stacks (sample {})", asked.job,
                                            asked.moves ? "" : " does not go on", done.lines->lines.size(),
                                            counters_.with_stacks - before, asked.sample));
  if (!bytes.empty()) options_.take(source_.batch(std::move(bytes), env_.now(io::Clock::kWall)));
}

void CaptureService::keep_trouble(const std::string& job, const std::string& why) {
  troubles_.erase(job);
  if (why.empty()) return;
  if (troubles_.size() >= kTroubles) troubles_.erase(troubles_.begin());
  troubles_[job] =
      fmt::format("the stacks of its processes on {}: none was taken: {}", options_.config->host.name, why);
}

std::string CaptureService::trouble_of(const std::string& job) const {
  const auto found = troubles_.find(job);
  return found == troubles_.end() ? "" : found->second;
}

// Skips a short disk wait or stop in a process of a job that makes progress: that is no fault.
void CaptureService::add_line(const Asked& asked, const std::string& line, std::string& bytes) {
  const auto parsed = ingest::parse_trace_line(line);
  if (!parsed || parsed->kind != ingest::TraceKind::kStack) return void(++counters_.dropped);
  ++counters_.processes;
  counters_.with_stacks += !parsed->threads.empty();
  bytes += line + "\n";
  if (asked.moves) return;
  if (const auto finding = finding_of_state(line)) bytes += finding_line(*finding) + "\n";
}

}  // namespace culprit::app
