#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/cluster_plan.h"
#include "cli/layout.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"

namespace culprit::cli {
namespace {

constexpr const char* kClusterExamples = R"(
Examples:
  culprit cluster status                # collectors that share the jobs, and what each owns
  culprit cluster plan --hosts 100000   # how many collectors, how much of database and bucket)";
constexpr const char* kStatusExamples = R"(
Examples:
  culprit cluster status
  culprit cluster status --all    # each partition, its owner and epoch
  culprit cluster status --json | jq '.parts[] | select(.left_ns <= 0) | .part')";

constexpr const char* kClusterPlanExamples = R"(
Examples:
  culprit cluster plan --hosts 100000
  culprit cluster plan --hosts 2048 --no-evidence --jobs-a-day 50   # agents keep their lines
  culprit cluster plan --hosts 100000 --days 7 --row-days 7 --price-gb-month .02 --price-put .005
The formula and where each constant comes from: cluster.md, "How large", and --json.)";

struct ClusterPlanOptions {
  PlanSite site;
  bool no_evidence = false, json = false;
};

struct ClusterOptions {
  RemoteOptions remote;
  bool all = false, json = false;
};

int64_t number(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_integer() ? at->get<int64_t>() : 0;
}

const Json& list_of(const Json& object, const char* name) {
  static const Json kNone = Json::array();
  const auto at = object.find(name);
  return at != object.end() && at->is_array() ? *at : kNone;
}

// "0-3, 17".
std::string ranges(const std::vector<int64_t>& sorted) {
  std::string out;
  for (size_t i = 0; i < sorted.size();) {
    size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ", ", sorted[i]);
    if (last > i) out += fmt::format("-{}", sorted[last]);
    i = last + 1;
  }
  return out.empty() ? "none" : out;
}

bool has_owner(const Json& part) { return number(part, "left_ns") > 0; }

std::vector<int64_t> parts_of(const Json& cluster, const std::string& owner) {
  std::vector<int64_t> out;
  for (const Json& part : list_of(cluster, "parts"))
    if (part.is_object() && has_owner(part) && text_field(part, "owner") == owner)
      out.push_back(number(part, "part"));
  std::ranges::sort(out);
  return out;
}

std::string members_text(const Json& cluster, bool color) {
  std::vector<std::vector<std::string>> rows{{"MEMBER", "ADDRESS", "HTTP", "SEEN", "OWNS", "PARTITIONS"}};
  const std::string own = text_field(cluster, "member");
  for (const Json& member : list_of(cluster, "members")) {
    if (!member.is_object()) continue;
    const std::string name = text_field(member, "name");
    const auto parts = parts_of(cluster, name);
    rows.push_back(
        {name + (name == own ? " (this)" : ""), text_field(member, "address"), text_field(member, "http"),
         fmt::format("{} ago", format_duration(number(member, "age_ns"))), fmt::format("{}", parts.size()),
         ranges(parts) + (member.value("takes", true) ? "" : "; takes none")});
  }
  return table(rows, color);
}

std::string parts_text(const Json& cluster, bool color) {
  std::vector<std::vector<std::string>> rows{{"PARTITION", "OWNER", "EPOCH", "LEASE"}};
  for (const Json& part : list_of(cluster, "parts")) {
    if (!part.is_object()) continue;
    const bool owned = has_owner(part);
    rows.push_back({text_field(part, "part"), text_field(part, "owner"), text_field(part, "epoch"),
                    owned ? format_duration(number(part, "left_ns")) + " left" : std::string("ended")});
  }
  return table(rows, color);
}

// Nothing while evidence is put.
std::string bucket_text(const Json& status, const ClusterOptions& o, bool color) {
  const auto collector = status.find("collector");
  if (collector == status.end() || !collector->is_object()) return "";
  const auto bucket = collector->find("bucket");
  if (bucket == collector->end() || !bucket->is_object()) return "";
  const std::string trouble = text_field(*bucket, "trouble");
  if (trouble == "-") return "";
  return inked(fmt::format(
                   "No evidence is put into the bucket since {}: {}. {} wait in this member's archive and "
                   "in its agents' spools.",
                   time_field(*bucket, "trouble_since_ns", o.remote.zone), trouble,
                   format_bytes(static_cast<uint64_t>(number(*bucket, "waiting_bytes")))),
               Ink::kAlarm, color) +
         "\n";
}

std::string cluster_text(const Json& cluster, const ClusterOptions& o) {
  const bool color = wants_color();
  std::string out;
  if (const std::string trouble = text_field(cluster, "trouble"); trouble != "-")
    out += fmt::format(
        "{}\n", inked(fmt::format("The database does not answer since {}: {}. This member does nothing; {}.",
                                  time_field(cluster, "trouble_since_ns", o.remote.zone), trouble,
                                  number(cluster, "read_ns") > 0
                                      ? "what follows is of " + time_field(cluster, "read_ns", o.remote.zone)
                                      : "nothing was read since its start"),
                      Ink::kAlarm, color));
  out += members_text(cluster, color);
  std::vector<int64_t> free;
  for (const Json& part : list_of(cluster, "parts"))
    if (part.is_object() && !has_owner(part)) free.push_back(number(part, "part"));
  if (!free.empty())
    out += fmt::format("{} without an owner, so for {} jobs nothing is done: {}\n",
                       counted(free.size(), "partition"), free.size() == 1 ? "its" : "their", ranges(free));
  if (cluster.value("above_memory_mark", false))
    out += fmt::format("{} takes no further partition: its memory is above the mark of {}\n",
                       text_field(cluster, "member"),
                       format_bytes(static_cast<uint64_t>(number(cluster, "memory_mark_bytes"))));
  if (const auto words = cluster.find("judgements"); words != cluster.end() && words->is_object())
    if (const int64_t waiting = number(*words, "waiting"); waiting > 0)
      out += fmt::format("{} {} for the database: the other members do not have {} yet\n",
                         counted(static_cast<uint64_t>(waiting), "judgement"),
                         waiting == 1 ? "waits" : "wait", waiting == 1 ? "it" : "them");
  if (o.all) out += "\n" + parts_text(cluster, color);
  return out;
}

int cluster_status(ClusterOptions& o) {
  if (o.json) o.remote.format = "json";
  if (const Status ready = resolve(o.remote); !ready) return report_error(ready.error().text), kUnable;
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto status = get_json(*client, "/v1/status");
  if (!status) return report_error(status.error().text), kUnable;
  const auto cluster = status->is_object() ? status->find("cluster") : status->end();
  if (!status->is_object() || cluster == status->end() || !cluster->is_object())
    return report_error("this daemon shares its jobs with no other collector: cluster.database is not set"),
           kUnable;
  if (o.remote.format == "json") return print(text_of(*cluster)) ? kDone : kUnable;
  return print(cluster_text(*cluster, o) + bucket_text(*status, o, wants_color())) ? kDone : kUnable;
}

int cluster_plan(ClusterPlanOptions& o) {
  o.site.evidence = !o.no_evidence;
  return print(o.json ? plan_json(o.site) : plan_text(o.site, wants_color())) ? kDone : kUnable;
}

void add_cluster_plan(Command& cluster, Run& run) {
  auto o = std::make_shared<ClusterPlanOptions>();
  PlanSite& site = o->site;
  Command* verb =
      cluster.add_subcommand("plan", "How many collectors a site needs, and how much of the rest");
  verb->footer(kClusterPlanExamples);
  verb->add_option("--hosts", site.hosts, "Hosts of the site")->required()->between(1.0, 1e8);
  verb->add_option("--ranks-per-host", site.ranks_per_host, "Ranks of a host")
      ->between(1.0, 1e3)
      ->show_default();
  verb->add_option("--step", site.step_s, "Seconds of a training step")->between(.01, 1e5)->show_default();
  verb->add_flag("--no-evidence", o->no_evidence, "As with forward.evidence.policy = \"none\" at all agents");
  verb->add_option("--days", site.days, "Days of evidence in the bucket")->between(0.0, 1e4)->show_default();
  verb->add_option("--row-days", site.row_days, "Days of rows of objects: cluster.bucket.max_age")
      ->between(0.0, 1e4)
      ->show_default();
  verb->add_option("--jobs-a-day", site.jobs_a_day, "Jobs that begin in a day")
      ->between(0.0, 1e8)
      ->show_default();
  verb->add_option("--report-bytes", site.report_bytes, "Bytes of a report, packed")
      ->between(0.0, 1048576.0)
      ->show_default();
  verb->add_option("--price-put", site.price_put, "Of 1,000 puts, in any currency")->between(0.0, 1e9);
  verb->add_option("--price-gb-month", site.price_gb_month, "Of a month of 10^9 bytes, bucket and database")
      ->between(0.0, 1e9);
  verb->add_option("--price-core-month", site.price_core_month, "Of a month of a core of a collector")
      ->between(0.0, 1e9);
  verb->add_flag("--json", o->json, "As JSON, with the constants");
  verb->callback([o, &run] { run = [o] { return cluster_plan(*o); }; });
}

}  // namespace

void add_cluster(Command& app, Run& run) {
  Command* cluster = app.add_subcommand("cluster", "Collectors that share their jobs over one database");
  cluster->require_subcommand();
  cluster->footer(kClusterExamples);
  auto o = std::make_shared<ClusterOptions>();
  Command* verb = cluster->add_subcommand("status", "Members, what each owns, and what has no owner");
  verb->footer(kStatusExamples);
  verb->add_flag("--all", o->all, "Each partition, with its owner, epoch and lease");
  verb->add_flag("--json", o->json, "As --format json");
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  add_timezone(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return cluster_status(*o); }; });
  add_cluster_plan(*cluster, run);
}

}  // namespace culprit::cli
