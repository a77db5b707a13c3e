// Checks this host at the collector's request, or does an equal step on its devices (docs/checks.md). Off
// unless `[check] enabled` is set. One at a time, each not more often than `check.every`, and never while a
// user's job has processes here. Each request gets one answer; a refusal is no answer, never a failure.
//
// Thread: the loop's, also for callbacks. Owns its worker.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/check/align_run.h"
#include "app/check/host_check.h"
#include "app/config/config.h"
#include "app/daemon/intake/process_watch.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/watch/own_source.h"
#include "io/env.h"
#include "model/peer.h"
#include "model/plugin_finding.h"

namespace culprit::app {

struct CheckServiceOptions {
  const Config* config = nullptr;                    // borrowed
  ProcessWatch* processes = nullptr;                 // borrowed
  std::function<void(const peer::Message&)> answer;  // CheckResult, AlignResult
  std::function<void(LogLevel, const std::string&)> log;
  Recorder* recorder = nullptr;  // borrowed. Null: no findings are stored
  std::function<void(PieceBatch&&)> take = nullptr;
  std::function<HostCheck(const HostCheckOptions&)> check = check_host;  // on the worker
  std::function<AlignRun(const AlignRunOptions&)> align = run_align;     // on the worker
};

class CheckService {
 public:
  CheckService(io::Env& env, CheckServiceOptions options) : env_(env), options_(std::move(options)) {}
  // Does not wait for a running check.
  ~CheckService();

  // CheckHost, AlignHost, AlignJudged.
  void take(const peer::Message& request);
  void stop() { *stopping_ = true; }

  struct Counters {
    uint64_t passed = 0, failed = 0;
    uint64_t unanswered = 0;  // refused, or without an answer
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Done;
  struct Aligned;
  std::string refusal(TimeNs last_ns) const;
  std::string make_worker();
  std::function<std::optional<std::string>(bool sure)> in_the_way();
  void check(const peer::CheckHost& request);
  void align(const peer::AlignHost& request);
  void answer(const peer::AlignResult& result);
  void answer(const std::string& decision, const check::Outcome& outcome);
  void store(const std::optional<PluginFinding>& finding);

  io::Env& env_;
  const CheckServiceOptions options_;
  std::unique_ptr<io::Worker> worker_;  // created for the first request
  bool busy_ = false;
  TimeNs began_ns_ = kNoTime, aligned_ns_ = kNoTime;  // monotonic: of the last check and step that ran
  const std::shared_ptr<std::atomic<bool>> stopping_ = std::make_shared<std::atomic<bool>>(false);
  Counters counters_;
  std::optional<OwnSource> source_;  // of findings
};

}  // namespace culprit::app
