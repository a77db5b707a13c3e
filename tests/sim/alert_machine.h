// A host of a simulated world with a daemon and jobs that write logs. The daemon's engine, records, alerts
// and API are the real ones; its sources, its receivers and its clock are simulated. The jobs and the disk
// outlive the daemon.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "alert_receivers.h"
#include "app/daemon/alerts/alert_service.h"
#include "app/daemon/alerts/verdict_feed.h"
#include "app/daemon/api/daemon_api.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/engine/restore.h"
#include "app/daemon/event_delivery.h"
#include "app/daemon/intake/intake.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/self/black_box.h"
#include "app/daemon/self/log.h"
#include "disk_faults.h"
#include "sim/sim_env.h"

namespace culprit::sim {

// A log of a job, as its processes write it.
struct JobLog {
  std::string job, text;
  bool alive = false;  // the job has processes
};

struct AlertMachinePlan {
  app::Config config;  // state_dir is the folder of the run
  std::shared_ptr<rules::Ruleset> rules;
  TimeNs work_ns = 0;
  std::function<void(const std::string&)> tell;
};

class AlertMachine {
 public:
  AlertMachine(World& world, AlertMachinePlan plan, DiskFaults& disk);
  ~AlertMachine() { kill(); }

  std::vector<JobLog> logs;
  std::map<std::string, AlertReceiver> receivers;  // by name
  VerdictReader controller;
  std::string why_not_started;

  bool is_up() const { return env_ != nullptr && env_->is_alive(); }
  bool start();
  // Its objects get no chance to store or send anything.
  void mark_dead() { env_->kill(SimEnv::Death::kKilled); }
  void kill();
  void step_clock(TimeNs ns);
  TimeNs wall_ns() const { return world_.monotonic_ns() + SimEnvOptions().wall_at_start_ns + stepped_ns_; }

  app::DaemonApi& api() { return *api_; }
  const app::AlertService& alerts() const { return *alerts_; }
  app::Recorder& recorder() { return *recorder_; }
  // All that was read is stored, analysed and published; empty: it is. Else what is not.
  std::string unfinished() const;

 private:
  Status begin();
  Status open_records();
  Status start_engine();
  Status open_alerts();
  void make_intake_and_api();
  void restore();
  void read_logs();
  void beat();

  World& world_;
  const AlertMachinePlan plan_;
  DiskFaults& disk_;
  app::Log log_;
  TimeNs stepped_ns_ = 0;
  // Of one life; destroyed in this order, from below.
  std::unique_ptr<SimEnv> env_;
  app::SelfWatch watch_;
  app::BlackBox box_;
  app::RuleWatch rule_watch_;
  app::AgentCounts counts_;
  std::unique_ptr<app::Recorder> recorder_;
  std::unique_ptr<app::EngineWorker> engine_;
  std::unique_ptr<app::EventDelivery> delivery_;
  std::unique_ptr<app::VerdictFeed> verdicts_;
  std::unique_ptr<app::AlertService> alerts_;
  std::unique_ptr<app::Intake> intake_;
  std::unique_ptr<app::Restore> restore_;
  std::unique_ptr<app::DaemonApi> api_;
  struct Reading {
    StreamId stream = kNoStream;
    uint64_t size = 0;
  };
  std::map<std::string, Reading> read_;  // by path
  bool paused_ = false;
  std::unique_ptr<io::Timer> timer_;
};

}  // namespace culprit::sim
