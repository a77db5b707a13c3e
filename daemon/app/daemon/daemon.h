// culpritd with role both: sources, store, engine and API of one host, connected. Data from sources goes to
// the store and to the engine, in the same order; sources pause while the queue of either is full. With role
// agent the collector has the engine: data from sources goes to the uplink instead.
//
// A collector also receives from agents of other hosts (role both), or only from them (role collector).
//
// Thread: the loop's. Owns everything that it starts; the Env outlives it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/alerts/alert_service.h"
#include "app/daemon/api/advice_api.h"
#include "app/daemon/api/daemon_api.h"
#include "app/daemon/api/http_service.h"
#include "app/daemon/api/recovery_api.h"
#include "app/daemon/collector/collector_service.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/engine/late_reading.h"
#include "app/daemon/engine/restore.h"
#include "app/daemon/engine/rule_watch.h"
#include "app/daemon/event_delivery.h"
#include "app/daemon/intake/intake.h"
#include "app/daemon/intake/process_watch.h"
#include "app/daemon/intake/sources.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/recover/job_owners.h"
#include "app/daemon/recover/recovery_service.h"
#include "app/daemon/recover/sharing.h"
#include "app/daemon/self/black_box.h"
#include "app/daemon/self/log.h"
#include "app/daemon/self/notify.h"
#include "app/daemon/self/quarantine.h"
#include "app/daemon/self/self_watch.h"
#include "app/daemon/uplink/uplink.h"
#include "app/daemon/watch/advice_service.h"
#include "app/daemon/watch/capture_service.h"
#include "app/daemon/watch/check_service.h"
#include "app/daemon/watch/copy_service.h"
#include "app/daemon/watch/end_service.h"
#include "app/daemon/watch/plugin_service.h"
#include "app/daemon/watch/ras_service.h"
#include "app/jobs/job_names.h"
#include "io/env.h"
#include "serve/api.h"

namespace culprit::app {

struct DaemonOptions {
  std::string config_path;  // --config
  LoadedConfig loaded;      // without errors
  ServiceEnvironment service;
  MakeEnv make_env = {};  // loops of more threads; empty: no copies of checkpoints
};

class Daemon {
 public:
  // Blocks while the store is recovered and the rules are loaded. Returns an error only if the daemon cannot
  // work at all: other failures are logged, and the rest works.
  static Result<std::unique_ptr<Daemon>> start(io::Env& env, DaemonOptions options, Log& log);
  ~Daemon();

  // SIGHUP: applies the whole new configuration, or nothing of it. `done`: the result; not called if the
  // daemon ends first.
  void reload(std::function<void(Status)> done = {});
  // SIGTERM: finishes pending data; then the loop ends. Takes at most five seconds, even if something hangs.
  void stop();

 private:
  Daemon(io::Env& env, DaemonOptions options, Log& log);
  Status begin();
  void learn_from_last_end();
  std::function<void(std::string_view)> reading(BlackBox::Reader reader);
  std::function<bool(std::string_view)> left_out() const;  // inputs
  uint64_t memory_of_engines(const Config& config) const;
  Status lock_state();
  Status open_recorder();
  std::shared_ptr<rules::Ruleset> load_first_rules();
  void tell_open(const rules::Ruleset& rules);
  bool forwards() const { return config_.role == DaemonRole::kAgent; }
  Status start_engine(std::shared_ptr<rules::Ruleset> rules);
  Status start_collecting();
  Status start_uplink(std::shared_ptr<rules::Ruleset> rules);
  std::function<void(const std::string&, const StreamInfo&, const Piece&)> follower() const;
  std::vector<std::string> roots() const;
  peer::Status peer_status() const;
  void start_intake();
  void start_sources(std::vector<StreamState> known);
  void start_plugins();
  void say(LogLevel level, const std::string& what) {
    level >= LogLevel::kWarning ? report_error(what) : log_.info(what);
  }
  void start_ras();
  Status start_alerts();
  void start_capture();
  void look_into(peer::StacksWanted wanted);
  void make_api();
  void restore();
  void restored(std::vector<SharedBatch>&& rest, const Result<store::ReadDamage>& damage);
  void report_lost();
  void refuse_reload(const std::string& why);
  void change_sources(const Config& before, std::vector<std::string> stored);
  void reloaded(const std::vector<std::string>& stored);
  void swap(LoadedConfig loaded, std::shared_ptr<rules::Ruleset> rules);
  void beat();
  void report_hang();
  void report_error(const std::string& sentence);
  void reload_collecting();
  void finish();
  void save_jobs();
  void end();
  void give_up();
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  DaemonOptions options_;
  Log& log_;
  Config config_;
  Notify notify_;
  SelfWatch watch_;
  BlackBox black_box_;
  BlackBox plugin_box_;          // for plugins within this process
  bool died_of_memory_ = false;  // the process before
  std::unique_ptr<Quarantine> quarantine_;
  std::unique_ptr<RuleWatch> rule_watch_;
  int lock_ = -1;
  AgentCounts counts_;
  JobNames job_names_;  // names on this host
  bool stopping_ = false, reloading_ = false;
  std::function<void(Status)> reload_done_;  // callback of the current reload; may be empty
  const std::shared_ptr<std::atomic<bool>> leaving_ =
      std::make_shared<std::atomic<bool>>(false);  // read by workers
  uint64_t trimmed_after_ = 0;                     // value of `holds` at the last trim
  std::string hung_;
  bool blind_ = false;
  std::unique_ptr<ProcessWatch> processes_;
  std::shared_ptr<PodLogs> pods_;  // null: the logs of pods are not followed
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<EngineWorker> engine_;         // null: the collector has the engine
  std::unique_ptr<Uplink> uplink_;               // set with role agent
  std::unique_ptr<CollectorService> collector_;  // null: this daemon is not a collector
  Pipeline* pipeline_ = nullptr;                 // the engine or the uplink, by the role
  std::unique_ptr<EventDelivery> delivery_;      // set with an engine
  std::unique_ptr<VerdictFeed> verdicts_;        // set with an engine
  std::unique_ptr<AlertService> alerts_;         // set with an engine
  Sharing sharing_;                              // empty: no other collector shares the jobs
  std::unique_ptr<RecoveryService> recovery_;    // null: this daemon is not a collector, or has no ledger
  std::unique_ptr<Intake> intake_;
  std::unique_ptr<Restore> restore_;
  std::unique_ptr<LateReading> late_;  // set with an engine once all stored data is restored
  std::unique_ptr<Sources> sources_;
  std::unique_ptr<PluginService> plugins_;   // null: the role observes no host
  std::unique_ptr<RasService> ras_;          // null: the role observes no host
  std::unique_ptr<CaptureService> capture_;  // null: the role observes no host
  std::unique_ptr<EndService> ends_;         // null: the role observes no host
  std::unique_ptr<AdviceService> advice_;    // null: the role observes no host
  std::unique_ptr<CheckService> checks_;     // null: the role observes no host
  std::unique_ptr<CopyService> copies_;      // null: copies of checkpoints are off
  std::unique_ptr<DaemonApi> source_;
  std::unique_ptr<RecoveryApi> recovery_api_;                 // set with recovery_
  std::optional<RecoveryTrouble> stopped_recovery_;           // why a configured controller did not start
  std::unique_ptr<StoppedRecoveryApi> stopped_recovery_api_;  // set with it
  std::unique_ptr<AdviceApi> advice_api_;
  std::unique_ptr<serve::Api> api_;
  std::unique_ptr<HttpService> http_;
  std::unique_ptr<io::Worker> reloader_;
  std::unique_ptr<io::Timer> beat_timer_, deadline_;
  std::vector<std::unique_ptr<io::SignalWatch>> signals_;
};

}  // namespace culprit::app
