// The states of hosts in GET /v1/suspects and GET /v1/hosts: a verdict makes a suspect. A diagnosis that is
// no verdict, or that rests only on users' claims, makes a host odd. No other fact changes the state.
#include <map>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"
#include "app/daemon/api/host_rows.h"
#include "app/daemon/api/named_hosts.h"
#include "base/time.h"

namespace culprit::app {
namespace {

// The row of GET /v1/suspects.
json suspect_row(const NamedHost& one) {
  json out = {{"job", one.job},
              {"run", one.run},
              {"host", one.host},
              {"score", one.place.score},
              {"ranks", one.place.ranks},
              {"devices", one.place.devices},
              {"why", one.place.why},
              {"last_ns", time_or_null(one.last_ns)},
              {"diagnosis", one.diagnosis},
              {"reason", one.title},
              {"confidence", one.confidence}};
  json uids = json::array(), pods = json::array();
  for (const Principal& who : one.claimed_by)
    who.is_pod() ? pods.push_back(who.pod_id()) : uids.push_back(uid_json(who));
  if (!uids.empty()) out["claimed_by"] = std::move(uids);
  if (!pods.empty()) out["claimed_by_pods"] = std::move(pods);
  return out;
}

Result<std::vector<NamedHost>> hosts_of_index(records::Records& index, const std::string& job) {
  const auto rows = index.verdicts({.job = job});
  if (!rows) return tl::unexpected(rows.error());
  const auto cleared = index.cleared();
  if (!cleared) return tl::unexpected(cleared.error());
  std::map<std::string, uint32_t> last;
  for (const Verdict& v : *rows)
    if (!last.contains(v.job))
      if (const auto known = index.job(v.job); known && *known) last[v.job] = (*known)->run;
  return named_hosts(*rows, last, *cleared);
}

}  // namespace

void put_host_state(json& row, const NamedHost* of) {
  const bool suspected = of && of->verdict && !of->claimed();
  row["suspected"] = suspected;
  row["standing"] = !of ? "normal" : suspected ? "suspect" : "odd";
  row["score"] = of ? json(of->place.score) : json();
  row["reason"] = of ? json(of->title) : json();
  row["job"] = of ? json(of->job) : json();
  row["diagnosis"] = of ? json(of->diagnosis) : json();
}

// Includes other hosts whose logs are read here, with the findings about them.
DaemonApi::HostRows DaemonApi::host_rows(const std::vector<NamedHost>& named) {
  const serve::Health now = health();
  uint64_t lag = 0, gaps = 0;
  if (const Sources* sources = parts_.sources())
    for (const Tails::Tail& tail : sources->tails().tails())
      lag += tail.stats.lag_bytes, gaps += tail.stats.gaps;
  HostRows rows;
  json own = {{"host", parts_.config->host.name},
              {"state", now.ok ? "healthy" : "unhealthy"},
              {"last_ns", env_.now(io::Clock::kWall)},
              {"lag_bytes", lag},
              {"gaps", gaps},
              {"version", CULPRIT_VERSION}};
  put_host_state(own, nullptr);
  for (const NamedHost* one : worst_by_host(named, env_.now(io::Clock::kWall))) {
    if (one->host == parts_.config->host.name) {
      put_host_state(own, one);
      continue;
    }
    json row = {{"host", one->host},
                {"state", "not watched here"},
                {"last_ns", time_or_null(one->last_ns)},
                {"lag_bytes", nullptr},
                {"gaps", nullptr},
                {"version", nullptr}};
    put_host_state(row, one);
    rows.emplace_back(one->host, std::move(row));
  }
  rows.emplace(rows.begin(), parts_.config->host.name, std::move(own));
  return rows;
}

void named_in_index(Recorder& recorder, const std::string& job,
                    std::function<void(Result<std::vector<NamedHost>>)> then) {
  const auto named = std::make_shared<Result<std::vector<NamedHost>>>();
  recorder.query(
      [named, job](store::Spool&, records::Records& index) { *named = hosts_of_index(index, job); },
      [named, then = std::move(then)] { then(std::move(*named)); });
}

void DaemonLists::suspects_of(const std::optional<std::string>& job, KeepJob keep, Answer answer) {
  named_in_index(*parts_.recorder, job.value_or(""),
                 [keep = std::move(keep), answer = std::move(answer)](Result<std::vector<NamedHost>> named) {
                   if (!named) return answer(tl::unexpected(named.error()));
                   json items = json::array();
                   for (const NamedHost& one : *named)
                     if (one.verdict && keep(one.job)) items.push_back(suspect_row(one));
                   answer(dump({{"items", items}}));
                 });
}

void DaemonApi::hosts(Answer answer) {
  named_in_index(*parts_.recorder, "",
                 [this, answer = std::move(answer)](Result<std::vector<NamedHost>> named) {
                   if (!named) return answer(tl::unexpected(named.error()));
                   json items = json::array();
                   for (auto& [host, row] : host_rows(*named)) items.push_back(std::move(row));
                   answer(dump({{"items", std::move(items)}}));
                 });
}

}  // namespace culprit::app
