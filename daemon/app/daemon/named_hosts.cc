#include "app/daemon/named_hosts.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "app/daemon/api_json.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

constexpr TimeNs kOddFor = 24 * 3600 * kNsPerSecond;

std::string word_in(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

double share_in(const json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

// Adds each host that a standing diagnosis names, unless a person cleared it after its newest evidence.
void add_named(const store::DiagnosisRow& row, const std::map<std::string, TimeNs>& cleared,
               std::vector<NamedHost>& out) {
  const json d = parse_json(row.json);
  const bool stands = row.state == "open" || row.state == "confirmed";
  if (!stands || !d.is_object() || d.value("settled", json(true)) == false) return;
  const bool verdict = row.state == "confirmed" || d.value("verdict", json()) == true;
  const json accused = d.value("accused_ns", json::object());
  const json said = d.value("said_by", json());
  const json users = said.is_object() ? said.value("uids", json::array()) : json::array();
  for (const json& place : d.value("hosts", json::array())) {
    const std::string host = place.is_object() ? word_in(place, "host") : "";
    if (host.empty()) continue;
    const json since = accused.is_object() ? accused.value(host, json()) : json();
    const TimeNs last = since.is_number_integer() ? since.get<TimeNs>() : row.last_ns;
    const auto at = cleared.find(host);
    if (at != cleared.end() && (last == kNoTime || last <= at->second)) continue;
    json item = {{"job", row.job},
                 {"run", row.run},
                 {"host", host},
                 {"score", share_in(place, "score")},
                 {"ranks", place.value("ranks", json::array())},
                 {"devices", place.value("devices", json::array())},
                 {"why", place.value("why", json::array())},
                 {"last_ns", time_or_null(last)},
                 {"diagnosis", row.id},
                 {"reason", word_in(d, "title")},
                 {"confidence", share_in(d, "confidence")}};
    if (!users.empty()) item["claimed_by"] = users;
    out.push_back({host, verdict, !users.empty(), share_in(place, "score"), last, std::move(item)});
  }
}

}  // namespace

std::vector<NamedHost> named_hosts(std::span<const store::DiagnosisRow> rows,
                                   const std::map<std::string, uint32_t>& last_run,
                                   const std::map<std::string, TimeNs>& cleared) {
  std::vector<NamedHost> out;
  for (const store::DiagnosisRow& row : rows)
    if (const auto run = last_run.find(row.job); run != last_run.end() && run->second == row.run)
      add_named(row, cleared, out);
  std::stable_sort(out.begin(), out.end(), [](const NamedHost& a, const NamedHost& b) {
    return std::tuple(a.claimed, !a.verdict, -a.score) < std::tuple(b.claimed, !b.verdict, -b.score);
  });
  std::set<std::pair<std::string, json>> claims;
  std::erase_if(out, [&](const NamedHost& one) {
    return one.claimed && !claims.emplace(one.host, one.item["claimed_by"]).second;
  });
  return out;
}

std::vector<const NamedHost*> worst_by_host(const std::vector<NamedHost>& named, TimeNs now) {
  std::vector<const NamedHost*> out;
  std::set<std::string> seen;
  for (const NamedHost& one : named) {
    const bool old = one.last_ns == kNoTime || one.last_ns < now - kOddFor;
    if ((!one.verdict || one.claimed) && old) continue;
    if (seen.insert(one.host).second) out.push_back(&one);
  }
  return out;
}

}  // namespace culprit::app
