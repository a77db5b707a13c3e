// People's judgements of diagnoses, shared with the other members of the cluster over its database. A
// judgement is stored by the member that was asked, also of another's job, and waits in its index until the
// database has it. The others read it within five seconds and apply it as their own; one of a diagnosis that
// is not here is counted for its kind, and applied when the diagnosis comes, with the job or after a restart.
// Repeating any of this changes nothing.
//
// Thread: the loop's. A worker of its own asks the database, on a connection of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/alerts/verdict_feed.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/recover/shared_reports.h"
#include "io/env.h"
#include "records/rows.h"

namespace culprit::app {

// Borrowed; they outlive the service.
struct SharedJudgementsParts {
  const Config* config = nullptr;
  const SharedReports* reports = nullptr;
  std::shared_ptr<PartitionGate> gate;
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;
  VerdictFeed* verdicts = nullptr;
  std::function<void(LogLevel, const std::string&)> log;
};

class SharedJudgements {
 public:
  static constexpr TimeNs kEachNs = 4 * kNsPerSecond;  // with the reading itself below 5 s

  // Subscribes to the verdicts. An error if the process has no thread left.
  static Result<std::unique_ptr<SharedJudgements>> start(io::Env& env, SharedJudgementsParts parts);
  ~SharedJudgements();

  void beat();  // each second
  void stop() { stopped_ = true; }
  // A judgement waits in the index.
  void judged() { read_ns_ = kNoTime; }
  // What another member published of the diagnosis' run; nothing: it published none, or it is this member.
  // `packed`: its report.
  struct Published {
    records::SeenRun seen;
    std::string packed;
  };
  std::optional<Published> published(const std::string& job, std::optional<uint32_t> run) const;
  struct Counts {  // since the start
    uint64_t published = 0, read = 0, applied = 0, refused = 0, failed = 0;
    uint64_t waiting = 0;   // now, as far as one batch
    uint64_t not_here = 0;  // of diagnoses that are not here, remembered
  };
  const Counts& counts() const { return counts_; }
  // Why judgements are not shared; empty: they are. And since when, by the wall clock.
  const std::string& trouble() const { return error_; }
  TimeNs trouble_since() const { return error_since_ns_; }

 private:
  struct Database;
  struct Round;
  using Judgements = std::vector<records::Judgement>;
  SharedJudgements(io::Env& env, SharedJudgementsParts parts);
  void ask(const std::shared_ptr<Round>& round);
  void finish(const std::shared_ptr<Round>& round);
  void take(std::shared_ptr<Judgements> judgements);
  // The engine and the verdicts take over what the index has.
  void apply(const records::Judgement& judgement, const records::JudgedRun& run);
  void retry(std::span<const RunVerdict> verdicts);
  void extend(records::Judgement& judgement) const;
  void remember(const records::Judgement& judgement);

  io::Env& env_;
  const SharedJudgementsParts parts_;
  std::shared_ptr<Database> database_;          // used on the worker alone
  std::map<std::string, Judgements> not_here_;  // by job
  std::string error_;
  TimeNs error_since_ns_ = kNoTime, read_ns_ = kNoTime;
  Counts counts_;
  bool busy_ = false, stopped_ = false;
  std::unique_ptr<io::Worker> worker_;  // destroyed first
};

}  // namespace culprit::app
