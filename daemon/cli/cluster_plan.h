// What collectors, database and bucket a site needs: a formula with measured constants (docs/cluster.md,
// "How large"). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace culprit::cli {

struct PlanSite {
  double hosts = 0, ranks_per_host = 8;
  double step_s = 5;  // of training
  double jobs_a_day = 1000;
  bool evidence = true;          // agents send all lines
  double days = 30;              // evidence in the bucket
  double row_days = 400;         // rows of objects: cluster.bucket.max_age
  double report_bytes = 20'000;  // of a published report, packed
  // In any currency; nothing: not said.
  std::optional<double> price_put, price_gb_month, price_core_month;  // of 1,000 puts, 10^9 bytes, a core
};

// How much a host writes.
struct PlanLoad {
  const char* name;
  double condensed;  // bytes in a second on the wire
  double evidence;   // the same, of all lines
  double engine_us;  // CPU of the collector's engine in a second
};
// Measured: a job of 512 hosts × 8 that writes little; one of 64 hosts with 6.8 kB of lines a second each.
extern const PlanLoad kQuiet, kTalkative;

struct ClusterPlan {
  double collectors = 0;                         // one of them may be away
  double most = 0;                               // hosts that one carries, also of one job
  const char* bound = "";                        // what gives their number
  double frames = 0;                             // in a second, of all agents
  double condensed = 0, comm = 0, evidence = 0;  // bytes in a second, of all agents
  // Of a collector while one is away:
  double hosts = 0, cores = 0, memory = 0, bytes = 0;
  double cores_all = 0;
  double puts_a_day = 0, bucket_bytes = 0;    // in the steady state
  double rows_a_day = 0, database_bytes = 0;  // of objects; with reports
  double wal = 0;                             // bytes in a second
  std::optional<double> cost_month;           // of what has a price
};
ClusterPlan plan_of(const PlanSite& site, const PlanLoad& load);

// A constant of the formula, as the document has it.
struct PlanConstant {
  const char* name;
  double value;
  const char* source;
};
const std::vector<PlanConstant>& plan_constants();

std::string plan_text(const PlanSite& site, bool color);
std::string plan_json(const PlanSite& site);

}  // namespace culprit::cli
