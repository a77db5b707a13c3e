#include "cli/standby.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/config/options.h"
#include "base/text.h"
#include "cli/recovery_text.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kStandbyExamples = R"(
Examples:
  culprit standby plan --hosts 256                # with the failures that the collector's controller recorded
  culprit standby plan --hosts 256 --rate 0.001   # failures per host and day)";
constexpr const char* kStandbyPlanExamples = R"(
Examples:
  culprit standby plan --hosts 256
  culprit standby plan --hosts 1024 --rate 0.0012 --refill 1d
  culprit standby plan --hosts 256 --refill 3d --quantile 0.999 --format json

So many spares that with probability --quantile no more hosts are out at a time. Without --rate it asks the
collector: hosts that its controller took out, since the first attempt of a job that it knows.

Exit status: 0; 1 where the ledger holds too little; 2 usage, or no answer.)";

constexpr double kDayS = 86'400;
constexpr uint64_t kFewFailures = 5;  // below, the interval spans more than a factor of 4

struct StandbyOptions {
  RemoteOptions remote;
  uint32_t hosts = 0;
  double rate = 0, quantile = 0.99;
  std::string refill = "1d";
};

double number_in(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

const Json* items_in(const Json& json) {
  const auto list = json.find("items");
  return list != json.end() && list->is_array() ? &*list : nullptr;
}

// Begin of the first attempt; kNoTime: none.
TimeNs first_attempt(const Json& cost) {
  TimeNs out = kNoTime;
  const Json* jobs = items_in(cost);
  if (!jobs) return out;
  for (const Json& job : *jobs) {
    const auto last = job.is_object() ? job.find("last_ns") : job.end();
    if (last == job.end() || !last->is_number_integer()) continue;
    const double wall_s = std::clamp(number_in(job, "wall_s"), 0.0, 4e8);
    const TimeNs begin =
        last->get<TimeNs>() - static_cast<TimeNs>(wall_s * static_cast<double>(kNsPerSecond));
    if (out == kNoTime || begin < out) out = begin;
  }
  return out;
}

std::string fewer(uint32_t low, uint32_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

recover::StandbyPlan plan_at(const StandbyQuestion& q, double rate) {
  return recover::plan_standbys(q.hosts, rate, q.refill_days, q.quantile);
}

std::string days_text(double days) {
  return format_duration(static_cast<TimeNs>(days * kDayS * static_cast<double>(kNsPerSecond)));
}

}  // namespace

StandbyLedger standby_ledger(const Json& machines, const Json& cost, const Json& hosts, TimeNs now) {
  StandbyLedger out;
  if (const Json* known = items_in(hosts)) out.hosts = known->size();
  out.since_ns = first_attempt(cost);
  if (out.since_ns == kNoTime || out.since_ns >= now) return out;
  // A host and its device may have a row each.
  std::set<std::pair<std::string, TimeNs>> isolations;
  if (const Json* rows = items_in(machines))
    for (const Json& row : *rows) {
      const auto times = row.is_object() ? row.find("isolations") : row.end();
      if (!row.is_object() || times == row.end() || !times->is_array()) continue;
      for (const Json& at : *times)
        if (at.is_number_integer() && at.get<TimeNs>() >= out.since_ns && at.get<TimeNs>() <= now)
          isolations.emplace(text_field(row, "host"), at.get<TimeNs>());
    }
  const double days = static_cast<double>(now - out.since_ns) / (kDayS * static_cast<double>(kNsPerSecond));
  out.rate = recover::failure_rate(isolations.size(), days * static_cast<double>(out.hosts));
  return out;
}

std::string standby_text(const StandbyQuestion& q) {
  const recover::StandbyPlan plan = plan_at(q, q.rate);
  std::string out = fmt::format("{} for {}: {:.2f} %\n", counted(plan.spares, "spare"),
                                counted(q.hosts, "host"), 100.0 * plan.spares / q.hosts);
  out += fmt::format(
      "failures: {:.4g} per host and day, one in {:.3g} days; out for {} each, {:.2f} hosts at a time\n",
      q.rate, q.rate > 0 ? 1 / (q.rate * q.hosts) : 0.0, days_text(q.refill_days), plan.out_mean);
  out += fmt::format("costs {:.1f} idle host hours a day\n", plan.idle_hours_day);
  out += fmt::format(
      "saves {:.2f} h a day in which the job waits for a host: {:.2f} h without spares, {:.2f} h with "
      "them ({:.0f} host hours)\n",
      plan.wait_before_day - plan.wait_after_day, plan.wait_before_day, plan.wait_after_day,
      (plan.wait_before_day - plan.wait_after_day) * q.hosts);
  if (q.known.host_days > 0) {
    const uint32_t low = plan_at(q, q.known.low).spares, high = plan_at(q, q.known.high).spares;
    out += fmt::format(
        "ledger: {} taken out in {:.0f} host days; the rate is within {:.2g} and {:.2g} (95 %): {} {}\n",
        counted(q.known.failures, "host"), q.known.host_days, q.known.low, q.known.high, fewer(low, high),
        high == 1 ? "spare" : "spares");
    if (q.known.failures < kFewFailures)
      out += fmt::format("note: so few failures say little; take {} to be sure, or give --rate\n", high);
  }
  constexpr uint32_t kSparesMost = 1000;  // of act.spares
  if (plan.spares > kSparesMost) return out;
  return out + fmt::format("\nin culpritd.toml of the collector, below [act]:\n  spares = {}\n", plan.spares);
}

std::string standby_json(const StandbyQuestion& q) {
  const recover::StandbyPlan plan = plan_at(q, q.rate);
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.standby.plan/1");
    w.field("hosts", q.hosts);
    w.field("spares", plan.spares);
    w.field("rate", q.rate);
    w.field("refill_s", q.refill_days * kDayS);
    w.field("quantile", q.quantile);
    w.field("out_mean", plan.out_mean);
    w.field("idle_host_hours_day", plan.idle_hours_day);
    w.field("wait_hours_day", plan.wait_after_day);
    w.field("wait_hours_day_without", plan.wait_before_day);
    if (q.known.host_days > 0)
      w.member("ledger", [&] {
        w.object([&] {
          w.field("failures", q.known.failures);
          w.field("host_days", q.known.host_days);
          w.field("rate_low", q.known.low);
          w.field("rate_high", q.known.high);
          w.field("spares_low", plan_at(q, q.known.low).spares);
          w.field("spares_high", plan_at(q, q.known.high).spares);
        });
      });
    else
      w.null("ledger");
  });
  return w.finish() + "\n";
}

namespace {

Result<StandbyLedger> ask_ledger(const StandbyOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return tl::unexpected(client.error());
  const auto machines = get_json(*client, "/v1/recovery/machines");
  if (!machines) return tl::unexpected(machines.error());
  const auto cost = get_json(*client, "/v1/recovery/cost?jobs=1000");
  if (!cost) return tl::unexpected(cost.error());
  const auto hosts = get_json(*client, "/v1/hosts");
  if (!hosts) return tl::unexpected(hosts.error());
  return standby_ledger(*machines, *cost, *hosts, wall_now());
}

std::string too_little(const StandbyOptions& o, const StandbyQuestion& q, const StandbyLedger& ledger) {
  if (ledger.since_ns == kNoTime)
    return "the ledger holds no attempt of a job yet, so no rate; give --rate, failures per host and day";
  return fmt::format(
      "the ledger holds no host that was taken out in {:.0f} host days (in act.mode observe none is); "
      "the rate is below {:.2g} (95 %), {} at most with --refill {}; give --rate",
      q.known.host_days, q.known.high, counted(plan_at(q, q.known.high).spares, "spare"), o.refill);
}

int standby_plan(StandbyOptions& o) {
  const auto refill = app::parse_duration(o.refill);
  if (!refill || *refill <= 0)
    return report_error("standby plan: --refill: not a time such as 12h or 1d"), kUnable;
  StandbyQuestion q;
  q.refill_days = static_cast<double>(*refill) / (kDayS * static_cast<double>(kNsPerSecond));
  q.hosts = o.hosts;
  q.rate = o.rate;
  q.quantile = o.quantile;
  if (o.rate <= 0) {
    const auto ledger = ask_ledger(o);
    if (!ledger)
      return report_error("standby plan: " + ledger.error().text + "; without a ledger give --rate"), kUnable;
    q.known = ledger->rate;
    q.rate = q.known.rate;
    if (q.rate <= 0) return report_error("standby plan: " + too_little(o, q, *ledger)), kFound;
  }
  return print(o.remote.format == "json" ? standby_json(q) : standby_text(q)) ? kDone : kUnable;
}

}  // namespace

void add_standby(Command& app, Run& run) {
  Command* standby = app.add_subcommand("standby", "Idle hosts that wait to replace one that fails");
  standby->require_subcommand();
  standby->footer(kStandbyExamples);
  auto o = std::make_shared<StandbyOptions>();
  Command* verb = standby->add_subcommand("plan", "How many a job needs, what they cost and what they save");
  verb->footer(kStandbyPlanExamples);
  verb->add_option("--hosts", o->hosts, "Hosts of the job")->required()->between(1u, 1'000'000u);
  verb->add_option("--rate", o->rate, "Failures per host and day; default: from the controller's ledger")
      ->between(1e-9, 10.0);
  verb->add_option("--refill", o->refill, "Time until a failed host is replaced or repaired")->show_default();
  verb->add_option("--quantile", o->quantile, "Probability that the spares are enough")
      ->between(0.5, 0.999999)
      ->show_default();
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return standby_plan(*o); }; });
}

}  // namespace culprit::cli
