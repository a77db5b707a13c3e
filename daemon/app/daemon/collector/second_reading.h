// The second reading of a collector's archive after a restart (archive_restore.h): everything, while jobs are
// answered from what was read first.
//
// Thread: the loop's. Borrows its parts until the end of the reading.
#pragma once

#include <functional>
#include <string>

#include "app/daemon/collector/collector_service.h"
#include "app/daemon/engine/engine_worker.h"
#include "app/daemon/keep/recorder.h"

namespace culprit::app {

struct SecondReading {
  Recorder* recorder = nullptr;
  EngineWorker* engine = nullptr;  // has second LiveJobs
  CollectorService* collector = nullptr;
  std::function<void(const std::string&)> info, report_error;  // sentences for the log
  std::function<bool()> stops;                                 // the daemon ends
};
void read_again(const SecondReading& reading);

}  // namespace culprit::app
