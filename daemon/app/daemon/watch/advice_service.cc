#include "app/daemon/watch/advice_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/jobs/job_names.h"
#include "base/text.h"
#include "respond/advice_file.h"

namespace culprit::app {
namespace {

constexpr size_t kWaitingAdvice = 64, kWaitingOfUsers = 8;  // no user takes the controller's place
constexpr size_t kUsersOfJob = 16;
constexpr uint32_t kUnknownUser = 65534;                  // stands for owners unknown to this host
constexpr TimeNs kAdviceScanPatience = 5 * kNsPerSecond;  // limit of the wait for the job's process list

Result<std::vector<uint32_t>> write_advice(const std::string& rings, ProcessWatch& processes,
                                           const peer::Advise& request, TimeNs since_ns) {
  std::set<uint32_t> users;
  for (const auto& process : processes.processes_of(request.job, since_ns, kAdviceScanPatience))
    if (process.uid != kUnknownUser && (request.uid == peer::Advise::kAnyUser || request.uid == process.uid))
      users.insert(process.uid);
  if (users.empty())
    return fail(ErrorCode::kNotFound,
                request.uid == peer::Advise::kAnyUser
                    ? fmt::format("job {} has no processes on this host", to_terminal(request.job))
                    : fmt::format("job {} has no processes of uid {} on this host", to_terminal(request.job),
                                  request.uid));
  if (users.size() > kUsersOfJob)
    return fail(ErrorCode::kLimit,
                fmt::format("processes of {} users claim job {}", users.size(), to_terminal(request.job)));
  const std::string name(name_of_job(request.job));
  for (const uint32_t uid : users)
    if (auto id = respond::put_advice({rings, uid, name}, request.advice, respond::since_boot_ns()); !id)
      return tl::unexpected(id.error());
  return std::vector<uint32_t>(users.begin(), users.end());
}

}  // namespace

AdviceService::~AdviceService() {
  *stopping_ = true;
  if (worker_) worker_->abandon();
}

void AdviceService::advise(peer::Advise request, Answer then) {
  if (*stopping_) return;
  const auto refuse = [&](ErrorCode code, std::string why) {
    answer(request, tl::unexpected(Error{code, std::move(why)}), then);
  };
  if (!options_.config->act.advise) return refuse(ErrorCode::kDenied, "act.advise is off on this host");
  if (options_.config->trace.rings.empty()) return refuse(ErrorCode::kDenied, "trace.rings is empty");
  const bool of_user = request.uid != peer::Advise::kAnyUser;
  if (waiting_ >= (of_user ? kWaitingOfUsers : kWaitingAdvice))
    return refuse(ErrorCode::kBusy, "too much advice waits to be written");
  request.job = options_.known_as(request.job);
  if (!worker_) {
    auto made = env_.worker("advice");
    if (!made) return refuse(ErrorCode::kIo, made.error().text);
    worker_ = std::move(*made);
  }
  ++waiting_;
  const auto done = std::make_shared<Result<std::vector<uint32_t>>>(std::vector<uint32_t>{});
  worker_->submit(
      [rings = options_.config->trace.rings, processes = options_.processes, request, done,
       now = env_.now(io::Clock::kWall)] { *done = write_advice(rings, *processes, request, now); },
      [this, request, done, then = std::move(then)] {
        --waiting_;
        if (!*stopping_) answer(request, *done, then);
      });
}

void AdviceService::answer(const peer::Advise& request, const Result<std::vector<uint32_t>>& done,
                           const Answer& then) {
  done ? counters_.written += done->size() : ++counters_.refused;
  options_.log(
      done ? LogLevel::kInfo : LogLevel::kWarning,
      fmt::format("advice {} for job {} ({}): {}", to_string(request.advice.kind), to_terminal(request.job),
                  to_terminal(request.decision),
                  done ? fmt::format("written for {}", counted(done->size(), "user")) : done.error().text));
  if (then) then(done);
}

}  // namespace culprit::app
