#include "cli/run_members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/config/options.h"
#include "app/run/agreement.h"
#include "app/run/attempt.h"
#include "app/run/attempt_event.h"
#include "app/run/attempt_history.h"
#include "app/run/attempt_plan.h"
#include "app/run/devices.h"
#include "app/run/held_folder.h"
#include "app/run/joint_decision.h"
#include "app/run/leftovers.h"
#include "app/run/members.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "cli/attempt_process.h"
#include "cli/attempt_report.h"
#include "cli/attempt_text.h"
#include "cli/attempt_wait.h"
#include "cli/code_update.h"
#include "cli/environment.h"
#include "cli/joint_evidence.h"
#include "cli/verbs.h"
#include "cli/wait_lines.h"
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
constexpr size_t kFirstReaders = 16;               // hosts that look at the ends of all
constexpr TimeNs kWorkLook = 20 * kNsPerMs;        // while a child reads
constexpr TimeNs kServiceLook = 2 * kNsPerSecond;  // while the first host waits for a service
constexpr TimeNs kRunningLook = kNsPerSecond;      // while the command runs
// A host without a sign of life for so long is lost; before that it ends its command, in up to 15 s. A file
// server may pause for minutes.
constexpr TimeNs kLifeWithin = 300 * kNsPerSecond, kFencedWithin = 240 * kNsPerSecond;
constexpr TimeNs kJoinWithin = 600 * kNsPerSecond, kSparesWithin = 20 * kNsPerSecond;
constexpr TimeNs kLeaveWithin = 5 * kNsPerSecond;
constexpr TimeNs kFreshWithin = 20 * kNsPerSecond;  // a host that showed life within it may end slowly
constexpr TimeNs kDecidesEvery = kNsPerSecond;      // signs of the member that decides
constexpr TimeNs kAfterSignal = 8 * kNsPerSecond;   // for the decision that no attempt follows
constexpr int kNotTogether = 1;  // exit status of a member without a command of its own, if the job failed
constexpr const char* kDecision = "decision";
constexpr const char* kGo = "go";
constexpr const char* kDecides = "decides";
constexpr const char* kReport = "report.json";
constexpr size_t kReportBytes = 64 << 20;
constexpr std::string_view kStopped = "stopped: ";  // begins a `go` that says why no attempt follows
constexpr size_t kNamed = 4;                        // hosts in a line

// "n1, n2, n3, n4 and 7 more"
std::string some_of(std::vector<std::string> names) {
  const size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(std::min(names.size(), kNamed));
  return fmt::format("{}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

bool give_up(const std::string& why) {
  report_error(why);
  return false;
}

void say_missing(const RetryOptions& o, size_t came, const std::string& folder) {
  const bool enough = came >= o.nodes;
  const size_t missing = size_t{o.nodes} + (enough ? o.spares : 0) - came;
  report_error(fmt::format("waiting for {} of {} {} to come to {}", missing, enough ? o.spares : o.nodes,
                           enough ? "spares" : "hosts", folder));
}

void say_waiting(const app::AttemptView& view, uint32_t attempt) {
  std::vector<std::string> missing;
  for (const std::string& host : view.hosts)
    if (!view.ends.contains(host)) missing.push_back(host);
  const std::string what = view.deciding     ? "the decision of another host"
                           : missing.empty() ? "the decision"
                                             : fmt::format("{} of {} hosts to end: {}", missing.size(),
                                                           view.hosts.size(), some_of(missing));
  report_error(fmt::format("attempt {}: waiting for {}", attempt, what));
}

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
    if (o_.min_gpus) gpus_ = app::visible_gpus(variable);
    if (o_.min_gpus && gpus_.gpus.empty()) report_error("--min-gpus: no GPU of a driver is visible here");
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
    WaitLines lines;
    std::map<std::string, MemberRecord> all;
    for (;;) {
      show_life();
      if (take_decision()) return true;
      read_records("join", all);
      const TimeNs waited = steady_now() - begin;
      const TimeNs since_enough = enough.age(all.size() >= o_.nodes, steady_now());
      const size_t wanted = size_t{o_.nodes} + o_.spares;
      bool deciding = false;
      if (all.size() >= wanted || since_enough >= kSparesWithin) {
        const auto position = std::distance(all.begin(), all.find(host_));
        if (waited >= position * patience_.turn_ns || position == 0) {
          deciding = another_decides();
          if (!deciding) propose_first(all);
        }
      }
      if (waited >= kJoinWithin && !deciding)
        return give_up(fmt::format("{} of {} hosts came to {} within {}", all.size(), o_.nodes,
                                   run_.folder.path(), format_duration(kJoinWithin)));
      if (all.size() < wanted && lines.is_due()) say_missing(o_, all.size(), run_.folder.path());
      if (!pause(kMemberLook)) return false;
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
    plan.revision = update_.next_revision(attempts_);
    JointEvidence evidence(run_, agreement_, [this] { return keep_deciding(); });
    if (run_.newest) {
      decides_at_ = kNoTime;
      const auto from = evidence.newest(std::nullopt);
      if (from && *from) plan.resume = (*from)->path, plan.resume_step = (*from)->step;
      if (!from && !process_.stopped()) report_error(from.error().text);
    }
    const auto settled = agreement_.settle(kDecision, to_json(first));
    if (settled && settled->won && !evidence.left_out().empty()) report_error(evidence.left_out());
    agreement_.withdraw(kDecides);
  }

  // ---- one attempt

  // From the begin to the decision about it. False: this member ends on its own.
  bool run_attempt() {
    if (Status entered = agreement_.enter(plan_.attempt); !entered) return give_up(entered.error().text);
    ends_.clear();
    last_deciding_ = kNoTime;
    if (plan_.rank_of(host_) && (!services_answer() || !ready() || !run_command())) return false;
    return await_decision();
  }

  // Whether all promised hosts begin the attempt. All members follow one answer.
  bool ready() {
    MemberRecord me;
    me.host = host_;
    if (Status written = agreement_.write("ready", to_json(me)); !written)
      return give_up(written.error().text);
    TimeNs begin = steady_now();
    const uint32_t rank = plan_.rank_of(host_).value_or(0);
    std::map<std::string, MemberRecord> all;
    WaitLines lines;
    for (;;) {
      show_life();
      if (const auto go = agreement_.settled(kGo)) {
        if (go->empty()) return true;
        const std::string text(trim(*go));
        if (text.starts_with(kStopped)) return give_up(to_terminal(text));
        return give_up(
            fmt::format("attempt {} was not begun: {} did not come", plan_.attempt, to_terminal(text)));
      }
      // The first host comes when the service answers.
      const bool waits = waits_for_service();
      if (waits) begin = steady_now();
      const TimeNs waited = steady_now() - begin;
      if (!waits && (waited >= rank * patience_.turn_ns || waited >= patience_.ready_ns)) {
        read_records("ready", all);
        std::vector<std::string> missing;
        for (const std::string& host : plan_.hosts)
          if (!all.contains(host)) missing.push_back(host);
        if (missing.empty())
          (void)agreement_.settle(kGo, "");
        else if (waited >= patience_.ready_ns)
          (void)agreement_.settle(kGo, fmt::format("{}\n", fmt::join(missing, ", ")));
        if (!missing.empty() && lines.is_due())
          report_error(fmt::format("attempt {}: waiting for {} of {} hosts: {}", plan_.attempt,
                                   missing.size(), plan_.hosts.size(), some_of(missing)));
      }
      if (waited >= 2 * patience_.ready_ns) return give_up("the shared folder gives no answer");
      if (!pause(waits ? kServiceLook : kMemberLook)) return false;
    }
  }

  bool waits_for_service() {
    const std::string& first = plan_.hosts.front();
    return !services_.empty() && first != host_ && !agreement_.read("ready", first) &&
           !agreement_.is_lost(first, kLifeWithin);
  }

  // On the first host: waits for the services that the last attempt could not reach. False: the run ends.
  bool services_answer() {
    if (services_.empty() || plan_.hosts.front() != host_) return true;
    auto away = unanswered_now(services_);
    // One that answers already was busy, and nothing shows when it is not any more.
    if (away.empty()) return rest(wait_ns_);
    const std::string name = away.front().text();
    const TimeNs since = ledger_.now(attempts_.back().failure.root).first_ns;
    TimeNs until = since + limits_.later_max_ns;
    if (const TimeNs end = app::allocation_end(variable); end != kNoTime)
      until = std::min(until, end - limits_.min_left_ns);
    const auto waited =
        wait_for_services(std::move(away), until, [this](TimeNs wait_ns) { return rest(wait_ns); });
    if (waited == ServiceWait::kSilent)
      (void)agreement_.settle(kGo, fmt::format("{}{} has not answered for {}\n", kStopped, name,
                                               format_duration(wall_now() - since)));
    return waited != ServiceWait::kEnded;
  }

  std::string attempt_name(uint32_t number) const {
    return fmt::format("{}-attempt-{}", run_.launch.job, number);
  }

  // The GPUs of this host that the attempt may use.
  app::VisibleGpus own_gpus() const {
    app::VisibleGpus out = gpus_;
    std::erase_if(out.gpus,
                  [&](const app::Gpu& gpu) { return std::ranges::count(plan_.without, gpu.uuid) > 0; });
    return out;
  }

  Result<app::HeldFolder> attempt_folder() const {
    auto attempts = run_.folder.held().enter("attempts");
    return attempts ? attempts->enter(attempt_name(plan_.attempt)) : std::move(attempts);
  }

  bool run_command() {
    const uint32_t rank = plan_.rank_of(host_).value_or(0);
    MemberRecord me;
    me.host = host_, me.member = run_.launch.member;
    me.begin_ns = wall_now();
    std::vector<std::string> words = {"culprit",    "run",
                                      "--shared",   run_.folder.path() + "/attempts",
                                      "--job",      attempt_name(plan_.attempt),
                                      "--end-hang", o_.end_hang};
    words.insert(words.end(), run_.passed_on.begin(), run_.passed_on.end());
    words.emplace_back("--");
    app::Placeholders values{plan_.attempt, plan_.resume, plan_.port, {}, plan_.hosts, rank, plan_.revision};
    const app::VisibleGpus gpus = own_gpus();
    for (const app::Gpu& gpu : gpus.gpus) values.gpus.push_back(gpu.uuid);
    for (std::string& word : app::filled(run_.command, values)) words.push_back(std::move(word));
    std::vector<std::string> environment =
        app::attempt_variables(values, plan_.left, attempts_.empty() ? "" : attempts_.back().headline);
    if (const auto names = app::excluded(history(), attempts_.size()); !names.empty())
      environment.push_back(fmt::format("{}={}", app::kExcludedVariable, fmt::join(names, ",")));
    if (gpus.gpus.size() < gpus_.gpus.size())
      environment.push_back(fmt::format("{}={}", gpus.variable, app::uuid_list(gpus)));
    environment.push_back(attempt_member_variable({rank, static_cast<uint32_t>(plan_.hosts.size())}));
    ran_ = true;
    status_ = kCommandNotStarted;
    if (process_.start(words, std::move(environment))) status_ = wait_for_command(me);
    me.end_ns = wall_now();
    const TimeNs ended = steady_now();
    me.status = status_;
    me.interrupted = process_.stopped();
    show_life();
    (void)end_leftovers(mark_, me.begin_ns, me.stuck);
    show_life();
    me.port = unused_port();
    me.gpus = gpus;
    if (const std::string report = process_.report_text();
        !report.empty() && report.size() < app::kRecordBytes)
      if (Status written = agreement_.write("report", report); !written) report_error(written.error().text);
    me.age_ns = steady_now() - ended;
    return write_end(std::move(me)) || give_up("the end of the command cannot be written");
  }

  bool write_end(MemberRecord me) {
    const Status written = agreement_.write("end", to_json(me));
    if (!written) report_error(written.error().text);
    if (const auto own = agreement_.read("end", host_)) me.shared_end_ns = own->changed_ns - me.age_ns;
    ends_[host_] = std::move(me);
    return written.has_value();
  }

  // Waits for the command, and ends it if the attempt ended elsewhere.
  int wait_for_command(MemberRecord& me) {
    for (;;) {
      const auto status = process_.wait(kRunningLook);
      say_stopped();
      if (status) return *status;
      show_life();
      if (!agreement_.stopped() && !agreement_.settled(kDecision)) continue;
      me.ended_by_us = true;
      if (const auto ended = process_.end([this](TimeNs within) { return wait_alive(within); }))
        return *ended;
    }
  }

  // The command's status; nothing: it still runs after `within`.
  std::optional<int> wait_alive(TimeNs within) {
    for (const TimeNs until = steady_now() + within; steady_now() < until;) {
      show_life();
      if (const auto status = process_.wait(std::min(kRunningLook, until - steady_now()))) return status;
    }
    return std::nullopt;
  }

  // ---- the decision about an attempt

  void read_records(std::string_view what, std::map<std::string, MemberRecord>& records) const {
    for (const auto& [host, entry] : agreement_.read_new(what, records)) {
      auto record = app::member_record(entry.text);
      if (!record || record->host != host) continue;
      record->shared_end_ns = entry.changed_ns - record->age_ns;
      records.emplace(host, std::move(*record));
    }
  }

  void read_ends(app::AttemptView& view) {
    read_records("end", ends_);
    view.ends = ends_;
    view.lost.clear(), view.alive.clear();
    for (const std::string& host : plan_.hosts) {
      if (ends_.contains(host)) continue;
      if (agreement_.is_lost(host, kLifeWithin)) view.lost.insert(host);
      if (!agreement_.is_lost(host, kFreshWithin)) view.alive.insert(host);
    }
  }

  // What the others cannot see alive must not run: they may begin the next attempt.
  void show_life() {
    if (agreement_.show_life()) guardian_->beat();
  }

  // Says that this member decides. False: it does not any more. One whose decision was refused tries again
  // without a sign, so that no member waits for it.
  bool keep_deciding() {
    show_life();
    const TimeNs now = steady_now();
    if (!told_refused_ &&
        (decides_at_ == kNoTime || now - decides_at_ >= std::min(kDecidesEvery, patience_.decider_ns / 4))) {
      (void)agreement_.write(kDecides, "", false);
      decides_at_ = now;
    }
    return pause(kWorkLook) && !agreement_.settled(kDecision);
  }

  bool another_decides() {
    for (const std::string& host : agreement_.hosts_with(kDecides))
      if (host != host_ && agreement_.silence(kDecides, host) < patience_.decider_ns) {
        last_deciding_ = steady_now();
        return true;
      }
    return false;
  }

  // Waits, and shows life. False: a signal ends the run.
  bool rest(TimeNs wait_ns) {
    for (const TimeNs until = steady_now() + wait_ns; steady_now() < until;) {
      show_life();
      if (!pause(std::min(kRunningLook, until - steady_now()))) return false;
    }
    return true;
  }

  bool pause(TimeNs wait_ns) {
    const bool goes_on = process_.pause(wait_ns);
    say_stopped();
    return goes_on;
  }

  // After a signal, the members still agree for a while on how the attempt ended.
  bool pause_for_end(TimeNs wait_ns) {
    if (!process_.stopped()) return pause(wait_ns) || ran_;
    say_stopped();
    return ran_ && process_.rest(wait_ns) && steady_now() - stopped_at_ < kAfterSignal;
  }

  void say_stopped() {
    if (!process_.stopped() || stopped_at_ != kNoTime) return;
    stopped_at_ = steady_now();
    report_error("a signal ends the run: no attempt follows");
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
    const size_t rank = plan_.rank_of(host_).value_or(0);
    TimeNs look_every = std::min<TimeNs>(kMemberLook * static_cast<TimeNs>(1 + rank), kLongestLook);
    if (rank >= kFirstReaders) {
      look_every = std::max(kLongestLook, patience_.ends_ns / 2);
      look_at = steady_now() + look_every;
    }
    view.ends = ends_;
    WaitLines lines;
    for (;;) {
      show_life();
      if (take_decision()) return true;
      const TimeNs now = steady_now();
      if (now >= look_at) {
        look_at = now + look_every;
        read_ends(view);
      }
      view.since_failure = failure.age(has_failure(view) || agreement_.stopped(), now);
      view.since_ends = ends.age(all_ended(view), now);
      if (is_spare() && (!ends_.empty() || view.since_failure != kNoTime)) answer(), view.ends = ends_;
      switch (next_step(view, now)) {
        case WaitStep::kWait:
          break;
        case WaitStep::kStop:
          agreement_.stop();
          break;
        case WaitStep::kDecide:
          if (now < decide_at) break;
          propose();
          if (take_decision()) return true;
          decide_at = steady_now() + patience_.turn_ns;
          break;
        case WaitStep::kGiveUp:
          return give_up("the hosts came to no decision: each one ends as its own command did");
      }
      if (!is_spare() && lines.is_due()) say_waiting(view, plan_.attempt);
      if (!pause_for_end(kMemberLook)) return false;
    }
  }

  // What to do now; others are asked only when this member would decide.
  WaitStep next_step(app::AttemptView& view, TimeNs now) {
    view.deciding = false;
    view.since_deciding = last_deciding_ == kNoTime ? kNoTime : now - last_deciding_;
    WaitStep step = wait_step(view, patience_, turn());
    if (step != WaitStep::kDecide && step != WaitStep::kGiveUp) return step;
    if ((view.deciding = another_decides())) return wait_step(view, patience_, turn());
    read_ends(view);
    return wait_step(view, patience_, turn());
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
    me.gpus = own_gpus();
    (void)write_end(std::move(me));
  }

  void propose() {
    app::JointFacts facts{host_, plan_, ends_, best_, ledger_, limits_};
    attempts_.emplace_back().revision = plan_.revision;
    facts.code = update_.choice(attempts_);
    attempts_.pop_back();
    facts.now = wall_now();
    facts.chance = random_share();
    facts.min_gpus = o_.min_gpus;
    if (const TimeNs end = app::allocation_end(variable); end != kNoTime) facts.left_ns = end - wall_now();
    decides_at_ = kNoTime;
    JointEvidence evidence(run_, agreement_, [this] { return keep_deciding(); });
    if (app::has_failed(facts) && !app::is_interrupted(facts)) {
      add_evidence(facts, evidence);
      if (agreement_.settled(kDecision)) return;  // another member was faster
    }
    AgreedDecision mine = app::decide_jointly(facts);
    if (mine.attempt.decision.again && run_.newest) add_checkpoint(mine, facts, evidence);
    const auto settled = agreement_.settle(kDecision, to_json(mine));
    agreement_.withdraw(kDecides);
    if (!settled && !std::exchange(told_refused_, true)) report_error(settled.error().text);
    if (!settled || !settled->won) return;
    // The winner alone tells and keeps what all have agreed on.
    won_ = true;
    if (mine.attempt.status != 0 && !mine.interrupted) tell(mine, facts.report);
    if (!evidence.left_out().empty()) report_error(evidence.left_out());
    attempts_.push_back(mine.attempt);
    write_ledger(run_.folder, attempts_, true);
    (void)write_page();
    attempts_.pop_back();
  }

  void add_evidence(app::JointFacts& facts, JointEvidence& evidence) {
    const auto attempt = attempt_folder();
    facts.report = evidence.report(attempt ? &*attempt : nullptr);
    const Diagnosis* lead = facts.report ? leading(*facts.report) : nullptr;
    facts.forbidden = lead && lead->rule && forbids_retry(o_, *lead->rule);
    if (facts.report) facts.services = app::targets_of(*facts.report, variable);
    if (run_.saved_ns) facts.saved_ns = run_.saved_ns();
    // Where iterations show the progress, only the checkpoint of the next attempt is read.
    if (run_.newest && app::failure_of(facts.report, host_, best_).progress == recover::Progress::kUnknown)
      if (const auto saved = evidence.newest(std::nullopt))
        facts.saved_step = *saved ? (*saved)->step.value_or(-1) : -1;
  }

  // The checkpoint of the next attempt.
  void add_checkpoint(AgreedDecision& mine, const app::JointFacts& facts, JointEvidence& evidence) {
    const Diagnosis* lead = facts.report ? leading(*facts.report) : nullptr;
    const auto before = app::older_than(plan_.resume_step, lead ? lead->iteration : std::nullopt);
    const auto from = evidence.newest(mine.attempt.decision.older ? before : std::nullopt);
    if (from && *from) mine.next.resume = (*from)->path, mine.next.resume_step = (*from)->step;
    if (from) return;
    // Without it an attempt would begin from nothing.
    mine.attempt.decision = {};
    mine.attempt.decision.why = "not started again: " + from.error().text;
    mine.next = {};
  }

  void tell(const AgreedDecision& d, const std::optional<Report>& report) {
    const app::Attempt& a = d.attempt;
    std::vector<std::string> failed;
    for (const auto& [host, end] : ends_)
      if (end.status != 0 && !end.ended_by_us) failed.push_back(fmt::format("{} ({})", host, end.status));
    for (const std::string& host : d.absent)
      if (!ends_.contains(host)) failed.push_back(host + " (no answer)");
    report_error(fmt::format("attempt {} failed on {}", a.number, some_of(std::move(failed))));
    const auto attempt = attempt_folder();
    if (report && leading(*report) && attempt)
      show_report(*report, choices_, zone_, *attempt);
    else
      report_error("nothing in its output says why");
    if (!a.decision.again) return;
    app::Attempt next;
    next.number = d.next.attempt;
    next.resume = d.next.resume;
    report_error(announcement(a, next, next.number + d.next.left, d.next.resume_step) + "; on " +
                 some_of(d.next.hosts));
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
    services_ = std::move(d.services);
    wait_ns_ = a.decision.wait_ns;
    if (services_.empty() && !rest(wait_ns_)) done_ = true;
  }

  // ---- the end

  int exit_code() const {
    if (excluded_) return 0;
    const bool failed = !attempts_.empty() && attempts_.back().status != 0;
    if (o_.verdict_exit && failed && !process_.stopped() && verdict_ != 0) return verdict_;
    return ran_ && !is_spare() ? status_ : 0;
  }

  // The run is over, for hosts that come later too.
  void close_run() const { (void)app::Members(run_.folder.members(), run_.launch, true).claim(); }

  // Every member says that it has read the last decision; the one that made it then clears up.
  void leave() {
    (void)agreement_.write("left", "");
    if (excluded_ || !won_) return;
    const bool well = attempts_.back().status == 0;
    print_attempts(history(), run_.folder.path(), attempts_.size() > 1 && write_page(), zone_);
    close_run();
    if (!well || attempts_.size() > 1 || run_.keep) return;
    const TimeNs until = steady_now() + kLeaveWithin;
    const size_t all = plan_.hosts.size() + spares_;
    while (agreement_.hosts_with("left").size() < all) {
      if (steady_now() >= until) return;
      if (!process_.pause(kMemberLook)) return;
    }
    run_.folder.remove();
  }

  app::AttemptHistory history() const {
    const uint32_t last = attempts_.empty() ? 0 : attempts_.back().number;
    app::AttemptHistory out{attempts_, {}, last + plan_.left, run_.folder.path() + "/attempts.jsonl"};
    for (const app::Attempt& attempt : attempts_)
      out.pages.push_back("attempts/" + attempt_name(attempt.number) + "/report.html");
    return out;
  }

  // The page of all attempts, with the report of the last one that has one: its decider wrote it. False: none
  // has.
  bool write_page() const {
    const auto attempts = run_.folder.held().enter("attempts");
    if (!attempts) return false;
    for (size_t i = attempts_.size(); i > 0; --i) {
      const uint32_t number = attempts_[i - 1].number;
      const auto folder = attempts->enter(attempt_name(number));
      const auto text =
          folder ? folder->read(kReport, kReportBytes) : Result<std::string>(tl::unexpected(folder.error()));
      const auto report = text ? report_from_json(*text) : Result<Report>(tl::unexpected(text.error()));
      if (!report) continue;
      const Status written = write_attempt_report(run_.folder, history(), *report, number, zone_);
      if (!written) report_error(written.error().text);
      return written.has_value();
    }
    return false;
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
  CodeUpdate update_{o_.code, 0};
  std::vector<app::Attempt> attempts_;
  std::optional<int64_t> best_;
  AttemptPlan plan_{.attempt = 0};
  uint32_t spares_ = 0;  // that are expected to answer
  int verdict_ = 0;
  // This member's own.
  std::map<std::string, MemberRecord> ends_;  // of the current attempt
  int status_ = 0;
  app::VisibleGpus gpus_;                   // all that the command may use; empty without --min-gpus
  std::vector<app::ProbeTarget> services_;  // that must answer before the attempt begins
  TimeNs wait_ns_ = 0;                      // if they answer at once
  TimeNs decides_at_ = kNoTime;             // last sign that this member decides
  TimeNs last_deciding_ = kNoTime;          // when another one was last seen to decide
  TimeNs stopped_at_ = kNoTime;             // when a signal to end was seen
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
  launch.in_team = launch.shows_life = true;
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
