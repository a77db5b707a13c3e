#include "app/daemon/api/cluster_view.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"

namespace culprit::app {
namespace {

size_t without_owner(const ClusterView& view) {
  return static_cast<size_t>(
      std::ranges::count_if(view.parts, [](const PartRow& part) { return part.left_ns <= 0; }));
}

nlohmann::json http_of(const MemberRow& member) {
  return member.http.empty() ? nlohmann::json() : nlohmann::json(to_utf8(member.http));
}

nlohmann::json members_json(const ClusterView& view) {
  std::map<std::string, size_t> parts;
  for (const PartRow& part : view.parts)
    if (part.left_ns > 0) ++parts[part.owner];
  nlohmann::json out = nlohmann::json::array();
  for (const MemberRow& member : view.members)
    out.push_back({{"name", to_utf8(member.name)},
                   {"address", to_utf8(member.address)},
                   {"http", http_of(member)},
                   {"age_ns", member.age_ns},
                   {"takes", member.takes},
                   {"parts", parts[member.name]}});
  return out;
}

nlohmann::json parts_json(const ClusterView& view) {
  nlohmann::json out = nlohmann::json::array();
  for (const PartRow& part : view.parts) {
    nlohmann::json one = {{"part", part.part}, {"owner", nullptr}, {"epoch", part.epoch}, {"left_ns", 0}};
    if (!part.owner.empty()) one["owner"] = to_utf8(part.owner), one["left_ns"] = part.left_ns;
    out.push_back(std::move(one));
  }
  return out;
}

nlohmann::json reports_json(const SharedReports& reports) {
  const SharedReports::Counts& counts = reports.counts();
  nlohmann::json out = {{"known", reports.published().all().size()},
                        {"known_bytes", reports.published().bytes()},
                        {"published", counts.published},
                        {"fenced", counts.fenced},
                        {"unpublished", reports.unpublished()},
                        {"unpublished_since_ns", nullptr},
                        {"trouble", nullptr}};
  if (const TimeNs since = reports.unpublished_since(); since != kNoTime) out["unpublished_since_ns"] = since;
  if (!reports.trouble().empty()) out["trouble"] = to_utf8(reports.trouble());
  return out;
}

void about_reports(serve::MetricsText& m, const SharedReports& reports) {
  const SharedReports::Counts& counts = reports.counts();
  const auto value = [](uint64_t n) { return static_cast<double>(n); };
  m.counter("culprit_cluster_reports_total",
            "Reports of own jobs: published to the other members, fenced since another member owns the job, "
            "or failed at the database.")
      .value(value(counts.published), {{"result", "published"}})
      .value(value(counts.fenced), {{"result", "fenced"}})
      .value(value(counts.failed), {{"result", "failed"}});
  m.counter("culprit_cluster_reports_cut_total",
            "Reports of own jobs that were too large to be published whole: their lists were cut, or only "
            "the line in the list of jobs was published, or not even that.")
      .value(value(counts.cut - counts.too_large), {{"left", "lists"}})
      .value(value(counts.too_large), {{"left", "line"}})
      .value(value(counts.unlisted), {{"left", "nothing"}});
  m.gauge("culprit_cluster_reports_unpublished", "Own jobs whose newest report is not published.")
      .value(value(reports.unpublished()));
  m.gauge("culprit_cluster_reports_known", "Published reports in memory.")
      .value(value(reports.published().all().size()));
  m.gauge("culprit_cluster_reports_known_bytes", "Bytes of these.").value(value(reports.published().bytes()));
  m.counter("culprit_cluster_reports_dropped_total", "Of these, dropped for want of memory.")
      .value(value(reports.published().dropped()));
  m.counter("culprit_cluster_reports_read_total", "Changed reports that were read.")
      .value(value(counts.read));
  m.counter("culprit_cluster_reports_reads_failed_total", "Times that the database did not give them.")
      .value(value(counts.reads_failed));
}

}  // namespace

nlohmann::json judgements_status(const SharedJudgements& judgements) {
  const SharedJudgements::Counts& counts = judgements.counts();
  nlohmann::json out = {{"published", counts.published}, {"read", counts.read},
                        {"applied", counts.applied},     {"refused", counts.refused},
                        {"waiting", counts.waiting},     {"trouble", nullptr},
                        {"trouble_since_ns", nullptr}};
  if (judgements.trouble().empty()) return out;
  out["trouble"] = to_utf8(judgements.trouble());
  out["trouble_since_ns"] = judgements.trouble_since();
  return out;
}

void about_judgements(serve::MetricsText& m, const SharedJudgements& judgements) {
  const SharedJudgements::Counts& counts = judgements.counts();
  const auto value = [](uint64_t n) { return static_cast<double>(n); };
  m.counter(
       "culprit_cluster_judgements_total",
       "People's judgements: published to the other members, read and applied to a diagnosis of this one, "
       "or refused since the row has another form.")
      .value(value(counts.published), {{"result", "published"}})
      .value(value(counts.applied), {{"result", "applied"}})
      .value(value(counts.refused), {{"result", "refused"}});
  m.gauge("culprit_cluster_judgements_waiting", "Judgements that the other members do not have yet.")
      .value(value(counts.waiting));
  m.counter("culprit_cluster_judgements_failed_total", "Times that the database did not take or give them.")
      .value(value(counts.failed));
}

nlohmann::json pools_status(const SharedPools& pools) {
  const SharedPools::Counts& counts = pools.counts();
  nlohmann::json out = {
      {"published", counts.published}, {"applied", counts.applied}, {"refused", counts.refused},
      {"waiting", counts.waiting},     {"trouble", nullptr},        {"trouble_since_ns", nullptr}};
  if (pools.trouble().empty()) return out;
  out["trouble"] = to_utf8(pools.trouble());
  out["trouble_since_ns"] = pools.trouble_since();
  return out;
}

void about_pools(serve::MetricsText& m, const SharedPools& pools) {
  const SharedPools::Counts& counts = pools.counts();
  const auto value = [](uint64_t n) { return static_cast<double>(n); };
  m.counter("culprit_cluster_pools_total",
            "What healthy jobs taught, or a person took back: published to the other members, applied here, "
            "or refused since the row has another form.")
      .value(value(counts.published), {{"result", "published"}})
      .value(value(counts.applied), {{"result", "applied"}})
      .value(value(counts.refused), {{"result", "refused"}});
  m.gauge("culprit_cluster_pools_waiting", "Of these, what the other members do not have yet.")
      .value(value(counts.waiting));
  m.counter("culprit_cluster_pools_failed_total", "Times that the database did not take or give them.")
      .value(value(counts.failed));
}

nlohmann::json cluster_members(const LeaseService& leases) {
  const PartitionGate::State state = leases.gate()->state();
  std::map<std::string, nlohmann::json> parts;
  for (const PartRow& part : state.view.parts) {
    if (part.left_ns <= 0) continue;
    nlohmann::json& of_owner = parts.try_emplace(part.owner, nlohmann::json::array()).first->second;
    of_owner.push_back(part.part);
  }
  nlohmann::json items = nlohmann::json::array();
  for (const MemberRow& member : state.view.members) {
    const auto owned = parts.find(member.name);
    items.push_back({{"name", to_utf8(member.name)},
                     {"http", http_of(member)},
                     {"address", to_utf8(member.address)},
                     {"this", member.name == leases.gate()->name()},
                     {"seen_ns", state.read_ns - member.age_ns},
                     {"takes", member.takes},
                     {"parts", owned == parts.end() ? nlohmann::json::array() : owned->second}});
  }
  nlohmann::json out = {{"member", to_utf8(leases.gate()->name())},
                        {"connected", state.is_fresh},
                        {"read_ns", nullptr},
                        {"items", std::move(items)}};
  if (state.read_ns != kNoTime) out["read_ns"] = state.read_ns;
  return out;
}

nlohmann::json cluster_status(const LeaseService& leases, const SharedReports& reports) {
  const PartitionGate::State state = leases.gate()->state();
  nlohmann::json out = {{"member", leases.gate()->name()},
                        {"address", leases.gate()->address()},
                        {"connected", state.is_fresh},
                        {"trouble", nullptr},
                        {"trouble_since_ns", nullptr},
                        {"read_ns", nullptr},
                        {"owned", state.owned.size()},
                        {"without_owner", without_owner(state.view)},
                        {"memory_mark_bytes", leases.memory_mark()},
                        {"above_memory_mark", leases.is_above_mark()},
                        {"actions_reserved", state.reserved},
                        {"actions_fenced", state.fenced},
                        {"members", members_json(state.view)},
                        {"parts", parts_json(state.view)}};
  out["reports"] = reports_json(reports);
  if (state.read_ns != kNoTime) out["read_ns"] = state.read_ns;
  if (!state.is_fresh) {
    out["trouble"] = state.error.empty() ? "it has not answered yet" : to_utf8(state.error);
    if (state.error_since_ns != kNoTime) out["trouble_since_ns"] = state.error_since_ns;
  }
  return out;
}

void about_cluster(serve::MetricsText& m, const LeaseService& leases, const SharedReports& reports) {
  const PartitionGate::State state = leases.gate()->state();
  m.gauge("culprit_cluster_database_up", "1 while the cluster's database answers in time, else 0.")
      .value(state.is_fresh ? 1 : 0);
  m.gauge("culprit_cluster_partitions_owned", "Partitions of jobs that this member owns.")
      .value(static_cast<double>(state.owned.size()));
  m.gauge("culprit_cluster_partitions_without_owner",
          "Partitions that no member owned when the database was last read.")
      .value(static_cast<double>(without_owner(state.view)));
  m.counter("culprit_cluster_actions_total",
            "Actions of this member: reserved in the database, or fenced and not done.")
      .value(static_cast<double>(state.reserved), {{"result", "reserved"}})
      .value(static_cast<double>(state.fenced), {{"result", "fenced"}});
  about_reports(m, reports);
}

nlohmann::json bucket_status(const BucketService& bucket) {
  const BucketService::State state = bucket.state();
  nlohmann::json out = {{"name", state.bucket},
                        {"trouble", nullptr},
                        {"trouble_since_ns", nullptr},
                        {"put_ns", nullptr},
                        {"objects", state.objects},
                        {"bytes", state.bytes},
                        {"waiting_bytes", state.waiting_bytes},
                        {"lost_segments", state.lost_segments},
                        {"cache_bytes", state.cache_bytes}};
  if (state.put_ns != kNoTime) out["put_ns"] = state.put_ns;
  if (state.trouble.empty()) return out;
  out["trouble"] = to_utf8(state.trouble);
  out["trouble_since_ns"] = state.trouble_since_ns;
  return out;
}

void about_bucket(serve::MetricsText& m, const BucketService& bucket) {
  const BucketService::State state = bucket.state();
  const auto value = [](uint64_t n) { return static_cast<double>(n); };
  m.gauge("culprit_bucket_up", "1 while evidence can be put into the bucket, else 0.")
      .value(state.trouble.empty() ? 1 : 0);
  m.counter("culprit_bucket_objects_total", "Objects put, with their rows.").value(value(state.objects));
  m.counter("culprit_bucket_bytes_total", "Bytes of these objects.").value(value(state.bytes));
  m.counter("culprit_bucket_requests_total", "Requests to put, list and delete, with repeated ones.")
      .value(value(state.puts));
  m.counter("culprit_bucket_failures_total", "Times that putting stopped at an error.")
      .value(value(state.failures));
  m.gauge("culprit_bucket_waiting_bytes", "Evidence in the archive that is in no object yet.")
      .value(value(state.waiting_bytes));
  m.counter("culprit_bucket_lost_segments_total",
            "Segments that the archive deleted before all of it was in an object.")
      .value(value(state.lost_segments));
  m.gauge("culprit_bucket_cache_bytes", "Parts of objects that were read, on this disk.")
      .value(value(state.cache_bytes));
}

}  // namespace culprit::app
