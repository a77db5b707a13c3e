// Metrics of the controller for GET /metrics: of the whole, and of its jobs.
//
// Thread: the loop's.
#pragma once

#include <functional>
#include <string>

#include "app/daemon/recover/recovery_service.h"
#include "base/time.h"
#include "serve/metrics.h"

namespace culprit::app {

void about_recovery(serve::MetricsText& metrics, const RecoveryService& service, TimeNs now);
// Of a controller that did not start.
void about_stopped_recovery(serve::MetricsText& metrics);
// At most `most` jobs, those with the latest attempts. `keep`: by culprit's id of a job.
std::string recovery_job_metrics(const RecoveryService& service, size_t most,
                                 const std::function<bool(const std::string& job)>& keep);

}  // namespace culprit::app
