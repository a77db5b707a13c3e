#include "app/daemon/watch/end_service.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/jobs/job_names.h"
#include "app/tasks/end_tasks.h"

namespace culprit::app {
namespace {

constexpr size_t kWaitingRequests = 64;
constexpr TimeNs kListPatience = 5 * kNsPerSecond;  // limit of the wait for the job's process list

// The processes of the job are ended in rounds: a launcher may start another one meanwhile.
constexpr int kRounds = 3;

Result<EndCounts> ask_to_end(const HelperWay& way, const EndRequest& request, const std::atomic<bool>& stop) {
  const auto answer = ask_helper(way, to_line(request), {request.grace_ns + kKilledWithin, 1 << 16, &stop});
  if (!answer) return tl::unexpected(answer.error());
  if (answer->lines.empty()) return fail(ErrorCode::kIo, "culprit-end-tasks gives no answer");
  return parse_end_counts(answer->lines.front());
}

uint64_t ticks_since_boot() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto hertz = static_cast<uint64_t>(std::max(::sysconf(_SC_CLK_TCK), 1L));
  return static_cast<uint64_t>(now.tv_sec) * hertz +
         static_cast<uint64_t>(now.tv_nsec) * hertz / 1'000'000'000;
}

}  // namespace

struct EndService::Done {
  EndCounts counts;
  std::string error;
};

EndService::Done EndService::end_in_rounds(io::Env& env, const HelperWay& way, ProcessWatch& processes,
                                           const Asked& asked, const std::atomic<bool>& stop) {
  const peer::EndTasks& request = asked.request;
  Done done;
  EndRequest order;
  order.job = name_of_job(request.job);
  order.grace_ns = std::min(TimeNs{request.grace_ms} * kNsPerMs, kEndGraceMax);
  for (int round = 0; round < kRounds && !stop; ++round) {
    order.targets.clear();
    for (const auto& process : processes.processes_of(request.job, env.now(io::Clock::kWall), kListPatience))
      if (order.targets.size() < kEndTargets && process.pid > 1 && process.uid != 0 &&
          process.start_ticks <= asked.before_ticks)
        order.targets.push_back({process.pid, process.start_ticks});
    if (order.targets.empty()) break;
    const auto counts = ask_to_end(way, order, stop);
    if (!counts) {
      done.error = counts.error().text;
      break;
    }
    const uint32_t before = done.counts.ended;
    done.counts = *counts;
    done.counts.ended += before;
    if (counts->ended == 0) break;
  }
  return done;
}

EndService::~EndService() {
  *stopping_ = true;
  if (worker_) worker_->abandon();
}

void EndService::end(peer::EndTasks request) {
  if (*stopping_) return;
  if (!options_.config->act.end_tasks) {
    ++counters_.refused;
    return options_.log(LogLevel::kWarning,
                        fmt::format("the collector asks to end job {} ({}); act.end_tasks is off here",
                                    request.job, request.decision));
  }
  request.job = options_.known_as(request.job);
  for (const Asked& other : waiting_)
    if (other.request.job == request.job) return;
  if (waiting_.size() >= kWaitingRequests) return void(++counters_.refused);
  waiting_.push_back({request, ticks_since_boot()});
  begin();
}

void EndService::begin() {
  if (busy_ || waiting_.empty()) return;
  if (!worker_) {
    auto made = env_.worker("end tasks");
    if (!made) {
      counters_.failed += waiting_.size();
      return waiting_.clear();
    }
    worker_ = std::move(*made);
  }
  busy_ = true;
  const Asked asked = std::move(waiting_.front());
  waiting_.pop_front();
  auto done = std::make_shared<Done>();
  worker_->submit([way = options_.way, processes = options_.processes, asked, done, stop = stopping_,
                   &env = env_] { *done = end_in_rounds(env, way, *processes, asked, *stop); },
                  [this, request = asked.request, done] {
                    busy_ = false;
                    ended(request, *done);
                    begin();
                  });
}

void EndService::ended(const peer::EndTasks& request, const Done& done) {
  if (*stopping_) return;
  ++counters_.requests;
  counters_.processes += done.counts.ended;
  const bool failed = !done.error.empty() || done.counts.left > 0 || done.counts.refused > 0;
  counters_.failed += failed;
  const std::string& why = done.error.empty() ? done.counts.why : done.error;
  options_.log(failed ? LogLevel::kWarning : LogLevel::kInfo,
               fmt::format("job {} is ended for {}: {} processes{}{}", request.job, request.decision,
                           done.counts.ended, why.empty() ? "" : "; ", why));
}

}  // namespace culprit::app
