#include "cli/run_members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/config/options.h"
#include "app/run/agreement.h"
#include "app/run/attempt.h"
#include "app/run/attempt_plan.h"
#include "app/run/held_folder.h"
#include "app/run/joint_decision.h"
#include "app/run/leftovers.h"
#include "app/run/members.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/attempt_process.h"
#include "cli/attempt_text.h"
#include "cli/environment.h"
#include "cli/verbs.h"
#include "model/headline.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

using app::AgreedDecision;
using app::AttemptPlan;
using app::MemberRecord;
using app::WaitStep;

constexpr TimeNs kMemberLook = 250 * kNsPerMs;     // a decision is read within a second
constexpr TimeNs kLongestLook = 5 * kNsPerSecond;  // between looks at the ends of others, on many hosts
constexpr TimeNs kDiagnosisLook = 20 * kNsPerMs;
constexpr TimeNs kRunningLook = kNsPerSecond;  // while the command runs
// A host without a sign of life for so long is lost; before that it ends its command, in up to 15 s. A file
// server may pause for minutes.
constexpr TimeNs kLifeWithin = 300 * kNsPerSecond, kFencedWithin = 240 * kNsPerSecond;
constexpr TimeNs kJoinWithin = 600 * kNsPerSecond, kSparesWithin = 20 * kNsPerSecond;
constexpr TimeNs kLeaveWithin = 5 * kNsPerSecond;
constexpr TimeNs kTermPatience = 3 * kNsPerSecond, kReportPatience = 10 * kNsPerSecond;
constexpr int kNotTogether = 1;  // exit status of a member without a command of its own, if the job failed
constexpr size_t kReportsBytes = 64 << 20;  // of the reports of all members
constexpr const char* kDecision = "decision";
constexpr const char* kGo = "go";

double random_share() { return static_cast<double>(random_number() >> 32) / 2147483648.0 - 1; }

// Remembers when something was first seen.
class Since {
 public:
  TimeNs age(bool is, TimeNs now) {
    if (!is) return at_ = kNoTime;
    if (at_ == kNoTime) at_ = now;
    return now - at_;
  }

 private:
  TimeNs at_ = kNoTime;
};

class Member {
 public:
  Member(const RunAgain& again, const RunChoices& choices, const Zone& zone, app::Agreement agreement)
      : run_(again),
        o_(again.options),
        choices_(choices),
        zone_(zone),
        host_(again.launch.host),
        agreement_(std::move(agreement)),
        mark_(app::make_mark()),
        process_(mark_),
        patience_(app::parse_duration(o_.end_others).value_or(20 * kNsPerSecond)) {
    limits_.retries = o_.retries.value_or(0);
    limits_.min_left_ns = app::parse_duration(o_.min_time).value_or(limits_.min_left_ns);
  }

  int run() {
    if (const size_t ended = app::end_orphans(); ended > 0)
      report_error(fmt::format("{} of a run that was killed {} ended first",
                               ended == 1 ? "1 process" : fmt::format("{} processes", ended),
                               ended == 1 ? "was" : "were"));
    guardian_.emplace(mark_, kFencedWithin);
    bool together = begin_together();
    while (together && !done_) together = run_attempt();
    if (!together) {
      close_run();
      return ran_ ? status_ : kNotTogether;
    }
    leave();
    return exit_code();
  }

 private:
  // ---- the first attempt

  // All members join; one of them decides which run the first attempt.
  bool begin_together() {
    MemberRecord me;
    me.host = host_, me.member = run_.launch.member, me.port = unused_port();
    Status joined = agreement_.enter(0);
    if (joined) joined = agreement_.write("join", to_json(me));
    if (!joined) return give_up(joined.error().text);
    const TimeNs begin = steady_now();
    Since enough;
    std::map<std::string, MemberRecord> all;
    for (;;) {
      if (take_decision()) return true;
      read_records("join", all);
      const TimeNs waited = steady_now() - begin;
      const TimeNs since_enough = enough.age(all.size() >= o_.nodes, steady_now());
      const bool complete = all.size() >= size_t{o_.nodes} + o_.spares;
      if (complete || since_enough >= kSparesWithin) {
        const auto position = std::distance(all.begin(), all.find(host_));
        if (waited >= position * patience_.turn_ns || position == 0) propose_first(all);
      }
      if (waited >= kJoinWithin)
        return give_up(fmt::format("{} of {} hosts came to {} within {}", all.size(), o_.nodes,
                                   run_.folder.path(), format_duration(kJoinWithin)));
      if (!process_.pause(kMemberLook)) return false;
    }
  }

  void propose_first(const std::map<std::string, MemberRecord>& all) {
    AgreedDecision first;
    first.by = host_;
    first.attempt.number = 0;
    first.attempt.decision.again = true;
    AttemptPlan& plan = first.next;
    plan.attempt = 1;
    plan.left = limits_.retries;
    plan.hosts = app::first_hosts(all, o_.nodes);
    plan.port = all.at(plan.hosts.front()).port;
    LeftOut left_out;
    if (run_.newest)
      if (const auto from = run_.newest(std::nullopt, &left_out))
        plan.resume = from->path, plan.resume_step = from->step;
    const auto settled = agreement_.settle(kDecision, to_json(first));
    if (settled && settled->won && !left_out.empty())
      report_error(left_out_sentence(left_out, plan.resume, plan.resume_step));
  }

  // ---- one attempt

  // From the begin to the decision about it. False: this member ends on its own.
  bool run_attempt() {
    if (Status entered = agreement_.enter(plan_.attempt); !entered) return give_up(entered.error().text);
    ends_.clear();
    if (plan_.rank_of(host_) && (!ready() || !run_command())) return false;
    return await_decision();
  }

  // Whether all promised hosts begin the attempt. All members follow one answer.
  bool ready() {
    MemberRecord me;
    me.host = host_;
    if (Status written = agreement_.write("ready", to_json(me)); !written)
      return give_up(written.error().text);
    const TimeNs begin = steady_now();
    const uint32_t rank = plan_.rank_of(host_).value_or(0);
    std::map<std::string, MemberRecord> all;
    for (;;) {
      show_life();
      if (const auto go = agreement_.settled(kGo)) {
        if (go->empty()) return true;
        const std::string missing(trim(*go));
        return give_up(
            fmt::format("attempt {} was not begun: {} did not come", plan_.attempt, to_terminal(missing)));
      }
      const TimeNs waited = steady_now() - begin;
      if (waited >= rank * patience_.turn_ns || waited >= patience_.ready_ns) {
        read_records("ready", all);
        std::vector<std::string> missing;
        for (const std::string& host : plan_.hosts)
          if (!all.contains(host)) missing.push_back(host);
        if (missing.empty())
          (void)agreement_.settle(kGo, "");
        else if (waited >= patience_.ready_ns)
          (void)agreement_.settle(kGo, fmt::format("{}\n", fmt::join(missing, ", ")));
      }
      if (waited >= 2 * patience_.ready_ns) return give_up("the shared folder gives no answer");
      if (!process_.pause(kMemberLook)) return false;
    }
  }

  std::string attempt_name() const { return fmt::format("{}-attempt-{}", run_.launch.job, plan_.attempt); }

  Result<app::HeldFolder> attempt_folder() const {
    auto attempts = run_.folder.held().enter("attempts");
    return attempts ? attempts->enter(attempt_name()) : std::move(attempts);
  }

  bool run_command() {
    const uint32_t rank = plan_.rank_of(host_).value_or(0);
    MemberRecord me;
    me.host = host_, me.member = run_.launch.member;
    me.begin_ns = wall_now();
    std::vector<std::string> words = {
        "culprit", "run",          "--shared",   run_.folder.path() + "/attempts",
        "--job",   attempt_name(), "--end-hang", o_.end_hang};
    words.insert(words.end(), run_.passed_on.begin(), run_.passed_on.end());
    words.emplace_back("--");
    const app::Placeholders values{plan_.attempt, plan_.resume, plan_.port, {}, plan_.hosts, rank};
    for (std::string& word : app::filled(run_.command, values)) words.push_back(std::move(word));
    std::vector<std::string> environment = app::attempt_variables(
        plan_.attempt, plan_.left, plan_.resume, attempts_.empty() ? "" : attempts_.back().headline);
    environment.push_back(attempt_member_variable({rank, static_cast<uint32_t>(plan_.hosts.size())}));
    ran_ = true;
    status_ = kCommandNotStarted;
    if (process_.start(words, std::move(environment))) status_ = wait_for_command(me);
    me.end_ns = wall_now();
    me.status = status_;
    me.interrupted = process_.stopped();
    me.report = process_.report_text();
    (void)end_leftovers(mark_, me.begin_ns, me.stuck);
    me.port = unused_port();
    ends_[host_] = me;
    if (Status written = agreement_.write("end", to_json(me)); !written) return give_up(written.error().text);
    return true;
  }

  // Waits for the command, and ends it if the attempt ended elsewhere.
  int wait_for_command(MemberRecord& me) {
    for (;;) {
      if (const auto status = process_.wait(kRunningLook)) return *status;
      show_life();
      if (!agreement_.stopped() && !agreement_.settled(kDecision)) continue;
      me.ended_by_us = true;
      ::kill(process_.pid(), SIGTERM);
      if (const auto status = process_.wait(kTermPatience)) return *status;
      // The `culprit run` of the attempt and its processes remain, to write down how the command ended.
      for (const app::MarkedProcess& one : app::marked_processes(mark_))
        if (!one.name.starts_with("culprit")) ::kill(one.pid, SIGKILL);
      if (const auto status = process_.wait(kReportPatience)) return *status;
      ::kill(process_.pid(), SIGKILL);
    }
  }

  // ---- the decision about an attempt

  void read_records(std::string_view what, std::map<std::string, MemberRecord>& records) const {
    for (const auto& [host, text] : agreement_.read_new(what, records))
      if (auto record = app::member_record(text); record && record->host == host)
        records.emplace(host, std::move(*record));
  }

  void read_ends(app::AttemptView& view) {
    read_records("end", ends_);
    size_t reports = 0;
    for (auto& [host, end] : ends_) {
      reports += end.report.size();
      if (reports > kReportsBytes) end.report.clear();
      const auto [at, is_new] = view.ends.try_emplace(host, end);
      if (is_new) at->second.report.clear();
    }
  }

  // What the others cannot see alive must not run: they may begin the next attempt.
  void show_life() {
    if (agreement_.show_life()) guardian_->beat();
  }

  bool is_spare() const { return !plan_.rank_of(host_); }

  // Waits for the decision or makes it. False: this member ends without one.
  bool await_decision() {
    Since failure, ends;
    TimeNs look_at = 0, decide_at = 0;
    won_ = false;
    app::AttemptView view;
    view.hosts = plan_.hosts;
    view.spares = spares_;
    // Of many hosts, the first ones look at the ends of all; the others at the decision.
    const size_t rank = plan_.rank_of(host_).value_or(static_cast<uint32_t>(plan_.hosts.size()));
    const TimeNs look_every =
        is_spare() ? kMemberLook
                   : std::min<TimeNs>(kMemberLook * static_cast<TimeNs>(1 + rank), kLongestLook);
    for (;;) {
      show_life();
      if (take_decision()) return true;
      const TimeNs now = steady_now();
      if (now >= look_at) {
        look_at = now + look_every;
        read_ends(view);
        view.lost.clear();
        for (const std::string& host : plan_.hosts)
          if (!ends_.contains(host) && agreement_.is_lost(host, kLifeWithin)) view.lost.insert(host);
      }
      view.since_failure = failure.age(has_failure(view) || agreement_.stopped(), now);
      view.since_ends = ends.age(all_ended(view), now);
      if (is_spare() && (!ends_.empty() || view.since_failure != kNoTime)) answer();
      switch (wait_step(view, patience_, turn())) {
        case WaitStep::kWait:
          break;
        case WaitStep::kStop:
          agreement_.stop();
          break;
        case WaitStep::kDecide:
          if (now < decide_at) break;
          propose();
          if (take_decision()) return true;
          decide_at = now + patience_.turn_ns;
          break;
        case WaitStep::kGiveUp:
          return give_up("the hosts came to no decision: each one ends as its own command did");
      }
      if (!process_.pause(kMemberLook)) return false;
    }
  }

  // The members that ended decide, in the order of their ranks, and then spares.
  size_t turn() const {
    size_t before = 0;
    for (const std::string& host : plan_.hosts) {
      if (host == host_) return before;
      before += ends_.contains(host);
    }
    for (const auto& [host, end] : ends_)
      if (end.spare && host < host_) ++before;
    return before;
  }

  // A spare says that it is there, once somebody ended.
  void answer() {
    if (ends_.contains(host_)) return;
    MemberRecord me;
    me.host = host_, me.member = run_.launch.member, me.port = unused_port(), me.spare = true;
    ends_[host_] = me;
    if (Status written = agreement_.write("end", to_json(me)); !written) report_error(written.error().text);
  }

  // The report of all hosts of the attempt.
  std::optional<Report> report_of_attempt() {
    std::optional<Report> live;
    for (const auto& [host, end] : ends_)
      if (auto one = report_from_json(end.report))
        live = better_report(std::move(live), std::move(*one), false);
    auto files = report_of_files();
    const bool has_files = files.has_value();
    const std::optional<int64_t> iteration = has_files ? files->job.iteration : std::nullopt;
    auto found = better_report(std::move(live), std::move(files), false);
    // The whole logs have the last step.
    if (found && has_files) found->job.iteration = iteration;
    return found;
  }

  // In a process of its own: a decision must not wait for the logs of many hosts, or fail with them.
  std::optional<Report> report_of_files() {
    const auto attempt = attempt_folder();
    if (!attempt) return std::nullopt;
    const auto inputs = attempt->enter("job");
    const int out = ::memfd_create("culprit-report", MFD_CLOEXEC);
    if (!inputs || out < 0) return std::nullopt;
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto report = report_of_inputs(*inputs, run_.folder.exposed(), zone_);
      if (report) hand_over_report(out, *report);
      ::_exit(0);
    }
    const TimeNs until = steady_now() + 2 * patience_.ends_ns;
    while (child > 0 && ::waitpid(child, nullptr, WNOHANG) == 0) {
      show_life();
      if (process_.pause(kDiagnosisLook) && steady_now() < until && !agreement_.settled(kDecision)) continue;
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
      break;
    }
    auto report = report_from_json(text_of_descriptor(out));
    ::close(out);
    return report ? std::optional(std::move(*report)) : std::nullopt;
  }

  void propose() {
    app::JointFacts facts{host_, plan_, ends_, best_, ledger_, limits_};
    facts.now = wall_now();
    facts.chance = random_share();
    if (const TimeNs end = app::allocation_end(variable); end != kNoTime) facts.left_ns = end - wall_now();
    if (app::has_failed(facts)) {
      facts.report = report_of_attempt();
      if (agreement_.settled(kDecision)) return;  // another member was faster
      const Diagnosis* lead = facts.report ? leading(*facts.report) : nullptr;
      facts.forbidden = lead && lead->rule && forbids_retry(o_, *lead->rule);
      if (run_.newest)
        if (const auto saved = run_.newest(std::nullopt, nullptr))
          facts.saved_step = saved->step.value_or(-1);
    }
    AgreedDecision mine = app::decide_jointly(facts);
    LeftOut left_out;
    if (mine.attempt.decision.again && run_.newest) {
      const Diagnosis* lead = facts.report ? leading(*facts.report) : nullptr;
      const auto before = app::older_than(plan_.resume_step, lead ? lead->iteration : std::nullopt);
      const auto from = run_.newest(mine.attempt.decision.older ? before : std::nullopt, &left_out);
      if (from) mine.next.resume = from->path, mine.next.resume_step = from->step;
    }
    const auto settled = agreement_.settle(kDecision, to_json(mine));
    if (!settled && !std::exchange(told_refused_, true)) report_error(settled.error().text);
    if (!settled || !settled->won) return;
    // The winner alone tells and keeps what all have agreed on.
    won_ = true;
    if (mine.attempt.status != 0 && !mine.interrupted) tell(mine, facts.report);
    if (!left_out.empty()) report_error(left_out_sentence(left_out, mine.next.resume, mine.next.resume_step));
    attempts_.push_back(mine.attempt);
    write_ledger();
    attempts_.pop_back();
  }

  void tell(const AgreedDecision& d, const std::optional<Report>& report) {
    const app::Attempt& a = d.attempt;
    std::vector<std::string> failed;
    for (const auto& [host, end] : ends_)
      if (end.status != 0 && !end.ended_by_us) failed.push_back(fmt::format("{} ({})", host, end.status));
    for (const std::string& host : d.absent)
      if (!ends_.contains(host)) failed.push_back(host + " (no answer)");
    constexpr size_t kNamed = 4;
    const size_t more = failed.size() - std::min(failed.size(), kNamed);
    failed.resize(std::min(failed.size(), kNamed));
    report_error(fmt::format("attempt {} failed on {}{}", a.number, fmt::join(failed, ", "),
                             more > 0 ? fmt::format(" and {} more", more) : ""));
    const auto attempt = attempt_folder();
    if (report && leading(*report) && attempt)
      show_report(*report, choices_, zone_, *attempt);
    else
      report_error("nothing in its output says why");
    if (!a.decision.again) return;
    std::string line =
        fmt::format("attempt {} of {}: {}", d.next.attempt, d.next.attempt + d.next.left, a.decision.why);
    if (!a.headline.empty()) line += fmt::format(" ({})", a.headline);
    if (!d.next.resume.empty()) line += ", from " + d.next.resume;
    std::vector<std::string> hosts = d.next.hosts;
    hosts.resize(std::min(hosts.size(), kNamed));
    line += fmt::format(
        "; on {}{}; {} lost", fmt::join(hosts, ", "),
        d.next.hosts.size() > kNamed ? fmt::format(" and {} more", d.next.hosts.size() - kNamed) : "",
        format_duration(a.end_ns - a.begin_ns));
    report_error(line);
  }

  // Reads the decision of the attempt, if there is one, and follows it.
  bool take_decision() {
    const auto text = agreement_.settled(kDecision);
    if (!text) return false;
    auto decision = app::agreed_decision(*text);
    if (!decision || decision->attempt.number != plan_.attempt) {
      if (!std::exchange(told_invalid_, true)) report_error("the agreed decision cannot be read");
      return false;
    }
    follow(std::move(*decision));
    return true;
  }

  void follow(AgreedDecision d) {
    app::Attempt& a = d.attempt;
    if (a.number > 0) {
      if (a.to) best_ = std::max(best_.value_or(-1), *a.to);
      if (a.status != 0) ledger_.add(a.failure);
      attempts_.push_back(a);
      verdict_ = a.status == 0 ? 0 : app::verdict_code(a.failure, a.decision);
    }
    const bool was_in = plan_.rank_of(host_).has_value(), is_in = d.next.rank_of(host_).has_value();
    if (choices_.verbose)
      report_error(fmt::format("attempt {}: decided by {}: {}", a.number, d.by,
                               a.decision.again ? fmt::format("again on {}", fmt::join(d.next.hosts, ", "))
                                                : "no attempt follows"));
    if (!a.decision.again) {
      done_ = true;
      return;
    }
    if (was_in && !is_in) {
      const bool silent = std::ranges::find(d.absent, host_) != d.absent.end();
      report_error(fmt::format("{} is left out of attempt {}{}", host_, d.next.attempt,
                               silent               ? " (it gave no answer in time)"
                               : a.headline.empty() ? ""
                                                    : fmt::format(" ({})", a.headline)));
      done_ = excluded_ = true;
      return;
    }
    if (a.number > 0 && !was_in && is_in)
      report_error(fmt::format("{} joins attempt {} as node {} of {}", host_, d.next.attempt,
                               *d.next.rank_of(host_), d.next.hosts.size()));
    const size_t replaced = std::ranges::count_if(
        d.next.hosts, [&](const std::string& host) { return !plan_.rank_of(host).has_value(); });
    spares_ =
        a.number == 0 ? o_.spares : spares_ - std::min<uint32_t>(spares_, static_cast<uint32_t>(replaced));
    plan_ = std::move(d.next);
    if (!process_.pause(a.decision.wait_ns)) done_ = true;
  }

  // ---- the end

  int exit_code() const {
    if (excluded_) return 0;
    const bool failed = !attempts_.empty() && attempts_.back().status != 0;
    if (o_.verdict_exit && failed && !process_.stopped() && verdict_ != 0) return verdict_;
    return ran_ && !is_spare() ? status_ : 0;
  }

  static bool give_up(const std::string& why) {
    report_error(why);
    return false;
  }

  // The run is over, for hosts that come later too.
  void close_run() const { (void)app::Members(run_.folder.members(), run_.launch, true).claim(); }

  // Every member says that it has read the last decision; the one that made it then clears up.
  void leave() {
    (void)agreement_.write("left", "");
    if (excluded_ || !won_) return;
    const bool well = attempts_.back().status == 0;
    finish_printing();
    close_run();
    if (!well || attempts_.size() > 1 || run_.keep) return;
    const TimeNs until = steady_now() + kLeaveWithin;
    const size_t all = plan_.hosts.size() + spares_;
    const std::map<std::string, std::string> none;
    while (agreement_.read_new("left", none).size() < all) {
      if (steady_now() >= until) return;
      if (!process_.pause(kMemberLook)) return;
    }
    run_.folder.remove();
  }

  void finish_printing() const {
    const app::Attempt& last = attempts_.back();
    if (!last.decision.why.empty() && !last.decision.again) report_error(last.decision.why);
    if (attempts_.size() == 1) return;
    const app::AttemptHistory history{
        attempts_, {}, last.number + plan_.left, run_.folder.path() + "/attempts.jsonl"};
    report_error(attempt_totals(history) +
                 (last.status == 0 ? fmt::format("; attempt {} ended well", last.number) : ""));
    std::fputs(attempt_table(history, {page_width(), zone_}).c_str(), stderr);
    report_error("attempts: " + history.ledger);
  }

  void write_ledger() const {
    std::string lines;
    for (const app::Attempt& attempt : attempts_) lines += app::ledger_line(attempt);
    if (Status written = run_.folder.held().write("attempts.jsonl", lines, true); !written)
      report_error(written.error().text);
  }

  const RunAgain& run_;
  const RetryOptions& o_;
  const RunChoices& choices_;
  const Zone& zone_;
  const std::string host_;
  app::Agreement agreement_;
  const std::string mark_;
  AttemptProcess process_;
  std::optional<app::Guardian> guardian_;
  const app::Patience patience_;
  recover::Limits limits_;
  // Equal on all members, since each one follows the same decisions.
  recover::Ledger ledger_;
  std::vector<app::Attempt> attempts_;
  std::optional<int64_t> best_;
  AttemptPlan plan_{.attempt = 0};
  uint32_t spares_ = 0;  // that are expected to answer
  int verdict_ = 0;
  // This member's own.
  std::map<std::string, MemberRecord> ends_;  // of the current attempt
  int status_ = 0;
  bool ran_ = false, done_ = false, excluded_ = false, won_ = false, told_invalid_ = false,
       told_refused_ = false;
};

}  // namespace

Status join_members(const RetryOptions& o, bool named, app::Launch& launch) {
  if (!named && !launch.slurm)
    return fail(ErrorCode::kInvalid, "--nodes needs --job NAME, the same on all hosts");
  if (launch.local_members > 1)
    return fail(ErrorCode::kInvalid, "--nodes: one culprit on each host, not one for each rank");
  if (!launch.in_team) launch.members = o.nodes + o.spares;
  launch.in_team = true;
  return {};
}

int run_as_member(const RunAgain& again, const RunChoices& choices, const Zone& zone) {
  auto agreement = app::Agreement::open(again.folder.held(), again.launch.host);
  if (!agreement) {
    report_error(agreement.error().text);
    return kUnable;
  }
  return Member(again, choices, zone, std::move(*agreement)).run();
}

}  // namespace culprit::cli
