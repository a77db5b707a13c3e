#include "cli/cluster_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/remote.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr double kDayS = 86'400, kMonthDays = 30;
constexpr double kAgentsMost = 16'384;
constexpr double kPartitions = 64;
constexpr double kEngineCore = .7;
constexpr double kFrameS = 60;
constexpr double kRankStepBytes = 30;
constexpr double kCommUs = 50;
constexpr double kPutUs = 9;
constexpr double kBaseBytes = 40e6, kHostBytes = 75e3;
constexpr double kObjectBytes = 8 << 20, kObjectS = 10;
constexpr double kRowBytes = 450;
constexpr double kWalBytes = 44.0 / 52;
constexpr double kReportDays = 30;

std::string plain_number(double value) {
  if (value < 10) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string plain_bytes(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

struct PlanLine {
  const char* name;
  std::string (*text)(const ClusterPlan&);
};

const PlanLine kPlanLines[] = {
    {"collectors (one may be away)",
     [](const ClusterPlan& p) { return fmt::format("{}", static_cast<uint64_t>(p.collectors)); }},
    {"  their number is given by", [](const ClusterPlan& p) { return std::string(p.bound); }},
    {"from agents: frames a second", [](const ClusterPlan& p) { return plain_number(p.frames); }},
    {"  condensed logs a second", [](const ClusterPlan& p) { return plain_bytes(p.condensed); }},
    {"  communication a second", [](const ClusterPlan& p) { return plain_bytes(p.comm); }},
    {"  evidence a second", [](const ClusterPlan& p) { return plain_bytes(p.evidence); }},
    {"CPU of all collectors, cores", [](const ClusterPlan& p) { return plain_number(p.cores_all); }},
    {"one carries at most, hosts", [](const ClusterPlan& p) { return plain_number(p.most); }},
    {"each, while one is away: hosts", [](const ClusterPlan& p) { return plain_number(p.hosts); }},
    {"  cores", [](const ClusterPlan& p) { return plain_number(p.cores); }},
    {"  memory", [](const ClusterPlan& p) { return plain_bytes(p.memory); }},
    {"  network a second", [](const ClusterPlan& p) { return plain_bytes(p.bytes); }},
    {"bucket: puts a day", [](const ClusterPlan& p) { return plain_number(p.puts_a_day); }},
    {"  bytes", [](const ClusterPlan& p) { return plain_bytes(p.bucket_bytes); }},
    {"database: rows of objects a day", [](const ClusterPlan& p) { return plain_number(p.rows_a_day); }},
    {"  bytes", [](const ClusterPlan& p) { return plain_bytes(p.database_bytes); }},
    {"  write-ahead log a second", [](const ClusterPlan& p) { return plain_bytes(p.wal); }},
};

}  // namespace

const PlanLoad kQuiet{"quiet", 23, 133, 5.7};
const PlanLoad kTalkative{"talkative", 98, 1'962, 31};

const std::vector<PlanConstant>& plan_constants() {
  static const std::vector<PlanConstant> kAll{
      {"condensed log of a quiet host, bytes a second", kQuiet.condensed, "measured: 512 hosts × 8, 455 s"},
      {"of a talkative one", kTalkative.condensed, "measured: 64 hosts, 6.8 kB of lines a second each"},
      {"evidence of a quiet host, bytes a second", kQuiet.evidence, "the same run"},
      {"of a talkative one", kTalkative.evidence, "the same run"},
      {"engine for a quiet host, µs of CPU a second", kQuiet.engine_us, "the same run"},
      {"for a talkative one", kTalkative.engine_us, "the same run"},
      {"a rank's communication, bytes a step", kRankStepBytes, "measured: packed records of a step"},
      {"engine for the communication of 8 ranks, µs of CPU a second", kCommUs, "measured: steps of 5 s"},
      {"a frame of a host, each s", kFrameS, "measured: a quiet host"},
      {"agents of a collector", kAgentsMost, "its limit"},
      {"share of a core for the engine", kEngineCore, "a choice: it is one thread"},
      {"partitions", kPartitions, "fixed: more collectors have no work"},
      {"objects, µs of CPU a kB", kPutUs, "measured: bucket_cost, 1.5 ms a MB of lines"},
      {"memory of a collector, MB", kBaseBytes / 1e6, "measured: tests/bench/scale"},
      {"memory for a host, kB", kHostBytes / 1e3,
       "tests/bench/scale --ranks-per-host 8 --evidence: 46 to 75"},
      {"an object, MiB at most", kObjectBytes / (1 << 20), "fixed"},
      {"an object of a collector, each s at least", kObjectS, "fixed"},
      {"a row of an object, bytes with its indexes", kRowBytes,
       "measured: pg_total_relation_size of 400,000 rows"},
      {"reports are kept for days", kReportDays, "fixed"},
  };
  return kAll;
}

ClusterPlan plan_of(const PlanSite& site, const PlanLoad& load) {
  ClusterPlan out;
  const double steps = site.step_s > 0 ? 1 / site.step_s : 0;
  const double evidence = site.evidence ? load.evidence : 0;
  const double comm_us = kCommUs * site.ranks_per_host / 8 * 5 * steps;
  const double engine_us = load.engine_us + comm_us;
  const double put_us = kPutUs * evidence / 1e3;
  out.frames = site.hosts / kFrameS;
  out.condensed = site.hosts * load.condensed;
  out.comm = site.hosts * site.ranks_per_host * kRankStepBytes * steps;
  out.evidence = site.hosts * evidence;
  // What one collector carries.
  const double by_engine = kEngineCore * 1e6 / engine_us;
  const double most = std::min(kAgentsMost, by_engine);
  out.most = most;
  const double needed = std::max(1.0, std::ceil(site.hosts / most));
  out.collectors = needed + 1;
  out.bound = needed <= 1 ? "availability" : by_engine < kAgentsMost ? "the engine's thread" : "connections";
  out.hosts = site.hosts / needed;
  out.cores = out.hosts * (engine_us + put_us) / 1e6;
  out.cores_all = site.hosts * (engine_us + put_us) / 1e6;
  out.memory = kBaseBytes + out.hosts * kHostBytes;
  out.bytes = (out.condensed + out.comm + out.evidence) / needed;
  if (evidence > 0) {
    out.puts_a_day = kDayS * std::max(out.collectors / kObjectS, out.evidence / kObjectBytes);
    out.bucket_bytes = out.evidence * kDayS * site.days;
  }
  out.rows_a_day = out.puts_a_day;
  out.database_bytes =
      out.rows_a_day * site.row_days * kRowBytes + site.jobs_a_day * kReportDays * site.report_bytes;
  out.wal = site.hosts * kWalBytes + out.rows_a_day / kDayS * 2 * kRowBytes;
  double cost = 0;
  if (site.price_put) cost += *site.price_put * out.puts_a_day * kMonthDays / 1e3;
  if (site.price_gb_month) cost += *site.price_gb_month * (out.bucket_bytes + out.database_bytes) / 1e9;
  if (site.price_core_month) cost += *site.price_core_month * std::ceil(out.cores + 1) * out.collectors;
  if (site.price_put || site.price_gb_month || site.price_core_month) out.cost_month = cost;
  return out;
}

std::string plan_text(const PlanSite& site, bool color) {
  const ClusterPlan quiet = plan_of(site, kQuiet), talkative = plan_of(site, kTalkative);
  std::string out =
      fmt::format("{} hosts of {} ranks, steps of {} s, {}; rows of objects for {} days, {} jobs a day\n\n",
                  plain_number(site.hosts), site.ranks_per_host, site.step_s,
                  site.evidence ? fmt::format("evidence of {} days", site.days) : "without evidence",
                  site.row_days, plain_number(site.jobs_a_day));
  std::vector<std::vector<std::string>> rows{{"", "IF HOSTS WRITE LITTLE", "IF THEY WRITE MUCH"}};
  for (const PlanLine& line : kPlanLines) rows.push_back({line.name, line.text(quiet), line.text(talkative)});
  if (quiet.cost_month)
    rows.push_back({"a month, of what has a price", plain_number(*quiet.cost_month),
                    plain_number(*talkative.cost_month)});
  out += table(rows, color);
  if (talkative.collectors - 1 > kPartitions)
    out += fmt::format("\nJobs are divided into {:.0f} partitions: further collectors have none.\n",
                       kPartitions);
  out += "\nA job belongs to one collector, so it may have no more hosts than one carries.\n";
  return out;
}

std::string plan_json(const PlanSite& site) {
  JsonWriter w;
  const auto plan = [&](const PlanLoad& load) {
    const ClusterPlan p = plan_of(site, load);
    w.object([&] {
      w.field("collectors", p.collectors);
      w.field("bound", p.bound);
      w.field("hosts_at_most", p.most);
      w.field("frames_per_s", p.frames);
      w.field("condensed_bytes_per_s", p.condensed);
      w.field("communication_bytes_per_s", p.comm);
      w.field("evidence_bytes_per_s", p.evidence);
      w.field("cores", p.cores_all);
      w.field("each_hosts", p.hosts);
      w.field("each_cores", p.cores);
      w.field("each_memory_bytes", p.memory);
      w.field("each_bytes_per_s", p.bytes);
      w.field("puts_per_day", p.puts_a_day);
      w.field("bucket_bytes", p.bucket_bytes);
      w.field("rows_per_day", p.rows_a_day);
      w.field("database_bytes", p.database_bytes);
      w.field("wal_bytes_per_s", p.wal);
      if (p.cost_month) w.field("cost_per_month", *p.cost_month);
    });
  };
  w.object([&] {
    w.field("schema", "culprit.cluster.plan/1");
    w.member("quiet", [&] { plan(kQuiet); });
    w.member("talkative", [&] { plan(kTalkative); });
    w.list("constants", plan_constants(), [&](const PlanConstant& one) {
      w.object([&] {
        w.field("name", one.name);
        w.field("value", one.value);
        w.field("source", one.source);
      });
    });
  });
  return w.finish() + "\n";
}

}  // namespace culprit::cli
