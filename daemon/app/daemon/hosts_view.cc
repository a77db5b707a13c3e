// What GET /v1/suspects and GET /v1/hosts say of hosts: a verdict makes a suspect; a diagnosis that is no
// verdict, or that rests on the word of users alone, makes a host odd; nothing else is held against a host.
#include <map>
#include <utility>

#include "app/daemon/api_json.h"
#include "app/daemon/daemon_api.h"
#include "app/daemon/named_hosts.h"
#include "base/time.h"

namespace culprit::app {
namespace {

// What is held against a host; null for a host against which nothing is.
constexpr const char* kSuspicion[] = {"score", "reason", "job", "diagnosis"};
Result<std::vector<NamedHost>> hosts_of_index(store::Index& index, const std::string& job) {
  const auto rows = index.diagnoses({.job = job});
  if (!rows) return tl::unexpected(rows.error());
  const auto cleared = index.cleared();
  if (!cleared) return tl::unexpected(cleared.error());
  std::map<std::string, uint32_t> last;
  for (const store::DiagnosisRow& row : *rows)
    if (!last.contains(row.job))
      if (const auto known = index.job(row.job); known && *known) last[row.job] = (*known)->run;
  return named_hosts(*rows, last, *cleared);
}

// Sets what is held against the host. `of`: null, nothing.
void put_standing(json& row, const NamedHost* of) {
  const bool suspected = of && of->verdict && !of->claimed;
  row["suspected"] = suspected;
  row["standing"] = !of ? "normal" : suspected ? "suspect" : "odd";
  for (const char* name : kSuspicion) row[name] = of ? of->item.value(name, json()) : json();
}

}  // namespace

void DaemonApi::suspects(const std::optional<std::string>& job, Answer answer) {
  const auto named = std::make_shared<Result<std::vector<NamedHost>>>();
  parts_.recorder->query(
      [named, job](store::Spool&, store::Index& index) { *named = hosts_of_index(index, job.value_or("")); },
      [named, answer = std::move(answer)] {
        if (!*named) return answer(tl::unexpected(named->error()));
        json items = json::array();
        for (NamedHost& one : **named)
          if (one.verdict) items.push_back(std::move(one.item));
        answer(dump({{"items", items}}));
      });
}

// Logs of other hosts may be read here too: these hosts are listed with what is held against them.
json DaemonApi::host_rows(const std::vector<NamedHost>& named) {
  const serve::Health now = health();
  uint64_t lag = 0, gaps = 0;
  if (const Sources* sources = parts_.sources())
    for (const Tails::Tail& tail : sources->tails().tails())
      lag += tail.stats.lag_bytes, gaps += tail.stats.gaps;
  json items = json::array();
  json own = {{"host", parts_.config->host.name},
              {"state", now.ok ? "healthy" : "unhealthy"},
              {"last_ns", env_.now(io::Clock::kWall)},
              {"lag_bytes", lag},
              {"gaps", gaps},
              {"version", CULPRIT_VERSION}};
  put_standing(own, nullptr);
  for (const NamedHost* one : worst_by_host(named, env_.now(io::Clock::kWall))) {
    if (one->host == parts_.config->host.name) {
      put_standing(own, one);
      continue;
    }
    json row = {{"host", one->host},
                {"state", "not watched here"},
                {"last_ns", one->item.value("last_ns", json())},
                {"lag_bytes", nullptr},
                {"gaps", nullptr},
                {"version", nullptr}};
    put_standing(row, one);
    items.push_back(std::move(row));
  }
  items.insert(items.begin(), std::move(own));
  return items;
}

void DaemonApi::hosts(Answer answer) {
  const auto named = std::make_shared<Result<std::vector<NamedHost>>>();
  parts_.recorder->query([named](store::Spool&, store::Index& index) { *named = hosts_of_index(index, ""); },
                         [this, named, answer = std::move(answer)] {
                           if (!*named) return answer(tl::unexpected(named->error()));
                           answer(dump({{"items", host_rows(**named)}}));
                         });
}

}  // namespace culprit::app
