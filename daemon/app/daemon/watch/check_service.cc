#include "app/daemon/watch/check_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/daemon/watch/check_finding.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kScanPatience = 5 * kNsPerSecond;  // limit of the wait for the processes of this host

}  // namespace

struct CheckService::Done {
  check::Outcome outcome;
  bool ran = false;
};

CheckService::~CheckService() {
  *stopping_ = true;
  if (worker_) worker_->abandon();
}

std::string CheckService::refusal() const {
  if (!options_.config->check.enabled) return "check.enabled is off on this host";
  if (busy_) return "another check runs";
  const TimeNs since = env_.now(io::Clock::kMonotonic) - began_ns_;
  if (began_ns_ != kNoTime && since < options_.config->check.every_ns)
    return fmt::format("the last check was {} ago, and check.every is {}", format_duration(since),
                       format_duration(options_.config->check.every_ns));
  return {};
}

void CheckService::check(const peer::CheckHost& request) {
  if (*stopping_) return;
  if (const std::string why = refusal(); !why.empty())
    return answer(request.decision, {check::Answer::kNoAnswer, why});
  if (!worker_) {
    auto made = env_.worker("host check");
    if (!made) return answer(request.decision, {check::Answer::kNoAnswer, made.error().text});
    worker_ = std::move(*made);
  }
  HostCheckOptions options = host_check_options(*options_.config);
  options.within_ns = std::min(options.within_ns, TimeNs{request.within_ms} * kNsPerMs);
  options.stop = stopping_.get();
  busy_ = true;
  auto done = std::make_shared<Done>();
  worker_->submit(
      [options, done, stop = stopping_, processes = options_.processes, run = options_.check, &env = env_] {
        const auto view = processes->view(env.now(io::Clock::kWall), kScanPatience);
        const auto why = view ? job_in_the_way(*view, ::geteuid()) : "the processes of this host are unknown";
        if (why) return void(done->outcome = {check::Answer::kNoAnswer, *why});
        done->ran = true;
        done->outcome = run(options).outcome;
      },
      [this, done, decision = request.decision, began = env_.now(io::Clock::kMonotonic)] {
        busy_ = false;
        if (done->ran) {
          began_ns_ = began;
          store(done->outcome);
        }
        answer(decision, done->outcome);
      });
}

// The jobs of this host see it: of a failed check while it stands, and no more after one that passes.
void CheckService::store(const check::Outcome& outcome) {
  const TimeNs now = env_.now(io::Clock::kWall);
  auto finding = finding_of_check(outcome, now);
  if (!finding || !options_.recorder || !options_.take || *stopping_) return;
  (void)fit_line(*finding);
  if (!source_) source_.emplace(*options_.recorder, kCheckSource);
  options_.take(source_->batch(finding_line(*finding) + "\n", now));
}

void CheckService::answer(const std::string& decision, const check::Outcome& outcome) {
  if (*stopping_) return;
  ++(outcome.answer == check::Answer::kPassed   ? counters_.passed
     : outcome.answer == check::Answer::kFailed ? counters_.failed
                                                : counters_.unanswered);
  const bool passed = outcome.answer == check::Answer::kPassed;
  options_.log(passed ? LogLevel::kInfo : LogLevel::kWarning,
               fmt::format("check of this host for {}: {}; {}", to_terminal(decision),
                           check::to_string(outcome.answer), outcome.why));
  options_.answer({decision, static_cast<peer::CheckAnswer>(outcome.answer), outcome.why});
}

}  // namespace culprit::app
