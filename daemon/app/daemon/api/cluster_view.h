// This collector among those that share its jobs: in /v1/status and /metrics. Thread: the loop's.
#pragma once

#include <nlohmann/json.hpp>

#include "app/daemon/collector/bucket_service.h"
#include "app/daemon/recover/lease_service.h"
#include "app/daemon/recover/shared_judgements.h"
#include "app/daemon/recover/shared_pools.h"
#include "app/daemon/recover/shared_reports.h"
#include "serve/metrics.h"

namespace culprit::app {

// GET /v1/cluster: the members, where each is reached, and what it owns.
nlohmann::json cluster_members(const LeaseService& leases);
// The member "judgements" of cluster_status().
nlohmann::json judgements_status(const SharedJudgements& judgements);
void about_judgements(serve::MetricsText& metrics, const SharedJudgements& judgements);
// The member "pools" of cluster_status().
nlohmann::json pools_status(const SharedPools& pools);
void about_pools(serve::MetricsText& metrics, const SharedPools& pools);
nlohmann::json cluster_status(const LeaseService& leases, const SharedReports& reports);
void about_cluster(serve::MetricsText& metrics, const LeaseService& leases, const SharedReports& reports);
nlohmann::json bucket_status(const BucketService& bucket);
void about_bucket(serve::MetricsText& metrics, const BucketService& bucket);

}  // namespace culprit::app
