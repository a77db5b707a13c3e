// What the HTTP API shows of this host's daemon: questions go to the worker that knows, answers come back on
// the loop. JSON is made here, metrics in agent_metrics.
//
// Thread: the loop's. Borrows the parts of the agent, which outlive it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/config.h"
#include "app/daemon/diagnoser.h"
#include "app/daemon/recorder.h"
#include "app/daemon/self_watch.h"
#include "app/daemon/sources.h"
#include "app/daemon/uplink.h"
#include "io/env.h"
#include "serve/api.h"
#include "serve/metrics.h"

namespace culprit::app {

// What has happened since the start, beside what the parts count themselves.
struct AgentCounts {
  TimeNs started_ns = 0;
  uint64_t reloads = 0, reloads_refused = 0;
  uint64_t complaints = 0;                   // sentences told in the log
  uint64_t holds = 0;                        // times that sources were held for want of credit
  size_t store_bytes = 0, engine_bytes = 0;  // under way
  bool restored = false;
};

// The parts may be replaced at a reload: so they are asked for, not kept.
struct AgentParts {
  const Config* config = nullptr;
  const AgentCounts* counts = nullptr;
  SelfWatch* watch = nullptr;
  Recorder* recorder = nullptr;
  Diagnoser* diagnoser = nullptr;  // null with an uplink
  const Uplink* uplink = nullptr;  // of an agent
  std::function<const Sources*()> sources;
  std::function<const serve::HttpServer*()> http;
};

class AgentApi : public serve::ApiSource {
 public:
  AgentApi(io::Env& env, AgentParts parts) : env_(env), parts_(std::move(parts)) {}

  serve::Health health() override;
  void metrics(std::function<void(std::string)> answer) override;
  void status(Answer answer) override;
  void jobs(Answer answer) override;
  void report(const serve::ReportQuery& query, Answer answer) override;
  void diagnoses(const serve::DiagnosisQuery& query, Answer answer) override;
  void suspects(const std::optional<std::string>& job, Answer answer) override;
  void hosts(Answer answer) override;
  void devices(Answer answer) override;
  void rules(Answer answer) override;
  void sources(const std::optional<std::string>& job, Answer answer) override;
  void evidence(const serve::EvidenceQuery& query,
                std::function<void(Result<std::unique_ptr<serve::EvidenceReader>>)> answer) override;
  void about(Answer answer) override;
  void pool(Answer answer) override;
  void judge(const serve::Judgement& judgement, const serve::Actor& by, Answer answer) override;
  void clear(const std::string& host, const serve::Actor& by, Answer answer) override;

 protected:
  io::Env& env_;
  AgentParts parts_;

 private:
  std::shared_ptr<void> reading_ = std::make_shared<int>();  // each reader of evidence has a share of it
};

// What makes two diagnoses, as JSON, the same fault, in whatever job: "rule:nvidia.xid.79".
std::string kind_of_diagnosis(std::string_view json);

// Whether the stored version of the diagnosis was announced; false while it may still change.
bool was_announced(std::string_view json);

// Everything that the daemon counts, as Prometheus reads it.
std::string metrics_text(const AgentParts& parts, TimeNs mono, const SelfUsage& usage);

// Reads evidence on a worker of its own: one slow client or disk holds up no other. `share` lives as long.
Result<std::unique_ptr<serve::EvidenceReader>> read_evidence(io::Env& env, store::EvidenceReader reader,
                                                             store::EvidenceRange range,
                                                             std::shared_ptr<void> share);

}  // namespace culprit::app
