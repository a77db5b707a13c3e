#include "cli/shared_jobs.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace culprit::cli {
namespace {

constexpr TimeNs kNever = std::numeric_limits<TimeNs>::min();

// An empty object without [cluster].
Json cluster_in(const Json& answer) {
  const auto at = answer.find("cluster");
  return at != answer.end() && at->is_object() ? *at : Json::object();
}

TimeNs time_in(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number_integer() ? at->get<TimeNs>() : kNever;
}

// How good an answer is: the owner's, one that was published by its time, another collector's own.
std::pair<int, TimeNs> rank_of(const Json& item) {
  const Json cluster = cluster_in(item);
  const TimeNs as_of = time_in(cluster, "as_of_ns");
  return {cluster.value("owner", Json()) == true ? 2 : as_of != kNever ? 1 : 0, as_of};
}

bool are_one_run(const Json& a, const Json& b) {
  const auto begins_within = [](const Json& one, const Json& other) {
    return other.value("state", Json()) == "running" || time_in(one, "first_ns") <= time_in(other, "last_ns");
  };
  return begins_within(a, b) && begins_within(b, a);
}

std::string published_text(const Json& cluster, const Zone& zone) {
  return fmt::format("{}, from {}", time_field(cluster, "as_of_ns", zone), text_field(cluster, "member"));
}

}  // namespace

void keep_best(Json::array_t& items) {
  std::map<std::string, std::vector<size_t>> of_job;
  for (size_t i = 0; i < items.size(); ++i)
    if (!cluster_in(items[i]).empty()) of_job[text_field(items[i], "id")].push_back(i);
  std::set<size_t> worse;
  for (const auto& [job, all] : of_job)
    for (const size_t one : all)
      for (const size_t other : all) {
        const auto rank = rank_of(items[one]), better = rank_of(items[other]);
        const bool loses = better > rank || (better == rank && other < one);
        if (loses && items[one]["server"] != items[other]["server"] && are_one_run(items[one], items[other]))
          worse.insert(one);
      }
  size_t at = 0;
  std::erase_if(items, [&](const Json&) { return worse.contains(at++); });
}

std::string origin_text(const Json& answer, const Zone& zone) {
  const Json cluster = cluster_in(answer);
  const auto since = [&](const char* name) { return time_field(cluster, name, zone); };
  if (time_in(cluster, "as_of_ns") != kNever) {
    std::string out = "as of " + published_text(cluster, zone);
    if (time_in(cluster, "database_away_since_ns") != kNever)
      out += fmt::format("; the database does not answer since {}", since("database_away_since_ns"));
    return out;
  }
  if (time_in(cluster, "unpublished_since_ns") == kNever) return "";
  return fmt::format("unpublished since {}: other members of the cluster do not have this",
                     since("unpublished_since_ns"));
}

std::string as_of_field(const Json& job, const Zone& zone) {
  const Json cluster = cluster_in(job);
  if (cluster.empty()) return "";
  return time_in(cluster, "as_of_ns") == kNever ? "now" : published_text(cluster, zone);
}

}  // namespace culprit::cli
