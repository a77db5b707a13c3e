// Metrics of alerts for GET /metrics.
//
// Thread: the loop's.
#pragma once

#include "app/daemon/alerts/alert_service.h"
#include "serve/metrics.h"

namespace culprit::app {

void about_alerts(serve::MetricsText& metrics, const AlertService& alerts);

}  // namespace culprit::app
