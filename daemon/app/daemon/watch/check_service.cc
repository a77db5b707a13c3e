#include "app/daemon/watch/check_service.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/daemon/watch/check_finding.h"
#include "base/text.h"

namespace culprit::app {
namespace {

// A host of 20,000 processes is scanned each 40 s.
constexpr TimeNs kScanPatience = 5 * kNsPerSecond;
constexpr int kScanTries = 10;
constexpr const char* kBusy = "another check runs";
constexpr const char* kUnknownProcesses = "the processes of this host are unknown";

// Why no check may run now; nothing: it may. `sure`: by a scan that begins now; else the last one counts too.
using InTheWay = std::function<std::optional<std::string>(bool sure)>;

// A job that begins while a check runs ends the check. `why` outlives the run.
std::function<bool()> ends_for_job(const InTheWay& look, std::optional<std::string>& why) {
  return [&look, &why] {
    if (!why) why = look(false);
    return why.has_value();
  };
}

}  // namespace

struct CheckService::Done {
  check::Outcome outcome;
  bool ran = false;
};

struct CheckService::Aligned {
  AlignRun run;
  bool ran = false;
};

CheckService::~CheckService() {
  *stopping_ = true;
  if (worker_) worker_->abandon();
}

void CheckService::take(const peer::Message& request) {
  if (*stopping_) return;
  if (const auto* one = std::get_if<peer::CheckHost>(&request)) return check(*one);
  if (const auto* one = std::get_if<peer::AlignHost>(&request)) return align(*one);
  const auto* judged = std::get_if<peer::AlignJudged>(&request);
  if (judged == nullptr || !options_.config->check.enabled) return;
  options_.log(
      judged->answer == peer::CheckAnswer::kFailed ? LogLevel::kWarning : LogLevel::kInfo,
      fmt::format("equal step of this host for {}: {}; {}", to_terminal(judged->decision),
                  check::to_string(static_cast<check::Answer>(judged->answer)), to_terminal(judged->why)));
  store(finding_of_alignment({static_cast<check::Answer>(judged->answer), to_terminal(judged->why)},
                             env_.now(io::Clock::kWall)));
}

// `last_ns`: of the last one of its kind.
std::string CheckService::refusal(TimeNs last_ns) const {
  if (!options_.config->check.enabled) return "check.enabled is off on this host";
  const TimeNs since = env_.now(io::Clock::kMonotonic) - last_ns;
  if (last_ns != kNoTime && since < options_.config->check.every_ns)
    return fmt::format("the last one was {} ago, and check.every is {}", format_duration(since),
                       format_duration(options_.config->check.every_ns));
  return busy_ ? kBusy : "";
}

// Empty: there is one.
std::string CheckService::make_worker() {
  if (worker_) return {};
  auto made = env_.worker("host check");
  if (!made) return made.error().text;
  worker_ = std::move(*made);
  return {};
}

// On the worker.
std::function<std::optional<std::string>(bool sure)> CheckService::in_the_way() {
  return [stop = stopping_, processes = options_.processes,
          &env = env_](bool sure) -> std::optional<std::string> {
    const TimeNs asked = env.now(io::Clock::kWall);
    for (int tries = sure ? kScanTries : 1; tries > 0; --tries) {
      if (*stop) return "the daemon stops";
      const auto view = processes->view(asked, kScanPatience);
      if (view && (!sure || view->began_ns >= asked)) return job_in_the_way(*view, ::geteuid());
    }
    return kUnknownProcesses;
  };
}

void CheckService::check(const peer::CheckHost& request) {
  std::string why = refusal(began_ns_);
  if (why.empty()) why = make_worker();
  if (!why.empty()) return answer(request.decision, {check::Answer::kNoAnswer, why});
  HostCheckOptions options = host_check_options(*options_.config);
  options.within_ns = std::min(options.within_ns, TimeNs{request.within_ms} * kNsPerMs);
  options.stop = stopping_.get();
  busy_ = true;
  auto done = std::make_shared<Done>();
  worker_->submit(
      [options, done, look = in_the_way(), run = options_.check]() mutable {
        auto job = look(true);
        options.ends_early = ends_for_job(look, job);
        if (!job) done->ran = true, done->outcome = run(options).outcome;
        // What a job needs at the same time may fail a test of a sound host.
        if (!job && done->outcome.answer == check::Answer::kFailed) job = look(true);
        if (job) done->outcome = {check::Answer::kNoAnswer, *job};
      },
      [this, done, decision = request.decision, began = env_.now(io::Clock::kMonotonic)] {
        busy_ = false;
        if (done->ran) {
          began_ns_ = began;
          const TimeNs now = env_.now(io::Clock::kWall);
          store(finding_of_check(done->outcome, now));
          // A repair is proven by a check: an alignment needs peers.
          if (done->outcome.answer == check::Answer::kPassed) store(finding_of_alignment(done->outcome, now));
        }
        answer(decision, done->outcome);
      });
}

void CheckService::align(const peer::AlignHost& request) {
  peer::AlignResult out;
  out.decision = request.decision;
  out.why = options_.config->check.align.empty() && options_.config->check.enabled
                ? "check.align is not set on this host"
                : refusal(aligned_ns_);
  out.later = out.why == kBusy;
  if (out.why.empty()) out.why = make_worker();
  if (!out.why.empty()) return answer(out);
  AlignRunOptions options = align_run_options(*options_.config);
  options.within_ns = std::min(options.within_ns, TimeNs{request.within_ms} * kNsPerMs);
  options.stop = stopping_.get();
  busy_ = true;
  auto done = std::make_shared<Aligned>();
  worker_->submit(
      [options, done, look = in_the_way(), run = options_.align]() mutable {
        auto job = look(true);
        options.ends_early = ends_for_job(look, job);
        if (!job) done->ran = true, done->run = run(options);
        if (job) done->run = {{}, *job};
      },
      [this, done, out, began = env_.now(io::Clock::kMonotonic)]() mutable {
        busy_ = false;
        if (done->ran) aligned_ns_ = began;
        out.rows = std::move(done->run.rows);
        out.why = std::move(done->run.why);
        out.later = !done->ran;
        answer(out);
      });
}

void CheckService::answer(const peer::AlignResult& result) {
  if (*stopping_) return;
  options_.log(LogLevel::kInfo,
               fmt::format("equal step of this host for {}: {}", to_terminal(result.decision),
                           result.rows.empty() ? "no answer; " + to_terminal(result.why)
                                               : counted(result.rows.size(), "device")));
  options_.answer(result);
}

// The jobs of this host see it: of a failed check while it stands, and no more after one that passes.
void CheckService::store(const std::optional<PluginFinding>& found) {
  if (!found || !options_.recorder || !options_.take || *stopping_) return;
  PluginFinding finding = *found;
  (void)fit_line(finding);
  if (!source_) source_.emplace(*options_.recorder, kCheckSource);
  options_.take(source_->batch(finding_line(finding) + "\n", finding.time_ns));
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
  options_.answer(peer::CheckResult{decision, static_cast<peer::CheckAnswer>(outcome.answer), outcome.why});
}

}  // namespace culprit::app
