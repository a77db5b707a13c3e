// What a collector shares with the other members of its cluster: leases of the jobs, reports, judgements and
// pools. Empty without [cluster]. Thread: the loop's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/daemon/recover/lease_service.h"
#include "app/daemon/recover/shared_judgements.h"
#include "app/daemon/recover/shared_pools.h"
#include "app/daemon/recover/shared_reports.h"

namespace culprit::app {

struct Sharing {
  std::unique_ptr<LeaseService> leases;  // null: no other collector shares the jobs; then the rest too
  std::unique_ptr<SharedReports> reports;
  std::unique_ptr<SharedJudgements> judgements;
  std::unique_ptr<SharedPools> pools;

  void beat(bool restored);  // each second; `restored`: see SharedReports::beat()
  void stop();
};

// Borrowed; they outlive what is started.
struct SharingParts {
  const Config* config = nullptr;
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;
  VerdictFeed* verdicts = nullptr;
  std::function<void(LogLevel, const std::string&)> log;
  std::function<std::optional<std::string>(const std::string& job)> id_of;  // as SharedReportsOptions has it
};

// An error if the process has no thread left, or the configuration is wrong.
Status start_sharing(io::Env& env, const SharingParts& parts, Sharing& out);

}  // namespace culprit::app
