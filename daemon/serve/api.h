// The routes of docs/formats.md section 9. Checks parameters here; app supplies the bodies as serialised
// JSON.
//
// Thread: the loop's. ApiSource is borrowed and must outlive the Api. ApiSource answers each call exactly
// once, on the loop, at once or later. A dropped Answer sends status 500.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"
#include "model/advice.h"
#include "model/piece.h"
#include "serve/events.h"
#include "serve/http_server.h"

namespace culprit::serve {

struct Health {
  bool ok = false;
  std::string sentence;  // "ok", or the component that makes no progress, and since when
};

// A run of a job, numbered from 0; without a number, the last run.
struct JobRun {
  std::string job;
  std::optional<uint32_t> run;
};

struct ReportQuery {
  JobRun of;
  bool charts = false;  // with the curves for a page
};

// A person's judgement of a diagnosis.
struct Judgement {
  JobRun of;
  std::string id;
  bool right = true;
  std::string rule = {};  // the rule that was made of it
};

// Request to make a rule from a confirmed diagnosis. Empty texts stay open in the rule.
struct RuleRequest {
  JobRun of;
  std::string id;    // of the diagnosis
  bool dry = false;  // only show it
  std::string title = {}, cause = {}, remedy = {}, category = {}, component = {}, action = {};
  std::string line = {};  // line that shows the fault; empty: the best one of the diagnosis
};

struct DiagnosisQuery {
  std::optional<std::string> job;
  std::optional<uint32_t> run;  // without: all runs
  std::optional<TimeNs> since_ns;
};

struct EvidenceQuery {
  std::string job, host, path;
  uint64_t from_byte = 0;
  uint64_t to_byte = UINT64_MAX;  // exclusive
};

// A part of the list of jobs.
struct NowQuery {
  uint32_t limit = 0, from = 0;
  std::string words;  // blank-separated words; a job must have each; empty: all
  std::string state;  // "running", "ended", "failed", "verdict" (jobs with a verdict); empty: all
};

// Selects alerts of a job, of one of its runs, or of one key; empty: all.
struct AlertQuery {
  std::optional<std::string> job, key;
  std::optional<uint32_t> run;
};

// What a person does about an alert.
struct AlertOrder {
  enum class What : uint8_t { kAcknowledge, kSilence, kRepaired } what = What::kAcknowledge;
  std::string key;
  TimeNs for_ns = 0;  // of a silence; 0 ends one
};

// A part of a source's evidence, in order. `gap` precedes the bytes: it begins at the offset of `bytes`, or
// earlier if stored bytes were lost.
struct EvidenceChunk {
  uint64_t offset = 0;  // of the bytes, in the source's evidence
  std::string bytes;
  std::optional<Gap> gap;
  bool last = false;
  std::optional<uint64_t> gap_offset = std::nullopt;  // if it differs from `offset`
};

// Reads one source for one client. The next chunk is requested when the client has received the previous
// one. It is destroyed when the client has all bytes or has left. This can happen while a chunk is pending
// (its answer is then ignored) and from within an answer.
class EvidenceReader {
 public:
  virtual ~EvidenceReader() = default;
  virtual void next(std::function<void(Result<EvidenceChunk>)> answer) = 0;  // some 64 KiB to 1 MiB
};

// The author of a change, for the audit log.
struct Actor {
  std::string name;             // name from the client: {"by": "alice"}; empty if absent
  std::optional<uint32_t> uid;  // from the kernel; none over TCP
  std::string token = {};       // name of the token over TCP
};

// Who reads.
struct Reader {
  std::optional<uint32_t> uid;        // over the unix socket, from the kernel
  std::vector<uint32_t> groups = {};  // of that process
  std::string token = {};             // name of the token over TCP
};

class ApiSource {
 public:
  virtual ~ApiSource() = default;
  using Answer = std::function<void(Result<std::string>)>;  // a JSON value

  // The part of the source that the reader may see; null: the reader may see everything. The returned
  // source may be destroyed before its answers arrive.
  virtual std::unique_ptr<ApiSource> limited_to(const Reader&) { return nullptr; }
  // GET /v1/now: the jobs for the web page, those that need a person's attention first (docs/formats.md
  // section 9).
  virtual void now(const NowQuery& query, Answer answer) = 0;
  // Called when a reader gets this evidence: for the audit log.
  virtual void on_evidence_read(const EvidenceQuery&, const Reader&) {}

  virtual Health health() = 0;
  virtual void metrics(std::function<void(std::string)> answer) = 0;  // written with MetricsText; of no job
  // Metrics of the jobs for which `keep` returns true; their number is limited.
  using KeepJob = std::function<bool(const std::string& job)>;
  virtual void job_metrics(KeepJob keep, std::function<void(std::string)> answer) = 0;
  virtual void status(Answer answer) = 0;
  // Lists: {"items": [ … ]}, newest first. Jobs: each run, with at least "id", "run", "state" (running,
  // ended, failed), "first_ns", "last_ns", "ended_ns" (null while it runs), "hosts" (count), "lines",
  // "verdict" (its title, or null).
  virtual void jobs(Answer answer) = 0;
  virtual void report(const ReportQuery& query, Answer answer) = 0;  // docs/formats.md section 7
  // Each as in the report, plus "job" and "run".
  virtual void diagnoses(const DiagnosisQuery& query, Answer answer) = 0;
  virtual void suspects(const std::optional<std::string>& job, Answer answer) = 0;
  virtual void hosts(Answer answer) = 0;  // "host", "state", "suspected", "last_ns"
  // GET /v1/devices: devices suspected of data corruption. "device" (its UUID or serial number, else its
  // number and host), "host", "job", "run", "diagnosis", "step", "time_ns".
  virtual void devices(Answer answer) = 0;
  virtual void rules(Answer answer) = 0;
  // GET /v1/rules/ID: all of one rule.
  virtual void rule(const std::string& id, Answer answer) = 0;
  // GET /v1/plugins: the plugins of this host. "name", "version", "state" (starting, running, waiting,
  // quarantined, refused, ending, disabled, missing), "reason", and their costs: formats.md section 9.
  virtual void plugins(Answer answer) = 0;
  // GET /v1/sources?job=: the stored evidence. "job", "host", "path", "kind", "bytes", "lost_bytes",
  // "lost_records", "first_ns", "last_ns", "ended".
  virtual void sources(const std::optional<std::string>& job, Answer answer) = 0;
  virtual void evidence(const EvidenceQuery& query,
                        std::function<void(Result<std::unique_ptr<EvidenceReader>>)> answer) = 0;
  // {"config": "…", "versions": {…}}: the configuration as read, with secrets removed; for `culprit
  // bundle`.
  virtual void about(Answer answer) = 0;
  // GET /v1/pool: {"pool": "…"}, the pool of successful jobs in the format of `culprit pool`; null if it is
  // empty.
  virtual void pool(Answer answer) = 0;
  // GET /v1/pool/log: which jobs were added to the pools and which were removed, newest first. "time_ns",
  // "what" (learned, forgotten), "job", "run", "owner", "why", "forms", "by", "counts".
  virtual void pool_log(Answer answer) = 0;
  virtual void judge(const Judgement& judgement, const Actor& by, Answer answer) = 0;
  // POST /v1/jobs/JOB/diagnoses/ID/rule: makes and verifies a rule, as `culprit confirm` does. Unless
  // `dry`, confirms the diagnosis, writes the rule to the site's folder and loads it. "id", "text",
  // "title", "open", "file", "notes", "loaded". kBusy: another rule is in progress.
  virtual void make_rule(const RuleRequest& request, const Actor& by, Answer answer) = 0;
  virtual void clear(const std::string& host, const Actor& by, Answer answer) = 0;
  // POST /v1/reload: same as SIGHUP. Answers when the new rules are in effect, or with the reason why
  // nothing changed.
  virtual void reload(const Actor& by, Answer answer) = 0;
  // POST /v1/jobs/JOB/capture: captures the stacks of all ranks now, `rounds` times. Answers 202 with the
  // requested captures. kNotFound: no such job; kBusy: a capture is in progress; kTooSoon.
  virtual void capture(const std::string& job, uint32_t rounds, const Actor& by, Answer answer) = 0;
  // POST /v1/pool/JOB/forget: removes what the runs of the job added to the pool.
  virtual void forget_taught(const std::string& job, const Actor& by, Answer answer) = 0;
  // GET /v1/alerts: the issues, and the messages queued for each receiver. An agent sends no alerts.
  virtual void alerts(const AlertQuery&, Answer answer) { no_alerts(answer); }
  // POST /v1/alerts/KEY/acknowledge, …/silence, …/repaired: answers with the issue, in the format of
  // alerts().
  virtual void handle_alert(const AlertOrder&, const Actor&, Answer answer) { no_alerts(answer); }
  // GET /v1/maintenance: the maintenance windows, in which alerts are suppressed.
  virtual void maintenance(Answer answer) { no_alerts(answer); }
  // POST /v1/maintenance with {"hosts", "jobs", "from_ns", "until_ns", "reason"}: adds a window.
  virtual void add_maintenance(const std::string&, const Actor&, Answer answer) { no_alerts(answer); }
  // POST /v1/maintenance/ID/end.
  virtual void end_maintenance(int64_t, const Actor&, Answer answer) { no_alerts(answer); }
  // POST /v1/alerts/test?receiver=NAME: sends a test message; without a name to all receivers.
  virtual void test_alert(const std::string&, const Actor&, Answer answer) { no_alerts(answer); }

 private:
  static void no_alerts(const Answer& answer) {
    answer(fail(ErrorCode::kNotFound, "an agent sends no alerts: ask its collector"));
  }
};

// What a person tells the controller.
struct RecoveryOrder {
  enum class What : uint8_t { kApprove, kDecline, kUndo, kReset, kCheck } what = What::kApprove;
  std::string id;  // a decision, the op of an action, or a host (kCheck); empty: kReset
};

// The controller's part of the API; only for readers who may see all jobs.
class RecoverySource {
 public:
  using Answer = ApiSource::Answer;
  virtual ~RecoverySource() = default;
  // GET /v1/recovery: mode, trouble, breaker, open questions, hosts that are out, jobs with their states.
  virtual void overview(Answer answer) = 0;
  // GET /v1/jobs/JOB/decision: the state of a job, why, its actions and attempts. kNotFound: no such job.
  virtual void decision(const std::string& job, Answer answer) = 0;
  // GET /v1/recovery/machines: what is remembered of hosts and devices.
  virtual void machines(Answer answer) = 0;
  // GET /v1/recovery/cost?jobs=: effective training time, and what was lost by cause; also of each of so many
  // jobs, the newest ones.
  virtual void cost(uint32_t jobs, Answer answer) = 0;
  // GET /v1/recovery/actions: the newest actions.
  virtual void actions(Answer answer) = 0;
  // GET /v1/recovery/notes?kind=: the newest sentences of the audit; empty: of all kinds.
  virtual void notes(const std::string& kind, Answer answer) = 0;
  // POST /v1/recovery/{id}/approve, …/decline, …/undo, …/check, /v1/recovery/reset.
  virtual void order(const RecoveryOrder& order, const Actor& by, Answer answer) = 0;
};

// A person's advice to a job.
struct AdviceRequest {
  std::string job;
  std::optional<uint32_t> only_uid;  // a user who may advise only the own processes
  Advice advice;                     // without an id
};

class AdviceSource {
 public:
  using Answer = ApiSource::Answer;
  virtual ~AdviceSource() = default;
  // kDenied: act.advise is off. Asked before a body is read.
  virtual Status allowed() const = 0;
  // POST /v1/jobs/JOB/advice: "job", "id", "advice", "step", "lasts_ms", "agents" (that got it), "hosts" (of
  // the job, as far as known), "users_here". kNotFound: no such job, or not the user's.
  virtual void advise(const AdviceRequest& request, const Actor& by, Answer answer) = 0;
};

class Api {
 public:
  // `host`: this daemon's host, for the source attribute of CloudEvents.
  Api(io::Env& env, ApiSource& source, std::string_view host = "localhost");
  // Borrowed. Without it the daemon has no controller, and these routes answer 404.
  void set_recovery(RecoverySource* recovery) { recovery_ = recovery; }
  // Borrowed. Without it jobs get no advice, and the route answers 404.
  void set_advice(AdviceSource* advice) { advice_ = advice; }
  // GET /v1/cluster, for readers who may see all jobs. Without it this daemon is in no cluster: no item.
  void set_cluster(std::function<std::string()> cluster) { cluster_ = std::move(cluster); }
  // Routes for HttpServer::start. They borrow the Api, which must outlive the server.
  std::vector<Route> routes();
  // Hub of /v1/events. Each diagnosis and finding has the members of the report, plus "job".
  EventHub& events() { return events_; }

 private:
  void serve_events(const Request& request, const Reply& reply);
  void add_recovery(std::vector<Route>& routes);
  Route advice_route();
  Route cluster_route();

  ApiSource& source_;
  RecoverySource* recovery_ = nullptr;
  AdviceSource* advice_ = nullptr;
  std::function<std::string()> cluster_;
  EventHub events_;
};

}  // namespace culprit::serve
