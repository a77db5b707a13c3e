// The HTTP API of this host's daemon. Queries run on the worker that owns the data; answers return on the
// loop. This class makes the JSON; daemon_metrics.cc makes the metrics.
//
// Thread: the loop's. Borrows the parts of the daemon, which outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/config/config.h"
#include "app/daemon/alerts/alert_service.h"
#include "app/daemon/api/daemon_lists.h"
#include "app/daemon/api/named_hosts.h"
#include "app/daemon/api/own_view.h"
#include "app/daemon/api/read_audit.h"
#include "app/daemon/api/rule_maker.h"
#include "app/daemon/engine/engine_answer.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/intake/sources.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/recover/lease_service.h"
#include "app/daemon/recover/recovery_service.h"
#include "app/daemon/recover/shared_judgements.h"
#include "app/daemon/recover/shared_pools.h"
#include "app/daemon/recover/shared_reports.h"
#include "app/daemon/self/agent_counts.h"
#include "app/daemon/self/self_watch.h"
#include "app/daemon/uplink/uplink.h"
#include "app/daemon/watch/capture_service.h"
#include "app/daemon/watch/plugin_service.h"
#include "app/daemon/watch/ras_service.h"
#include "io/env.h"
#include "serve/api.h"
#include "serve/metrics.h"

namespace culprit::app {

class CopyService;

// Parts of the daemon. A reload may replace them, so they are looked up at each use.
struct AgentParts {
  const Config* config = nullptr;
  const AgentCounts* counts = nullptr;
  SelfWatch* watch = nullptr;
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;  // null with an uplink
  const Uplink* uplink = nullptr;  // null unless the daemon is an agent
  std::function<const Sources*()> sources;
  std::function<std::optional<serve::HttpCounts>()> http;        // counts over all addresses
  std::function<const PluginService*()> plugins = {};            // may return null
  std::function<const CaptureService*()> capture = {};           // may return null
  ReadAccess access = {};                                        // access as at the start
  std::function<void(const std::string& sentence)> inform = {};  // writes to the daemon's log
  std::function<const RasService*()> ras = {};                   // may return null
  // Applies the whole new configuration and rules, or nothing of them; answers afterwards.
  std::function<void(std::function<void(Status)>)> reload = {};
  AlertService* alerts = nullptr;                        // null with an uplink
  VerdictFeed* verdicts = nullptr;                       // null with an uplink
  const RecoveryService* recovery = nullptr;             // null without a controller
  const LeaseService* leases = nullptr;                  // null: no other collector shares the jobs
  const SharedReports* shared = nullptr;                 // set with `leases`
  SharedJudgements* judgements = nullptr;                // set with `leases`
  SharedPools* shared_pools = nullptr;                   // set with `leases`
  std::optional<RecoveryTrouble> stopped_recovery = {};  // why a controller did not start
  // A person says that a host was repaired.
  std::function<void(const std::string& host, const std::string& by)> repaired = {};
  std::function<const CopyService*()> copies = {};  // may return null
};

class DaemonApi : public serve::ApiSource {
 public:
  DaemonApi(io::Env& env, AgentParts parts);

  std::unique_ptr<serve::ApiSource> limited_to(const serve::Reader& reader) override;
  void on_evidence_read(const serve::EvidenceQuery& query, const serve::Reader& reader) override;
  serve::Health health() override;
  void metrics(std::function<void(std::string)> answer) override { answer(metrics_text(Counters::kAll)); }
  void job_metrics(KeepJob keep, std::function<void(std::string)> answer) override;
  void status(Answer answer) override;
  void jobs(Answer answer) override { lists_.jobs_of({}, std::move(answer)); }
  void now(const serve::NowQuery& query, Answer answer) override;
  void report(const serve::ReportQuery& query, Answer answer) override {
    lists_.report_of(query, {}, std::move(answer));
  }
  void diagnoses(const serve::DiagnosisQuery& query, Answer answer) override {
    lists_.diagnoses_of(query, every_job, std::move(answer));
  }
  void suspects(const std::optional<std::string>& job, Answer answer) override {
    lists_.suspects_of(job, every_job, std::move(answer));
  }
  void hosts(Answer answer) override;
  void devices(Answer answer) override;
  void rules(Answer answer) override;
  void rule(const std::string& id, Answer answer) override;
  void plugins(Answer answer) override;
  void sources(const std::optional<std::string>& job, Answer answer) override;
  void evidence(const serve::EvidenceQuery& query,
                std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) override;
  void about(Answer answer) override;
  void pool(Answer answer) override;
  void pool_log(Answer answer) override;
  void reload(const serve::Actor& by, Answer answer) override;
  void judge(const serve::Judgement& judgement, const serve::Actor& by, Answer answer) override;
  void make_rule(const serve::RuleRequest& request, const serve::Actor& by, Answer answer) override;
  void clear(const std::string& host, const serve::Actor& by, Answer answer) override;
  void capture(const std::string& job, uint32_t rounds, const serve::Actor& by, Answer answer) override;
  void forget_taught(const std::string& job, const serve::Actor& by, Answer answer) override;
  void alerts(const serve::AlertQuery& query, Answer answer) override;
  void handle_alert(const serve::AlertOrder& order, const serve::Actor& by, Answer answer) override;
  void maintenance(Answer answer) override;
  void add_maintenance(const std::string& body, const serve::Actor& by, Answer answer) override;
  void end_maintenance(int64_t id, const serve::Actor& by, Answer answer) override;
  void test_alert(const std::string& receiver, const serve::Actor& by, Answer answer) override;

  // What this daemon answers by itself, for the other members of a cluster.
  OwnReports own_reports() { return lists_.own_reports(); }

 protected:
  enum class Counters : uint8_t { kOpen, kAll };  // without or with the counters of alert receivers
  virtual std::string metrics_text(Counters counters);
  virtual nlohmann::json status_values();  // values of GET /v1/status, for every reader
  // The rows of GET /v1/hosts by host: this host first, then the findings about other hosts.
  using HostRows = std::vector<std::pair<std::string, nlohmann::json>>;
  HostRows host_rows(const std::vector<NamedHost>& named);

  io::Env& env_;
  AgentParts parts_;
  DaemonLists lists_{parts_};

 private:
  void put_rule(const serve::RuleRequest& request, const serve::Actor& by,
                const std::shared_ptr<MadeRule>& made, Answer answer);

  // Adds "alert" to the jobs of GET /v1/now that have a firing alert.
  void mark_alerts(nlohmann::json& items) const;
  void audit(const char* what, const alert::Window& window);

  RuleMaker rule_maker_{env_, *this};
  EngineAnswer<DaemonLists::Jobs> now_jobs_;  // answer for GET /v1/now
  EngineAnswer<std::vector<JobCounters>> counters_;
  std::shared_ptr<void> reading_ = std::make_shared<int>();  // each evidence reader holds a reference
  ReadAudit audit_;
};

// "alice (uid 0)": for the log and the store.
std::string who(const serve::Actor& by);

// Part of GET /v1/status: messages that wait for receivers, and problems.
nlohmann::json alert_status(const AlertService& alerts);

// Reads evidence on a separate worker, so that a slow client or disk delays no other reader. The reader keeps
// `share` alive.
Result<std::unique_ptr<serve::EvidenceReader>> read_evidence(io::Env& env, store::EvidenceReader reader,
                                                             store::EvidenceRange range,
                                                             std::shared_ptr<void> share);

// Nothing that was known until now counts against the host. Rejects an unknown host name: a typing error
// would leave the intended host suspected.
void hold_nothing(const AgentParts& parts, TimeNs now, const std::string& host, const serve::Actor& by,
                  serve::ApiSource::Answer answer);

}  // namespace culprit::app
