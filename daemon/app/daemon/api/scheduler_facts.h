// What the scheduler said of a job, as the report's member "scheduler" (docs/formats.md, section 7): the
// newest attempt of the ledger. Thread: the loop's.
#pragma once

#include <functional>
#include <string>

#include "app/daemon/recover/recovery_service.h"

namespace culprit::app {

// Reads the ledger, then calls `done` with the JSON object, or with "" where the ledger has no such job.
// `service`: borrowed; null: there is no ledger.
void scheduler_facts(const RecoveryService* service, const std::string& job,
                     std::function<void(std::string)> done);

}  // namespace culprit::app
