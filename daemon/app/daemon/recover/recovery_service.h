// The controller in the collector: gives verdicts, progress and the scheduler's view to core/recover, stores
// what it decides, and only then has it carried out. Without a scheduler, a ledger or a verdict nothing is
// done, and jobs go on.
//
// Thread: the loop's, also for callbacks. Owns a worker for the ledger, one for its readers, one for the
// scheduler's view, and the executor's. Borrows its parts, which outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/alerts/run_verdict.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/recover/act_gate.h"
#include "app/daemon/recover/align_checks.h"
#include "app/daemon/recover/host_checks.h"
#include "app/daemon/recover/input_log.h"
#include "app/daemon/recover/job_reports.h"
#include "app/daemon/recover/job_verdicts.h"
#include "app/daemon/recover/open_questions.h"
#include "app/daemon/recover/other_members.h"
#include "app/daemon/recover/recovery_trouble.h"
#include "app/daemon/recover/scheduled_jobs.h"
#include "app/daemon/recover/schedulers.h"
#include "app/daemon/recover/spare_checks.h"
#include "core/recover/controller.h"
#include "core/recover/cost_book.h"
#include "io/env.h"
#include "model/peer.h"
#include "respond/executor.h"
#include "respond/scheduler_view.h"
#include "store/recovery_store.h"

namespace culprit::app {

struct RecoveryServiceOptions {
  const Config* config = nullptr;
  EngineWorker* engine = nullptr;
  std::function<void(LogLevel, const std::string&)> log;
  // Ends a job's processes on these hosts.
  std::function<void(const std::vector<std::string>& hosts, const peer::EndTasks&)> end_tasks;
  // Gives advice to the processes of a job on these hosts.
  std::function<void(const std::vector<std::string>& hosts, const peer::Advise&)> advise = {};
  // CheckHost, AlignHost or AlignJudged to a host's agent; false: it is not connected. Answers come to
  // checked().
  std::function<bool(const std::string& host, const peer::Message&)> check_host = {};
  std::function<SchedulerParts()> scheduler = {};  // empty: as `config` says
  std::shared_ptr<ActGate> gate = nullptr;         // of a collector that shares its jobs; null: it does not
  // Questions of the controller as alerts: all that are open, and those that ended just now.
  std::function<void(std::span<const alert::Fault> open, std::span<const EndedQuestion> ended)> questions =
      {};
};

// Since the start, for /metrics.
struct RecoveryCounts {
  std::map<std::string, uint64_t> notes;                          // by kind
  std::map<alert::End, uint64_t> questions;                       // by end
  std::map<std::pair<OrderKind, ActionState>, uint64_t> actions;  // that reached this state
  std::optional<uint32_t> spares;  // hosts in the scheduler's pool now; nothing: there is none
};

class RecoveryService {
 public:
  // Blocks while the ledger is opened and read. An error if it cannot be read: the controller must not begin
  // with an empty one.
  static Result<std::unique_ptr<RecoveryService>> open(io::Env& env, RecoveryServiceOptions options);
  ~RecoveryService();

  // The engine has all data from before the start.
  void restored();
  void on_verdicts(std::span<const RunVerdict> verdicts);  // subscriber of the feed
  void beat();                                             // each second
  void reload();
  void stop();

  // A person's words. They take effect with the next step.
  void answer(const std::string& decision, bool approved, const std::string& by);
  void reset_breaker(const std::string& by);
  Status undo(const std::string& op, const std::string& by);
  // A host that we took out is returned, without a veto.
  void repaired(const std::string& host, const std::string& by);
  // An isolated host that passes is offered to be returned.
  Status check(const std::string& host, const std::string& by);
  // The agent of a host connected, with the kernel's boot id; empty: it is not connected any more.
  void see_agent(const std::string& host, const std::string& boot);
  // A CheckResult or AlignResult of a host's agent; it takes effect with the next beat.
  void checked(const std::string& host, const peer::Message& result);

  const Config& config() const { return *options_.config; }
  const recover::Controller& controller() const { return controller_; }
  // The controller's key of a job, by culprit's or the scheduler's id; empty: unknown.
  std::string key_of_job(const std::string& job) const;
  // Why the controller does nothing now; nothing: it works.
  std::optional<RecoveryTrouble> trouble() const;
  // When the reading of the last view of the scheduler began; kNoTime: there was none since the start.
  TimeNs view_ns() const { return view_ns_; }
  const OpenQuestions& questions() const { return questions_; }
  const recover::CostBook& cost() const { return cost_; }
  const RecoveryCounts& counts() const { return counts_; }
  const JobVerdicts& verdicts() const { return verdicts_; }
  // The ledger on a reader of its own: no read delays what has to be written.
  void read(std::function<void(store::RecoveryStore&)> work, std::function<void()> done) const;

 private:
  // The ledger, on its worker.
  void query(std::function<void(store::RecoveryStore&)> work, std::function<void()> done);

  RecoveryService(io::Env& env, RecoveryServiceOptions options);
  struct Ending {
    std::string job;  // the scheduler's id
    TimeNs until_ns = kNoTime;
  };

  void give(recover::Input input) { inputs_.push_back(std::move(input)); }
  void run();
  void write();
  void write_log();
  void carry_out(const ActionOrder& order);
  void end_tasks(const ActionOrder& order);
  void settle(ActionResult result);
  void check_endings();
  std::string still_alive(const std::string& job) const;
  void beat_checks();
  HostChecks::Ways check_ways();
  void look();
  void look_soon(TimeNs took_ns);
  void look_at_own_jobs();
  void rehearse(const ActionOrder& order);
  void looked(const Result<respond::SchedulerView>& view, TimeNs read_ns);
  void read_progress();
  void begin();
  void give_verdicts();
  JobVerdicts::Parts verdict_parts();
  const ActionRecord* own_hold(const respond::SeenJob& seen) const;
  std::set<std::string> own_holds(const respond::SchedulerView& view, TimeNs read_ns);
  bool cannot_write() const { return !damage_.empty() || !store_error_.empty(); }
  bool may_act() const { return !gate_ || gate_->is_open(); }
  void note(const recover::Note& note);
  void settle_questions();
  void count_changes();
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  RecoveryServiceOptions options_;
  std::shared_ptr<store::RecoveryStore> store_;         // used on ledger_ alone
  std::shared_ptr<store::RecoveryStore> reader_store_;  // used on reader_ alone
  std::unique_ptr<io::Worker> ledger_, looker_, reader_;
  std::unique_ptr<respond::Executor> executor_;   // null: nothing is carried out
  std::unique_ptr<respond::Executor> rehearsal_;  // null: observe mode asks nothing
  std::function<Result<respond::SchedulerView>()> look_;
  std::shared_ptr<ActGate> gate_;          // null: no other collector acts
  std::unique_ptr<OtherMembers> members_;  // null: all jobs are this collector's
  std::function<void(const Config::Act&)> reload_scheduler_;
  std::shared_ptr<std::atomic<bool>> may_keep_pool_;  // null: the scheduler has no pool
  TimeNs look_every_ns_ = 0;
  bool own_jobs_ = false;  // the view is the collector's own jobs
  recover::Controller controller_;
  InputLog log_;
  std::string log_error_;  // reported
  ScheduledJobs jobs_;
  struct Agent {
    std::string boot;  // the kernel's boot id
    bool connected = false;
    TimeNs booted_ns = kNoTime;  // when another boot id was seen
  };
  std::map<std::string, Agent> agents_;  // by host, since the start
  HostChecks checks_;
  AlignChecks alignments_;
  SpareChecks spare_checks_;
  std::vector<std::string> spare_hosts_;                             // as last seen
  std::map<std::string, std::vector<peer::Message>> check_results_;  // by host, since the last beat
  std::vector<recover::Input> inputs_;
  store::RecoveryRows unwritten_;
  std::vector<ActionOrder> waiting_;       // for their rows to be stored
  std::map<std::string, Ending> endings_;  // by op
  OpenQuestions questions_;
  recover::CostBook cost_;
  RecoveryCounts counts_;
  JobVerdicts verdicts_;
  JobReports reports_;
  std::map<std::string, TimeNs> starting_;      // jobs that we start: kNoTime, or when that ended
  std::map<std::string, std::string> started_;  // op of our last order to run a job again
  std::optional<recover::BreakerReset> last_reset_;
  std::vector<std::string> reserved_;  // ops found reserved at the start
  std::string look_error_, store_error_, damage_;
  bool look_refused_ = false;  // look_error_ is no fault: another collector acts
  TimeNs look_since_ns_ = kNoTime, store_since_ns_ = kNoTime, damaged_ns_ = kNoTime, view_ns_ = kNoTime;
  bool restored_ = false, begun_ = false, writing_ = false, looking_ = false, reading_ = false,
       stopped_ = false;
  std::unique_ptr<io::Timer> soon_;  // the next look, while the end of processes is awaited
  TimeNs looked_ns_ = kNoTime, read_ns_ = kNoTime, pruned_ns_ = kNoTime;
};

// Which verdicts on a job are not acted on, and what they wait for: a sentence each.
std::vector<std::string> waits_of(const RecoveryService& service, const recover::JobView& job);

}  // namespace culprit::app
