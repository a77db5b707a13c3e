#include "cli/run_retries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "app/config/options.h"
#include "app/run/attempt.h"
#include "app/run/attempt_event.h"
#include "app/run/attempt_plan.h"
#include "app/run/code.h"
#include "app/run/devices.h"
#include "app/run/leftovers.h"
#include "app/run/probe.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/attempt_process.h"
#include "cli/attempt_report.h"
#include "cli/attempt_text.h"
#include "cli/attempt_wait.h"
#include "cli/code_update.h"
#include "cli/environment.h"
#include "cli/run_slurm.h"
#include "cli/verbs.h"
#include "model/headline.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

using app::Attempt;

constexpr uint32_t kRetriesMost = 1000;
constexpr int kReaderLeft = 128 + SIGPIPE;
constexpr TimeNs kCodeLook = 10 * kNsPerSecond;  // between two looks at the file of --code

std::string processes(size_t n) { return n == 1 ? "1 process" : fmt::format("{} processes", n); }

bool matches(const std::string& wanted, const std::string& rule) {
  return wanted.ends_with('*') ? rule.starts_with(std::string_view(wanted).substr(0, wanted.size() - 1))
                               : rule == wanted;
}

class Retries {
 public:
  explicit Retries(const RunAgain& again)
      : run_(again),
        o_(again.options),
        mark_(app::make_mark()),
        process_(mark_),
        slurm_({o_.successor, again.earlier.handover && again.earlier.attempts.empty(), again.launch.job,
                again.command},
               again.earlier.attempts),
        update_(o_.code, app::parse_duration(o_.code_within).value_or(0)) {
    limits_.retries = o_.retries.value_or(0);
    limits_.min_left_ns = app::parse_duration(o_.min_time).value_or(limits_.min_left_ns);
    if (o_.min_gpus) gpus_ = app::visible_gpus(variable);
    if (o_.min_gpus && gpus_.gpus.empty()) report_error("--min-gpus: no GPU of a driver is visible here");
  }

  int run() {
    if (const size_t ended = app::end_orphans(); ended > 0)
      report_error(fmt::format("{} of a run that was killed {} ended first", processes(ended),
                               ended == 1 ? "was" : "were"));
    const app::Guardian guardian(mark_);
    take_earlier();
    for (;;) {
      Attempt& attempt = begin();
      if (!start(attempt)) {
        attempt.status = kCommandNotStarted, attempt.end_ns = attempt.begin_ns;
        return finish(kCommandNotStarted);
      }
      tell_daemon(attempt, "begin");
      attempt.status = wait_for_end();
      attempt.end_ns = wall_now();
      if (attempt.status == 0) {
        std::string left;
        (void)end_leftovers(mark_, attempt.begin_ns, left);
        return finish(0);
      }
      judge(attempt);
      if (attempt.decision.again) tell_daemon(attempt, "again");
      set_lost(attempt, attempt.end_ns);
      // Near its end a job has only seconds: the successor comes first.
      const bool leaves = attempt.decision.again && attempt.decision.way == recover::Way::kRequeue;
      if (leaves) (void)take_way(attempt);
      write_ledger();
      write_page();
      if (!clear_up(attempt) || leaves || !take_way(attempt) || !wait_for_next(attempt)) break;
    }
    return finish(exit_code());
  }

 private:
  // The attempts of the jobs that this one succeeds.
  void take_earlier() {
    attempts_ = run_.earlier.attempts;
    if (run_.earlier.handover) handed_ = run_.earlier.handover;
    for (const Attempt& attempt : attempts_) {
      if (attempt.status != 0) ledger_.add(attempt.failure);
      if (attempt.to) best_ = std::max(best_.value_or(-1), *attempt.to);
    }
  }

  // The checkpoint of the next attempt.
  std::optional<ResumeFrom> resume_after(const Attempt* last, LeftOut* left_out = nullptr) const {
    if (!run_.newest) return std::nullopt;
    return run_.newest(last && last->decision.older ? app::older_than(resumed_, fault_at_) : std::nullopt,
                       left_out);
  }

  // The checkpoint that the job before this one chose. A newer one may be there, which it left out.
  std::optional<ResumeFrom> handed_resume(LeftOut* left_out) {
    const std::string path = std::exchange(handed_, std::nullopt)->resume;
    std::optional<ResumeFrom> newest = resume_after(nullptr, left_out);
    if (!run_.newest || path.empty() || (newest && newest->path == path)) return newest;
    if (::access(path.c_str(), R_OK) == 0) return ResumeFrom{path, std::nullopt};
    report_error(path + ": the checkpoint that the job before chose is not there");
    return newest;
  }

  // Takes the way of the decision; false: no attempt follows here.
  bool take_way(Attempt& attempt) {
    if (!attempt.decision.again) return false;
    // There is no time to read checkpoints where Slurm ends the job; the successor reads them.
    const auto from = slurm_.is_ended_by_slurm() ? std::nullopt : resume_after(&attempt);
    const bool here = slurm_.take_way(attempt, from ? from->path : "");
    if (!attempt.successor.empty()) tell_daemon(attempt, "again");
    if (!here || !attempt.leaves_out.empty()) write_ledger();
    return here;
  }

  // Waits for the command, and ends it where a pending revision waits for too long.
  int wait_for_end() {
    const auto wait = [this](TimeNs within) { return process_.wait(within); };
    auto status = wait(o_.code.empty() ? kNoTime : kCodeLook);
    for (; !status; status = wait(kCodeLook))
      if (update_.is_due(attempts_, run_.saved_ns) && (status = process_.end(wait))) break;
    return *status;
  }

  Attempt& begin() {
    if (!attempts_.empty()) set_lost(attempts_.back(), wall_now());
    Attempt next;
    next.number = attempts_.empty() ? handed_ ? handed_->number : 1 : attempts_.back().number + 1;
    next.begin_ns = wall_now();
    next.from = best_;
    next.without = without_;
    next.job = variable("SLURM_JOB_ID").value_or("");
    next.revision = update_.next_revision(attempts_);
    next.failure.ran_on = {run_.launch.host};
    const Attempt* last = attempts_.empty() ? nullptr : &attempts_.back();
    LeftOut left_out;
    const auto from = handed_ ? handed_resume(&left_out) : resume_after(last, &left_out);
    if (from) next.resume = from->path, resumed_ = from->step;
    if (last) report_error(announcement(*last, next, next.number + left(), from ? from->step : std::nullopt));
    const std::string torn =
        left_out_sentence(left_out, from ? from->path : "", from ? from->step : std::nullopt);
    if (!torn.empty())
      report_error(torn);
    else if (last && run_.newest && !from)
      report_error("no whole checkpoint is there to begin from");
    attempts_.push_back(std::move(next));
    return attempts_.back();
  }

  // The time until `until` that the attempt's failure cost.
  void set_lost(Attempt& attempt, TimeNs until) const {
    const TimeNs saved = run_.saved_ns ? run_.saved_ns() : kNoTime;
    const TimeNs since = saved == kNoTime ? attempt.begin_ns : std::max(attempt.begin_ns, saved);
    attempt.lost_ns = std::max<TimeNs>(0, until - since);
  }

  // Number of attempts without progress that may follow the next attempt.
  uint32_t left() const {
    const uint32_t used = ledger_.fruitless();
    return limits_.retries > used ? limits_.retries - used : 0;
  }

  std::string attempt_name(uint32_t number) const {
    return fmt::format("{}-attempt-{}", run_.launch.job, number);
  }

  bool start(const Attempt& attempt) {
    std::vector<std::string> words = {"culprit",     "run",
                                      "--dir",       run_.folder.path() + "/attempts",
                                      "--job",       attempt_name(attempt.number),
                                      "--keep-runs", std::to_string(kRetriesMost),
                                      "--end-hang",  o_.end_hang};
    words.insert(words.end(), run_.passed_on.begin(), run_.passed_on.end());
    words.emplace_back("--");
    app::Placeholders values{attempt.number, attempt.resume, 0, {}};
    values.hosts = {run_.launch.host};
    values.revision = attempt.revision;
    if (app::wants_port(run_.command)) values.port = unused_port();
    for (const app::Gpu& gpu : gpus_.gpus) values.gpus.push_back(gpu.uuid);
    for (std::string& word : app::filled(slurm_.command(), values)) words.push_back(std::move(word));
    std::vector<std::string> environment =
        app::attempt_variables(values, attempts_.size() == 1 ? limits_.retries : left(),
                               attempts_.size() > 1 ? attempts_[attempts_.size() - 2].headline : "");
    if (const auto names = app::excluded(history(), attempt.number - 1); !names.empty())
      environment.push_back(fmt::format("{}={}", app::kExcludedVariable, fmt::join(names, ",")));
    if (!without_.empty()) environment.push_back(fmt::format("{}={}", gpus_.variable, app::uuid_list(gpus_)));
    return process_.start(words, std::move(environment));
  }

  // Waits before the next attempt, for a service until it answers; false: there is none.
  bool wait_for_next(Attempt& attempt) {
    // One that answers already was busy, and nothing shows when it is not any more.
    auto away = attempt.decision.probe ? unanswered_now(targets_) : decltype(targets_)();
    if (away.empty()) return process_.pause(attempt.decision.wait_ns);
    const std::string name = away[0].text();
    const TimeNs since = ledger_.now(attempt.failure.root).first_ns;
    const TimeNs until = std::min(since + limits_.later_max_ns, attempts_end_ns());
    const auto waited =
        wait_for_services(std::move(away), until, [&](TimeNs wait_ns) { return process_.pause(wait_ns); });
    if (waited == ServiceWait::kSilent)
      stop(attempt,
           fmt::format("stopped: {} has not answered for {}", name, format_duration(wall_now() - since)));
    return waited == ServiceWait::kAnswers;
  }

  // The last moment at which an attempt may begin.
  TimeNs attempts_end_ns() const {
    return left_until_ == kNoTime ? std::numeric_limits<TimeNs>::max() : left_until_ - limits_.min_left_ns;
  }

  void judge(Attempt& attempt) {
    std::optional<Report> report;
    if (auto read = report_from_json(process_.report_text())) report = std::move(*read);
    app::judge(attempt, report, run_.launch.host, best_);
    if (attempt.to) best_ = std::max(best_.value_or(-1), *attempt.to);
    fault_at_ = report && leading(*report) ? leading(*report)->iteration : std::nullopt;
    slurm_.look(attempt);
    if (attempt.failure.progress == recover::Progress::kUnknown && run_.newest &&
        !slurm_.is_ended_by_slurm()) {
      const auto saved = run_.newest(std::nullopt, nullptr);
      app::add_progress(attempt.failure, saved ? saved->step.value_or(-1) : -1, resumed_);
    }
    if (update_.ended(attempt.number)) {
      attempt.failure.preempted = true;
      attempt.headline = "ended for another revision", attempt.confidence.reset();
    }
    const auto remaining = gpus_without(attempt.failure.advice);
    ledger_.add(attempt.failure);
    recover::Means means;
    means.may_leave_devices = remaining.has_value();
    means.chance = random_share();
    means.code = update_.choice(attempts_);
    if (const TimeNs end = app::allocation_end(variable); end != kNoTime) means.left_ns = end - wall_now();
    slurm_.add_to(means, wall_now());
    left_until_ = means.left_ns == kNoTime ? kNoTime : wall_now() + means.left_ns;
    targets_ = report ? app::targets_of(*report, variable) : std::vector<app::ProbeTarget>();
    recover::Limits limits = limits_;
    if (!o_.retries) limits.retries = kRetriesMost;  // without --retries, only the exit code is wanted
    attempt.decision = recover::decide(ledger_, attempt.failure, means, limits);
    const Diagnosis* lead = report ? leading(*report) : nullptr;
    if (lead && lead->rule && forbids_retry(o_, *lead->rule))
      stop(attempt, "not started again: --no-retry-on " + *lead->rule);
    if (attempt.status == kCommandNotFound || attempt.status == kCommandNotStarted)
      stop(attempt, "not started again: the command cannot be run");
    if (attempt.status == kReaderLeft) stop(attempt, "");  // the reader ended, as `head`
    if (attempt.decision.older && !run_.newest)
      attempt.decision.why = "without --checkpoints it chooses by itself where to begin";
    if (process_.stopped() && !slurm_.is_ended_by_slurm()) stop(attempt, "");
    if (attempt.decision.way == recover::Way::kDevices) leave_out(attempt.failure.advice.devices, *remaining);
    verdict_ = app::verdict_code(attempt.failure, attempt.decision);
    if (!o_.retries) attempt.decision.again = false, attempt.decision.why.clear();
    if (report) last_report_ = std::move(report), reported_ = attempt.number;
  }

  // The GPUs of this host without those that the advice names; nothing: they are not GPUs of this host, or
  // too few would remain.
  std::optional<app::VisibleGpus> gpus_without(RestartAdvice& advice) {
    if (std::ranges::any_of(advice.hosts, [&](const std::string& host) { return host != run_.launch.host; }))
      return std::nullopt;
    return app::leave_out(gpus_, advice, o_.min_gpus.value_or(UINT32_MAX));
  }

  void leave_out(const std::vector<std::string>& uuids, const app::VisibleGpus& remaining) {
    without_.insert(without_.end(), uuids.begin(), uuids.end());
    gpus_ = remaining;
  }

  static void stop(Attempt& attempt, std::string why) {
    attempt.decision = {};
    attempt.decision.why = std::move(why);
  }

  // Ends all processes of the attempt before the next one begins.
  bool clear_up(Attempt& attempt) {
    std::string left;
    if (end_leftovers(mark_, attempt.begin_ns, left)) return true;
    verdict_ = recover::kElsewhereHelps;
    stop(attempt, fmt::format("not started again: {}, take {} out", left, run_.launch.host));
    return false;
  }

  int exit_code() const {
    const int own = attempts_.back().status;
    // With such a code the scheduler would start this job again too.
    if (!attempts_.back().successor.empty())
      return own == recover::kWillNotHelp || own == recover::kElsewhereHelps ? 1 : own;
    return o_.verdict_exit && !process_.stopped() && verdict_ != 0 ? verdict_ : own;
  }

  // Tells the daemon of this host that follows the job, if there is one.
  void tell_daemon(const Attempt& attempt, const char* state) const {
    if (!host_daemon_ || !o_.retries) return;
    const app::AttemptHistory all = history();
    app::AttemptEvent event{host_daemon_->job,
                            attempt.number,
                            all.most,
                            state,
                            attempt.decision.why,
                            app::excluded(all, attempt.number - 1)};
    if (event.job == attempt.job) {  // else all jobs of a chain have one name
      const std::string& first = attempts_.front().job;
      if (!first.empty() && first != event.job) event.first = first, event.member = event.job;
      event.successor = attempt.successor;
    }
    (void)app::send_to_trace(host_daemon_->socket, app::to_line(event));
  }

  int finish(int code) {
    Attempt& last = attempts_.back();
    // A job whose successor goes on has already said so.
    if (last.successor.empty()) tell_daemon(last, last.status == 0 ? "well" : "stop");
    if (last.status == 0 && attempts_.size() == 1 && !run_.keep) {
      run_.folder.remove();
      return code;
    }
    write_ledger();
    const bool page = write_page();
    print_attempts(history(), run_.folder.path(), page, run_.zone);
    return code;
  }

  app::AttemptHistory history() const {
    const Attempt& last = attempts_.back();
    const bool judged = last.end_ns != kNoTime && last.status != 0;  // the ledger has it
    const uint32_t budget = limits_.retries + (judged ? 1 : 0), used = ledger_.fruitless();
    const uint32_t more = budget > used ? budget - used : 0;
    app::AttemptHistory out{attempts_, {}, last.number + more, run_.folder.path() + "/attempts.jsonl"};
    for (const Attempt& attempt : attempts_)
      out.pages.push_back("attempts/" + attempt_name(attempt.number) + "/report.html");
    return out;
  }

  // Returns false if there is no page: no report, or it could not be written.
  bool write_page() const {
    if (!last_report_) return false;
    const Status written = write_attempt_report(run_.folder, history(), *last_report_, reported_, run_.zone);
    if (!written) report_error(written.error().text);
    return written.has_value();
  }

  void write_ledger() const { cli::write_ledger(run_.folder, attempts_, false); }

  const RunAgain& run_;
  const RetryOptions& o_;
  const std::string mark_;
  AttemptProcess process_;
  SlurmAttempts slurm_;
  CodeUpdate update_;
  const std::optional<app::HostDaemon> host_daemon_ = app::host_daemon(variable);
  recover::Limits limits_;
  recover::Ledger ledger_;
  std::vector<Attempt> attempts_;
  app::VisibleGpus gpus_;              // that the next attempt may use; empty without --min-gpus
  std::vector<std::string> without_;   // UUIDs left out so far
  std::optional<Report> last_report_;  // of the last failed attempt that has one
  uint32_t reported_ = 0;              // number of this attempt
  std::optional<int64_t> best_, resumed_;
  std::optional<int64_t> fault_at_;        // iteration of the latest failure, where its diagnosis has one
  std::vector<app::ProbeTarget> targets_;  // services in the lines of the last failure
  TimeNs left_until_ = kNoTime;            // end of the allocation
  int verdict_ = 0;
  std::optional<app::Handover> handed_;  // of the job before, until the first attempt begins
};

}  // namespace

Status check_retry_options(const RetryOptions& o) {
  for (const auto& [name, given] :
       {std::pair("--checkpoints", !o.checkpoints.empty()),
        std::pair("--no-retry-on", !o.no_retry_on.empty()), std::pair("--successor", o.successor),
        std::pair("--code", !o.code.empty())})
    if (given && !o.retries) return fail(ErrorCode::kInvalid, fmt::format("{} needs --retries N", name));
  if (o.min_gpus && (!o.retries || *o.min_gpus == 0))
    return fail(ErrorCode::kInvalid,
                o.retries ? "--min-gpus must be at least 1" : "--min-gpus needs --retries N");
  if (o.retries && *o.retries > kRetriesMost)
    return fail(ErrorCode::kInvalid, fmt::format("--retries must be at most {}", kRetriesMost));
  if (!o.retries && o.nodes > 0) return fail(ErrorCode::kInvalid, "--nodes needs --retries N");
  if (o.nodes == 0 && o.spares > 0) return fail(ErrorCode::kInvalid, "--spares needs --nodes N");
  if (!o.code.empty())
    if (const auto code = app::read_code(o.code); !code)
      return fail(code.error().code, "--code: " + code.error().text);
  if (o.nodes > app::kHostsMost || o.spares > app::kHostsMost - o.nodes)
    return fail(ErrorCode::kInvalid,
                fmt::format("--nodes and --spares must be at most {} together", app::kHostsMost));
  if (const auto others = app::parse_duration(o.end_others); others && *others < kNsPerSecond)
    return fail(ErrorCode::kInvalid, "--end-others must be at least 1s");
  for (const auto& [name, text] :
       {std::pair("--min-time", &o.min_time), std::pair("--end-hang", &o.end_hang),
        std::pair("--end-others", &o.end_others), std::pair("--code-within", &o.code_within)}) {
    const auto duration = app::parse_duration(*text);
    if (!duration || *duration < 0)
      return fail(ErrorCode::kInvalid, fmt::format("{} must be a duration, as 90s or 10m", name));
  }
  return {};
}

bool forbids_retry(const RetryOptions& o, const std::string& rule) {
  return std::ranges::any_of(o.no_retry_on, [&](const std::string& wanted) { return matches(wanted, rule); });
}

int run_with_retries(const RunAgain& again) { return Retries(again).run(); }

}  // namespace culprit::cli
